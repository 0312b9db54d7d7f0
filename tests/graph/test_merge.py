"""Merged graphs against one build over everything; refusals; documents added to a graph."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from cogstage.cli.main import app
from cogstage.corpus.lexicon import Entry, Lexicon
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.build import build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.merge import add_documents, merge_folders, merge_graphs
from cogstage.graph.options import BuildOptions, PrivacyOptions

WORDS = ["aspirin", "fever", "cough", "gout", "rash"]
LEXICON = Lexicon.build([Entry(word, f"C{n}", f"name of {word}") for n, word in enumerate(WORDS)])
FILES = ("terms.parquet", "edges.parquet", "synonyms.parquet")

notes = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.lists(st.sampled_from(WORDS), min_size=2, max_size=4)),
    min_size=3,
    max_size=25,
)


def write_notes(path: Path, some: list[tuple[int, int, int, list[str]]]) -> Path:
    with path.open("w", encoding="utf-8") as handle:
        for number, site, patient, words in some:
            record = {
                "doc_id": f"n{number}",
                "patient_id": f"{site}-{patient}",
                "date": f"2020-01-{1 + number % 9:02d}",
                "text": "We saw " + " and ".join(words) + ".",
            }
            handle.write(json.dumps(record) + "\n")
    return path


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    some=notes,
    options=st.sampled_from(
        [
            BuildOptions(unit="document"),
            BuildOptions(unit="sentence", level="term"),
            BuildOptions(unit="patient-window", window=7, per="patient"),
            BuildOptions(unit="patient-window", window=None, order=True),
        ]
    ),
)
def test_merged_sites_are_the_bytes_of_one_build(
    tmp_path: Path, some: list[tuple[int, int, list[str]]], options: BuildOptions
) -> None:
    """Every patient is at one site, so no unit straddles two."""
    numbered = [(number, *note) for number, note in enumerate(some)]
    write_notes(tmp_path / "all.jsonl", numbered)
    parts = []
    for site in sorted({site for _, site, _, _ in numbered}):
        here = write_notes(tmp_path / f"{site}.jsonl", [note for note in numbered if note[1] == site])
        if not any(len(set(words)) > 1 for _, where, _, words in numbered if where == site):
            return  # a graph without edges is an error
        build_graph(here, tmp_path / f"g{site}", LEXICON, options)
        parts.append(tmp_path / f"g{site}")
    if len(parts) < 2:
        return
    build_graph(tmp_path / "all.jsonl", tmp_path / "one", LEXICON, options)
    merge_folders(parts, tmp_path / "merged")
    for name in (*FILES, *(["order.parquet"] if options.order else [])):
        if (tmp_path / "one" / name).exists():
            assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "merged" / name).read_bytes()
    made = Graph.load(tmp_path / "merged").made_with
    counted = Graph.load(tmp_path / "one").made_with["documents"]  # copies of a patient's note count once
    assert made["documents"] == counted <= len(some)
    assert made["merged"]["exact"] == (options.unit in ("document", "sentence"))


def three_notes(tmp_path: Path) -> list[Path]:
    return [write_notes(tmp_path / f"{n}.jsonl", [(n, n, 0, ["aspirin", "fever"])]) for n in range(3)]


def test_what_cannot_be_added_is_refused(tmp_path: Path) -> None:
    files = three_notes(tmp_path)
    build_graph(files[0], tmp_path / "a", LEXICON)
    build_graph(files[:2], tmp_path / "both", LEXICON)
    build_graph(files[1], tmp_path / "sentences", LEXICON, BuildOptions(unit="sentence"))
    with pytest.raises(UsageError, match=r"0\.jsonl was counted in .*a and in .*both"):
        merge_folders([tmp_path / "a", tmp_path / "both"], tmp_path / "out")
    with pytest.raises(UsageError, match=r"counted with unit document, .* with sentence"):
        merge_folders([tmp_path / "a", tmp_path / "sentences"], tmp_path / "out")
    with pytest.raises(UsageError, match="at least two"):
        merge_folders([tmp_path / "a"], tmp_path / "out")
    with pytest.raises(UsageError, match="a was given twice"):
        merge_folders([tmp_path / "a", tmp_path / "b" / ".." / "a"], tmp_path / "out")
    a = Graph.load(tmp_path / "a")
    with pytest.raises(UsageError, match=r"0\.jsonl was counted in graph 1 and in graph 2"):
        merge_graphs([a, a])
    with pytest.raises(UsageError, match=r"0\.jsonl was counted in same and in same"):
        merge_graphs([a, a], ["same", "same"])
    with pytest.raises(UsageError, match="any_case False, graph 2 with True"):
        merge_graphs([a, replace(a, made_with={**a.made_with, "any_case": True})])
    older = {name: value for name, value in a.made_with.items() if name not in ("any_case", "inputs")}
    assert merge_graphs([a, replace(a, made_with=older)]).count.tolist() == [2]  # a version without the option


def test_other_words_are_said(tmp_path: Path) -> None:
    """A term that one site did not look for is counted at the other alone, so the sum is no count of all documents."""
    files = three_notes(tmp_path)
    for n, words in enumerate((WORDS, WORDS[:2], WORDS)):
        rows = "".join(f"{word}\tC{number}\n" for number, word in enumerate(words))
        (tmp_path / f"{n}.tsv").write_text("term\tconcept\n" + rows, encoding="utf-8")
        build_graph(files[n], tmp_path / f"g{n}", tmp_path / f"{n}.tsv", BuildOptions(unit="document"))
    same = merge_folders([tmp_path / "g0", tmp_path / "g2"], tmp_path / "same")
    assert same.made_with["merged"] == {"parts": 2, "exact": True, "notes": []}
    other = merge_folders([tmp_path / "g0", tmp_path / "g1"], tmp_path / "other")
    assert not other.made_with["merged"]["exact"]
    assert "lexicons differ" in other.made_with["merged"]["notes"][0]


def test_budgets_add_up(tmp_path: Path) -> None:
    options = BuildOptions(unit="document", private=PrivacyOptions(4.0, 0.01, 2))
    for site in range(2):
        some = [(n, site, n, ["aspirin", "fever"]) for n in range(40)]
        build_graph(write_notes(tmp_path / f"{site}.jsonl", some), tmp_path / f"g{site}", LEXICON, options)
    merge_folders([tmp_path / "g0", tmp_path / "g1"], tmp_path / "out")
    graph = Graph.load(tmp_path / "out")
    private = graph.made_with["private"]
    assert (private["epsilon"], private["delta"]) == (8.0, 0.02)
    assert len(private["parts"]) == 2
    assert not graph.made_with["merged"]["exact"]
    assert "documents" not in graph.made_with
    build_graph(tmp_path / "0.jsonl", tmp_path / "open", LEXICON, BuildOptions(unit="document"))
    with pytest.raises(UsageError, match=r"only one of .* is private"):
        merge_folders([tmp_path / "g0", tmp_path / "open"], tmp_path / "out")


def test_only_new_files_are_added(tmp_path: Path) -> None:
    files = three_notes(tmp_path)
    build_graph(files[:2], tmp_path / "g", LEXICON)
    built = add_documents(tmp_path / "g", files, tmp_path / "g", LEXICON)
    assert built.documents == 1
    build_graph(files, tmp_path / "whole", LEXICON)
    for name in FILES:
        assert (tmp_path / "g" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    with pytest.raises(CogstageError, match="already contains all of these documents"):
        add_documents(tmp_path / "g", files, tmp_path / "g", LEXICON)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_other_options_are_refused_before_anything_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = three_notes(tmp_path)
    windows = BuildOptions(unit="patient-window", window=None)
    build_graph(files[0], tmp_path / "g", LEXICON, windows)
    with monkeypatch.context() as patch:
        patch.setattr("cogstage.graph.merge.build_folder", lambda *_, **__: pytest.fail("it was counted"))
        with pytest.raises(UsageError, match="window ever, the new documents with 1d"):
            add_documents(tmp_path / "g", files, tmp_path / "g", LEXICON)
        with pytest.raises(UsageError, match=r"roll_up None, the new documents with parents\.tsv"):
            add_documents(tmp_path / "g", files, tmp_path / "g", LEXICON, windows, roll_up=tmp_path / "parents.tsv")
    assert add_documents(tmp_path / "g", files, tmp_path / "g", LEXICON, windows).documents == 2


def test_on_the_command_line(tmp_path: Path) -> None:
    files = three_notes(tmp_path)
    rows = "".join(f"{word}\tC{n}\n" for n, word in enumerate(WORDS))
    (tmp_path / "lexicon.tsv").write_text("term\tconcept\n" + rows, encoding="utf-8")
    run = CliRunner()
    base = ["--lexicon", str(tmp_path / "lexicon.tsv")]
    for n in range(2):
        done = run.invoke(app, ["graph", "build", str(files[n]), *base, "--out", str(tmp_path / f"g{n}")])
        assert done.exit_code == 0, done.output
    done = run.invoke(app, ["graph", "merge", str(tmp_path / "g0"), str(tmp_path / "g1"), "--out", str(tmp_path / "m")])
    assert done.exit_code == 0, done.output
    add = ["--add-to", str(tmp_path / "m"), "--out", str(tmp_path / "m")]
    done = run.invoke(app, ["graph", "build", *map(str, files), *base, *add])
    assert done.exit_code == 0, done.output
    assert Graph.load(tmp_path / "m").count.tolist() == [3]


@pytest.mark.parametrize("below", [(11, 5), (5, 11), (0, 11)])
def test_a_sum_is_as_suppressed_as_its_least_suppressed_part(tmp_path: Path, below: tuple[int, int]) -> None:
    parts = []
    for site, least in enumerate(below):
        some = [(number, site, number, ["aspirin", "fever"]) for number in range(20)]
        write_notes(tmp_path / f"{site}.jsonl", some)
        options = BuildOptions(unit="patient-window", window=None, per="patient", suppress_below=least)
        build_graph(tmp_path / f"{site}.jsonl", tmp_path / f"g{site}", LEXICON, options)
        parts.append(Graph.load(tmp_path / f"g{site}"))
    assert merge_graphs(parts).made_with["suppress_below"] == min(below)
