"""The three stages wired together: from recalled pairs of terms to a decision that rests on assumptions.

A target (h, r, t) gives a list of P assumptions, flat in both worlds: in the open world the N_h·N_t pairs of
associations, each with the probabilities of its relations; in the closed world up to 100 training facts.
**The target is masked**: (h, r, t) and (t, r⁻¹, h) get p = 0, in training and in prediction alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cogstage.model.config import Config
from cogstage.model.decision import Decision
from cogstage.model.kernels import distinct_pairs
from cogstage.model.recall import AssociationTable, Recall
from cogstage.model.recognition import Recognition

PAIRS_AT_ONCE = 8192  # pairs whose vectors are computed together: they stay in the processor's cache


@dataclass(frozen=True)
class Recalled:
    """What recall hands on for a batch of targets: pairs of terms, not yet recognised."""

    head: Tensor  # (B,) the targets' heads
    tail: Tensor  # (B,) and tails
    pair_head: Tensor  # (B, P) terms associated with the head
    pair_tail: Tensor  # (B, P) and with the tail
    head_recall: Tensor  # (B, P) p(pair_head | head)
    tail_recall: Tensor  # (B, P) p(pair_tail | tail)
    head_rank: Tensor  # (B, P) place of pair_head among the candidates by p(·|head), 1 is the first
    tail_rank: Tensor  # (B, P) place of pair_tail by p(·|tail)
    pair_relation: Tensor | None = None  # (B, P) closed world: the fact's relation
    valid: Tensor | None = None  # (B, P) closed world: False where there are fewer facts than P

    @classmethod
    def grid(cls, head: Tensor, tail: Tensor, heads: tuple[Tensor, Tensor], tails: tuple[Tensor, Tensor]) -> Recalled:
        """Every association of the head with every one of the tail; each given as ids (B, N) and p (B, N)."""
        batch, wide, high = len(head), heads[0].shape[1], tails[0].shape[1]
        shape = (batch, wide, high)
        pair_head, head_recall = (x[:, :, None].expand(shape).reshape(batch, -1) for x in heads)
        pair_tail, tail_recall = (x[:, None, :].expand(shape).reshape(batch, -1) for x in tails)
        place = torch.arange(1, max(wide, high) + 1, device=head.device)
        head_rank = place[:wide, None].expand(wide, high).reshape(1, -1).expand(batch, -1)
        tail_rank = place[None, :high].expand(wide, high).reshape(1, -1).expand(batch, -1)
        return cls(head, tail, pair_head, pair_tail, head_recall, tail_recall, head_rank, tail_rank)


@dataclass(frozen=True)
class Assumptions:
    """What a forward pass gives: for each target P assumptions, and the decision that rests on them.

    ``logit`` = Σ_p attention·value + bias. Assumption p of target b has the relation probabilities
    ``relation_probability[b, p]`` over the K = 2·|R| relations and inverses; NA is left out.
    """

    recalled: Recalled
    gate: Tensor  # (B, P) g
    attention: Tensor  # (B, P) sums to 1, unless there is no assumption at all
    value: Tensor  # (B, P) signed: W_r·e
    logit: Tensor  # (B,)
    bias: Tensor  # () b_r
    head_number: int  # which of the decision heads
    distinct_probability: Tensor  # (U, K) p(k|i,j) of the distinct pairs
    distinct: Tensor  # (B, P) which of them each assumption is

    @property
    def pair_head(self) -> Tensor:
        """(B, P) terms associated with the head."""
        return self.recalled.pair_head

    @property
    def pair_tail(self) -> Tensor:
        """(B, P) terms associated with the tail."""
        return self.recalled.pair_tail

    @property
    def head_recall(self) -> Tensor:
        """(B, P) p(pair_head | head)."""
        return self.recalled.head_recall

    @property
    def tail_recall(self) -> Tensor:
        """(B, P) p(pair_tail | tail)."""
        return self.recalled.tail_recall

    @property
    def head_rank(self) -> Tensor:
        """(B, P) place of pair_head among the head's associations, from 1."""
        return self.recalled.head_rank

    @property
    def tail_rank(self) -> Tensor:
        """(B, P) place of pair_tail among the tail's associations, from 1."""
        return self.recalled.tail_rank

    @property
    def valid(self) -> Tensor:
        """(B, P) False where there is no assumption (closed world with few facts)."""
        valid = self.recalled.valid
        return torch.ones_like(self.recalled.pair_head, dtype=torch.bool) if valid is None else valid

    @property
    def relation_probability(self) -> Tensor:
        """(B, P, K) p(k|i,j)."""
        return self.distinct_probability[self.distinct]

    @property
    def contribution(self) -> Tensor:
        """(B, P) each assumption's signed share of the logit."""
        return self.attention * self.value

    def rationale_scores(self) -> Tensor:
        """(B, P, K) attention × relation probability: what the top K rationales are ranked by."""
        return self.attention[:, :, None] * self.relation_probability


