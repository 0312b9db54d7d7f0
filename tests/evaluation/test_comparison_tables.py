"""Significance, bold and marks of a comparison whose cells are made up."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.planted import planted_communities

from cogstage.errors import CogstageError
from cogstage.evaluation.compare import dataset_name
from cogstage.evaluation.comparison_folder import CellKey, ComparisonFolder
from cogstage.evaluation.methods import GROUPS, expand, find, is_baseline, title
from cogstage.evaluation.metrics import replicate_metrics, score
from cogstage.evaluation.results import MACRO, Comparison
from cogstage.evaluation.tables import significance_mark
from cogstage.statistics import interval

QUALITY = {"degree": 0.0, "svd+distmult": 1.0, "line+ntn": 0.97, "cogstage": 2.0, "cogstage-closed": 0.3}


def made_up(folder: Path, quality: dict[str, float] = QUALITY, relations: tuple[str, ...] = ("causes",)) -> Comparison:
    rng = np.random.default_rng(0)
    files = ComparisonFolder(folder).split("dev")
    for relation in relations:
        head, label = rng.integers(0, 80, 500), rng.integers(0, 2, 500)
        for method, strength in quality.items():
            for seed in range(3):
                logit = strength * (2 * label - 1) + rng.normal(size=500)
                probability = 1 / (1 + np.exp(-logit))
                values = replicate_metrics(head, label, probability, 300)
                found = {
                    n: {"value": v, "interval": list(interval(values[n]))} for n, v in score(label, probability).items()
                }
                key = CellKey("degree", method, relation, seed)
                for path in (files.cell(key), files.predictions(key), files.replicates(key)):
                    path.parent.mkdir(parents=True, exist_ok=True)
                np.savez(files.replicates(key), **values)
                table = {"head": head, "tail": head, "label": label, "probability": probability}
                pq.write_table(pa.table(table), files.predictions(key))
                files.cell(key).write_text(
                    json.dumps(
                        {**key._asdict(), "metrics": found, "seconds": 1.0, "cpu_seconds": 1.0, "peak_mb": 100.0}
                    )
                )
    return Comparison.gather(folder)


def test_marks_against_the_best_baseline(tmp_path: Path) -> None:
    comparison = made_up(tmp_path)
    figures = comparison.figures("degree", "auroc")
    assert comparison.best_baseline("degree", "causes", "auroc") == "svd+distmult"
    assert figures["svd+distmult", "causes"].p is None
    assert significance_mark(figures["cogstage", "causes"]) == "**"  # 300 replicates cannot say more
    assert significance_mark(figures["cogstage-closed", "causes"]) == "††"
    assert significance_mark(figures["line+ntn", "causes"]) == ""
    assert comparison.mcnemar("degree", "cogstage", "causes") < 0.001
    strongest = comparison.best_baseline("degree", "causes", "f1")
    assert strongest is not None
    assert comparison.mcnemar("degree", strongest, "causes") is None
    comparison.write()
    text = (tmp_path / "dev" / "table.md").read_text()
    best = figures["cogstage", "causes"]
    assert f"| CogStage | 3 | **{best.mean:.3f} ± {best.sd:.3f}**\\*\\*" in text
    assert "$^{\\ast\\ast}$" in (tmp_path / "dev" / "table.tex").read_text()


def test_damaged_cells_are_named(tmp_path: Path) -> None:
    made_up(tmp_path)
    files, key = ComparisonFolder(tmp_path).split("dev"), CellKey("degree", "cogstage", "causes", 1)
    cell, replicates, predictions = files.cell(key), files.replicates(key), files.predictions(key)
    whole = {path: path.read_bytes() for path in (cell, replicates, predictions)}
    for damage in (
        b"",
        whole[cell][:50],
        b"[]",
        b'{"dataset": "degree"}',
        whole[cell].replace(b'"seed": 1', b'"seed": 2'),
    ):
        cell.write_bytes(damage)
        with pytest.raises(CogstageError, match=r"cogstage~causes~1\.json is damaged"):
            Comparison.gather(tmp_path)
    cell.write_bytes(whole[cell])
    for path in (replicates, predictions):
        path.write_bytes(whole[path][:100])
        with pytest.raises(CogstageError, match=f"{re.escape(path.name)} is damaged"):
            Comparison.gather(tmp_path).write(plots=False)
        path.write_bytes(whole[path])
    Comparison.gather(tmp_path).write(plots=False)


def test_holm_is_applied_over_the_relations_of_a_table(tmp_path: Path) -> None:
    """Raw p values by counting signs, corrected by hand: smallest times three, and so on."""
    names = ("causes", "may_treat", "symptom_of")
    comparison = made_up(tmp_path, {"degree": 0.0, "svd+distmult": 1.0, "cogstage": 1.06}, names)
    figures = comparison.figures("degree", "auroc")
    raw = {}
    for relation in names:
        ours, theirs = (
            comparison.replicates("degree", method, relation, "auroc")
            for method in ("cogstage", str(comparison.best_baseline("degree", relation, "auroc")))
        )
        wins = sum(a > b for a, b in zip(ours.tolist(), theirs.tolist(), strict=True))
        raw[relation] = min(1.0, 2 * (min(wins, len(ours) - wins) + 1) / (len(ours) + 1))
    assert len(set(raw.values())) == 3
    ordered = sorted(names, key=lambda relation: raw[relation])
    expected, running = {}, 0.0
    for factor, relation in zip((3, 2, 1), ordered, strict=True):
        running = max(running, min(1.0, factor * raw[relation]))
        expected[relation] = running
    for relation in names:
        assert figures["cogstage", relation].p == pytest.approx(expected[relation])
    assert any(expected[relation] > raw[relation] for relation in names)


def test_a_floor_that_is_too_good_is_warned_of(tmp_path: Path) -> None:
    comparison = made_up(tmp_path, {"degree": 1.5, "svd+distmult": 3.0, "cogstage": 1.0})
    lines = comparison.floor_warnings()
    assert len(lines) == 2
    assert "Degree alone has AUROC 0.9" in lines[0]
    assert "better than the model" in lines[1]
    comparison.write(plots=False)
    assert "Degree alone" in (tmp_path / "dev" / "table.md").read_text(encoding="utf-8")
    assert made_up(tmp_path / "other", {"degree": 0.1, "cogstage": 1.0}).floor_warnings() == []


def test_mean_and_spread_over_seeds(tmp_path: Path) -> None:
    comparison = made_up(tmp_path, {"degree": 0.5, "cogstage": 1.0}, ("causes", "may_treat"))
    figures = comparison.figures("degree", "f1")
    values = comparison.values("degree", "cogstage", "may_treat", "f1")
    figure = figures["cogstage", "may_treat"]
    assert figure.mean == pytest.approx(values.mean())
    assert figure.sd == pytest.approx(values.std(ddof=1))
    assert figure.low < figure.mean < figure.high
    both = np.stack([values, comparison.values("degree", "cogstage", "causes", "f1")])
    assert figures["cogstage", MACRO].mean == pytest.approx(both.mean())
    assert figures["cogstage", MACRO].sd == pytest.approx(both.mean(axis=0).std(ddof=1))
    assert comparison.relations("degree") == ["may_treat", "causes"]
    files = ComparisonFolder(tmp_path).split("dev")
    for seed in range(3):
        files.cell(CellKey("degree", "cogstage", "causes", seed)).unlink()
    partial = Comparison.gather(tmp_path).figures("degree", "f1")
    files.cell(CellKey("degree", "degree", "causes", 0)).unlink()
    fewer = Comparison.gather(tmp_path)
    fewer.write(plots=False)
    assert "| Degree | 2–3 | " in (tmp_path / "dev" / "table.md").read_text(encoding="utf-8")
    assert "Degree & 2--3 & " in (tmp_path / "dev" / "table.tex").read_text(encoding="utf-8")
    assert ("cogstage", MACRO) not in partial  # an average over fewer relations is no average


def test_lower_is_better_for_calibration(tmp_path: Path) -> None:
    comparison = made_up(tmp_path)
    best = comparison.best_baseline("degree", "causes", "brier")
    values = {m: comparison.values("degree", m, "causes", "brier").mean() for m in QUALITY if is_baseline(m)}
    assert values[best] == min(values.values())


def test_data_sets_are_told_apart_by_negatives_and_seed() -> None:
    data = planted_communities(100)[1]
    for options, name in (
        ({"negatives": "degree", "seed": 0}, "degree"),
        ({"negatives": "degree", "seed": 1}, "degree-seed1"),
        ({"negatives": "uniform"}, "uniform"),
        ({"negatives": "degree", "split": "random"}, "degree"),
        ({"negatives": "degree", "split": "cold-head", "seed": 2}, "degree-cold-head-seed2"),
        ({}, "dataset"),
    ):
        assert dataset_name(replace(data, manifest={"options": options})) == name


def test_names() -> None:
    floor = ["always-positive", "degree", "popularity-head", "popularity-tail", "popularity-product", "ppmi"]
    assert expand(["floor", "degree", "svd+ntn"]) == [*floor, "svd+ntn"]
    parts = [(e, s) for e in ("svd", "deepwalk", "line", "repel") for s in ("distmult", "rescal", "ntn")]
    assert list(GROUPS["paper"]) == [f"{e}+{s}" for e, s in parts]
    assert list(GROUPS["fresh"]) == [f"{e}+{s}+fresh" for e, s in parts]
    assert {find(name).name for name in expand(None)} == set(expand(None))
    assert title("repel+rescal") == "REPEL-D + RESCAL"
    assert title("svd+ntn+fresh") == "SVD + NTN, fresh negatives"
    assert title("tucker") == "TuckER"
    assert title("of a later version") == "of a later version"
    assert find("cogstage-all").joint
    assert not find("cogstage").joint


def test_splits_of_one_kind_are_pooled(tmp_path: Path) -> None:
    """Two splits of three seeds each count as six runs; a difference that each alone leaves open may then show."""
    first = made_up(tmp_path / "a", {"degree": 0.3, "svd+distmult": 1.0, "cogstage": 1.03}, ("causes",))
    files = ComparisonFolder(tmp_path / "a").split("dev")
    for key in list(first.cells):
        other = key._replace(dataset="degree-seed1")
        for old, new in (
            (files.predictions(key), files.predictions(other)),
            (files.replicates(key), files.replicates(other)),
        ):
            new.parent.mkdir(parents=True, exist_ok=True)
            new.write_bytes(old.read_bytes())
        cell = {**first.cells[key], "dataset": "degree-seed1"}
        cell["metrics"] = {n: {**m, "value": m["value"] + 0.01} for n, m in cell["metrics"].items()}
        files.cell(other).parent.mkdir(parents=True, exist_ok=True)
        files.cell(other).write_text(json.dumps(cell))
    both = Comparison.gather(tmp_path / "a")
    (pool,) = both.pools
    (name,) = pool.datasets
    assert name == "2 splits of degree"
    figure, alone = (
        pool.figures(name, "auroc")["cogstage", "causes"],
        both.figures("degree", "auroc")["cogstage", "causes"],
    )
    values = both.values("degree", "cogstage", "causes", "auroc")
    every = np.concatenate([values, values + 0.01])
    assert figure.seeds == 6
    assert figure.mean == pytest.approx(every.mean())
    assert figure.sd == pytest.approx(every.std(ddof=1))
    assert figure.high - figure.low < alone.high - alone.low  # twice the pairs
    assert figure.p is not None
    assert alone.p is not None
    assert figure.p < alone.p
    ours = both.replicates("degree", "cogstage", "causes", "auroc")
    order = np.random.default_rng(1).permutation(len(ours))
    assert pool.replicates(name, "cogstage", "causes", "auroc") == pytest.approx((ours + ours[order]) / 2, abs=1e-6)
    both.write(plots=False)
    text = (tmp_path / "a" / "dev" / "table.md").read_text(encoding="utf-8")
    assert "## AUROC on dev pairs, 2 splits of degree negatives" in text
    assert Comparison.gather(tmp_path / "a").datasets == ["degree", "degree-seed1"]
