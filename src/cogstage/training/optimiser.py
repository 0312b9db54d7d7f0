"""Adam for two kinds of parameters: dense ones, and those of which a step touches a few rows.

The lazy kind keeps moments and a step count for each row, and moves them only when the row is touched: tables of terms,
and the decision heads of several relations, each of which learns as if it were alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

from cogstage.training.distributed import Processes

BETAS = (0.9, 0.999)
EPSILON = 1e-8


class Adam:
    """Steps the parameters that have a gradient: summed over processes, clipped, applied, cleared."""

    def __init__(
        self,
        parameters: Iterable[tuple[str, nn.Parameter]],
        rate: float,
        clip: float,
        decay: Mapping[str, float],
        processes: Processes,
        by_row: Iterable[str] = (),
    ) -> None:
        """``by_row`` names parameters with dense gradients that are lazy all the same."""
        self._parameters, self._by_row = dict(parameters), frozenset(by_row)
        self._clip, self._processes, self._rate, self._decay = clip, processes, rate, dict(decay)
        groups = [{"params": [p], "weight_decay": self._decay.get(name, 0.0)} for name, p in self._parameters.items()]
        self._dense = torch.optim.AdamW(groups, lr=rate, betas=BETAS, eps=EPSILON, fused=True)
        self._rows: dict[str, tuple[Tensor, Tensor, Tensor]] = {}  # name: moments (V, d), (V, d), steps (V,)

    def step(self, factor: float = 1.0) -> float:
        """One step with ``factor`` times the learning rate; returns the norm of the gradient before clipping."""
        self._processes.sum_gradients(list(self._parameters.values()))
        touched: dict[str, tuple[Tensor, Tensor]] = {}  # rows and their gradients
        values: list[Tensor] = []
        for name, parameter in self._parameters.items():
            if parameter.grad is None:
                continue
            if parameter.grad.is_sparse:
                grad = parameter.grad.coalesce()
                touched[name] = grad.indices()[0], grad.values()
            elif name in self._by_row:
                rows = parameter.grad.reshape(len(parameter), -1).any(1).nonzero()[:, 0]
                touched[name] = rows, parameter.grad[rows]
            if name in touched:
                parameter.grad = None
                values.append(touched[name][1])
            else:
                values.append(parameter.grad)
        norm = float(torch.stack([value.norm() for value in values]).norm()) if values else 0.0
        if self._clip and norm > self._clip:
            for value in values:
                value.mul_(self._clip / norm)
        for group in self._dense.param_groups:
            group["lr"] = factor * self._rate
        self._dense.step()
        for name, (rows, grad) in touched.items():
            self._step_rows(name, rows, grad, factor * self._rate)
        for parameter in self._parameters.values():
            parameter.grad = None
        return norm

    @torch.no_grad()
    def _step_rows(self, name: str, rows: Tensor, value: Tensor, rate: float) -> None:
        parameter = self._parameters[name]
        if name not in self._rows:
            steps = torch.zeros(len(parameter), dtype=parameter.dtype, device=parameter.device)
            self._rows[name] = (torch.zeros_like(parameter), torch.zeros_like(parameter), steps)
        first, second, steps = self._rows[name]
        count = steps[rows] + 1
        each = count.reshape(-1, *[1] * (value.dim() - 1))
        mean = first[rows].lerp_(value, 1 - BETAS[0])
        square = second[rows].mul_(BETAS[1]).addcmul_(value, value, value=1 - BETAS[1])
        steps[rows], first[rows], second[rows] = count, mean, square
        size = (square / (1 - BETAS[1] ** each)).sqrt_().add_(EPSILON)
        moved = parameter[rows] * (1 - rate * self._decay.get(name, 0.0))
        parameter[rows] = moved.addcdiv_(mean / (1 - BETAS[0] ** each), size, value=-rate)

    def state(self) -> dict[str, Tensor]:
        """Everything that a resumed run needs, by name."""
        found: dict[str, Tensor] = {}
        for name, parameter in self._parameters.items():
            for key, value in self._dense.state.get(parameter, {}).items():
                found[f"dense.{key}.{name}"] = torch.as_tensor(value).reshape(-1) if key == "step" else value
            for key, value in zip(("first", "second", "steps"), self._rows.get(name, ()), strict=False):
                found[f"rows.{key}.{name}"] = value
        return found

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Take up what :meth:`state` gave."""
        for name, parameter in self._parameters.items():
            kept = {
                key: state[f"dense.{key}.{name}"].clone()
                for key in ("step", "exp_avg", "exp_avg_sq")
                if f"dense.{key}.{name}" in state
            }
            if kept:
                kept["step"] = kept["step"].reshape(())
                self._dense.state[parameter] = kept
            if f"rows.first.{name}" in state:
                first, second, steps = (state[f"rows.{key}.{name}"].clone() for key in ("first", "second", "steps"))
                self._rows[name] = (first, second, steps)
