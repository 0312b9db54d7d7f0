"""Release reports: every folder says where it comes from, and says the same as its files."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cogstage.artefact_checks import fast_hash
from cogstage.cli.main import run
from cogstage.estimator import CogStage
from cogstage.graph.build import build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.merge import merge_folders
from cogstage.graph.options import BuildOptions
from cogstage.knowledge.build import build_dataset
from cogstage.knowledge.dataset import Dataset
from cogstage.knowledge.facts import Facts

KINDS = ("graph", "facts", "dataset", "model")
QUICK = {
    "dimension": 8, "tower": 8, "associations": 4, "folds": 0, "recognition_passes": 1,
    "decision_epochs": 1, "decision_steps": 0,
}  # fmt: skip
OUR_NOTES, OUR_FACTS = "Our notes: internal use only", "Our <facts> | CC BY 4.0"


def cogstage(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        run([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return int(stopped.value.code or 0), said.out, said.err


def make(folder: Path) -> Path:
    """All four folders from a coded table of 60 patients and 60 facts."""
    folder.mkdir(exist_ok=True)
    rows = [f"p{n}\t2001-01-0{1 + n % 9}\t{code}" for n in range(60) for code in (f"d{n % 12}", f"s{n % 10}")]
    (folder / "records.tsv").write_text("\n".join(["patient_id\tdate\tcode", *rows]) + "\n")
    options = BuildOptions(unit="patient-window", window=30, suppress_below=1, licences=(OUR_NOTES,))
    build_graph(folder / "records.tsv", folder / "graph", options=options)
    graph = Graph.load(folder / "graph")
    pairs = sorted({(f"d{n % 12}", f"s{n % 10}") for n in range(60)})
    stated = [(head, "may_treat", tail, "A;B" if n % 2 else "A", 1990 + n % 5) for n, (head, tail) in enumerate(pairs)]
    half = [row for row in stated if int(row[0][1:]) % 3 != int(row[2][1:]) % 3]
    Facts.from_statements(half).save(folder / "facts", {"licences": [OUR_FACTS]})
    data = build_dataset(graph, Facts.load(folder / "facts"), folder / "dataset", minimum=5)
    CogStage("all", **QUICK).fit(graph, data).save(folder / "model")
    return folder


@pytest.fixture(name="made", scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("release"))


@pytest.mark.parametrize("kind", KINDS)
def test_the_folder_holds_its_report_and_hashes_it(made: Path, kind: str) -> None:
    meta = json.loads((made / kind / "meta.json").read_text())
    text = (made / kind / "REPORT.md").read_text()
    assert meta["files"]["REPORT.md"]["xxh3"] == fast_hash(made / kind / "REPORT.md")
    assert text.startswith("# ")
    assert meta["version"] in text
    for name, about in meta["files"].items():
        if "/" not in name and name != "REPORT.md":
            assert about["xxh3"] in text, name


def test_the_same_content_gives_the_same_report(made: Path, tmp_path: Path) -> None:
    again = make(tmp_path / "again")
    for kind in ("graph", "facts", "dataset"):
        assert (again / kind / "REPORT.md").read_bytes() == (made / kind / "REPORT.md").read_bytes()


def tables(capsys: pytest.CaptureFixture[str], folder: Path) -> dict[str, list[dict[str, str]]]:
    code, out, _ = cogstage(capsys, "report", folder, "--json")
    assert code == 0
    return dict(json.loads(out)["tables"])


def values(rows: list[dict[str, str]]) -> dict[str, str]:
    return dict(tuple(row.values())[:2] for row in rows)


def test_figures_are_those_of_the_files(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = tables(capsys, made / "graph")
    contents = values(graph["Contents"])
    assert contents["terms"] == str(pq.read_metadata(made / "graph/terms.parquet").num_rows)
    assert contents["edges"] == str(pq.read_metadata(made / "graph/edges.parquet").num_rows)
    assert values(graph["Inputs"])["name not kept"] == hashlib.sha256((made / "records.tsv").read_bytes()).hexdigest()
    assert values(graph["Overview"])["Privacy of the counts"] == "counts below 1 suppressed"

    stated = pq.read_table(made / "facts/facts.parquet").to_pydict()
    facts = tables(capsys, made / "facts")
    assert values(facts["Facts per relation"])["may_treat"] == str(len(stated["head"]))
    by = sum("B" in source for source in stated["source"])
    assert f"B: {by} facts" in [row["source"] for row in facts["Sources and licences"]]

    data = Dataset.load(made / "dataset")
    row = tables(capsys, made / "dataset")["Facts and negatives"][0]
    for split in ("train", "dev", "test"):
        pairs = data.pairs("may_treat", split)
        assert int(row[split]) == int(pairs.label.sum())
        assert int(row[f"{split} negatives"]) == int((pairs.label == 0).sum())

    model = tables(capsys, made / "model")
    dev = json.loads((made / "model/metrics.json").read_text())["dev"]["may_treat"]
    assert model["Figures on dev pairs"][0]["auroc"] == f"{dev['auroc']:.3f}"
    assert values(model["Options"])["dimension"] == "8"
    assert values(model["Overview"])["Privacy of the counts"] == "counts below 1 suppressed"


def test_test_figures_are_shown_once_they_are_kept(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = shutil.copytree(made / "model", tmp_path / "model")
    assert "Figures on test pairs" not in tables(capsys, model)
    code, _, _ = cogstage(capsys, "evaluate", model, "--dataset", made / "dataset", "--ranking-heads", 0, "--keep")
    assert code == 0
    kept = json.loads((model / "test_figures.json").read_text())["relations"]["may_treat"]
    (row,) = tables(capsys, model)["Figures on test pairs"]
    assert (row["relation"], row["auroc"]) == ("may_treat", f"{kept['auroc']:.3f}")


def test_licences_and_sources_reach_the_model(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("dataset", "model"):
        found = [row["source"] for row in tables(capsys, made / kind)["Sources and licences"]]
        assert {OUR_NOTES, OUR_FACTS} <= set(found)
        assert any("60 documents" in text or "120 documents" in text for text in found), found
    none = Facts.from_statements([("a", "causes", "b", "X")])
    none.save(made / "bare")
    (row,) = [row for row in tables(capsys, made / "bare")["Sources and licences"] if row["what"] == "Licence"]
    assert row["source"].startswith("Not recorded")


def test_merging_keeps_every_licence(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.tsv").write_text(f"patient_id\tdate\tcode\n{name}\t2001-01-01\tx\n{name}\t2001-01-01\ty\n")
        build_graph(tmp_path / f"{name}.tsv", tmp_path / name, options=BuildOptions(licences=("Shared", f"Of {name}")))
    merged = merge_folders([tmp_path / "a", tmp_path / "b"], tmp_path / "all")
    assert merged.made_with["licences"] == ["Shared", "Of a", "Of b"]


def test_licence_of_facts_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "facts.tsv").write_text("head\trelation\ttail\na\tcauses\tb\n")
    out = tmp_path / "facts"
    code, _, _ = cogstage(capsys, "facts", "table", tmp_path / "facts.tsv", "--licence", "Public domain", "--out", out)
    assert code == 0
    assert "Public domain" in (out / "REPORT.md").read_text()


def test_formats(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text, _ = cogstage(capsys, "report", made / "facts")
    assert code == 0
    assert re.search(r"Last written \(UTC\) +\d{4}-\d\d-\d\d", text)
    assert OUR_FACTS in text
    code, text, _ = cogstage(capsys, "report", made / "facts", "--output-format", "markdown")
    assert "Our &lt;facts> \\| CC BY 4.0" in text  # what a licence says cannot break the table
    out = tmp_path / "facts.html"
    assert cogstage(capsys, "report", made / "facts", "--output-format", "html", "--out", out)[0] == 0
    page = out.read_text()
    assert "Our &lt;facts&gt; | CC BY 4.0" in page
    assert "//" not in re.sub(r"<!--.*?-->", "", page).replace("http-equiv", "").split("<body>")[1]


def test_damaged_and_other_folders_are_one_line(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "graph"
    shutil.copytree(made / "graph", broken)
    (broken / "REPORT.md").write_text("changed")
    code, out, err = cogstage(capsys, "report", broken)
    assert (code, out) == (1, "")
    assert "REPORT.md is damaged" in err
    code, _, err = cogstage(capsys, "report", tmp_path)
    assert code == 2
    assert "has no release report" in err
    assert f"{tmp_path}/graph" in err
    assert len(err.strip().splitlines()) == 1


def test_the_embedded_set_names_its_licences(capsys: pytest.CaptureFixture[str]) -> None:
    from cogstage.data import embedded

    sources = (embedded.FOLDER / "SOURCES.txt").read_text()
    for folder in (embedded.GRAPH, embedded.FACTS):
        licences = [row["source"] for row in tables(capsys, folder)["Sources and licences"] if row["what"] == "Licence"]
        assert len(licences) == sources.count("  terms: ")
        for text in licences:
            name, terms = text.split(": ", 1)
            assert f"{name}\n" in sources
            assert terms in sources


def test_notebooks_show_a_graph_by_its_sizes_and_largest_counts(tmp_path: Path) -> None:
    (tmp_path / "notes.tsv").write_text("doc_id\tcodes\n1\ta<b;c\n2\ta<b;c\n3\tc;d\n")
    build_graph(tmp_path / "notes.tsv", tmp_path / "graph")
    graph = Graph.load(tmp_path / "graph")
    assert repr(graph) == f"Graph({graph.n_nodes} nodes, {graph.n_edges} edges)"
    html = graph._repr_html_()
    assert "3 documents, by document" in html
    assert "a<b" not in html
    assert re.search(r"a&lt;b – c.*?<td>2</td>", html, re.S)
