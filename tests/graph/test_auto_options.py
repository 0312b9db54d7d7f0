"""The options "auto" depend on what the documents are, and not on the order of rows or files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cogstage.errors import UsageError
from cogstage.graph.build import build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.options import BuildOptions
from cogstage.progress import Silent
from cogstage.tables import BadRows

HEADER = "patient_id,doc_id,date,code"
ROWS = [",d0,2020-01-01,A", "p1,d1,2020-01-01,A", "p1,d2,2020-01-01,B", "p1,d3,2020-01-01,C", "p2,d4,2020-01-02,B"]


class Heard(Silent):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


def build(folder: Path, rows: list[str], **how: object) -> tuple[Graph, BadRows, list[str]]:
    folder.mkdir(exist_ok=True)
    (folder / "r.csv").write_text("\n".join([HEADER, *rows]))
    bad, heard = BadRows(), Heard()
    build_graph(folder / "r.csv", folder / "g", bad=bad, progress=heard, **how)  # type: ignore[arg-type]
    return Graph.load(folder / "g"), bad, heard.lines


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [1, 2, 3, 4, 0], [4, 0, 3, 2, 1]])
def test_the_order_of_rows_does_not_matter(tmp_path: Path, order: list[int]) -> None:
    graph, bad, heard = build(tmp_path / "in", [ROWS[at] for at in order])
    assert graph.made_with["unit"] == "patient-window"
    assert graph.n_edges == 3
    assert graph.made_with["decided"]["unit"] == "4 of 5 documents are coded records of patients"
    assert any(line.startswith("unit patient-window: 4 of 5") for line in heard)
    line = 2 + order.index(0)
    (notice,) = (what for what in bad.notices if "decided" in what)
    assert notice.startswith("documents without a patient")
    assert f"r.csv:{line}" in notice
    assert bad.notices[notice] == 1


@pytest.mark.parametrize("reverse", [False, True])
def test_rows_beyond_the_sample_decide_too(tmp_path: Path, reverse: bool) -> None:
    """20,000 documents are sampled, and these are more: the first of them look otherwise than the majority."""
    rows = [f",x{n},2020-01-01,{'AB'[n % 2]}" for n in range(20_100)]
    rows += [f"p{n // 2},d{n},2020-01-01,{'AB'[n % 2]}" for n in range(20_200)]
    graph, bad, heard = build(tmp_path / "in", rows[::-1] if reverse else rows)
    assert (graph.made_with["unit"], graph.n_edges, graph.count.tolist()) == ("patient-window", 1, [10_100])
    assert graph.made_with["documents"] == 40_300
    assert any("starting again" in line for line in heard) is not reverse
    assert [count for what, count in bad.notices.items() if "decided" in what] == [20_100]


def test_copies_of_notes_are_dropped_whatever_file_is_first(tmp_path: Path) -> None:
    words = " ".join(f"word{n}" for n in range(60))
    notes = [{"doc_id": n, "patient_id": "p1", "text": f"aspirin and fever {words}"} for n in range(3)]
    codes = [{"doc_id": f"c{n}", "patient_id": "p2", "codes": ["X", "Y"]} for n in range(2)]
    (tmp_path / "l.tsv").write_text("term\naspirin\nfever\n")
    kept = []
    for name, parts in (("one", (notes, codes)), ("two", (codes, notes))):
        folder = tmp_path / name
        folder.mkdir()
        for number, part in enumerate(parts):
            (folder / f"{number}.jsonl").write_text("\n".join(map(json.dumps, part)))
        build_graph(folder, tmp_path / f"{name}.graph", tmp_path / "l.tsv")
        graph = Graph.load(tmp_path / f"{name}.graph")
        assert graph.made_with["decided"]["copies"] == "there are notes of patients"
        kept.append(graph.made_with["documents"])
    assert kept == [3, 3]  # one note and two coded records


def test_examples_of_patients_are_refused_wherever_they_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="belong to patients"):
        build(tmp_path / "in", ROWS, options=BuildOptions(keep_examples=1))


def test_a_private_graph_says_nothing_of_its_decision(tmp_path: Path) -> None:
    from cogstage.graph.options import PrivacyOptions

    rows = [f"p{n},d{n}{c},2020-01-01,{c}" for n in range(400) for c in "AB"]
    options = BuildOptions(private=PrivacyOptions(5, 1e-3, 1))
    graph, _, _ = build(tmp_path / "in", rows, options=options, seed=1)
    assert "decided" not in graph.made_with
