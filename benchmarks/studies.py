"""What the measurements of prediction quality share: inputs that are built once, and the rows of a comparison.

A measurement lives in a folder. What is there already is not built or fitted again, so the same command goes on where
it was stopped. Give another folder after a change to the code that builds graphs and data sets.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.harness import DATA, need, parser

if TYPE_CHECKING:
    from cogstage.evaluation.results import Comparison
    from cogstage.graph.cooccurrence import Graph
    from cogstage.graph.options import BuildOptions
    from cogstage.knowledge.dataset import Dataset

METHODS = (
    *("floor", "svd+rescal", "svd+rescal+fresh", "repel+rescal", "repel+rescal+fresh"),
    *("recognition", "cogstage-all"),
)
CONCEPTS = {"unit": "document", "level": "concept", "min_count": 5, "keep_context": True}
"""How the literature graph is counted: documents, concepts in at least five of them, negated mentions included."""


def study_parser(description: str | None, methods: Sequence[str] = METHODS, seeds: int = 5) -> argparse.ArgumentParser:
    """The options of a measurement that compares methods over seeds."""
    options = parser(description)
    options.add_argument("--methods", default=",".join(methods), help="methods to compare")
    options.add_argument("--seeds", type=int, default=seeds, help="number of seeds")
    options.add_argument("--jobs", type=int, default=1, help="processes that fit at the same time")
    options.add_argument("--folder", help="folder of the run; an unfinished run is continued (default: below --out)")
    return options


@contextmanager
def study_folder(options: argparse.Namespace, name: str) -> Iterator[Path]:
    """Where the measurement lives; a quick one in a folder that is deleted afterwards."""
    if options.quick and not options.folder:
        with tempfile.TemporaryDirectory() as fresh:
            yield Path(fresh)
        return
    folder = Path(options.folder or Path(options.out) / name)
    folder.mkdir(parents=True, exist_ok=True)
    yield folder


def need_files(*paths: Path) -> None:
    """Leave the benchmark out, with the reason, unless these files are there."""
    missing = ", ".join(str(path) for path in paths if not path.exists())
    need(not missing, f"needs {missing}; name the folder with --data or ${DATA}")


def built_graph(out: Path, documents: Path, lexicon: Path, options: BuildOptions) -> Graph:
    """The graph in ``out``, built if it is not there; rows that cannot be used are skipped."""
    from cogstage.graph.build import build_graph
    from cogstage.graph.cooccurrence import Graph
    from cogstage.tables import BadRows

    if not out.exists():
        build_graph(documents, out, lexicon, options, bad=BadRows(skip=True))
    return Graph.load(out)


def built_dataset(out: Path, build: Callable[[Path], Dataset]) -> Dataset:
    """The data set in ``out``, built if it is not there."""
    from cogstage.knowledge.dataset import Dataset

    return Dataset.load(out) if out.exists() else build(out)


def comparison_rows(result: Comparison, dataset: str, metric: str = "auroc") -> list[dict[str, Any]]:
    """A row per method: means over seeds by relation, the average with its interval and its test."""
    from cogstage.evaluation.methods import title
    from cogstage.evaluation.metrics import TITLES
    from cogstage.evaluation.results import MACRO

    figures = result.figures(dataset, metric)
    relations, rows = result.relations(dataset), []
    for method in result.methods:
        whole = figures.get((method, MACRO))
        if whole is None:
            continue
        spread = {"sd": whole.sd, "low": whole.low, "high": whole.high}
        of_each = {r: round(figures[method, r].mean, 4) for r in relations} if len(relations) > 1 else {}
        rows.append(
            {
                "method": title(method),
                **of_each,
                TITLES[metric]: round(whole.mean, 4),
                **{n: None if np.isnan(v) else round(v, 4) for n, v in spread.items()},
                "p": None if whole.p is None else round(whole.p, 4),
                "seeds": whole.seeds,
            }
        )
    return rows


def part_auroc(result: Comparison, dataset: str, method: str, relation: str, part: np.ndarray) -> float | None:
    """The mean AUROC over seeds on some of the split's pairs (``part``, (M,) bool); None where a label is missing."""
    from cogstage.evaluation.comparison_folder import CellKey, ComparisonFolder
    from cogstage.statistics import auroc

    cells, found = ComparisonFolder(result.folder).split(result.split), []
    for seed in result.seeds(dataset, method, relation):
        label, probability = cells.read_predictions(CellKey(dataset, method, relation, seed))
        value = auroc(label[part], probability[part])
        if value is None:
            return None
        found.append(value)
    return round(float(np.mean(found)), 4) if found else None
