"""Three populations of negatives, and which relation of a pair is the likeliest.

Facts of a split are compared with

    degree  pairs whose head and tail occur in facts of the relation as often: unrelated for the most part
    hard    pairs that co-occur in the graph
    other   pairs of the same split that hold another relation, in either direction, and whose types fit this one

A method is anything that gives log-odds for heads, tails and a relation. "Known" means a training fact here: held-out
facts are never known to a verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cogstage.choices import NegativeKind, SplitKind
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import SPLITS, Dataset
from cogstage.knowledge.edge_lookup import EdgeLookup
from cogstage.knowledge.located import Concepts, LocatedFacts
from cogstage.knowledge.negatives import draw_negatives
from cogstage.rationale.verdict import Verdict, verdicts
from cogstage.relations import RelationIndex
from cogstage.triples import TripleIndex, Triples, usual_types

if TYPE_CHECKING:
    from cogstage.estimator import CogStage

Ends = tuple[np.ndarray, np.ndarray]  # heads and tails
Logits = Callable[[np.ndarray, np.ndarray, str], np.ndarray]
"""(heads, tails, relation) -> log-odds; at least 0 means yes."""

KINDS = ("degree", "hard", "other")
KIND_TITLES = {"degree": "degree-matched", "hard": "co-occurring", "other": "other relations"}


@dataclass(frozen=True)
class RelatedPairs:
    """Pairs of a split that hold a fact and have several possible relations by their types."""

    head: np.ndarray  # (P,)
    tail: np.ndarray  # (P,)
    possible: np.ndarray  # bool (P, R), by types
    true: np.ndarray  # bool (P, R), facts of any split
    known: np.ndarray  # bool (P, R), training facts

    def __len__(self) -> int:
        return len(self.head)


@dataclass(frozen=True)
class Populations:
    """The facts of a split, their three populations of negatives, and the pairs with several possible relations."""

    split: str
    relations: tuple[str, ...]
    facts: Mapping[str, Ends]
    negatives: Mapping[tuple[str, str], Ends]
    """By kind and relation."""
    related: RelatedPairs

    def pairs(self, kind: str, relation: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Heads, tails and labels of a relation's facts and its negatives of a kind."""
        facts, negatives = self.facts[relation], self.negatives[kind, relation]
        label = np.repeat(np.array([1, 0], np.int8), [len(facts[0]), len(negatives[0])])
        return np.concatenate([facts[0], negatives[0]]), np.concatenate([facts[1], negatives[1]]), label


def populations(graph: Graph, data: Dataset, split: str = "dev", seed: int = 0) -> Populations:
    """The populations of a split of a data set.

    Negatives of the kind that the data set shows are its own. Those of other kinds are the saved ones, or drawn as
    :func:`build_dataset` draws them, with ``seed``, if none are saved.
    """
    relations, facts = data.relations, data.facts(split)
    everything = _index(data, SPLITS)
    types = usual_types(graph.vocabulary.type, data.facts("train"), len(relations))

    def possible(heads: np.ndarray, tails: np.ndarray) -> np.ndarray:
        if types is None:
            return np.ones((len(heads), len(relations)), bool)
        return types.allowed(heads, tails)[:, : len(relations)]

    own = {name: _rows(facts, facts.relation == number) for number, name in enumerate(relations)}
    negatives: dict[tuple[str, str], Ends] = {}
    for kind in ("degree", "hard"):
        negatives |= {(kind, name): ends for name, ends in _negatives(graph, data, kind, split, seed).items()}
    heads, tails = _distinct(np.concatenate([facts.head, facts.tail]), np.concatenate([facts.tail, facts.head]))
    fits = possible(heads, tails) & ~_forward(everything, heads, tails)
    for number, name in enumerate(relations):
        negatives["other", name] = heads[fits[:, number]], tails[fits[:, number]]
    heads, tails = _distinct(facts.head, facts.tail)
    several = possible(heads, tails).sum(axis=1) > 1
    heads, tails = heads[several], tails[several]
    known = _forward(_index(data, ("train",)), heads, tails)
    related = RelatedPairs(heads, tails, possible(heads, tails), _forward(everything, heads, tails), known)
    return Populations(split, relations, own, negatives, related)


def _index(data: Dataset, splits: tuple[str, ...]) -> TripleIndex:
    return TripleIndex(Triples.join([data.facts(split) for split in splits]), len(data.relations), data.n_nodes)


