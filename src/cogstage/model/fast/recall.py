"""L_n without anything of size |V|×|V|: the softmax is taken in chunks of rows.

The gradient is known, ∂L/∂logits = p - p̂, and is computed in the same pass.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

CHUNK = 1 << 22  # logits held at once: 16 MB in float32


class _CrossEntropy(torch.autograd.Function):
    """Σ_i -Σ_j p̂(j|i) log p(j|i) for rows υ_i (n, d) against υ' (V, d)."""

    @staticmethod
    def forward(ctx: Any, terms: Tensor, context: Tensor, position: Tensor, column: Tensor, value: Tensor) -> Tensor:
        count = max(1, CHUNK // max(1, len(context)))
        value = value.to(terms.dtype)
        wanted = any(ctx.needs_input_grad)
        grad_terms = torch.empty_like(terms) if wanted else None
        grad_context = torch.zeros_like(context) if wanted else None
        loss = terms.new_zeros(())
        for begin in range(0, len(terms), count):
            end = min(begin + count, len(terms))
            chosen = slice(*torch.searchsorted(position, torch.tensor([begin, end], device=position.device)).tolist())
            where = ((position[chosen] - begin), column[chosen])
            logits = terms[begin:end] @ context.T  # (n, V)
            norm = logits.logsumexp(1, keepdim=True)
            mass = terms.new_zeros(end - begin).index_add_(0, where[0], value[chosen])  # 1, or 0 without a target
            loss += (mass * norm[:, 0]).sum() - (value[chosen] * logits[where]).sum()
            if grad_terms is None or grad_context is None:
                continue
            change = logits.sub_(norm).exp_().mul_(mass[:, None])  # p, in place
            change.index_put_(where, -value[chosen], accumulate=True)  # p - p̂
            grad_terms[begin:end] = change @ context
            grad_context.addmm_(change.T, terms[begin:end])
        ctx.save_for_backward(grad_terms, grad_context)
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_terms, grad_context = ctx.saved_tensors
        if grads[0] != 1:  # in place, because the gradient of υ' is as large as υ'
            grad_terms, grad_context = grad_terms.mul_(grads[0]), grad_context.mul_(grads[0])
        return grad_terms, grad_context, None, None, None


def cross_entropy(terms: Tensor, context: Tensor, position: Tensor, column: Tensor, value: Tensor) -> Tensor:
    """L_n summed over rows υ_i (n, d) against υ' (V, d), with the sparse target p̂ given by its entries."""
    result: Tensor = _CrossEntropy.apply(terms, context, position, column, value)  # type: ignore[no-untyped-call]
    return result
