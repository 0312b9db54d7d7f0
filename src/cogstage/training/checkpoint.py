"""Checkpoints: one file that is replaced whole, so that a killed run finds either the old or the new one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
import xxhash
from safetensors import SafetensorError, safe_open
from torch import Tensor

from cogstage.artefact import FORMAT_VERSION, META, new_file, software_version, to_json, write_text
from cogstage.errors import CogstageError
from cogstage.model.fast.memory import let_go

FILE = "state.safetensors"
BLOCK = 1 << 23  # bytes that are hashed or written together
DTYPES = {torch.float64: "F64", torch.float32: "F32", torch.int64: "I64", torch.int32: "I32", torch.bool: "BOOL"}


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
        said = json.dumps(info)
        with new_file(self.path / FILE) as temporary:
            save_tensors(kept, temporary, {"info": said, "check": _check(kept, said)})
        self._written = time.monotonic()

    @property
    def exists(self) -> bool:
        """Whether there is a state to go on from."""
        return (self.path / FILE).exists()

    def load(self) -> tuple[Stored, dict[str, Any]] | None:
        """The state, or None if there is none yet; a damaged one raises. Tensors are read when they are asked for."""
        file = self.path / FILE
        if not file.exists():
            return None
        try:
            with safe_open(file, "pt") as opened:
                said, check = opened.metadata()["info"], opened.metadata()["check"]
                tensors = Stored(file, {name: name for name in opened.keys()})  # noqa: SIM118
            if _check(tensors, said) != check:
                raise ValueError("its hash differs")
            return tensors, json.loads(said)
        except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
            raise CogstageError(f"{file} is damaged ({error}); train again without `resume`") from error


class Stored(Mapping[str, Tensor]):
    """The tensors of a file by the names given to them, each read when it is asked for."""

    def __init__(self, file: Path, names: Mapping[str, str]) -> None:
        self._file, self._names = file, names

    def __getitem__(self, name: str) -> Tensor:
        with safe_open(self._file, "pt") as opened:
            found: Tensor = opened.get_tensor(self._names[name]).clone()
        return found

    def under(self, prefix: str) -> Stored:
        """Those whose names begin with ``prefix``, named without it."""
        chosen = {name.removeprefix(prefix): kept for name, kept in self._names.items() if name.startswith(prefix)}
        return Stored(self._file, chosen)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _check(tensors: Mapping[str, Tensor], info: str) -> str:
    """Hash of all that a checkpoint holds."""
    digest = xxhash.xxh3_128(info.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        for part in _bytes(tensor):
            digest.update(part)
    return str(digest.hexdigest())


def _bytes(tensor: Tensor) -> Iterator[memoryview]:
    """What a tensor holds, in blocks; one that rests is not held longer than a block is used."""
    whole = tensor.reshape(-1).view(torch.uint8).numpy()
    for at in range(0, len(whole), BLOCK):
        yield whole[at : at + BLOCK].data
        let_go(tensor)


def save_tensors(tensors: Mapping[str, Tensor], path: Path, about: Mapping[str, str] | None = None) -> None:
    """Write a safetensors file as ``safetensors.torch.save_file`` does, but holding one resting tensor at a time."""
    ordered = sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0]))
    header: dict[str, Any] = {} if about is None else {"__metadata__": dict(about)}
    end = 0
    for name, tensor in ordered:
        begin, end = end, end + tensor.nbytes
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, tensor in ordered:
            file.writelines(_bytes(tensor))


def weights(module: torch.nn.Module) -> dict[str, Tensor]:
    """The parameters by name, not copied: they move with the next step."""
    return {name: parameter.detach() for name, parameter in module.named_parameters()}


def put_weights(module: torch.nn.Module, weights: Mapping[str, Tensor], where: str) -> None:
    """Give the parameters these values; names and shapes must fit."""
    own = dict(module.named_parameters())
    if set(own) != set(weights):
        raise CogstageError(f"{where}: the weights do not fit the configuration; train again")
    with torch.no_grad():
        for name, parameter in own.items():
            value = weights[name]
            if parameter.shape != value.shape:
                raise CogstageError(f"{where}: the weights do not fit the configuration; train again")
            if parameter.data_ptr() != value.data_ptr():
                parameter.copy_(value)
                let_go(parameter)
