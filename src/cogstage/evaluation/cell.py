"""One cell of a comparison, in a process of its own: fit a method, predict the test pairs, write what came out.

Run as ``python -m cogstage.evaluation.cell FOLDER DATASET METHOD SCOPE SEED HEADS``, where SCOPE names
relations (by commas), ``all`` for a joint method, or ``vectors`` to encode only. Time and peak memory are those of this
process.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cogstage.artefact import new_file, software_version, to_json, write_text
from cogstage.baselines.contract import Method
from cogstage.evaluation.metrics import METRICS, score
from cogstage.evaluation.ranking import RANKING, Scorer, ranks, summarise
from cogstage.evaluation.significance import interval, replicate, replicate_metrics
from cogstage.knowledge.dataset import Dataset, Ranking

VECTORS = "vectors"


@dataclass(frozen=True)
class Place:
    """Where the parts of a comparison lie below its folder."""

    folder: Path

    @property
    def vectors(self) -> Path:
        """Vectors of the encoders, shared by all cells."""
        return self.folder / "vectors"

    @property
    def graph(self) -> Path:
        """The graph that is compared on."""
        return self.folder / "inputs" / "graph"

    def dataset(self, name: str) -> Path:
        """The data set of this name, as it was when the comparison began."""
        return self.folder / "inputs" / f"{name}.npz"

    def cell(self, dataset: str, method: str, relation: str, seed: int) -> Path:
        """The small file that says a cell is finished, and with what result."""
        return self.folder / "cells" / dataset / f"{method}~{relation}~{seed}.json"

    def predictions(self, dataset: str, method: str, relation: str, seed: int) -> Path:
        """Every test prediction of a cell."""
        return self.folder / "predictions" / dataset / f"{method}~{relation}~{seed}.parquet"

    def replicates(self, dataset: str, method: str, relation: str, seed: int) -> Path:
        """Bootstrap values of a cell's metrics."""
        return self.folder / "replicates" / dataset / f"{method}~{relation}~{seed}.npz"


def sample_questions(questions: Ranking, heads: int, seed: int = 0) -> Ranking:
    """The questions of at most ``heads`` heads, the same for every method."""
    distinct = np.unique(questions.head)
    if len(distinct) <= heads:
        return questions
    kept = np.random.default_rng(seed).choice(distinct, heads, replace=False)
    rows = np.flatnonzero(np.isin(questions.head, kept))
    return Ranking(
        questions.head[rows], questions.candidates, questions.answer[rows], tuple(questions.known[i] for i in rows)
    )


def measure(
    data: Dataset, relation: str, scorer: Scorer, split: str = "test", ranking_heads: int = 0
) -> tuple[dict[str, Any], np.ndarray, dict[str, np.ndarray]]:
    """Metrics with intervals, the probabilities of the split's pairs, and the bootstrap values behind the intervals.

    ``ranking_heads`` heads at most are ranked (0: none).
    """
    pairs = data.pairs(relation, split)
    probability = np.asarray(scorer(pairs.head, pairs.tail), np.float64)
    values = score(pairs.label, probability)
    replicates = replicate_metrics(pairs.head, pairs.label, probability)
    questions = data.ranking(relation, split) if ranking_heads else None
    if questions is not None and len(questions.head):
        questions = sample_questions(questions, ranking_heads)
        rank = ranks(questions, scorer)
        values |= {name: float(value[0]) for name, value in summarise(rank).items()}
        replicates |= replicate(lambda weights: summarise(rank, weights), questions.head)
    metrics = {
        name: {"value": values[name], "interval": list(interval(replicates[name]))}
        for name in (*METRICS, *RANKING)
        if name in values
    }
    return metrics, probability, replicates


def run(folder: Path, dataset: str, method_name: str, scope: str, seed: int, ranking_heads: int) -> None:
    """Fit and measure one cell (a joint method: the cells of all relations), or encode vectors only."""
    from cogstage.baselines.resolver import resolve_encoder
    from cogstage.baselines.vectors import VectorStore
    from cogstage.evaluation.inputs import load_dataset
    from cogstage.evaluation.methods import find
    from cogstage.graph.cooccurrence import Graph

    place = Place(folder)
    graph, data = Graph.load(place.graph), load_dataset(place.dataset(dataset))
    store, view = VectorStore(place.vectors), data.for_fitting()
    if scope == VECTORS:
        store.get(resolve_encoder(method_name), graph, view, seed)
        return
    for part in scope.split(","):
        method = find(method_name, store)
        begun, worked = time.perf_counter(), time.process_time()
        method.fit(graph, view, part, seed)
        fit_seconds, cpu_seconds = time.perf_counter() - begun, time.process_time() - worked
        encoder = getattr(method, "encoder", None)
        encode_seconds, encode_cpu = (
            store.cost(store.path(encoder, graph, view, seed)) if encoder is not None else (0.0, 0.0)
        )
        relations = [r for r in data.relations if len(data.pairs(r, "test"))] if method.joint else [part]
        cost = {
            "seconds": encode_seconds + fit_seconds / len(relations),
            "encode_seconds": encode_seconds,
            "fit_seconds": fit_seconds / len(relations),
            "cpu_seconds": encode_cpu + cpu_seconds / len(relations),
        }
        _measure_all(place, data, dataset, method, relations, seed, ranking_heads, cost)


def _measure_all(
    place: Place,
    data: Dataset,
    dataset: str,
    method: Method,
    relations: Sequence[str],
    seed: int,
    ranking_heads: int,
    cost: Mapping[str, float],
) -> None:
    """Measure a fitted method on each relation and write the cells."""
    for relation in relations:
        begun = time.perf_counter()

        def scorer(head: np.ndarray, tail: np.ndarray, relation: str = relation) -> np.ndarray:
            return method.scores(head, tail, relation)

        metrics, probability, replicates = measure(data, relation, scorer, "test", ranking_heads)
        _write(place, data, dataset, method.name, relation, seed, probability, replicates)
        cell = {
            "dataset": dataset,
            "method": method.name,
            "relation": relation,
            "seed": seed,
            "metrics": metrics,
            **cost,
            "evaluation_seconds": time.perf_counter() - begun,
            "peak_mb": peak_mb(),
            "version": software_version(),
            "settings": method.settings,
        }
        write_text(place.cell(dataset, method.name, relation, seed), to_json(cell))  # last: now the cell is finished


def _write(
    place: Place,
    data: Dataset,
    dataset: str,
    method: str,
    relation: str,
    seed: int,
    probability: np.ndarray,
    replicates: dict[str, np.ndarray],
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pairs = data.pairs(relation, "test")
    table = pa.table({"head": pairs.head, "tail": pairs.tail, "label": pairs.label, "probability": probability})
    with new_file(place.predictions(dataset, method, relation, seed)) as temporary:
        pq.write_table(table, temporary)
    with new_file(place.replicates(dataset, method, relation, seed)) as temporary, temporary.open("wb") as handle:
        small = {name: value.astype(np.float32) for name, value in replicates.items()}
        np.savez_compressed(handle, **small)  # type: ignore[arg-type]


def peak_mb() -> float:
    """Most memory this process held, in MB."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 2**20 if sys.platform == "darwin" else most / 1024


def main(arguments: list[str]) -> int:
    """Run a cell; what went wrong is left as one line of JSON on stdout for the process that asked."""
    from cogstage.errors import CogstageError

    folder, dataset, method, scope, seed, ranking_heads = arguments
    try:
        run(Path(folder), dataset, method, scope, int(seed), int(ranking_heads))
    except CogstageError as error:
        sys.stdout.write(json.dumps({"error": str(error)}) + "\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
