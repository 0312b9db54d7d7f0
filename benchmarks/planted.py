"""Graphs and data sets whose right answer is known, for benchmarks and tests.

:func:`planted` makes them from a few hundred terms to the paper's scale. Terms have a type (drug, disorder, symptom)
and a hidden topic; terms of one topic co-occur more. A relation holds between a head and a tail whose topics it joins,
so co-occurrence alone predicts it. With ``shuffled`` facts and negatives are drawn from the same distribution, and a
model that does better than chance has seen what it should not.

:func:`planted_communities` is a small dense one without noise, which every method should learn.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from cogstage.graph.cooccurrence import Graph
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.dataset import SPLITS, Dataset, Pairs
from cogstage.relations import RELATIONS
from cogstage.triples import Triples

TYPES = ("drug", "disorder", "symptom")
ARGUMENTS = {
    "may_treat": (0, 1),
    "may_prevent": (0, 1),
    "contraindicates": (0, 1),
    "causes": (0, 2),
    "symptom_of": (2, 1),
}


@dataclass(frozen=True)
class Plan:
    """Sizes of a planted data set; the defaults are small enough for tests."""

    terms: int = 300
    edges: int = 8_000
    topics: int = 6
    facts: int = 260  # of each relation, all splits
    relations: int = 2
    within: float = 0.7  # share of the drawn edges that join terms of one topic
    shuffled: bool = False
    isolated: int = 0  # terms at the end of the vocabulary that have no edge
    seed: int = 0


REFERENCE = "svd+distmult"
PAPER_COURSE: dict[str, Any] = {"learning_rate": 3e-3, "epochs": 40, "minimum_epochs": 25}
COMMUNITY_SHARES = {"train": 0.6, "dev": 0.1, "test": 0.3}
PAPER = Plan(terms=52_804, edges=16_200_000, topics=400, facts=3_692, relations=5)  # 25,848 training pairs


def planted(plan: Plan) -> tuple[Graph, Dataset]:
    """The graph and the data set of a plan."""
    rng = np.random.default_rng(plan.seed)
    kind = rng.integers(len(TYPES), size=plan.terms)
    topic = rng.integers(plan.topics, size=plan.terms)
    graph = _graph(plan, kind, topic, rng)
    return graph, _dataset(plan, graph, kind, topic, rng)


def _graph(plan: Plan, kind: np.ndarray, topic: np.ndarray, rng: np.random.Generator) -> Graph:
    joined = plan.terms - plan.isolated
    order = np.argsort(topic[:joined], kind="stable")
    begin = np.searchsorted(topic[order], np.arange(plan.topics + 1))
    size = np.maximum(np.diff(begin), 1)
    keys, counts = np.empty(0, np.int64), np.empty(0, np.int64)
    while len(keys) < plan.edges:
        draws = max(1000, int(1.3 * (plan.edges - len(keys))))
        source = rng.integers(joined, size=draws)
        near = order[begin[topic[source]] + (rng.random(draws) * size[topic[source]]).astype(np.int64)]
        same = rng.random(draws) < plan.within
        target = np.where(same, near, (rng.random(draws) ** 2 * joined).astype(np.int64))
        count = 1 + rng.poisson(np.where(same, 4.0, 0.5))
        low, high = np.minimum(source, target), np.maximum(source, target)
        proper = low < high
        keys = np.concatenate([keys, (low * plan.terms + high)[proper]])
        counts = np.concatenate([counts, count[proper]])
        keys, first = np.unique(keys, return_index=True)
        counts = counts[first]
        if len(keys) < plan.edges and draws > 50 * plan.terms**2:
            break
    if len(keys) > plan.edges:
        chosen = np.sort(rng.choice(len(keys), plan.edges, replace=False))
        keys, counts = keys[chosen], counts[chosen]
    names = tuple(f"{TYPES[k]} {node}" for node, k in enumerate(kind))
    source, target = (keys // plan.terms).astype(np.int32), (keys % plan.terms).astype(np.int32)
    count = np.bincount(source, minlength=plan.terms) + np.bincount(target, minlength=plan.terms)
    vocabulary = Vocabulary(names, names, names, tuple(TYPES[k] for k in kind), count.astype(np.int64))
    return Graph(vocabulary, source, target, counts.astype(np.int64), {"planted": plan.seed})


def _dataset(plan: Plan, graph: Graph, kind: np.ndarray, topic: np.ndarray, rng: np.random.Generator) -> Dataset:
    names = (*RELATIONS, *(f"relation_{number}" for number in range(len(RELATIONS), plan.relations)))[: plan.relations]
    joined = np.arange(plan.terms) < plan.terms - plan.isolated
    facts: list[np.ndarray] = []
    taken = np.empty(0, np.int64)
    for number, name in enumerate(names):
        heads, tails = (np.flatnonzero((kind == k) & joined) for k in ARGUMENTS.get(name, (0, 1)))
        joins = rng.permutation(plan.topics)  # the topic of tails that each topic of heads goes with
        found = np.empty((0, 3), np.int64)
        while len(found) < plan.facts:
            head, tail = rng.choice(heads, 4 * plan.facts), rng.choice(tails, 4 * plan.facts)
            fits = np.full(len(head), True) if plan.shuffled else joins[topic[head]] == topic[tail]
            fits &= ~np.isin(head * plan.terms + tail, taken)  # a pair holds one relation, and so lies in one split
            triples = np.stack([head, np.full(len(head), number), tail], 1)[fits]
            found = np.unique(np.concatenate([found, triples]), axis=0)
        facts.append(found[rng.permutation(len(found))[: plan.facts]])
        taken = np.concatenate([taken, facts[-1][:, 0] * plan.terms + facts[-1][:, 2]])
    known = np.concatenate(facts)
    known_keys = np.unique(
        np.concatenate([known[:, 0] * plan.terms + known[:, 2], known[:, 2] * plan.terms + known[:, 0]])
    )
    pairs: dict[tuple[str, str], Pairs] = {}
    split_facts: dict[str, list[np.ndarray]] = {"train": [], "dev": [], "test": []}
    for name, found in zip(names, facts, strict=True):
        ends = (0, int(0.7 * len(found)), int(0.85 * len(found)), len(found))
        for split, begin, end in zip(("train", "dev", "test"), ends, ends[1:], strict=False):
            positive = found[begin:end]
            split_facts[split].append(positive)
            negative = _negatives(found, end - begin, known_keys, plan.terms, rng)
            head, tail = (np.concatenate([positive[:, x], negative[:, x]]).astype(np.int32) for x in (0, 2))
            label = np.repeat([1, 0], [len(positive), len(negative)]).astype(np.int8)
            pairs[name, split] = Pairs(head, tail, label)
    triples = {split: _triples(np.concatenate(parts)) for split, parts in split_facts.items()}
    manifest = {"relations": list(names), "vocabulary_hash": graph.vocabulary.hash, "nodes": plan.terms}
    return Dataset(names, graph.vocabulary.hash, plan.terms, manifest, {}, pairs, triples)


def _negatives(found: np.ndarray, count: int, known: np.ndarray, terms: int, rng: np.random.Generator) -> np.ndarray:
    """Pairs of the relation's heads and tails, drawn as often as they occur, that are no known fact."""
    kept = np.empty((0, 3), np.int64)
    while len(kept) < count:
        drawn = np.stack(
            [rng.choice(found[:, 0], 2 * count), np.zeros(2 * count, np.int64), rng.choice(found[:, 2], 2 * count)], 1
        )
        fresh = ~np.isin(drawn[:, 0] * terms + drawn[:, 2], known)
        kept = np.concatenate([kept, drawn[fresh]])
    return kept[:count]