def _forward(facts: TripleIndex, heads: np.ndarray, tails: np.ndarray) -> np.ndarray:
    """Which relations each pair holds, read forward: (P, R) bool."""
    return facts.relations_of(heads, tails)[:, : facts.relations]


def _rows(facts: Triples, chosen: np.ndarray) -> Ends:
    return facts.head[chosen], facts.tail[chosen]


def _distinct(heads: np.ndarray, tails: np.ndarray) -> Ends:
    pairs = np.unique(np.stack([heads, tails]), axis=1)
    return pairs[0], pairs[1]


def _negatives(graph: Graph, data: Dataset, kind: str, split: str, seed: int) -> dict[str, Ends]:
    """The negatives of one kind by relation."""
    options = data.manifest.get("options") or {}
    if options.get("negatives") == kind:
        shown = {name: data.pairs(name, split) for name in data.relations}
        return {name: (pairs.head[pairs.label == 0], pairs.tail[pairs.label == 0]) for name, pairs in shown.items()}
    saved = {name: data.negatives(name, split, kind) for name in data.relations}
    if any(len(pairs) for pairs in saved.values()):
        return {name: (pairs.head, pairs.tail) for name, pairs in saved.items()}
    return _drawn(graph, data, kind, split, options.get("split", "random"), seed)


def _drawn(graph: Graph, data: Dataset, kind: str, split: str, split_kind: str, seed: int) -> dict[str, Ends]:
    """Negatives drawn as a data set build draws them: of all splits together, avoiding the facts of all splits."""
    facts = Triples.join([data.facts(name) for name in SPLITS])
    side = np.repeat(np.arange(len(SPLITS)), [len(data.facts(name)) for name in SPLITS])
    order = np.lexsort((facts.tail, facts.head, facts.relation))  # the order in which a build draws
    facts, side = Triples(facts.head[order], facts.relation[order], facts.tail[order]), side[order]
    concepts = Concepts.from_vocabulary(graph.vocabulary)
    pair = concepts.pair(facts.head, facts.tail)
    located = LocatedFacts(data.relations, facts.head, facts.relation, facts.tail, pair)
    drawn = draw_negatives(
        cast(NegativeKind, kind),
        located,
        side,
        np.unique(pair),
        concepts,
        EdgeLookup(graph),
        seed,
        cast(SplitKind, split_kind),
    )
    return {name: drawn.ends[name, split] for name in data.relations}


@dataclass(frozen=True)
class PopulationLogits:
    """The log-odds that a method gives to the pairs of the populations."""

    facts: Mapping[str, np.ndarray]
    negatives: Mapping[tuple[str, str], np.ndarray]
    related: Mapping[str, np.ndarray]
    """By relation, of all pairs of :class:`RelatedPairs`."""


