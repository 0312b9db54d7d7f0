"""Stage 2 while it learns: the weights of :mod:`cogstage.model.recognition` as torch parameters, and L_r.

    L_r = Σ related weight · logistic loss of s_k  +  Σ contrast weight · logistic loss of d_k

s_k learns from facts and from negatives that hold no relation, d_k from facts and as many facts of other relations.
"""

from __future__ import annotations

from dataclasses import fields

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cogstage.model.config import Config
from cogstage.model.recognition import ORDER_SCALE, Knowledge, RecognitionWeights, tower_scale
from cogstage.training.sampling import TripleBatch


class RecognitionModule(nn.Module):
    """The parameters of :class:`RecognitionWeights`, which names their equations."""

    def __init__(self, config: Config, terms: int, relations: int) -> None:
        super().__init__()
        d, w = config.dimension, config.tower
        self.dropout, self.scale = config.recognition_dropout, tower_scale(w)
        self.w_head = nn.Parameter(torch.randn(2 * d, w) * (2 * d) ** -0.5 * 0.6)
        self.w_tail = nn.Parameter(torch.randn(2 * d, w) * (2 * d) ** -0.5 * 0.6)
        self.offset = nn.Parameter(torch.zeros(terms, 2 * d))
        self.related = nn.Parameter(torch.randn(relations, w, w) * 0.02)
        self.contrast = nn.Parameter(torch.randn(relations, w, w) * 0.02)
        self.b_head, self.b_tail = (nn.Parameter(torch.zeros(w)) for _ in range(2))
        self.related_bias, self.contrast_bias, self.ppmi, self.order = (
            nn.Parameter(torch.zeros(relations)) for _ in range(4)
        )

    def weights(self) -> RecognitionWeights:
        """The parameters as arrays, copied."""
        return RecognitionWeights(
            **{entry.name: getattr(self, entry.name).detach().numpy().copy() for entry in fields(RecognitionWeights)}
        )

    def loss(self, x: Tensor, batch: TripleBatch, knowledge: Knowledge) -> Tensor:
        """L_r summed over a batch; x (V, 2d) are the inputs of all terms before δ is added."""
        heads, tails = torch.from_numpy(batch.triples[:, 0]), torch.from_numpy(batch.triples[:, 2])
        relation = torch.from_numpy(batch.triples[:, 1])
        (some_heads, head_row), (some_tails, tail_row) = (
            torch.unique(end, return_inverse=True) for end in (heads, tails)
        )
        head = self._drop((self._inputs(x, some_heads) @ self.w_head + self.b_head).tanh())
        tail = self._drop((self._inputs(x, some_tails) @ self.w_tail + self.b_tail).tanh())
        shift = self.ppmi[relation] * torch.from_numpy(knowledge.counts.ppmi(heads.numpy(), tails.numpy()))
        if knowledge.order is not None:
            lean = torch.from_numpy(knowledge.order.lean(heads.numpy(), tails.numpy()))
            shift = shift + ORDER_SCALE * self.order[relation] * lean
        label = torch.from_numpy(batch.label)
        weights = {
            "related": torch.from_numpy(batch.related_weight),
            "contrast": torch.from_numpy(batch.contrast_weight),
        }
        total = x.new_zeros(())
        for k in range(len(self.related)):
            for name, weight in weights.items():
                (chosen,) = ((relation == k) & (weight > 0)).nonzero(as_tuple=True)
                left, right = head[head_row[chosen]], tail[tail_row[chosen]]
                score = self.scale * ((left @ getattr(self, name)[k]) * right).sum(1)
                score = score + getattr(self, f"{name}_bias")[k]
                if name == "related":
                    score = score + shift[chosen]
                total = total + F.binary_cross_entropy_with_logits(
                    score, label[chosen], weight[chosen], reduction="sum"
                )
        return total

    def _inputs(self, x: Tensor, nodes: Tensor) -> Tensor:
        return x[nodes] + F.embedding(nodes, self.offset, sparse=True)

    def _drop(self, tower: Tensor) -> Tensor:
        """Dropout; ``F.dropout`` draws its mask half as fast on a processor."""
        if not self.training or not self.dropout:
            return tower
        return tower * ((torch.rand_like(tower) >= self.dropout) / (1.0 - self.dropout))
