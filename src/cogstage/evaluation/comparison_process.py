"""One process of a comparison: fit a method, measure it on the pairs of the asked splits, write what came out.

Run as ``python -m cogstage.evaluation.comparison_process FOLDER DATASET METHOD SCOPE SEED HEADS SPLITS``, where SCOPE
names relations (by commas), ``all`` for a joint method, or ``vectors`` to encode only. Time and peak memory are those
of this process.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from cogstage.artefact import new_file, software_version, to_json, write_text
from cogstage.baselines.contract import Method
from cogstage.evaluation.comparison_folder import CellKey, ComparisonFolder, SplitFolder
from cogstage.evaluation.measure import Measurement, measure
from cogstage.evaluation.populations import Populations
from cogstage.knowledge.dataset import Dataset

VECTORS = "vectors"


def run(
    folder: Path,
    dataset: str,
    method_name: str,
    scope: str,
    seed: int,
    ranking_heads: int,
    splits: Sequence[str],
) -> None:
    """Fit and measure one cell (a joint method: the cells of all relations), or encode vectors only."""
    from cogstage.baselines.resolver import resolve_encoder
    from cogstage.baselines.vectors import VectorStore
    from cogstage.evaluation.inputs import load_dataset, load_populations
    from cogstage.evaluation.methods import find
    from cogstage.graph.cooccurrence import Graph
    from cogstage.rationale.corrections import Corrections

    files = ComparisonFolder(folder)
    graph, data = Graph.load(files.graph), load_dataset(files.dataset(dataset))
    store, view = VectorStore(files.vectors), data.for_fitting()
    corrections = Corrections.read(files.corrections) if files.corrections.exists() else None
    if scope == VECTORS:
        store.get(resolve_encoder(method_name), graph, view, seed)
        return
    for part in scope.split(","):
        method = find(method_name, store, corrections)
        begun, worked = time.perf_counter(), time.process_time()
        method.fit(graph, view, part, seed)
        fit_seconds, cpu_seconds = time.perf_counter() - begun, time.process_time() - worked
        encoder = getattr(method, "encoder", None)
        encode_seconds, encode_cpu = (
            store.cost(store.path(encoder, graph, view, seed)) if encoder is not None else (0.0, 0.0)
        )
        relations = list(data.relations) if method.joint else [part]
        cost = {
            "seconds": encode_seconds + fit_seconds / len(relations),
            "encode_seconds": encode_seconds,
            "fit_seconds": fit_seconds / len(relations),
            "cpu_seconds": encode_cpu + cpu_seconds / len(relations),
        }
        for split in splits:
            populations = load_populations(files.populations(dataset, split))
            for relation in relations:
                if len(data.pairs(relation, split)):
                    key = CellKey(dataset, method.name, relation, seed)
                    _measure_cell(files.split(split), data, populations, method, key, ranking_heads, cost)


def _measure_cell(
    folder: SplitFolder,
    data: Dataset,
    populations: Populations,
    method: Method,
    key: CellKey,
    ranking_heads: int,
    cost: Mapping[str, float],
) -> None:
    """Measure a fitted method on one relation and write the cell."""
    begun = time.perf_counter()

    def scorer(head: np.ndarray, tail: np.ndarray) -> np.ndarray:
        return method.scores(head, tail, key.relation)

    measured = measure(data, key.relation, scorer, populations.split, ranking_heads, populations)
    _write_arrays(folder, data, populations.split, key, measured)
    cell = {
        **key._asdict(),
        "metrics": measured.metrics,
        **cost,
        "evaluation_seconds": time.perf_counter() - begun,
        "peak_mb": peak_mb(),
        "version": software_version(),
        "settings": method.settings,
    }
    write_text(folder.cell(key), to_json(cell))  # last: now the cell is finished


def _write_arrays(folder: SplitFolder, data: Dataset, split: str, key: CellKey, measured: Measurement) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pairs = data.pairs(key.relation, split)
    columns = {"head": pairs.head, "tail": pairs.tail, "label": pairs.label, "probability": measured.probability}
    with new_file(folder.predictions(key)) as temporary:
        pq.write_table(pa.table(columns), temporary)
    with new_file(folder.replicates(key)) as temporary, temporary.open("wb") as handle:
        small = {name: value.astype(np.float32) for name, value in measured.replicates.items()}
        np.savez_compressed(handle, **small)  # type: ignore[arg-type]
    if measured.logits is not None:
        with new_file(folder.related(key)) as temporary, temporary.open("wb") as handle:
            np.save(handle, measured.logits.related[key.relation])


def peak_mb() -> float:
    """Most memory this process held, in MB; NaN where the system does not count it (Windows)."""
    try:
        import resource
    except ImportError:
        return float("nan")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 2**20 if sys.platform == "darwin" else most / 1024


def main(arguments: list[str]) -> int:
    """Run the process; what went wrong is left as one line of JSON on stdout for the process that asked."""
    from cogstage.errors import CogstageError

    folder, dataset, method, scope, seed, ranking_heads, splits = arguments
    try:
        run(Path(folder), dataset, method, scope, int(seed), int(ranking_heads), splits.split(","))
    except CogstageError as error:
        sys.stdout.write(json.dumps({"error": str(error)}) + "\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
