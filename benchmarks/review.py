"""What expert verdicts are worth by the order of the questions: by their effect, by uncertainty, and at random.

    python -m benchmarks review --graph GRAPH --dataset DATASET --model FOLDER...

The expert is a set of facts: a triple is right if it is a training or test fact, and wrong otherwise. Dev facts are
never asked about. Verdicts are given in rounds, after each of which the queue is made again, and count as corrections:
nothing is trained again unless ``--train`` is given. The table has the dev AUROC after all verdicts, the mean over the
three populations of negatives and all relations, and its gain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.harness import parser, report
from benchmarks.populations import inputs
from cogstage.evaluation.populations import (
    KINDS,
    Populations,
    join_logits,
    macro_aurocs,
    population_aurocs,
    populations,
    score_populations,
)
from cogstage.review.queue import AskedPair, Assumption, review_queue
from cogstage.triples import TripleIndex, Triples

if TYPE_CHECKING:
    from cogstage.estimator import CogStage
    from cogstage.graph.cooccurrence import Graph
    from cogstage.knowledge.dataset import Dataset

Order = Callable[[list[Assumption], np.random.Generator], list[Assumption]]

ORDERS: dict[str, Order] = {
    "largest expected change": lambda queue, rng: queue,
    "most uncertain first": lambda queue, rng: sorted(queue, key=lambda entry: abs(entry.probability - 0.5)),
    "random": lambda queue, rng: [queue[n] for n in rng.permutation(len(queue))],
}


def main(argv: list[str] | None = None) -> None:
    """A row per model and order."""
    options = parser(__doc__)
    options.add_argument("--graph", type=Path, help="Graph folder; planted data by default.")
    options.add_argument("--dataset", type=Path, help="Data set folder.")
    options.add_argument("--model", type=Path, nargs="+", default=[], help="Model folders.")
    options.add_argument("--verdicts", type=int, default=200, help="verdicts of each order")
    options.add_argument("--rounds", type=int, default=4, help="how often the queue is made anew")
    options.add_argument("--train", action="store_true", help="also train again with the verdicts")
    asked = options.parse_args(argv)
    graph, data, models = inputs(asked)
    verdicts, rounds = (20, 2) if asked.quick else (asked.verdicts, asked.rounds)
    pairs, expert = populations(graph, data, "dev"), Expert(data)
    rows = []
    for seed, (name, model) in enumerate(models):
        before = mean_auroc(model, pairs)
        for order in ORDERS:
            given = ask(model, data, expert, ORDERS[order], verdicts, rounds, np.random.default_rng(seed))
            after = mean_auroc(model.with_verdicts(given), pairs)
            row: dict[str, Any] = {"model": name, "order": order, "verdicts": len(given)}
            row |= {"right": sum(given.values()), "before": before, "after": after, "gain": after - before}
            if asked.train:
                row["trained again"] = mean_auroc(train_again(model, graph, data, given), pairs)
            rows.append(row)
    report("review", rows, asked.out, {"split": "dev", "rounds": rounds})


class Expert:
    """Knows training and test facts; dev facts are not asked about."""

    def __init__(self, data: Dataset) -> None:
        def index(*splits: str) -> TripleIndex:
            return TripleIndex(Triples.join([data.facts(split) for split in splits]), len(data.relations), data.n_nodes)

        self._true, self._dev = index("train", "test"), index("dev")

    def verdicts(self, model: CogStage, queue: Sequence[Assumption]) -> list[bool | None]:
        """Right, wrong, or None for a dev fact."""
        node, number = model.vocabulary.index, model.all_relations.index
        head, relation, tail = (
            np.array([(node[e.head.key], number(e.relation), node[e.tail.key]) for e in queue], np.int64)
            .reshape(-1, 3)
            .T
        )
        right, dev = (facts.contains(head, relation, tail).tolist() for facts in (self._true, self._dev))
        return [None if is_dev else is_right for is_right, is_dev in zip(right, dev, strict=True)]


def ask(
    model: CogStage, data: Dataset, expert: Expert, order: Order, number: int, rounds: int, rng: np.random.Generator
) -> dict[tuple[str, str, str], bool]:
    """The verdicts of an expert who is asked in an order."""
    pairs: list[AskedPair] = []
    for relation in model.relations:
        split = data.pairs(relation, "dev")
        pairs += [(int(h), int(t), relation) for h, t in zip(split.head, split.tail, strict=True)]
    given: dict[tuple[str, str, str], bool] = {}
    for done in range(1, rounds + 1):
        queue = order(review_queue(model.with_verdicts(given), pairs), rng)
        for begin in range(0, len(queue), number):
            part = queue[begin : begin + number]
            for entry, verdict in zip(part, expert.verdicts(model, part), strict=True):
                if verdict is not None and len(given) < number * done // rounds:
                    given[entry.triple] = verdict
            if len(given) >= number * done // rounds:
                break
    return given


def mean_auroc(model: CogStage, pairs: Populations) -> float:
    """Dev AUROC: the mean of the three populations, each averaged over relations."""
    logits = join_logits([score_populations(model.logits, pairs, relation) for relation in model.relations])
    averages = macro_aurocs(population_aurocs(logits))
    return float(np.mean([averages[kind] for kind in KINDS]))


def train_again(model: CogStage, graph: Graph, data: Dataset, given: dict[tuple[str, str, str], bool]) -> CogStage:
    """The same model trained on the data set and the verdicts."""
    from cogstage.estimator import CogStage
    from cogstage.knowledge.verdicts import view_with_verdicts
    from cogstage.rationale.corrections import numbered

    numbers = numbered(given, model.vocabulary, model.all_relations)
    view = view_with_verdicts(data.for_fitting(), numbers, len(model.vocabulary))
    fresh = CogStage(list(model.relations), preset=model.preset, seed=model.seed, **model.config.to_dict())
    return fresh.fit(graph, view)


if __name__ == "__main__":
    main()
