"""Adam for the scorers of the baselines."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

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
