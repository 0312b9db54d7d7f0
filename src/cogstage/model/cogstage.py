"""The three stages wired together: from recalled pairs of terms to a decision that rests on assumptions.

A target (h, r, t) gives a list of P assumptions, flat in both worlds: in the open world the N_h·N_t pairs of
associations, each with the probabilities of its relations; in the closed world up to 100 training facts.
**The target is masked**: (h, r, t) and (t, r⁻¹, h) get p = 0, in training and in prediction alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cogstage.model.bilinear import Bilinear
from cogstage.model.config import Config
from cogstage.model.decision import Decision
from cogstage.model.frozen import Told, read
from cogstage.model.informed import begin_informed
from cogstage.model.kernels import distinct_pairs, on_numba
from cogstage.model.known_facts import KnownFacts, UsualTypes
from cogstage.model.recall import AssociationTable, Recall
from cogstage.model.recognition import PairVectors, Recognition, margins, probabilities, with_known

PAIRS_AT_ONCE = 8192  # pairs whose vectors are computed together: they stay in the processor's cache


@dataclass(frozen=True)
class Side:
    """What recall hands on for one end, head or tail, of a batch of targets."""

    target: Tensor  # (B,) the terms at this end
    term: Tensor  # (B, N) terms associated with them
    probability: Tensor  # (B, N) p(term | target)
    rank: Tensor  # (B, N) place of the term among the candidates by p(·|target), 1 is the first

    @property
    def itself(self) -> Tensor:
        """(B, N) whether an association is the target's own term."""
        return self.term == self.target[:, None]


