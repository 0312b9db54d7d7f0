"""Examples of pairs against a literal search through the documents; refusals; what a model folder carries on."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cogstage.corpus.lexicon import Entry, Lexicon
from cogstage.errors import UsageError
from cogstage.graph import examples as gathering
from cogstage.graph.build import build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.kept_examples import Example, Examples
from cogstage.graph.merge import add_documents, merge_folders
from cogstage.graph.options import BuildOptions, PrivacyOptions

CONCEPT = {"aspirin": "D1", "asa": "D1", "fever": "S1", "cough": "S2", "gout": "X1"}
LEXICON = Lexicon.build([Entry(word, concept, concept.lower()) for word, concept in CONCEPT.items()])
documents = st.lists(
    st.lists(st.lists(st.sampled_from([*CONCEPT, "other", "..."]), max_size=4), max_size=4), min_size=1, max_size=15
)


def write_documents(path: Path, some: list[list[list[str]]], **more: str) -> None:
    lines = []
    for number, sentences in enumerate(some):
        text = " ".join("We saw " + " and ".join(words) + "." for words in sentences)
        lines.append(json.dumps({"doc_id": f"n{number}", "text": text or "nothing", **more}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def concepts(sentence: str) -> set[str]:
    return {CONCEPT[word] for word in re.findall(r"[a-z]+", sentence.lower()) if word in CONCEPT}


def by_hand(some: list[list[list[str]]], one: str, other: str, unit: str) -> list[tuple[str, bool]]:
    """Documents that name both, in order: first those with both in one sentence."""
    near, apart = [], []
    for number, sentences in enumerate(some):
        named = [{CONCEPT[word] for word in words if word in CONCEPT} for words in sentences]
        if any({one, other} <= these for these in named):
            near.append((f"n{number}", True))
        elif {one, other} <= set().union(*named):
            apart.append((f"n{number}", False))
    return near + (apart if unit == "document" else [])


@given(documents, st.sampled_from(["document", "sentence"]), st.integers(1, 3))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_pair_has_the_first_documents_that_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, some: list[list[list[str]]], unit: str, most: int
) -> None:
    for name, size in (("HELD", 4), ("SORTED", 3), ("LOT", 2), ("PAIRS", 3)):  # many files, ranges and parts
        monkeypatch.setattr(gathering, name, size)
    some = [[["aspirin", "fever"]], *some]  # a graph has an edge
    write_documents(tmp_path / "notes.jsonl", some)
    options = BuildOptions(unit=unit, keep_examples=most)  # type: ignore[arg-type]
    build_graph(tmp_path / "notes.jsonl", tmp_path / "graph", LEXICON, options)
    graph = Graph.load(tmp_path / "graph")
    assert graph.examples is not None
    terms = graph.vocabulary.term
    for one, other in combinations(range(graph.n_nodes), 2):
        wanted = by_hand(some, terms[one], terms[other], unit)[:most]
        found = graph.examples.between(other, one)
        assert found == graph.examples.between(one, other)
        assert [(example.document, len(example.sentences) == 1) for example in found] == wanted
        assert bool(found) == bool(graph.edge([one], [other])[0] >= 0)
        for example in found:
            if len(example.sentences) == 1:
                assert {terms[one], terms[other]} <= concepts(example.sentences[0])
            else:
                assert terms[one] in concepts(example.sentences[0])
                assert terms[other] in concepts(example.sentences[1])


def test_negated_mentions_are_no_examples_and_sentences_are_cut(tmp_path: Path) -> None:
    long = "Aspirin " + "was given and " * 60 + "fever came."
    texts = [{"doc_id": "1", "text": "No fever with aspirin."}, {"doc_id": "2", "text": long}]
    (tmp_path / "notes.jsonl").write_text("".join(json.dumps(text) + "\n" for text in texts), encoding="utf-8")
    build_graph(tmp_path / "notes.jsonl", tmp_path / "graph", LEXICON, BuildOptions(keep_examples=5))
    examples = Graph.load(tmp_path / "graph").examples
    assert examples is not None
    (only,) = examples.between(0, 1)
    assert only.document == "2"
    assert len(only.sentences[0]) <= gathering.LONGEST
    assert only.sentences[0].endswith("…")


def test_coded_records_give_their_identifiers(tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").write_text(
        '{"doc_id": "r1", "codes": ["A", "B"]}\n{"doc_id": "r2", "codes": ["B", "A"]}\n', encoding="utf-8"
    )
    build_graph(tmp_path / "records.jsonl", tmp_path / "graph", None, BuildOptions(keep_examples=5))
    examples = Graph.load(tmp_path / "graph").examples
    assert examples is not None
    assert examples.between(0, 1) == (Example("r1", ()), Example("r2", ()))


def test_patients_must_be_asked_for_twice(tmp_path: Path) -> None:
    some = [[["aspirin", "fever"]], [["aspirin"], ["fever"]]]
    write_documents(tmp_path / "first.jsonl", some)
    write_documents(tmp_path / "second.jsonl", some, patient_id="p1")
    files = [tmp_path / "first.jsonl", tmp_path / "second.jsonl"]
    for documents in (files, files[1]):  # also where the first document has no patient
        with pytest.raises(UsageError, match="belong to patients"):
            build_graph(documents, tmp_path / "graph", LEXICON, BuildOptions(keep_examples=5))
        assert not (tmp_path / "graph").exists()
        left = [path for path in tmp_path.rglob("*") if path.is_file() and path not in files]
        assert not any(b"We saw" in path.read_bytes() for path in left)
    options = BuildOptions(keep_examples=5, examples_of_patients=True, copies="keep")
    build_graph(files[1], tmp_path / "graph", LEXICON, options)
    graph = Graph.load(tmp_path / "graph")
    assert graph.examples is not None
    assert len(graph.examples.between(0, 1)) == 2
    assert graph.made_with["examples"] == {"per_pair": 5, "of_patients": True}


@pytest.mark.parametrize("more", [{"suppress_below": 2}, {"private": PrivacyOptions(1.0, 1e-6, 10)}])
def test_not_beside_suppression_or_noise(more: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="meant to hide"):
        BuildOptions(keep_examples=5, **more)  # type: ignore[arg-type]


def test_options_out_of_range() -> None:
    for options in ({"keep_examples": -1}, {"keep_examples": 101}, {"examples_of_patients": True}):
        with pytest.raises(UsageError):
            BuildOptions(**options)  # type: ignore[arg-type]


def test_examples_stay_with_a_saved_graph_and_go_when_graphs_are_added(tmp_path: Path) -> None:
    for name, words in (("a", ["aspirin", "fever"]), ("b", ["aspirin", "gout"])):
        write_documents(tmp_path / f"{name}.jsonl", [[words]])
        build_graph(tmp_path / f"{name}.jsonl", tmp_path / name, LEXICON, BuildOptions(keep_examples=1))
    Graph.load(tmp_path / "a").save(tmp_path / "copy")
    copy = Graph.load(tmp_path / "copy")
    assert copy.examples is not None
    assert copy.examples.between(0, 1) == (Example("n0", ("We saw aspirin and fever.",)),)
    merge_folders([tmp_path / "a", tmp_path / "b"], tmp_path / "sum")
    merged = Graph.load(tmp_path / "sum")
    assert merged.examples is None
    assert "examples" not in merged.made_with
    with pytest.raises(UsageError, match="keep_examples"):
        add_documents(tmp_path / "a", tmp_path / "b.jsonl", tmp_path / "more", LEXICON, BuildOptions(keep_examples=1))


def test_a_mapped_file_gives_the_same(tmp_path: Path) -> None:
    write_documents(tmp_path / "notes.jsonl", [[["aspirin", "fever"], ["gout"]], [["gout", "cough"]]])
    build_graph(tmp_path / "notes.jsonl", tmp_path / "graph", LEXICON, BuildOptions(keep_examples=2))
    graph = Graph.load(tmp_path / "graph")
    assert graph.examples is not None
    graph.examples.write(tmp_path / "examples.arrow")
    mapped = Examples.load(tmp_path / "examples.arrow", graph.n_nodes)
    assert len(mapped) == len(graph.examples) > 0
    for one, other in combinations(range(graph.n_nodes), 2):
        assert mapped.between(one, other) == graph.examples.between(one, other)
