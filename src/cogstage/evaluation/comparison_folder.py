"""Paths of the parts of a comparison, and reading them back; errors name damaged files."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cogstage.artefact import safe_name
from cogstage.errors import CogstageError

NEEDED = ("dataset", "method", "relation", "seed", "metrics", "seconds", "cpu_seconds", "peak_mb")
ADVICE = "remove it and run the comparison again"


class CellKey(NamedTuple):
    """The identity of one fit of one method."""

    dataset: str
    method: str
    relation: str
    seed: int


@dataclass(frozen=True)
class ComparisonFolder:
    """The parts that both splits share."""

    folder: Path

    @property
    def vectors(self) -> Path:
        """Vectors of the encoders, shared by all cells."""
        return self.folder / "vectors"

    @property
    def graph(self) -> Path:
        """The graph that is compared on."""
        return self.folder / "inputs" / "graph"

    @property
    def corrections(self) -> Path:
        """The verdicts that CogStage's rows are scored with, if there are any."""
        return self.folder / "inputs" / "corrections.tsv"

    def dataset(self, name: str) -> Path:
        """The data set of this name, as it was when the comparison began."""
        return self.folder / "inputs" / f"{safe_name(name, self.folder)}.npz"

    def populations(self, name: str, split: str) -> Path:
        """The populations of a split of the data set of this name."""
        return self.folder / "inputs" / f"{safe_name(name, self.folder)}~{split}.npz"

    def split(self, name: str) -> SplitFolder:
        """What was measured on the pairs of a split; dev and test never share a file."""
        return SplitFolder(self.folder / name)


@dataclass(frozen=True)
class SplitFolder:
    """The cells of one split. A cell counts as finished when its small JSON file is there."""

    folder: Path

    def cell(self, key: CellKey) -> Path:
        """The file that marks a cell as finished and contains its result."""
        return self._file("cells", key, "json")

    def predictions(self, key: CellKey) -> Path:
        """Every prediction of a cell."""
        return self._file("predictions", key, "parquet")

    def replicates(self, key: CellKey) -> Path:
        """Bootstrap values of a cell's metrics."""
        return self._file("replicates", key, "npz")

    def related(self, key: CellKey) -> Path:
        """Log-odds of a cell for the pairs with several possible relations."""
        return self._file("related", key, "npy")

    def _file(self, part: str, key: CellKey, ending: str) -> Path:
        dataset, method, relation = (safe_name(name, self.folder) for name in key[:3])
        return self.folder / part / dataset / f"{method}~{relation}~{key.seed}.{ending}"

    def read_cells(self) -> Iterator[tuple[CellKey, dict[str, Any]]]:
        """Every finished cell, in the order of the file names."""
        for path in sorted((self.folder / "cells").glob("*/*.json")):
            cell = read_cell(path)
            yield CellKey(cell["dataset"], cell["method"], cell["relation"], cell["seed"]), cell

    def read_replicates(self, key: CellKey) -> dict[str, np.ndarray]:
        """Read the bootstrap values of a cell, by metric."""
        path = self.replicates(key)
        try:
            with np.load(path, allow_pickle=False) as arrays:
                return dict(arrays)
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise CogstageError(f"{path} is damaged ({error}); {ADVICE}") from error

    def read_related(self, key: CellKey) -> np.ndarray | None:
        """Read the log-odds of the pairs with several possible relations; None in a cell of an earlier version."""
        path = self.related(key)
        if not path.exists():
            return None
        try:
            logits: np.ndarray = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise CogstageError(f"{path} is damaged ({error}); {ADVICE}") from error
        return logits

    def read_predictions(self, key: CellKey) -> tuple[np.ndarray, np.ndarray]:
        """Labels and probabilities of the pairs."""
        path = self.predictions(key)
        try:
            table = pq.read_table(path, columns=["label", "probability"])
        except (OSError, pa.ArrowException) as error:
            raise CogstageError(f"{path} is damaged ({error}); {ADVICE}") from error
        return table.column("label").to_numpy(), table.column("probability").to_numpy()


def read_cell(path: Path) -> dict[str, Any]:
    """A cell's result, checked: all there, and the cell that its file's name says."""
    try:
        cell = json.loads(path.read_text(encoding="utf-8"))
        missing = [name for name in NEEDED if name not in cell]
        sound = not missing and all(
            isinstance(figure["value"], int | float) and len(figure["interval"]) == 2
            for figure in cell["metrics"].values()
        )
        named = sound and path.name == f"{cell['method']}~{cell['relation']}~{cell['seed']}.json"
        named = named and path.parent.name == cell["dataset"]
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise CogstageError(f"{path} is damaged ({error}); {ADVICE}") from error
    if not named:
        why = f"lacks {', '.join(missing)}" if missing else "its content does not match its name"
        raise CogstageError(f"{path} is damaged ({why}); {ADVICE}")
    return dict(cell)
