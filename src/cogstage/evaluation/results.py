"""The results of a comparison on one split: gathered from its cells, tested for significance, written as tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cogstage.artefact import new_file, write_text
from cogstage.choices import FrameLibrary
from cogstage.evaluation.comparison_folder import CellKey, ComparisonFolder, SplitFolder
from cogstage.evaluation.floor_rows import floor_warnings
from cogstage.evaluation.inputs import load_populations
from cogstage.evaluation.methods import GROUPS, VARIANTS, is_baseline
from cogstage.evaluation.metrics import BALANCED, LOWER_IS_BETTER, POPULATIONS
from cogstage.evaluation.populations import WHICH_TITLES, which_relation
from cogstage.frames import to_frame
from cogstage.relations import RELATIONS
from cogstage.reporting import Section
from cogstage.statistics import holm, interval, mcnemar_p, paired_p

TESTED = ("f1", BALANCED, "auroc", "auprc", *POPULATIONS)
SPLIT_STEP = 1_000_000  # between the seeds of two splits that are pooled
MACRO = "macro average"
SEED_MARK = "-seed"
"""Between the kind of negatives and the seed in the name of a data set whose split was not drawn with seed 0."""


@dataclass(frozen=True)
class Figure:
    """A metric of one method and relation over its seeds, with its test against the best baseline."""

    mean: float
    sd: float
    low: float
    high: float
    seeds: int
    p: float | None = None
    """Holm-corrected over relations; None for the best baseline itself and where nothing was tested."""
    better: bool = False
    """Whether it lies above the best baseline (for ECE and Brier: below)."""


@dataclass
class Comparison:
    """Every finished cell of a comparison folder on one split."""

    folder: Path
    split: str
    cells: dict[CellKey, dict[str, Any]] = field(repr=False)
    sources: dict[CellKey, CellKey] = field(default_factory=dict, repr=False)
    """Of a comparison that pools several data sets: the cell on disk behind each of its cells."""

    @classmethod
    def gather(cls, folder: Path | str, split: str = "dev") -> Comparison:
        """Read the cells that are finished; one that is damaged is named in the error."""
        return cls(Path(folder), split, dict(ComparisonFolder(Path(folder)).split(split).read_cells()))

    @property
    def _files(self) -> SplitFolder:
        return ComparisonFolder(self.folder).split(self.split)

    @property
    def datasets(self) -> list[str]:
        """Names of the data sets, ``degree`` first: claims rest on it."""
        return sorted({key[0] for key in self.cells}, key=lambda name: (name != "degree", name))

    @property
    def pools(self) -> list[Comparison]:
        """For each kind of negatives with several splits, all of them as one data set.

        A pair of data set and seed counts as a seed there, so that means, deviations and tests are over both.
        """
        groups: dict[str, list[str]] = {}
        for dataset in self.datasets:
            groups.setdefault(dataset.partition(SEED_MARK)[0], []).append(dataset)
        result = []
        for name, members in groups.items():
            if len(members) > 1:
                title = f"{len(members)} splits of {name}"
                sources = {
                    CellKey(title, key.method, key.relation, members.index(key.dataset) * SPLIT_STEP + key.seed): key
                    for key in self.cells
                    if key.dataset in members
                }
                cells = {key: self.cells[source] for key, source in sources.items()}
                result.append(Comparison(self.folder, self.split, cells, sources))
        return result

    @property
    def methods(self) -> list[str]:
        """Methods in the table's order: floor, the paper's, the same with fresh negatives, modern, others, CogStage."""
        order = [name for group in ("floor", "paper", "fresh", "modern") for name in GROUPS[group]]
        present = {key[1] for key in self.cells}
        own = [name for name in VARIANTS if name in present]
        return [m for m in order if m in present] + sorted(present - set(order) - set(own)) + own[::-1]

    def relations(self, dataset: str) -> list[str]:
        """Relations that have cells, in the usual order."""
        present = {key[2] for key in self.cells if key[0] == dataset}
        return [r for r in RELATIONS if r in present] + sorted(present - set(RELATIONS))

    def seeds(self, dataset: str, method: str, relation: str) -> list[int]:
        """Seeds of which the cell is finished."""
        return sorted(key[3] for key in self.cells if key[:3] == (dataset, method, relation))

    def values(self, dataset: str, method: str, relation: str, metric: str) -> np.ndarray:
        """The metric of each finished seed that has it: some may not have been ranked."""
        cells = (self.cells[CellKey(dataset, method, relation, seed)] for seed in self.seeds(dataset, method, relation))
        found = [cell["metrics"][metric]["value"] for cell in cells if metric in cell["metrics"]]
        return np.array(found or [np.nan], np.float64)

    def replicates(self, dataset: str, method: str, relation: str, metric: str) -> np.ndarray:
        """Bootstrap values of the mean over seeds, (B,)."""
        key = (dataset, method, relation)
        if key not in self._replicates:
            loaded = [self._read_replicates(CellKey(*key, seed)) for seed in self.seeds(*key)]
            names = {name for one in loaded for name in one}
            self._replicates[key] = {
                name: np.mean([one[name] for one in loaded if name in one], axis=0) for name in names
            }
        found = self._replicates[key]
        size = len(next(iter(found.values()))) if found else 1
        return found.get(metric, np.full(size, np.nan))

    def _read_replicates(self, key: CellKey) -> dict[str, np.ndarray]:
        """Bootstrap values of a cell; those of a further split in an order of their own, the same for all methods.

        The draws of two splits are independent of each other, so which ones meet in an average must not depend on
        the numbers of the heads.
        """
        values = self._files.read_replicates(self.sources.get(key, key))
        number = key.seed // SPLIT_STEP if self.sources else 0
        if not number:
            return values
        return {name: np.random.default_rng(number).permutation(value) for name, value in values.items()}

    @cached_property
    def _replicates(self) -> dict[tuple[str, str, str], dict[str, np.ndarray]]:
        return {}

    def probabilities(self, dataset: str, method: str, relation: str) -> tuple[np.ndarray, np.ndarray]:
        """Labels of the split's pairs, and each pair's probability averaged over seeds."""
        key = (dataset, method, relation)
        read = [self._files.read_predictions(CellKey(*key, seed)) for seed in self.seeds(*key)]
        return read[0][0], np.mean([probability for _, probability in read], axis=0)

    def complete(self, dataset: str, method: str) -> bool:
        """Whether the method has a cell for every relation of the table, so that its average means the same."""
        return all(self.seeds(dataset, method, relation) for relation in self.relations(dataset))

    def best_baseline(self, dataset: str, relation: str, metric: str) -> str | None:
        """The baseline with the best mean, floor included; None if there is none."""
        sign = -1.0 if metric in LOWER_IS_BETTER else 1.0
        found = {
            method: sign * float(np.mean(self.values(dataset, method, relation, metric)))
            for method in self.methods
            if is_baseline(method) and self.seeds(dataset, method, relation)
        }
        found = {method: value for method, value in found.items() if np.isfinite(value)}
        return max(found, key=lambda method: found[method]) if found else None

    def figures(self, dataset: str, metric: str) -> dict[tuple[str, str], Figure]:
        """Figures by (method, relation), the macro average among the relations; tested against the best baseline."""
        relations = self.relations(dataset)
        best = {relation: self.best_baseline(dataset, relation, metric) for relation in relations}
        result: dict[tuple[str, str], Figure] = {}
        for method in self.methods:
            there = [r for r in relations if self.seeds(dataset, method, r)]
            p = self._tests(dataset, method, metric, {r: best[r] for r in there}) if metric in TESTED else {}
            for relation in there:
                values = self.values(dataset, method, relation, metric)
                low, high = interval(self.replicates(dataset, method, relation, metric))
                rival = best[relation]
                sign = -1.0 if metric in LOWER_IS_BETTER else 1.0
                above = rival is not None and sign * (
                    values.mean() - self.values(dataset, rival, relation, metric).mean()
                ) > 0  # fmt: skip
                result[method, relation] = Figure(
                    float(values.mean()),
                    _sd(values),
                    low,
                    high,
                    int(np.isfinite(values).sum()),
                    p.get(relation),
                    bool(above),
                )
            if there and self.complete(dataset, method):
                result[method, MACRO] = self._macro(dataset, method, relations, metric)
        return self._with_macro_tests(dataset, metric, relations, result)

    def _with_macro_tests(
        self, dataset: str, metric: str, relations: list[str], figures: dict[tuple[str, str], Figure]
    ) -> dict[tuple[str, str], Figure]:
        """The averages tested against the baseline with the best average."""
        sign = -1.0 if metric in LOWER_IS_BETTER else 1.0
        averages = {method: figure for (method, relation), figure in figures.items() if relation == MACRO}
        rivals = [method for method in averages if is_baseline(method) and np.isfinite(averages[method].mean)]
        if metric not in TESTED or not rivals:
            return figures
        rival = max(rivals, key=lambda method: sign * averages[method].mean)
        theirs = np.mean([self.replicates(dataset, rival, r, metric) for r in relations], axis=0)
        for method, figure in averages.items():
            if method != rival:
                ours = np.mean([self.replicates(dataset, method, r, metric) for r in relations], axis=0)
                above = sign * figure.mean > sign * averages[rival].mean
                figures[method, MACRO] = replace(figure, p=paired_p(ours, theirs), better=bool(above))
        return figures

    def _tests(self, dataset: str, method: str, metric: str, rivals: dict[str, str | None]) -> dict[str, float]:
        raw = {
            relation: paired_p(
                self.replicates(dataset, method, relation, metric), self.replicates(dataset, rival, relation, metric)
            )
            for relation, rival in rivals.items()
            if rival is not None and rival != method
        }
        return holm(raw)

    def _macro(self, dataset: str, method: str, relations: list[str], metric: str) -> Figure:
        found = []  # for each relation its value by seed
        for r in relations:
            cells = {
                seed: self.cells[CellKey(dataset, method, r, seed)]["metrics"]
                for seed in self.seeds(dataset, method, r)
            }
            found.append({seed: cell[metric]["value"] for seed, cell in cells.items() if metric in cell})
        shared = sorted(set.intersection(*map(set, found)))
        by_seed = np.array([np.mean([values[seed] for values in found]) for seed in shared])
        mean = float(np.mean([self.values(dataset, method, r, metric).mean() for r in relations]))
        low, high = interval(np.mean([self.replicates(dataset, method, r, metric) for r in relations], axis=0))
        return Figure(mean, _sd(by_seed), low, high, len(shared))

    def which_relations(self, dataset: str) -> dict[str, dict[str, float]]:
        """The which-relation shares of each method with cells of all relations, means over its seeds."""
        path = ComparisonFolder(self.folder).populations(dataset, self.split)
        if not path.exists():
            return {}
        pairs, relations, result = load_populations(path), self.relations(dataset), {}
        for method in self.methods:
            seeds = [set(self.seeds(dataset, method, relation)) for relation in relations]
            found = []
            for seed in sorted(set.intersection(*seeds)):
                logits = {r: self._files.read_related(CellKey(dataset, method, r, seed)) for r in relations}
                known = {r: values for r, values in logits.items() if values is not None}
                if len(known) == len(relations):
                    found.append(which_relation(pairs.related, pairs.relations, known).shares())
            if found:
                result[method] = {name: float(np.mean([shares[name] for shares in found])) for name in WHICH_TITLES}
        return result

    def cost(self, dataset: str, method: str) -> tuple[float, float, float]:
        """Seconds to fit one relation (encoding included) by clock and processor, and the highest memory in MB."""
        cells = self.cells_of(dataset, method)
        if not cells:
            return float("nan"), float("nan"), float("nan")
        clock, processor = (float(np.mean([c[name] for c in cells])) for name in ("seconds", "cpu_seconds"))
        return clock, processor, float(max(c["peak_mb"] for c in cells))

    def mcnemar(self, dataset: str, method: str, relation: str) -> float | None:
        """McNemar's p against the best baseline by F1, on probabilities averaged over seeds."""
        rival = self.best_baseline(dataset, relation, "f1")
        if rival is None or rival == method or not self.seeds(dataset, method, relation):
            return None
        label, ours = self.probabilities(dataset, method, relation)
        return mcnemar_p(label, ours, self.probabilities(dataset, rival, relation)[1])

    def floor_warnings(self) -> list[str]:
        """Where a floor row is above 0.9 or beats CogStage's best row, by data set and relation."""
        lines = []
        for dataset in self.datasets:
            present = [method for method in self.methods if self.cells_of(dataset, method)]
            rows: dict[bool, dict[str, dict[str, float]]] = {True: {}, False: {}}  # by whether it is of the floor
            for method in present:
                if method in GROUPS["floor"] or not is_baseline(method):
                    for relation in self.relations(dataset):
                        if self.seeds(dataset, method, relation):
                            value = float(np.mean(self.values(dataset, method, relation, "auroc")))
                            rows[is_baseline(method)].setdefault(relation, {})[method] = value
            ours = {relation: max(values.values()) for relation, values in rows[False].items()}
            lines += [f"{dataset} negatives, {line}" for line in floor_warnings(rows[True], ours)]
        return lines

    def cells_of(self, dataset: str, method: str) -> list[dict[str, Any]]:
        """The finished cells of a method."""
        return [cell for key, cell in self.cells.items() if key[:2] == (dataset, method)]

    def rows(self) -> Iterable[dict[str, Any]]:
        """One row per data set, method, relation, seed and metric."""
        for (dataset, method, relation, seed), cell in sorted(self.cells.items()):
            extra = {name: cell[name] for name in ("seconds", "cpu_seconds", "peak_mb")}
            measured = {name: (found["value"], *found["interval"]) for name, found in cell["metrics"].items()}
            measured |= {name: (value, None, None) for name, value in extra.items()}
            for metric, (value, low, high) in measured.items():
                yield {
                    "dataset": dataset,
                    "method": method,
                    "relation": relation,
                    "seed": seed,
                    "metric": metric,
                    "value": value,
                    "low": low,
                    "high": high,
                }

    def to_frame(self, library: FrameLibrary = "pandas") -> Any:
        """A table of :meth:`rows`."""
        return to_frame(pa.Table.from_pylist(list(self.rows())), library)

    def write(self, plots: bool = True) -> None:
        """Write ``results.parquet``, the tables and the plots into the split's folder."""
        import pyarrow.parquet as pq

        from cogstage.evaluation import tables

        columns = ("dataset", "method", "relation", "seed", "metric", "value", "low", "high")
        rows, folder = list(self.rows()), self._files.folder
        with new_file(folder / "results.parquet") as temporary:
            pq.write_table(pa.table({c: [row[c] for row in rows] for c in columns}), temporary)
        report = tables.comparison_report(self)
        write_text(folder / "table.md", report.markdown())
        write_text(folder / "table.tex", report.latex(wide=True))
        write_text(folder / "table.csv", tables.long_csv(self))
        if plots and self.cells:
            from cogstage.evaluation.plots import draw

            report.sections = [*report.sections, Section("Plots", draw(self, folder / "plots"))]
        report.write(folder / "report.html")


def _sd(values: np.ndarray) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
