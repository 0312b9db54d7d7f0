"""How-to pages: their commands run on small data, and every command of every page is one that the program accepts."""

from __future__ import annotations

import gzip
import json
import random
import re
import runpy
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import typer.main
from benchmarks.planted import planted_communities
from check_all import check_all
from small_model import save_small_data, small_data
from test_site import run_page

from cogstage.cli.main import app
from cogstage.graph.cooccurrence import Graph

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def pubmed(folder: Path) -> None:
    """Two files of 20 records each, with headings, text and years."""
    record = (
        "<PubmedArticle><MedlineCitation><PMID>{0}</PMID><Article><Journal><JournalIssue><PubDate><Year>{1}</Year>"
        "</PubDate></JournalIssue></Journal><ArticleTitle>Aspirin for headache</ArticleTitle></Article>"
        "<MeshHeadingList><MeshHeading><DescriptorName UI='D001241'>Aspirin</DescriptorName></MeshHeading>"
        "<MeshHeading><DescriptorName UI='D006261'>Headache</DescriptorName></MeshHeading></MeshHeadingList>"
        "</MedlineCitation></PubmedArticle>"
    )
    (folder / "pubmed").mkdir()
    for part in (0, 1):
        body = "".join(record.format(100 * part + n + 1, 2010 + n % 10) for n in range(20))
        with gzip.open(folder / "pubmed" / f"part{part}.xml.gz", "wt") as handle:
            handle.write(f"<PubmedArticleSet>{body}</PubmedArticleSet>")
    lexicon(folder)


def lexicon(folder: Path) -> None:
    """Two terms."""
    (folder / "terms.tsv").write_text(
        "term\tconcept\tname\ttype\naspirin\tC1\tAspirin\tdrug\nheadache\tC2\tHeadache\tsymptom\n"
    )


def fhir(folder: Path) -> None:
    """Conditions and medications of 30 patients."""
    (folder / "export").mkdir()
    lines = []
    for n in range(30):
        patient, snomed = {"reference": f"Patient/p{n}"}, "http://snomed.info/sct"
        for number, (kind, field, code, display) in enumerate(
            [
                ("Condition", "code", "25064002", "Headache"),
                ("MedicationRequest", "medicationCodeableConcept", "387458008", "Aspirin"),
            ]
        ):
            coding = {"coding": [{"system": snomed, "code": code, "display": display}]}
            when = {"onsetDateTime": "2020-01-02"} if kind == "Condition" else {"authoredOn": "2020-01-03"}
            lines.append({"resourceType": kind, "id": f"{n}-{number}", "subject": patient, field: coding, **when})
    (folder / "export" / "all.ndjson").write_text("\n".join(map(json.dumps, lines)) + "\n")


def notes(folder: Path) -> None:
    """Notes of 40 patients."""
    lexicon(folder)
    rows = [
        {"doc_id": n, "patient_id": f"p{n}", "date": "2020-01-01", "text": f"{n}: aspirin for headache."}
        for n in range(40)
    ]
    with gzip.open(folder / "notes.jsonl.gz", "wt") as handle:
        handle.write("".join(json.dumps(row) + "\n" for row in rows))


def facts(folder: Path) -> None:
    """A graph of two terms and a table of facts."""
    notes(folder)
    from cogstage.graph.build import build_graph

    build_graph(folder / "notes.jsonl.gz", folder / "graph", folder / "terms.tsv")
    rows = ["aspirin\tmay_treat\theadache", "aspirin\tmay_treat\tno such thing"]
    (folder / "facts.tsv").write_text("\n".join(["head\trelation\ttail", *rows]) + "\n")


def planted_data(folder: Path) -> None:
    """A graph and a data set with a relation that can be learned."""
    graph, _ = small_data()
    graph.save(folder / "graph")
    save_small_data(folder / "data")


def shared_is_suppressed(folder: Path, out: str) -> None:
    assert "counts below 11 suppressed" in out
    assert Graph.load(folder / "shared").made_with["suppress_below"] == 11


def facts_are_matched(folder: Path, out: str) -> None:
    assert "no such thing" in (folder / "facts" / "unmatched.tsv").read_text()
    assert "Our own list, CC BY 4.0" in (folder / "facts" / "REPORT.md").read_text()


def graph_has_two_named_terms(folder: Path, out: str) -> None:
    assert set(Graph.load(folder / "graph").vocabulary.name) == {"Aspirin", "Headache"}
    assert (folder / ("graph-both" if (folder / "pubmed").exists() else "graph-all")).is_dir()


def table_is_there(folder: Path, out: str) -> None:
    assert (folder / "table" / "test" / "report.html").exists()


def options_are_listed(folder: Path, out: str) -> None:
    assert "recognition_passes" in out
    assert out.count("auroc") + out.count("AUROC") >= 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "prepare", "check"),
    [
        ("pubmed", pubmed, graph_has_two_named_terms),
        ("fhir", fhir, graph_has_two_named_terms),
        ("facts", facts, facts_are_matched),
        ("privacy", notes, shared_is_suppressed),
        ("tune", planted_data, options_are_listed),
        ("compare", planted_data, table_is_there),
    ],
)
def test_how_to_commands_run(
    page: str, prepare: Callable[[Path], None], check: Callable[[Path, str], None], tmp_path: Path
) -> None:
    random.seed(0)
    prepare(tmp_path)
    check(tmp_path, run_page(f"howto/{page}.md", tmp_path, ("floor,svd+rescal,cogstage", "ppmi,degree")))


def test_the_encoder_of_the_page_encodes(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "howto" / "encoder.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    (tmp_path / "projection.py").write_text(block, encoding="utf-8")
    scope = runpy.run_path(str(tmp_path / "projection.py"))
    graph, data = planted_communities(pairs=50)
    encoder = scope["ProjectionEncoder"](dimension=4)
    first, second = (encoder.encode(graph, data.for_fitting(), seed) for seed in (1, 1))
    assert first.shape == (graph.n_nodes, 4)
    assert (first == second).all()


def commands_of(page: Path) -> Iterator[str]:
    """Every line of the page's code blocks that starts the program, continued lines joined, comments left out."""
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"```(?:bash|text|sh)\n(.*?)```", text, flags=re.S):
        for line in re.sub(r"\\\n\s*", " ", block).splitlines():
            if line.startswith("cogstage ") and "..." not in line:
                yield re.sub(r"\s+#.*$", "", line).replace("[--", "--").replace("]", "")


COMMANDS = sorted({(page.name, line) for page in PAGES for line in commands_of(page)})


def test_commands_of_the_pages_are_accepted() -> None:
    assert len(COMMANDS) > 100
    check_all(check_command, COMMANDS)


def check_command(page: str, line: str) -> None:
    words, command = shlex.split(line)[1:], typer.main.get_command(app)
    while hasattr(command, "commands") and words and words[0] in command.commands:
        command, words = command.commands[words[0]], words[1:]
    assert not hasattr(command, "commands") or words == ["--help"], f"{page}: {line}"
    if words != ["--help"] and "--options" not in words:
        assert command.make_context("cogstage", words, resilient_parsing=False) is not None