class Network(nn.Module):
    """The stages and their wiring; ``targets`` are the relations with a decision head, as numbers in ``relations``."""

    def __init__(self, config: Config, terms: int, relations: int, targets: Sequence[int]) -> None:
        super().__init__()
        self.config, self.targets = config, tuple(targets)
        self.recall = Recall(terms, config.dimension)
        self.recognition = Recognition(relations, config.dimension, config.margins, config.margin_clip)
        self.decision = Decision(len(targets), config.dimension, config.attention)
        apart = config.term_offset or config.world == "closed"
        self.offset = nn.Parameter(torch.zeros(terms, config.dimension)) if apart else None  # δ (V, d)

    def terms(self, nodes: Tensor) -> Tensor:
        """The vectors of terms as stages 2 and 3 see them: υ, or υ + δ with υ left to stage 1. (T,) -> (T, d)."""
        sparse = self.config.optimizer == "lazy_adam"
        if self.offset is not None:
            vectors = self.recall.term.detach()[nodes] + F.embedding(nodes, self.offset, sparse=sparse)
        else:
            vectors = F.embedding(nodes, self.recall.term, sparse=sparse)
        return F.dropout(vectors, self.config.term_dropout, self.training)

    def forward(self, recalled: Recalled, target: int) -> Assumptions:
        """Recognise and decide for targets of one relation (its number in the data set's relations)."""
        head_number = self.targets.index(target)
        nodes, left, right, index, masked = self._distinct(recalled, target)
        terms = self.terms(nodes)
        blocks = self.recognition.blocks(terms)
        known = None if recalled.pair_relation is None else recalled.pair_relation.reshape(-1)[index.first]
        gates, values, probabilities = [], [], []
        for begin in range(0, max(len(left), 1), PAIRS_AT_ONCE):
            chosen = slice(begin, begin + PAIRS_AT_ONCE)
            parts = self._recognise(terms, left[chosen], right[chosen], masked, begin, known)
            vectors = self.recognition.vectors(blocks, left[chosen], right[chosen], *parts)
            gate, value = self.decision.weigh(F.dropout(vectors, self.config.dropout, self.training), head_number)
            gates.append(gate)
            values.append(value)
            probabilities.append(parts[0].detach())
        gate, value = torch.cat(gates)[index.which], torch.cat(values)[index.which]  # (B, P)
        attention = self.decision.weights(gate, recalled.valid)
        logit = self.decision.logit(attention, value, head_number)
        return Assumptions(
            recalled,
            gate,
            attention,
            value,
            logit,
            self.decision.bias[head_number],
            head_number,
            torch.cat(probabilities),
            index.which,
        )

    def decide(self, assumptions: Assumptions, keep: Tensor) -> Tensor:
        """The logit (B,) when only the assumptions in ``keep`` (B, P) are left: g = -∞ elsewhere, softmax again."""
        attention = self.decision.weights(assumptions.gate, keep & assumptions.valid)
        return self.decision.logit(attention, assumptions.value, assumptions.head_number)

    def _recognise(
        self, terms: Tensor, left: Tensor, right: Tensor, masked: Tensor, begin: int, known: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """p (M, K) and margins (M, K) of some distinct pairs; ``masked`` lists (row, relation) to leave out."""
        recognition = self.recognition
        if known is not None:  # a fact: p of its relation is 1
            p = F.one_hot(known[begin : begin + len(left)], recognition.na).to(terms.dtype)
            return p, None
        here = masked[(masked[:, 0] >= begin) & (masked[:, 0] < begin + len(left))]
        mask = None
        if len(here):
            mask = torch.zeros(len(left), recognition.na, dtype=torch.bool, device=terms.device)
            mask[here[:, 0] - begin, here[:, 1]] = True
        scores = recognition.scores(terms, left, right)
        margins = recognition.margins(scores, mask) if recognition.w_margin is not None else None
        return recognition.probabilities(scores, mask), margins

    def _distinct(self, recalled: Recalled, target: int) -> tuple[Tensor, Tensor, Tensor, _Index, Tensor]:
        """The distinct pairs of a batch: g and value depend on (i, j) alone, unless the pair is the masked target.

        Returns the terms (T,), pairs as positions among them (U,), (U,), the index between (B, P) and U, and the
        masked (row of U, relation).
        """
        head, tail = recalled.pair_head.reshape(-1), recalled.pair_tail.reshape(-1)
        place = torch.zeros(len(self.recall.term), dtype=torch.long, device=head.device)
        place[head] = 1
        place[tail] = 1
        nodes = place.nonzero()[:, 0]
        place[nodes] = torch.arange(len(nodes), device=head.device)
        left, right = place[head], place[tail]
        device, na = head.device, self.recognition.na
        masked = torch.empty(0, 2, dtype=torch.long, device=device)
        key = right
        if recalled.pair_relation is not None:  # closed world: the target is not among the facts
            key = right * na + recalled.pair_relation.reshape(-1)
        else:
            h, t = recalled.head[:, None], recalled.tail[:, None]
            forward = ((recalled.pair_head == h) & (recalled.pair_tail == t)).reshape(-1).nonzero()[:, 0]
            backward = ((recalled.pair_head == t) & (recalled.pair_tail == h)).reshape(-1).nonzero()[:, 0]
            special = torch.unique(torch.cat([forward, backward]))
            if len(special):
                key = right.clone()
                key[special] = len(nodes) + torch.arange(len(special), device=device)  # each a pair of its own
        first, which = distinct_pairs(left, key)
        if recalled.pair_relation is None and len(special):
            inverse = (target + self.recognition.n_relations) % na
            rows = torch.cat([which[forward], which[backward]])
            names = torch.tensor([target] * len(forward) + [inverse] * len(backward), device=device)
            masked = torch.stack([rows, names], 1)
        return nodes, left[first], right[first], _Index(first, which.reshape(recalled.pair_head.shape)), masked


@dataclass(frozen=True)
class _Index:
    first: Tensor  # (U,) where a distinct pair appears first in the flat list
    which: Tensor  # (B, P) which distinct pair each one is


class World(Protocol):
    """Where assumptions come from."""

    def recalled(self, head: Tensor, tail: Tensor, target: int) -> Recalled:
        """The pairs that recall hands on for each target (head, relation ``target``, tail)."""

    def refresh(self) -> None:
        """Recall anew: the vectors have moved."""


class OpenWorld:
    """Every association of the head with every one of the tail."""

    def __init__(self, recall: Recall, candidates: Tensor, count: int) -> None:
        self._table = AssociationTable(recall, candidates, count)

    def recalled(self, head: Tensor, tail: Tensor, target: int) -> Recalled:
        """The grid of associations."""
        return Recalled.grid(head, tail, self._table.of(head), self._table.of(tail))

    def refresh(self) -> None:
        """Recall anew: the vectors have moved."""
        self._table.refresh()


@torch.inference_mode()
def assume(
    network: Network, world: World, head: Tensor, tail: Tensor, target: int, batch: int
) -> Iterator[Assumptions]:
    """The assumptions behind targets of one relation, ``batch`` at a time, without gradients or dropout."""
    network.eval()
    for begin in range(0, len(head), batch):
        recalled = world.recalled(head[begin : begin + batch], tail[begin : begin + batch], target)
        yield network(recalled, target)