def score_populations(method: Logits, pairs: Populations, relation: str) -> PopulationLogits:
    """Ask a method about all pairs of one relation, each distinct pair once."""
    groups = [pairs.facts[relation], *(pairs.negatives[kind, relation] for kind in KINDS)]
    groups.append((pairs.related.head, pairs.related.tail))
    heads, tails = (np.concatenate([group[end] for group in groups]).astype(np.int64) for end in (0, 1))
    nodes = max(int(tails.max(initial=0)), int(heads.max(initial=0))) + 1
    keys, back = np.unique(heads * nodes + tails, return_inverse=True)
    logits = np.asarray(method(keys // nodes, keys % nodes, relation), np.float64)[back.ravel()]
    facts, *negatives, related = np.split(logits, np.cumsum([len(group[0]) for group in groups])[:-1])
    of_kind = {(kind, relation): values for kind, values in zip(KINDS, negatives, strict=True)}
    return PopulationLogits({relation: facts}, of_kind, {relation: related})


def join_logits(parts: list[PopulationLogits]) -> PopulationLogits:
    """The log-odds of several relations together."""
    whole = PopulationLogits({}, {}, {})
    for part in parts:
        whole = PopulationLogits(
            {**whole.facts, **part.facts}, {**whole.negatives, **part.negatives}, {**whole.related, **part.related}
        )
    return whole


def population_aurocs(logits: PopulationLogits) -> dict[str, dict[str, float]]:
    """AUROC of facts against each kind of negatives, by relation; NaN if one of both is missing."""
    from cogstage.evaluation.metrics import auroc

    result: dict[str, dict[str, float]] = {}
    for relation, facts in logits.facts.items():
        result[relation] = {}
        for kind in KINDS:
            negatives = logits.negatives[kind, relation]
            label = np.repeat([1, 0], [len(facts), len(negatives)])
            result[relation][kind] = float(auroc(label, np.concatenate([facts, negatives]))[0])
    return result


def macro_aurocs(by_relation: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Mean over relations of each kind, and the mean of the three kinds."""
    mean = {kind: float(np.mean([row[kind] for row in by_relation.values()])) for kind in KINDS}
    return {**mean, "mean": float(np.mean(list(mean.values())))}


@dataclass(frozen=True)
class WhichRelation:
    """How well a method tells the relations of a pair apart; shares are NaN where there is nothing to count."""

    pairs: int
    """Pairs that hold a fact and have several possible relations."""
    likeliest_true: float
    """Share of pairs whose likeliest possible relation is true; relations that tie count in part."""
    untrue_yes: float
    """Share of untrue (pair, relation) with log-odds of at least 0."""
    untrue_likely: float
    """Share of untrue (pair, relation) that the verdict calls likely."""
    opposites_yes: float
    """Share of pairs with two opposite relations whose log-odds are both at least 0."""
    opposites_likely: float
    """Share of pairs with two opposite relations that the verdict calls likely or known."""
    by_relation: Mapping[str, Mapping[str, float]]
    """``untrue``, ``untrue_yes`` and ``untrue_likely`` of each relation."""

    def shares(self) -> dict[str, float]:
        """The five shares by name."""
        return {name: float(getattr(self, name)) for name in WHICH_TITLES}

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        rows = {relation: dict(row) for relation, row in self.by_relation.items()}
        return {"pairs": self.pairs, **self.shares(), "relations": rows}


WHICH_TITLES = {
    "likeliest_true": "likeliest relation true",
    "untrue_yes": "untrue relation at least .5",
    "untrue_likely": "untrue relation called likely",
    "opposites_yes": "two opposites at least .5",
    "opposites_likely": "two opposites called likely",
}


def which_relation(
    related: RelatedPairs, relations: tuple[str, ...], logits: Mapping[str, np.ndarray]
) -> WhichRelation:
    """The which-relation table of a method; relations that it does not predict are left out of ``logits``."""
    predicted = [number for number, name in enumerate(relations) if name in logits]
    possible = related.possible[:, predicted]
    rows = possible.sum(axis=1) > 1
    possible, true, known = possible[rows], related.true[rows][:, predicted], related.known[rows][:, predicted]
    logit = np.stack([logits[relations[number]] for number in predicted], axis=1)[rows]
    names = tuple(relations[number] for number in predicted)
    opposite = RelationIndex(names).opposite[: len(names), : len(names)]
    code = verdicts(logit, known, possible, opposite).code
    accepted = np.isin(code, (Verdict.KNOWN_FACT, Verdict.LIKELY))
    best = possible & (logit == np.where(possible, logit, -np.inf).max(axis=1, initial=-np.inf, keepdims=True))
    untrue, yes, likely = possible & ~true, possible & (logit >= 0), code == Verdict.LIKELY
    by_relation = {
        name: {
            "untrue": int(untrue[:, number].sum()),
            "untrue_yes": _mean(yes[:, number][untrue[:, number]]),
            "untrue_likely": _mean(likely[:, number][untrue[:, number]]),
        }
        for number, name in enumerate(names)
    }
    return WhichRelation(
        int(rows.sum()),
        _mean((best & true).sum(axis=1) / np.maximum(best.sum(axis=1), 1)),
        _mean(yes[untrue]),
        _mean(likely[untrue]),
        _mean(_two_opposites(yes, opposite)),
        _mean(_two_opposites(accepted, opposite)),
        by_relation,
    )


def model_verdicts(model: CogStage, heads: np.ndarray, tails: np.ndarray) -> np.ndarray:
    """The verdict of a model on all its relations of pairs: (P, relations of the model), values of ``Verdict``."""
    numbers = [model.all_relations.index(name) for name in model.relations]
    logit = np.stack([model.logits(heads, tails, name) for name in model.relations], axis=1)
    known = model.facts.relations_of(heads, tails)[:, numbers]
    types = model.explainer.types
    applies = np.ones_like(known) if types is None else types.allowed(heads, tails)[:, numbers]
    opposite = RelationIndex(model.relations).opposite[: len(numbers), : len(numbers)]
    return verdicts(logit, known, applies, opposite).code


def _two_opposites(called: np.ndarray, opposite: np.ndarray) -> np.ndarray:
    """Whether each pair has two opposite relations that are both called: (P, R) -> (P,) bool."""
    both = called & (called.astype(np.int64) @ opposite.astype(np.int64) > 0)
    return np.asarray(both.any(axis=1))


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")
