"""An encoder, a reader and a rationale measure of a package that is not part of cogstage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from cogstage import FittingView, Graph, Prediction
from cogstage.corpus.readers import Reader, Sample
from cogstage.corpus.records import Document
from cogstage.input_files import lines_of, open_text
from cogstage.progress import SILENT, Progress


@dataclass(frozen=True)
class ProjectionEncoder:
    """Random projection of the counts."""

    dimension: int = 128
    """Length of the vectors."""

    name: ClassVar = "projection"  # that of the entry point
    title: ClassVar = "Random projection"  # in tables
    quick: ClassVar = {"dimension": 16}  # options with which a test is quick and still learns
    needs_facts: ClassVar = False

    def encode(self, graph: Graph, view: FittingView, seed: int, progress: Progress = SILENT) -> np.ndarray:
        """Vectors (V, d) float32; the same seed gives the same vectors."""
        noise = np.random.default_rng(seed).normal(size=(graph.n_nodes, self.dimension))
        return (graph.matrix @ noise).astype(np.float32)


class PairReader(Reader):
    """Lines of codes; each line is a document."""

    format = "pairs"  # that of the entry point, and of `--format pairs`
    title = "lines of codes"
    suffixes = (".pairs",)  # of the files that it takes from a folder

    @classmethod
    def recognises(cls, sample: Sample) -> int:
        """Return 0 for no, 1 for maybe and 2 for yes."""
        return 2 * int(sample.suffix in cls.suffixes)

    def _read(self, path: Path) -> Iterator[Document]:
        with open_text(path, self.meter) as handle:
            for number, line in lines_of(handle, path, self.bad):
                yield Document(str(number), codes=tuple(line.split()), where=f"{path}:{number}")


class HowMany:
    """Number of reasons per prediction."""

    name = "how_many"
    title = "number of reasons"

    def values(self, predictions: Sequence[Prediction]) -> np.ndarray:
        """One value per prediction, NaN where it is undefined."""
        return np.array([len(prediction.reasons) for prediction in predictions], float)