def _triples(rows: np.ndarray) -> Triples:
    return Triples(rows[:, 0].astype(np.int32), rows[:, 1].astype(np.int16), rows[:, 2].astype(np.int32))


def two_communities(
    size: int = 100, inside: float = 0.3, across: float = 0.06, seed: int = 0
) -> tuple[Graph, np.ndarray]:
    """A graph of 2·size terms with more and heavier edges within a community, and each term's community."""
    rng = np.random.default_rng(seed)
    community = np.repeat([0, 1], size)
    source, target = np.triu_indices(2 * size, k=1)
    same = community[source] == community[target]
    there = rng.random(len(source)) < np.where(same, inside, across)
    source, target, same = source[there], target[there], same[there]
    count = 1 + rng.poisson(np.where(same, 6, 3))
    vocabulary = Vocabulary.from_terms([f"term {i}" for i in range(2 * size)])
    return Graph(vocabulary, source.astype(np.int32), target.astype(np.int32), count.astype(np.int64)), community


def planted_communities(
    pairs: int = 6000, shuffled: bool = False, relations: tuple[str, ...] = ("may_treat",), seed: int = 0
) -> tuple[Graph, Dataset]:
    """Even terms are heads, odd ones tails; every relation holds where both are of one community.

    ``shuffled`` keeps pairs and graph and permutes the labels, so that nothing can be learned.
    """
    graph, community = two_communities(seed=seed)
    rng = np.random.default_rng((seed, 1))
    terms = np.arange(graph.n_nodes)
    every_pair = np.stack(np.meshgrid(terms[::2], terms[1::2], indexing="ij"), axis=-1).reshape(-1, 2)
    labelled: dict[tuple[str, str], Pairs] = {}
    facts: dict[str, list[np.ndarray]] = {split: [] for split in SPLITS}
    for number, relation in enumerate(relations):
        chosen = every_pair[rng.permutation(len(every_pair))[:pairs]].astype(np.int32)
        label = (community[chosen[:, 0]] == community[chosen[:, 1]]).astype(np.int8)
        if shuffled:
            label = rng.permutation(label)
        begin = 0
        for split in SPLITS:
            rows = slice(begin, begin + int(COMMUNITY_SHARES[split] * pairs))
            head, tail = chosen[rows].T
            labelled[relation, split] = Pairs(head, tail, label[rows])
            facts[split].append(np.insert(chosen[rows][label[rows] == 1], 1, number, axis=1))
            begin = rows.stop
    triples = {split: _triples(np.concatenate(parts)) for split, parts in facts.items()}
    manifest = {"relations": list(relations), "options": {"negatives": "planted"}}
    return graph, Dataset(relations, graph.vocabulary.hash, graph.n_nodes, manifest, {}, labelled, triples)