@dataclass(frozen=True)
class Recalled:
    """What recall hands on for a batch of targets: pairs of terms, not yet recognised.

    Assumption p joins association ``first[p]`` of the head with association ``second[p]`` of the tail.
    """

    heads: Side
    tails: Side
    first: Tensor  # (P,)
    second: Tensor  # (P,)
    pair_relation: Tensor | None = None  # (B, P) closed world: the fact's relation
    valid: Tensor | None = None  # (B, P) closed world: False where there are fewer facts than P

    @property
    def pair_head(self) -> Tensor:
        """(B, P) terms associated with the head."""
        return self.heads.term[:, self.first]

    @property
    def pair_tail(self) -> Tensor:
        """(B, P) terms associated with the tail."""
        return self.tails.term[:, self.second]

    def forward(self) -> Tensor:
        """(B, P) whether a pair is the target's own."""
        return self.heads.itself[:, self.first] & self.tails.itself[:, self.second]

    def backward(self) -> Tensor:
        """(B, P) whether a pair is the target's own turned round."""
        turned = [
            side.term == other.target[:, None] for side, other in ((self.heads, self.tails), (self.tails, self.heads))
        ]
        return turned[0][:, self.first] & turned[1][:, self.second]

    @classmethod
    def grid(cls, head: Tensor, tail: Tensor, heads: tuple[Tensor, Tensor], tails: tuple[Tensor, Tensor]) -> Recalled:
        """Every association of the head with every one of the tail; each given as ids (B, N) and p (B, N)."""
        left, right = (
            Side(target, term, p, torch.arange(1, term.shape[1] + 1, device=term.device).expand(term.shape))
            for target, (term, p) in ((head, heads), (tail, tails))
        )
        wide, high = heads[0].shape[1], tails[0].shape[1]
        place = torch.arange(wide * high, device=head.device)
        return cls(left, right, place // max(high, 1), place % max(high, 1))


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
    def valid(self) -> Tensor:
        """(B, P) False where there is no assumption: too few facts, or the target's own pair."""
        return torch.ones_like(self.distinct, dtype=torch.bool) if self.kept is None else self.kept

    @property
    def formed(self) -> Tensor:
        """(B, P) the assumptions that can be read: there, and some relation beats NA."""
        return (self.distinct_probability > 0).any(1)[self.distinct] & self.valid

    @property
    def best_probability(self) -> Tensor:
        """(B, P) p(k|i,j) of each assumption's likeliest relation."""
        return self.distinct_probability.amax(1)[self.distinct]

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
        if config.informed_start and config.world == "open" and config.pair_dimension != 1:
            begin_informed(self)
        self.known: KnownFacts | None = None  # the training facts, where assumptions may use them
        self.types: UsualTypes | None = None  # the types a relation joins, where they restrict recognition

    def forward(self, recalled: Recalled, target: int, fold: int | None = None) -> Assumptions:
        """Recognise and decide for targets of one relation (its number in the data set's relations)."""
        head = self.targets.index(target)
        pairs = self._distinct(recalled, target)
        terms, told = self._recognise(pairs, fold)
        p = told[:, : self.recognition.na].detach()
        formed = (p > 0).any(1)[pairs.which]
        kept = self._kept(recalled)
        if self.config.recall_features or self.config.nearness:
            gate, value = self._weigh_each(recalled, terms, pairs, told, formed, kept, head)
        else:  # e depends on (i, j) alone
            gate, value = (x[pairs.which] for x in self._weigh(terms, pairs, told, None, None, head))
        if self.config.silent_unformed:
            value = value * formed
        used = kept
        if self.training and self.config.attention_dropout:
            lucky = torch.rand(gate.shape, device=gate.device) >= self.config.attention_dropout
            used = lucky if used is None else lucky & used
        attention = self.decision.weights(gate, used)
        logit = self.decision.logit(attention, value, head)
        bias = self.decision.bias[head]
        return Assumptions(recalled, gate, attention, value, logit, bias, head, p, pairs.which, kept)

    def _kept(self, recalled: Recalled) -> Tensor | None:
        """Which assumptions are there at all (B, P); None is all of them."""
        if self.config.mask == "pair" and recalled.pair_relation is None:
            return ~(recalled.forward() | recalled.backward())
        return recalled.valid

    def _weigh_each(
        self,
        recalled: Recalled,
        terms: Tensor,
        pairs: _Distinct,
        told: Tensor,
        formed: Tensor,
        kept: Tensor | None,
        head: int,
    ) -> tuple[Tensor, Tensor]:
        """g and W_r·e of every kept assumption: (B, P), (B, P). Of unformed ones there is nothing to be told."""
        flat = pairs.which.reshape(-1)
        gate = value = told.new_zeros(len(flat))
        tables = [self._of_side(side) for side in (recalled.heads, recalled.tails)]
        for choice, features in ((formed, told), (~formed, None)):
            wanted = choice if kept is None else choice & kept
            cells = wanted.reshape(-1).nonzero()[:, 0]
            found = self._weigh(terms, pairs, features, flat[cells], self._beside(recalled, tables, cells), head)
            gate, value = (x.scatter(0, cells, y) for x, y in zip((gate, value), found, strict=True))
        return gate.reshape(pairs.which.shape), value.reshape(pairs.which.shape)

    def _of_side(self, side: Side) -> Tensor:
        """What e_ij is told of an association and the target it was recalled for: (B·N, f)."""
        told = [strength(side), side.itself.to(side.probability.dtype)] if self.config.recall_features else []
        told += [nearness(self.recall.term, side)] if self.config.nearness else []
        return torch.stack(told, 2).reshape(-1, len(told))

    def _beside(self, recalled: Recalled, tables: list[Tensor], cells: Tensor) -> Tensor:
        """What e_ij is told besides (i, j) of assumptions at flat places (M,) among (B, P): (M, f)."""
        row, place = torch.div(cells, len(recalled.first), rounding_mode="floor"), cells % len(recalled.first)
        head = tables[0][row * recalled.heads.term.shape[1] + recalled.first[place]]
        tail = tables[1][row * recalled.tails.term.shape[1] + recalled.second[place]]
        columns = []
        if self.config.recall_features:
            columns += [head[:, 0], tail[:, 0], head[:, 1], tail[:, 1], head[:, 1] * tail[:, 1]]
        if self.config.nearness:
            columns += [head[:, -1], tail[:, -1]]
        return torch.stack(columns, 1)

    def _weigh(
        self,
        terms: Tensor,
        pairs: _Distinct,
        told: Tensor | None,
        rows: Tensor | None,
        beside: Tensor | None,
        head: int,
    ) -> tuple[Tensor, Tensor]:
        """g and W_r·e of assumption vectors e: (M,), (M,); ``rows`` are their distinct pairs, None is each of them.

        They are told of the pair (U, f), unless that is None, and of what stands beside it (M, f).
        """
        blocks = self.pair_vectors.blocks(terms, head)
        weights = self.pair_vectors.weights(self.recognition.relation[: self.recognition.na], head)
        if told is None and beside is not None:
            weights = weights[-beside.shape[1] :]
        gates, values = [], []
        for begin in range(0, max(len(pairs.left if rows is None else rows), 1), PAIRS_AT_ONCE):
            chosen = slice(begin, begin + PAIRS_AT_ONCE)
            row = chosen if rows is None else rows[chosen]
            parts = [] if told is None else [told[row]]
            parts += [] if beside is None else [beside[chosen]]
            seen = torch.cat(parts, 1)
            ends = (pairs.left[row], pairs.right[row]) if blocks is not None else (pairs.left, pairs.right)
            vectors = self.pair_vectors(blocks, *ends, seen, weights, head)
            gate, value = self.decision.weigh(F.dropout(vectors, self.config.dropout, self.training), head)
            gates.append(gate)
            values.append(value)
        return torch.cat(gates), torch.cat(values)

    def erasure_loss(self, assumptions: Assumptions, label: Tensor, top: int = 5) -> Tensor:
        """Asks that p falls when a positive pair's ``top`` recognised assumptions are removed; summed over pairs.

        The demand is the stronger, the better the batch is decided (1 - cross entropy in bits): where the assumptions
        tell little, few of them cannot tell much, and asking for it would cost the decision.
        """
        config, score = self.config, assumptions.attention.detach() * assumptions.best_probability
        best = score.topk(min(top, score.shape[1]), dim=1).indices
        without = torch.ones_like(assumptions.valid).scatter(1, best, False)
        fall = assumptions.logit.sigmoid() - self.decide(assumptions, without).sigmoid()
        short = (config.comprehensiveness_goal - fall).clamp(min=0.0) * label
        bits = F.binary_cross_entropy_with_logits(assumptions.logit.detach(), label) / math.log(2)
        return 2 * config.comprehensiveness * (1 - bits).clamp(min=0.0) * short.sum()  # half of the pairs are positive

    def decide(self, assumptions: Assumptions, keep: Tensor) -> Tensor:
        """The logit (B,) when only the assumptions in ``keep`` (B, P) are left: g = -∞ elsewhere, softmax again."""
        attention = self.decision.weights(assumptions.gate, keep & assumptions.valid)
        return self.decision.logit(attention, assumptions.value, assumptions.head_number)

    def _recognise(self, pairs: _Distinct, fold: int | None) -> tuple[Tensor, Tensor]:
        """The terms' vectors (T, d), and what e_ij is told of the distinct pairs: p (U, K), then what is asked for."""
        config = self.config
        recognition = self.recognition if fold is None else cast("Recognition | Bilinear", self.folds[fold])
        with torch.set_grad_enabled(torch.is_grad_enabled() and config.pairs_reach_terms):
            terms = recognition.terms(self.recall.term, pairs.nodes)
            if pairs.relation is not None:  # facts: p of the known relation is 1, and there is no margin to tell
                p = F.one_hot(pairs.relation, recognition.na).to(terms.dtype)
                return terms, F.pad(p, (0, recognition.na * (config.margins + config.known_facts)))
            views = recognition.views(terms)
            known = self.known if config.known_facts else None
            if not config.pairs_reach_terms and on_numba(terms):
                scores = recognition.scores(views, pairs.left, pairs.right).detach()  # type: ignore[arg-type]
                ends = (pairs.nodes[pairs.left], pairs.nodes[pairs.right])
                wanted = Told(config.margins, config.known_facts, config.margin_clip)
                return terms, read(scores, *ends, pairs.masked, known, self.types, fold, wanted)
            parts = []
            for begin in range(0, max(len(pairs.left), 1), PAIRS_AT_ONCE):
                left, right = (x[begin : begin + PAIRS_AT_ONCE] for x in (pairs.left, pairs.right))
                scores = recognition.scores(views, left, right)  # type: ignore[arg-type]
                mask = pairs.mask(begin, len(left), recognition.na)
                parts.append(self._told(scores, pairs.nodes[left], pairs.nodes[right], mask, known, fold))
        return terms, torch.cat(parts)

    def _told(
        self,
        scores: Tensor,
        head: Tensor,
        tail: Tensor,
        mask: Tensor | None,
        known: KnownFacts | None,
        fold: int | None,
    ) -> Tensor:
        """What e_ij is told of pairs of nodes with these scores (M, K+1)."""
        found, unusual = [], ~self.types.of(head, tail) if self.types is not None else None
        if known is not None:
            holds = known.of(head, tail, fold)
            holds = holds if mask is None else holds & ~mask
            scores = with_known(scores, holds, self.config.margin_clip)
            found.append(holds.to(scores.dtype))
            unusual = None if unusual is None else unusual & ~holds
        if unusual is not None:
            mask = unusual if mask is None else mask | unusual
        if self.config.margins:
            found.insert(0, margins(scores, self.config.margin_clip, mask))
        return torch.cat([probabilities(scores, mask), *found], 1)

    def _distinct(self, recalled: Recalled, target: int) -> _Distinct:
        """The distinct pairs of a batch: what is recognised depends on (i, j) alone, unless it is the masked target."""
        device, na = recalled.first.device, self.recognition.na
        sides = (recalled.heads, recalled.tails)
        place = torch.zeros(len(self.recall.term), dtype=torch.long, device=device)
        for side in sides:
            place[side.term.reshape(-1)] = 1
        nodes = place.nonzero()[:, 0]
        place[nodes] = torch.arange(len(nodes), device=device)
        left, right = place[recalled.heads.term][:, recalled.first], place[recalled.tails.term][:, recalled.second]
        shape, left, right = left.shape, left.reshape(-1), right.reshape(-1)
        if recalled.pair_relation is not None:  # closed world: the target is not among the facts
            relation = recalled.pair_relation.reshape(-1)
            first, which = distinct_pairs(left, right * na + relation)
            none = torch.empty(0, 2, dtype=torch.long, device=device)
            return _Distinct(nodes, left[first], right[first], which.reshape(shape), none, relation[first])
        forward, backward = (x.reshape(-1).nonzero()[:, 0] for x in (recalled.forward(), recalled.backward()))
        special = torch.unique(torch.cat([forward, backward]))
        right_key = right
        if len(special):  # each a pair of its own
            right_key = right.clone()
            right_key[special] = len(nodes) + torch.arange(len(special), device=device)
        first, which = distinct_pairs(left, right_key)
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


def strength(side: Side) -> Tensor:
    """How strongly associations were recalled: log p relative to the target's best, 0 for the target itself. (B, N)."""
    log_p = side.probability.clamp(min=1e-30).log()
    return (log_p - log_p.max(dim=1, keepdim=True).values).masked_fill(side.itself, 0.0)


@torch.no_grad()
def nearness(term: Tensor, side: Side) -> Tensor:
    """Cosines of associations to the targets they were recalled for: (V, d) -> (B, N)."""
    own, other = (F.normalize(term[nodes], dim=-1) for nodes in (side.target, side.term))
    return torch.bmm(other, own[:, :, None])[:, :, 0]


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
