"""Measurements on the literature, in small: each runs from one command and is checked against counts by hand."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import __main__ as front
from benchmarks import reference_sets, time_split, transfer
from benchmarks.hospital import Hospital
from literature_like import PLAN, write_literature

from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import Dataset

TINY = {
    **{"dimension": 16, "tower": 16, "associations": 6, "folds": 2, "recognition_passes": 4},
    **{"decision_epochs": 1, "decision_steps": 0},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_literature(tmp_path_factory.mktemp("bench"))


def written(out: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / f"{name}.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("name", ["literature", "time_split", "transfer", "reference_sets"])
def test_without_the_data_they_are_left_out_with_a_reason(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert front.main([name, "--quick", "--data", str(tmp_path)]) == front.LEFT_OUT
    assert f"needs {tmp_path / 'documents.jsonl.gz'}" in capsys.readouterr().out


@pytest.mark.slow
def test_time_split_measures_later_facts_and_goes_on_where_it_stopped(data: Path, tmp_path: Path) -> None:
    folder, cut, unsure = tmp_path / "work", 2014, 2016
    arguments = ["time_split", "--data", str(data), "--out", str(tmp_path), "--folder", str(folder), "--seeds", "1"]
    arguments += ["--cuts", str(cut), "--unsure", str(unsure), "--methods", "ppmi,popularity-product", "--test"]
    assert front.main(arguments) == front.DONE
    graph, built = Graph.load(folder / f"graph-{cut}"), Dataset.load(folder / f"data-{cut}")
    assert graph.made_with["until"] == f"{cut}-12-31"
    year = {}
    with (data.parent / "dated" / "causes.tsv").open(encoding="utf-8") as handle:
        for row in csv.DictReader(handle, delimiter="\t"):
            year[row["head"], row["tail"]] = int(row["date"])
    term = graph.vocabulary.term
    for split, held in (("train", range(0, cut + 1)), ("dev", range(0, cut + 1)), ("test", range(cut + 1, 3000))):
        pairs = built.pairs("causes", split)
        stated = [year.get((term[h], term[t])) for h, t in zip(pairs.head, pairs.tail, strict=True)]
        for when, label in zip(stated, pairs.label, strict=True):
            assert (
                (when in held and when != unsure) if label else when is None
            )  # no fact, of whatever year, is a negative
    found = written(tmp_path, "time_split")
    assert (found["benchmark"], found["notes"][str(cut)]["later facts in train or dev"]) == ("time_split", 0)
    assert set(found["inputs"]) == {"documents.jsonl.gz", "lexicon.tsv", "causes.tsv"}
    ppmi = next(row for row in found["rows"] if row["method"] == "PPMI")
    test = built.pairs("causes", "test")
    never = np.array([graph.matrix[h, t] == 0 for h, t in zip(test.head, test.tail, strict=True)])
    assert found["notes"][str(cut)]["test pairs"]["never together"] == never.sum()
    assert ppmi["never together"] == 0.5  # PPMI says nothing of them
    soon = [year.get((term[h], term[t])) in range(cut + 1, cut + 6) for h, t in zip(test.head, test.tail, strict=True)]
    heads = set(test.head[soon].tolist())
    beside = [h in heads and not label for h, label in zip(test.head.tolist(), test.label.tolist(), strict=True)]
    assert found["notes"][str(cut)]["test pairs"]["1 to 5 years later"] == sum(soon) + sum(beside)
    candidates = written(tmp_path, "time_split_candidates")["rows"]
    assert [row["best 100 of"] for row in candidates] == ["Popularity of head × tail", "chance"]
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.json")}
    front.main(arguments)
    cells = [path for path in before if "cells" in path.parts]
    assert cells
    assert all(path.stat().st_mtime_ns == before[path] for path in cells)


@pytest.mark.slow
def test_a_random_split_reports_later_facts_apart(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    arguments = ["time_split", "--data", str(data), "--out", str(tmp_path), "--folder", str(folder), "--seeds", "1"]
    arguments += ["--cuts", "2014", "--unsure", "2016", "--methods", "ppmi", "--random"]
    assert front.main(arguments) == front.DONE
    (row,) = written(tmp_path, "time_split_random")["rows"]
    graph, built = Graph.load(folder / "graph-2014"), Dataset.load(folder / "data-2014-random")
    stated = time_split.stated_in(folder / "facts-2014.tsv", graph, "causes")
    dev, ppmi = built.pairs("causes", "dev"), graph.ppmi()
    pairs = list(zip(dev.head.tolist(), dev.tail.tolist(), dev.label.tolist(), strict=True))
    facts = [ppmi[h, t] for h, t, label in pairs if label and stated[h, t] > 2014]
    negatives = [ppmi[h, t] for h, t, label in pairs if not label]
    assert facts  # later facts are among the pairs of every split
    wins = sum((f > n) + 0.5 * (f == n) for f in facts for n in negatives)
    expected = wins / len(facts) / len(negatives)
    assert expected != 0.5
    assert abs(row["stated after the cut"] - 0.5) == pytest.approx(abs(expected - 0.5), abs=1e-4)  # of either sign


class ByNumber:
    """Scores a pair by its ids, so that the best are known."""

    def scores(self, head: np.ndarray, tail: np.ndarray, relation: str | None = None) -> np.ndarray:
        return head * 1.0 + tail / 1000


@pytest.mark.slow
def test_best_candidates_are_new_and_hits_are_counted_by_year(data: Path, tmp_path: Path) -> None:
    graph, built, table = time_split.cut_inputs(tmp_path, data, data.parent / "dated" / "causes.tsv", 2014, [2016])
    stated = time_split.stated_in(table, graph, "causes")
    known = {pair for pair, year in stated.items() if year <= 2014}
    facts = built.facts("train")
    everything = [(h, t) for h in set(facts.head.tolist()) for t in set(facts.tail.tolist()) if h != t]
    expected = sorted((pair for pair in everything if pair not in known), key=lambda p: (-(p[0] + p[1] / 1000), p))[:30]
    found = time_split.best_candidates(ByNumber(), built, "causes", known, 30)  # type: ignore[arg-type]
    assert found == expected
    assert 0 in stated.values()  # those of 2016, which count for nothing
    hits = time_split.hits_by_year([*stated][:50], stated, 2014, [2015, 2019])
    first = [*stated.values()][:50]
    assert hits == {"by 2015": np.mean([y == 2015 for y in first]), "by 2019": np.mean([y > 2014 for y in first])}


@pytest.mark.slow
def test_literature_has_a_row_per_measure_and_method(data: Path, tmp_path: Path) -> None:
    arguments = ["literature", "--quick", "--data", str(data), "--out", str(tmp_path), "--test"]
    assert front.main(arguments) == front.DONE
    found = written(tmp_path, "literature")
    assert found["arguments"] == ["--quick", "--test"]
    rows = {(row["measure"], row["method"]): row for row in found["rows"]}
    assert set(rows) == {(measure, method) for measure in ("F1", "AUROC") for method in ("Degree", "PPMI")}
    assert rows["AUROC", "Degree"]["average"] == pytest.approx(0.5, abs=0.1)  # negatives are matched by degree


@pytest.mark.slow
def test_reference_sets_are_held_out_and_covered(data: Path, tmp_path: Path) -> None:
    arguments = ["--data", str(data), "--out", str(tmp_path), "--folder", str(tmp_path / "work"), "--seeds", "1"]
    reference_sets.main([*arguments, "--coverage"])
    rows = written(tmp_path, "reference_sets")["rows"]
    assert [row["missing"] for row in rows] == [1, 1]
    assert not (tmp_path / "work" / "model-1-0").exists()
    reference_sets.main(arguments, **TINY)
    found = written(tmp_path, "reference_sets")["rows"]
    assert {row["set"] for row in found} == {"omop", "euadr"}
    assert [row["score"] for row in found[:2]] == ["model", "known facts of the head"]
    for one, other in zip(rows, found[::5], strict=True):
        assert one["covered"] == other["covered"] == round(1 - 1 / one["pairs"], 4)
    work = Dataset.load(tmp_path / "work" / "data-1")
    held = set()
    for name in ("omop", "euadr"):
        for line in (data.parent / "pharmacovigilance" / f"{name}.tsv").read_text().splitlines()[1:]:
            drug, outcome, _ = line.split("\t")
            held.add((drug, outcome.removeprefix("of ")))
    hospital = Hospital(PLAN)
    name_of = dict(zip(hospital.concept, hospital.name, strict=True))
    term = Graph.load(tmp_path / "work" / "graph-1").vocabulary.term
    for split in ("train", "dev", "test"):
        facts = work.facts(split)
        assert not held & {(name_of[term[h]], term[t]) for h, t in zip(facts.head, facts.tail, strict=True)}


@pytest.mark.slow
def test_transfer_between_two_halves(data: Path, tmp_path: Path) -> None:
    arguments = ["--data", str(data), "--out", str(tmp_path), "--folder", str(tmp_path / "work"), "--seeds", "1"]
    transfer.main(arguments, first=("first",), **TINY)
    found = written(tmp_path, "transfer")
    figure = {row["situation"]: row["AUROC"] for row in found["rows"]}
    assert len(figure) == 6
    here, there = (Graph.load(tmp_path / "work" / f"shared-{half}") for half in ("first", "second"))
    assert here.vocabulary.hash == there.vocabulary.hash
    assert here.hash != there.hash
    assert figure["trained on the first, asked on the second"] > 0.6  # the rules are the same in both
    assert found["notes"]["nodes of both"] == here.n_nodes