def known_answer(plan: dict[str, Any], method: str) -> dict[str, Any]:
    """Train on a planted data set and say what a preset of cogstage, or a baseline, makes of its test pairs."""
    from benchmarks.harness import measured
    from cogstage.baselines.resolver import resolve
    from cogstage.choices import Preset
    from cogstage.estimator import CogStage
    from cogstage.training.measures import dev_measures

    graph, dataset = planted(Plan(**plan))
    test = dataset.pairs("may_treat", "test")
    with measured() as took:
        if method in get_args(Preset):
            more = {} if method == "default" else PAPER_COURSE
            model = CogStage("may_treat", preset=method, dimension=64, associations=16, **more).fit(graph, dataset)
            logits = model.logits(test.head, test.tail, "may_treat")
        else:
            fitted = resolve(method).fit(graph, dataset.for_fitting(), "may_treat", 0)
            chance = np.clip(fitted.scores(test.head, test.tail), 1e-9, 1 - 1e-9)
            logits = np.log(chance / (1 - chance))
    return {**took, **dev_measures(logits, test.label)}


def main(argv: list[str] | None = None) -> None:
    """The known-answer check: at least 0.95 where a relation is planted, 0.5 where labels are shuffled."""
    from benchmarks.harness import add_ratios, parser, report, run_side, side_row

    options: argparse.Namespace = parser(__doc__).parse_args(argv)
    plan = Plan(terms=600, edges=30_000, facts=400 if options.quick else 3_000, topics=8)
    rows: list[dict[str, Any]] = []
    for shuffled in (False,) if options.quick else (False, True):
        alike = []
        for method in ("default", REFERENCE) if options.quick else ("default", "paper", REFERENCE):
            chosen = vars(replace(plan, shuffled=shuffled))
            side = run_side("benchmarks.planted:known_answer", {"plan": chosen, "method": method})
            label = method if method == REFERENCE else f"cogstage, {method}"
            found = side["result"]
            more = {"labels": "shuffled" if shuffled else "planted", "AUROC": found["auroc"], "F1": found["f1"]}
            alike.append(side_row(label, side, **more))
        add_ratios(alike, alike[-1])
        for row in alike:
            row["AUROC / reference"] = row["AUROC"] / alike[-1]["AUROC"]
        rows += alike
    report("planted", rows, options.out, {"terms": plan.terms, "edges": plan.edges, "facts": plan.facts})


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
