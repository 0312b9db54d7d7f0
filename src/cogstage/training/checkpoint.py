"""Checkpoints: one file that is replaced whole, so that a killed run finds either the old or the new one."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import xxhash
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from cogstage.artefact import FORMAT_VERSION, META, new_file, software_version, to_json, write_text
from cogstage.errors import CogstageError

FILE = "state.safetensors"
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # of Adam, as torch names them


def under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Those whose names begin with ``prefix``, named without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


class Checkpoint:
    """A folder that holds the last state of a training; written at most every ``every`` seconds."""

    def __init__(self, path: Path | str, every: float = 30.0) -> None:
        self.path, self._every = Path(path), every
        self._written = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether enough time has passed since the last one."""
        return time.monotonic() - self._written >= self._every

    def save(self, tensors: Mapping[str, Tensor], info: Mapping[str, Any]) -> None:
        """Replace the state."""
        self.path.mkdir(parents=True, exist_ok=True)
        if not (self.path / META).exists():
            meta = {"kind": "checkpoint", "format": FORMAT_VERSION, "version": software_version(), "made_with": {}}
            write_text(self.path / META, to_json(meta))
        kept = {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}
        info_json = json.dumps(info)
        with new_file(self.path / FILE) as temporary:
            save_file(kept, temporary, {"info": info_json, "check": _check(kept, info_json)})
        self._written = time.monotonic()

    @property
    def exists(self) -> bool:
        """Whether there is a state to go on from."""
        return (self.path / FILE).exists()

    def load(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """The state, or None if there is none yet; a damaged one raises."""
        file = self.path / FILE
        if not file.exists():
            return None
        try:
            with safe_open(file, "pt") as opened:
                info_json, check = opened.metadata()["info"], opened.metadata()["check"]
                tensors = {name: opened.get_tensor(name).clone() for name in opened.keys()}  # noqa: SIM118
            if _check(tensors, info_json) != check:
                raise ValueError("its hash differs")
            return tensors, json.loads(info_json)
        except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
            raise CogstageError(f"{file} is damaged ({error}); train again without `resume`") from error


def _check(tensors: Mapping[str, Tensor], info: str) -> str:
    """Hash of all that a checkpoint holds."""
    digest = xxhash.xxh3_128(info.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return str(digest.hexdigest())


def weights(module: torch.nn.Module) -> dict[str, Tensor]:
    """The parameters by name, not copied: they change with the next step."""
    return {name: parameter.detach() for name, parameter in module.named_parameters()}


def load_weights(module: torch.nn.Module, weights: Mapping[str, Tensor], where: str) -> None:
    """Give the parameters these values; names and shapes must fit."""
    own = dict(module.named_parameters())
    if set(own) != set(weights) or any(own[name].shape != value.shape for name, value in weights.items()):
        raise CogstageError(f"{where}: the weights do not fit the configuration; train again")
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(weights[name])


def moments(optimiser: torch.optim.Optimizer, module: torch.nn.Module) -> dict[str, Tensor]:
    """Step and moments of Adam by the names of the module's parameters."""
    return {
        f"{moment}.{name}": torch.as_tensor(optimiser.state[parameter][moment])
        for name, parameter in module.named_parameters()
        if parameter in optimiser.state
        for moment in MOMENTS
    }


def restore_moments(optimiser: torch.optim.Optimizer, module: torch.nn.Module, state: Mapping[str, Tensor]) -> None:
    """Give an optimiser what :func:`moments` of one like it gave."""
    own = {parameter for group in optimiser.param_groups for parameter in group["params"]}
    for name, parameter in module.named_parameters():
        if parameter in own and f"step.{name}" in state:
            kept: dict[str, Any] = {moment: state[f"{moment}.{name}"].clone() for moment in MOMENTS}
            if isinstance(optimiser, torch.optim.SparseAdam):
                kept["step"] = int(kept["step"])
            optimiser.state[parameter] = kept
