"""The terms most like a term, found in blocks: ℓ is the cosine of two centred towers."""

from __future__ import annotations

import torch
from torch import Tensor

from cogstage.model.fast.memory import late_zeros, let_go, rest, temporary_empty

CHUNK = 1 << 22  # likenesses held at once: 16 MB in float32


class Associations:
    """The N likest candidates of each term by one tower, computed when first asked for."""

    def __init__(self, tower: Tensor, candidates: Tensor, count: int) -> None:
        """``tower`` (V, w) are all terms' vectors, ``candidates`` (C,) the terms that may be associated."""
        other = torch.ones(len(tower)).index_fill_(0, candidates, 0).nonzero()[:, 0]
        order = torch.cat([candidates, other])
        centred = tower[order]
        centred -= centred[: len(candidates)].mean(0)
        centred /= centred.norm(dim=1, keepdim=True).clamp_min(1e-12)
        self._tower, self._candidates = centred, candidates  # the candidates come first
        self._count = min(count, max(len(candidates) - 1, 0))
        self._place = torch.empty_like(order).index_copy_(0, order, torch.arange(len(tower)))  # of a term in the tower
        self._found = torch.zeros(len(tower), dtype=torch.bool)  # whether a term's row of the tables below is filled
        self._ids = late_zeros(len(tower), self._count, dtype=torch.int32)
        self._likeness = late_zeros(len(tower), self._count, dtype=tower.dtype)
        rest(self._tower)  # until a term is asked for

    @torch.no_grad()
    def find(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Ids (B, N) and likeness (B, N) of each node's associations, likest first."""
        missing = nodes[~self._found[nodes]]
        if len(missing):
            missing, rows = torch.unique(missing), max(1, CHUNK // max(1, len(self._candidates)))
            buffer = temporary_empty(min(rows, len(missing)), len(self._candidates), dtype=self._tower.dtype)
            for part in missing.split(rows):
                ids, self._likeness[part] = self._likest(part, buffer[: len(part)])
                self._ids[part], self._found[part] = ids.int(), True
            let_go(self._tower)
        return self._ids[nodes].long(), self._likeness[nodes]

    def _likest(self, nodes: Tensor, likeness: Tensor) -> tuple[Tensor, Tensor]:
        place = self._place[nodes]
        torch.mm(self._tower[place], self._tower[: len(self._candidates)].T, out=likeness)  # (n, C)
        (own,) = (place < len(self._candidates)).nonzero(as_tuple=True)
        likeness[own, place[own]] = -2.0  # not the term itself
        best = likeness.topk(self._count, dim=1)
        return self._candidates[best.indices], best.values
