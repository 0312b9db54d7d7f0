"""Adam for two kinds of parameters: dense ones, and those of which a step touches a few rows.

The lazy kind keeps moments and a step count for each row, and moves them only when the row is touched: tables of terms,
and the decisions of several relations, each of which learns as if it were alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from cogstage.model.fast.memory import late_zeros
from cogstage.training.distributed import Processes

BETAS = (0.9, 0.999)
EPSILON = 1e-8


class DenseAdam:
    """Adam for parameters with dense gradients; weight decay is decoupled (AdamW) or an L2 penalty.

    It calls torch's functions, because the classes of ``torch.optim`` load torch's compiler at their first use. That
    takes more than a second.
    """

    def __init__(self, decoupled: bool = True, fused: bool = False) -> None:
        self._decoupled, self._fused = decoupled, fused
        self.moments: dict[nn.Parameter, dict[str, Tensor]] = {}  # step, exp_avg and exp_avg_sq, as torch names them

    @torch.no_grad()
    def step(self, parameters: Iterable[nn.Parameter], rate: float, decay: float) -> None:
        """Step those parameters that have a gradient, and clear it."""
        stepped = [parameter for parameter in parameters if parameter.grad is not None]
        for parameter in stepped:
            if parameter not in self.moments:
                first, second = torch.zeros_like(parameter), torch.zeros_like(parameter)
                self.moments[parameter] = {"step": torch.zeros(()), "exp_avg": first, "exp_avg_sq": second}
        held = [self.moments[parameter] for parameter in stepped]
        adam(
            list[Tensor](stepped),
            [parameter.grad for parameter in stepped if parameter.grad is not None],
            [moments["exp_avg"] for moments in held],
            [moments["exp_avg_sq"] for moments in held],
            [],
            [moments["step"] for moments in held],
            fused=self._fused,
            decoupled_weight_decay=self._decoupled,
            amsgrad=False,
            beta1=BETAS[0],
            beta2=BETAS[1],
            lr=rate,
            weight_decay=decay,
            eps=EPSILON,
            maximize=False,
        )
        for parameter in stepped:
            parameter.grad = None


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
        self._alike: dict[float, list[nn.Parameter]] = {}  # parameters by their decay
        for name, parameter in self._parameters.items():
            self._alike.setdefault(self._decay.get(name, 0.0), []).append(parameter)
        self._dense = DenseAdam(fused=True)
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
        for decay, parameters in self._alike.items():
            self._dense.step(parameters, factor * self._rate, decay)
        for name, (rows, grad) in touched.items():
            self._step_rows(name, rows, grad, factor * self._rate)
        return norm

    @torch.no_grad()
    def _step_rows(self, name: str, rows: Tensor, value: Tensor, rate: float) -> None:
        parameter = self._parameters[name]
        if name not in self._rows:
            steps = torch.zeros(len(parameter), dtype=parameter.dtype, device=parameter.device)
            first, second = (late_zeros(*parameter.shape, dtype=parameter.dtype) for _ in range(2))
            self._rows[name] = (first, second, steps)
        first, second, steps = self._rows[name]
        # index_select and index_copy_ move whole rows; indexing with [rows] goes number by number and is slower.
        count = steps.index_select(0, rows).add_(1)
        each = count.reshape(-1, *[1] * (value.dim() - 1))
        mean = first.index_select(0, rows).lerp_(value, 1 - BETAS[0])
        square = second.index_select(0, rows).mul_(BETAS[1]).addcmul_(value, value, value=1 - BETAS[1])
        for kept, new in ((steps, count), (first, mean), (second, square)):
            kept.index_copy_(0, rows, new)
        size = square.div_(1 - BETAS[1] ** each).sqrt_().add_(EPSILON)
        moved = parameter.index_select(0, rows).mul_(1 - rate * self._decay.get(name, 0.0))
        parameter.index_copy_(0, rows, moved.addcdiv_(mean.div_(1 - BETAS[0] ** each), size, value=-rate))

    def state(self) -> dict[str, Tensor]:
        """Everything that a resumed run needs, by name."""
        found: dict[str, Tensor] = {}
        for name, parameter in self._parameters.items():
            for key, value in self._dense.moments.get(parameter, {}).items():
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
                self._dense.moments[parameter] = kept
            if f"rows.first.{name}" in state:
                first, second, steps = (state[f"rows.{key}.{name}"].clone() for key in ("first", "second", "steps"))
                self._rows[name] = (first, second, steps)
