"""The three stages wired together: from recalled pairs of terms to a decision that rests on assumptions.

A target (h, r, t) gives a list of P assumptions, flat in both worlds: in the open world the N_h·N_t pairs of
associations, each with the probabilities of its relations; in the closed world up to 100 training facts.
**The target is masked**: (h, r, t) and (t, r⁻¹, h) get p = 0, in training and in prediction alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cogstage.model.bilinear import Bilinear
from cogstage.model.config import Config
from cogstage.model.decision import Decision
from cogstage.model.kernels import distinct_pairs, dot_scores
from cogstage.model.known_facts import KnownFacts, UsualTypes
from cogstage.model.recall import AssociationTable, Recall
from cogstage.model.recognition import RECALL_FEATURES, PairVectors, Recognition, margins, probabilities, with_known

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

    def is_target(self) -> Tensor:
        """(B, P) whether a pair is the target's own, in either direction."""
        h, t = self.head[:, None], self.tail[:, None]
        return ((self.pair_head == h) & (self.pair_tail == t)) | ((self.pair_head == t) & (self.pair_tail == h))

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
    kept: Tensor | None  # (B, P) which assumptions are there at all; None is all of them

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
        """(B, P) False where there is no assumption: too few facts, or no relation where one is demanded."""
        return torch.ones_like(self.recalled.pair_head, dtype=torch.bool) if self.kept is None else self.kept

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
    """The stages and their wiring; ``targets`` are the relations with a decision head, as numbers in ``relations``.

    ``folds`` are further recognitions that exist in training alone: each has not seen one part of the facts.
    """

    def __init__(self, config: Config, terms: int, relations: int, targets: Sequence[int], folds: int = 0) -> None:
        super().__init__()
        self.config, self.targets = config, tuple(targets)
        self.recall = Recall(terms, config.dimension)
        kind = Bilinear if config.recognition == "bilinear" else Recognition
        self.recognition: Recognition | Bilinear = kind(config, terms, relations)
        self.folds = nn.ModuleList(kind(config, terms, relations) for _ in range(folds))
        self.pair_vectors = PairVectors(config, relations, len(targets))
        self.decision = Decision(config, len(targets))
        self.known: KnownFacts | None = None  # the training facts, where assumptions may use them
        self.types: UsualTypes | None = None  # the types a relation joins, where they restrict recognition

    def forward(self, recalled: Recalled, target: int, fold: int | None = None) -> Assumptions:
        """Recognise and decide for targets of one relation (its number in the data set's relations)."""
        head = self.targets.index(target)
        pairs = self._distinct(recalled, target)
        terms, features = self._recognise(pairs, fold)
        left, right, p, which = pairs.left, pairs.right, features[0].detach(), pairs.which
        if self.config.recall_features or self.config.nearness:  # of the target too: not one vector a distinct pair
            left, right = (x[which.reshape(-1)] for x in (left, right))
            features = [x[which.reshape(-1)] for x in features]
            if self.config.recall_features:
                features.append(recall_features(recalled))
            if self.config.nearness:
                features.append(nearness(self.recall.term, recalled))
            which = torch.arange(which.numel(), device=which.device).reshape(which.shape)
        blocks = self.pair_vectors.blocks(terms, head)
        weights = self.pair_vectors.weights(self.recognition.relation[: self.recognition.na], head)
        gates, values = [], []
        for begin in range(0, max(len(left), 1), PAIRS_AT_ONCE):
            chosen = slice(begin, begin + PAIRS_AT_ONCE)
            seen = torch.cat([x[chosen] for x in features], 1)
            vectors = self.pair_vectors(blocks, left[chosen], right[chosen], seen, weights, head)
            gate, value = self.decision.weigh(F.dropout(vectors, self.config.dropout, self.training), head)
            gates.append(gate)
            values.append(value)
        gate, value = torch.cat(gates)[which], torch.cat(values)[which]  # (B, P)
        kept = recalled.valid
        if self.config.formed_only and kept is None:
            kept = (p > 0).any(1)[pairs.which]
        if self.config.mask == "pair" and recalled.pair_relation is None:
            other = ~recalled.is_target()
            kept = other if kept is None else kept & other
        used = kept
        if self.training and self.config.attention_dropout:
            lucky = torch.rand(gate.shape, device=gate.device) >= self.config.attention_dropout
            used = lucky if used is None else lucky & used
        attention = self.decision.weights(gate, used)
        logit = self.decision.logit(attention, value, head)
        bias = self.decision.bias[head]
        return Assumptions(recalled, gate, attention, value, logit, bias, head, p, pairs.which, kept)

    def erasure_loss(self, assumptions: Assumptions, label: Tensor, top: int = 5) -> Tensor:
        """Asks of the ``top`` assumptions that they suffice, and that p falls without them; summed over pairs."""
        config, attention = self.config, assumptions.attention.detach()
        best = attention.topk(min(top, attention.shape[1]), dim=1).indices
        mask = torch.zeros_like(assumptions.valid).scatter(1, best, True)
        loss = assumptions.logit.new_zeros(())
        if config.sufficiency:
            alone = self.decide(assumptions, mask)
            loss = loss + config.sufficiency * F.binary_cross_entropy_with_logits(alone, label, reduction="sum")
        if config.comprehensiveness:
            fall = assumptions.logit.sigmoid() - self.decide(assumptions, ~mask).sigmoid()
            # twice, as half of the pairs are positive
            short = (config.comprehensiveness_goal - fall).clamp(min=0.0) * label
            loss = loss + 2 * config.comprehensiveness * short.sum()
        return loss

    def decide(self, assumptions: Assumptions, keep: Tensor) -> Tensor:
        """The logit (B,) when only the assumptions in ``keep`` (B, P) are left: g = -∞ elsewhere, softmax again."""
        attention = self.decision.weights(assumptions.gate, keep & assumptions.valid)
        return self.decision.logit(attention, assumptions.value, assumptions.head_number)

    def _recognise(self, pairs: _Distinct, fold: int | None) -> tuple[Tensor | None, list[Tensor]]:
        """The terms' vectors (T, d), and what e_ij is told of the distinct pairs: p (U, K), then what is asked for."""
        config = self.config
        recognition = self.recognition if fold is None else cast("Recognition | Bilinear", self.folds[fold])
        with torch.set_grad_enabled(torch.is_grad_enabled() and config.pairs_reach_terms):
            terms = recognition.terms(self.recall.term, pairs.nodes)
            if pairs.relation is not None:  # facts: p of the known relation is 1, and there is no margin to tell
                p = F.one_hot(pairs.relation, recognition.na).to(terms.dtype)
                return terms, [p] + [torch.zeros_like(p)] * (config.margins + config.known_facts)
            parts, views = [], recognition.views(terms)
            for begin in range(0, max(len(pairs.left), 1), PAIRS_AT_ONCE):
                left, right = (x[begin : begin + PAIRS_AT_ONCE] for x in (pairs.left, pairs.right))
                mask = pairs.mask(begin, len(left), recognition.na)
                scores = recognition.scores(views, left, right)  # type: ignore[arg-type]
                found = []
                head, tail = pairs.nodes[left], pairs.nodes[right]
                unusual = ~self.types.of(head, tail) if self.types is not None else None
                if config.known_facts and self.known is not None:
                    known = self.known.of(head, tail, fold)
                    known = known if mask is None else known & ~mask
                    scores = with_known(scores, known, config.margin_clip)
                    found.append(known.to(scores.dtype))
                    unusual = None if unusual is None else unusual & ~known
                if unusual is not None:
                    mask = unusual if mask is None else mask | unusual
                if config.margins:
                    found.insert(0, margins(scores, config.margin_clip, mask))
                parts.append([probabilities(scores, mask), *found])
        return terms, [torch.cat(column) for column in zip(*parts, strict=True)]

    def _distinct(self, recalled: Recalled, target: int) -> _Distinct:
        """The distinct pairs of a batch: what is recognised depends on (i, j) alone, unless it is the masked target."""
        head, tail = recalled.pair_head.reshape(-1), recalled.pair_tail.reshape(-1)
        device, na, shape = head.device, self.recognition.na, recalled.pair_head.shape
        place = torch.zeros(len(self.recall.term), dtype=torch.long, device=device)
        place[head] = 1
        place[tail] = 1
        nodes = place.nonzero()[:, 0]
        place[nodes] = torch.arange(len(nodes), device=device)
        left, right = place[head], place[tail]
        if recalled.pair_relation is not None:  # closed world: the target is not among the facts
            relation = recalled.pair_relation.reshape(-1)
            first, which = distinct_pairs(left, right * na + relation)
            none = torch.empty(0, 2, dtype=torch.long, device=device)
            return _Distinct(nodes, left[first], right[first], which.reshape(shape), none, relation[first])
        h, t = recalled.head[:, None], recalled.tail[:, None]
        forward = ((recalled.pair_head == h) & (recalled.pair_tail == t)).reshape(-1).nonzero()[:, 0]
        backward = ((recalled.pair_head == t) & (recalled.pair_tail == h)).reshape(-1).nonzero()[:, 0]
        special, key = torch.unique(torch.cat([forward, backward])), right.clone()
        key[special] = len(nodes) + torch.arange(len(special), device=device)  # each a pair of its own
        first, which = distinct_pairs(left, key)
        rows = torch.cat([which[forward], which[backward]])
        inverse = (target + na // 2) % na
        names = torch.tensor([target] * len(forward) + [inverse] * len(backward), dtype=torch.long, device=device)
        return _Distinct(nodes, left[first], right[first], which.reshape(shape), torch.stack([rows, names], 1), None)


@dataclass(frozen=True)
class _Distinct:
    nodes: Tensor  # (T,) the terms of a batch
    left: Tensor  # (U,) distinct pairs, as positions in nodes
    right: Tensor  # (U,)
    which: Tensor  # (B, P) which distinct pair each assumption is
    masked: Tensor  # (x, 2) masked (row of U, relation)
    relation: Tensor | None  # (U,) closed world: the fact's relation

    def mask(self, begin: int, count: int, relations: int) -> Tensor | None:
        """The masked relations of rows begin..begin+count: (count, K), or None if there are none."""
        here = self.masked[(self.masked[:, 0] >= begin) & (self.masked[:, 0] < begin + count)]
        if not len(here):
            return None
        mask = torch.zeros(count, relations, dtype=torch.bool, device=here.device)
        mask[here[:, 0] - begin, here[:, 1]] = True
        return mask


def recall_features(recalled: Recalled) -> Tensor:
    """How strongly an assumption's terms were recalled: (B·P, 5).

    log p of each relative to the best of the target (0 for the target itself), whether the head's association is the
    head itself, the tail's the tail, and both.
    """
    own = [recalled.pair_head == recalled.head[:, None], recalled.pair_tail == recalled.tail[:, None]]
    strength = []
    for p, itself in zip((recalled.head_recall, recalled.tail_recall), own, strict=True):
        log_p = p.clamp(min=1e-30).log()
        strength.append((log_p - log_p.max(dim=1, keepdim=True).values).masked_fill(itself, 0.0))
    flags = [x.to(strength[0].dtype) for x in (*own, own[0] & own[1])]
    return torch.stack([*strength, *flags], 2).reshape(-1, RECALL_FEATURES)


@torch.no_grad()
def nearness(term: Tensor, recalled: Recalled) -> Tensor:
    """Cosines of an assumption's terms to the targets they were recalled for: (B·P, 2)."""
    shape = recalled.pair_head.shape
    found = []
    for target, pair in ((recalled.head, recalled.pair_head), (recalled.tail, recalled.pair_tail)):
        nodes, place = torch.unique(torch.cat([target, pair.reshape(-1)]), return_inverse=True)
        vectors = F.normalize(term[nodes], dim=1)
        own = place[: len(target), None].expand(shape).reshape(-1).contiguous()
        found.append(dot_scores(vectors[:, None].contiguous(), vectors, own, place[len(target) :]))
    return torch.cat(found, 1)


class World(Protocol):
    """Where assumptions come from."""

    def recalled(self, head: Tensor, tail: Tensor, target: int) -> Recalled:
        """The pairs that recall hands on for each target (head, relation ``target``, tail)."""

    def refresh(self, nodes: Tensor | None = None) -> None:
        """Recall anew: the vectors have moved; for ``nodes`` at once, for others when they are asked for."""


class OpenWorld:
    """Every association of the head with every one of the tail."""

    def __init__(self, recall: Recall, candidates: Tensor, count: int) -> None:
        self._table = AssociationTable(recall, candidates, count)

    def recalled(self, head: Tensor, tail: Tensor, target: int) -> Recalled:
        """The grid of associations."""
        return Recalled.grid(head, tail, self._table.of(head), self._table.of(tail))

    def refresh(self, nodes: Tensor | None = None) -> None:
        """Recall anew; for ``nodes`` at once."""
        self._table.refresh()
        if nodes is not None:
            self._table.recall_now(nodes)


@torch.inference_mode()
def assume(
    network: Network, world: World, head: Tensor, tail: Tensor, target: int, batch: int
) -> Iterator[Assumptions]:
    """The assumptions behind targets of one relation, ``batch`` at a time, without gradients or dropout."""
    network.eval()
    for begin in range(0, len(head), batch):
        recalled = world.recalled(head[begin : begin + batch], tail[begin : begin + batch], target)
        yield network(recalled, target)
