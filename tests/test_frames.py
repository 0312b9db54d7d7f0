"""Frames of pandas, Polars and Arrow go in where tables are read, and come out as results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from small_model import small_data

import cogstage as cs
from cogstage.estimator import CogStage

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

ROWS = {
    "doc_id": ["1", "2", "3", "4"],
    "text": ["Aspirin helps headache.", "aspirin and fever", "Fever with headache", "headache, aspirin"],
}
LEXICON = {"term": ["aspirin", "headache", "fever"], "type": ["drug", "symptom", "symptom"]}
MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.mark.parametrize("library", MAKERS)
def test_a_graph_from_frames_equals_one_from_files(library: str, tmp_path: Path) -> None:
    for name, rows in (("notes", ROWS), ("terms", LEXICON)):
        lines = ["\t".join(rows), *("\t".join(row) for row in zip(*rows.values(), strict=True))]
        (tmp_path / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    options = cs.BuildOptions(unit="document")
    from_files = cs.build_graph(tmp_path / "notes.tsv", tmp_path / "a", tmp_path / "terms.tsv", options)
    make: Any = MAKERS[library]
    from_frames = cs.build_graph(make(ROWS), tmp_path / "b", make(LEXICON), options)
    assert from_frames.hash == from_files.hash
    assert (from_frames.n_nodes, from_frames.n_edges, from_frames.made_with["documents"]) == (3, 3, 4)
    again = cs.build_graph(make(ROWS), tmp_path / "c", make(LEXICON), options)
    assert again.made_with["inputs"] == from_frames.made_with["inputs"]  # equal tables are equal files


def test_an_index_is_no_column_and_dates_stay_dates(tmp_path: Path) -> None:
    frame = pd.DataFrame({"patient_id": ["1", "1", "2"], "code": ["a", "b", "a"], "date": pd.to_datetime("2020-01-02")})
    graph = cs.build_graph(frame[::-1], tmp_path / "g", options=cs.BuildOptions(unit="patient-window", window=1))
    assert graph.to_frame().to_dict("list") == {"source": ["a"], "target": ["b"], "count": [1]}


def test_edges_and_facts_go_round(tmp_path: Path) -> None:
    edges = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"], "count": [3, 5]})
    graph = cs.import_edges(edges)
    assert cs.import_edges(graph.to_frame("polars")).hash == graph.hash
    renamed = pl.DataFrame({"one": ["a", "b"], "two": ["b", "c"], "n": [3, 5]})
    assert cs.import_edges(renamed, columns={"source": "one", "target": "two", "count": "n"}).hash == graph.hash
    facts = cs.facts_from_table(pd.DataFrame({"head": ["a"], "relation": ["causes"], "tail": ["c"], "source": ["me"]}))
    assert facts.to_frame("pyarrow").to_pylist() == [
        {"head": "a", "relation": "causes", "tail": "c", "source": "me", "year": None}
    ]
    assert cs.facts_from_table(facts.to_frame()).hash == facts.hash


def test_predictions_are_a_frame(model: CogStage) -> None:
    words = model.vocabulary
    records = model.predict_batch([words.name[4], 6], [words.name[7], 9], "may_treat")
    frame = records.to_frame()
    assert frame["probability"].tolist() == [p.probability for p in records]
    assert frame["verdict"].tolist() == [p.verdict for p in records]
    assert not [name for name in frame.columns if name.startswith("reason_")]
    by_reason = records.to_frame("polars", reasons=True)
    assert by_reason.height == sum(max(len(p.reasons), 1) for p in records)
    assert by_reason["reason_share"].drop_nulls().to_list() == [r.share for p in records for r in p.reasons]
    assert pl.DataFrame(records).height == 2  # through the Arrow interface
    assert "2 predictions" in records._repr_html_()
    assert "Drug number 4" in records._repr_html_()


def test_columns_of_frames_are_terms(model: CogStage) -> None:
    pairs = pl.DataFrame({"head": ["Drug number 4", "remedy 6"], "tail": ["Disorder number 7", "C009"]})
    expected = model.probabilities([4, 6], [7, 9], "may_treat")
    for frame in (pairs, pairs.to_pandas(), pairs.to_arrow()):
        assert np.array_equal(model.probabilities(frame["head"], frame["tail"], "may_treat"), expected)
    assert [p.relation for p in model.predict_batch(pairs["head"], pairs["tail"])] == [
        model.predict(head, tail).relation for head, tail in pairs.iter_rows()
    ]
    with pytest.raises(cs.UsageError, match="unknown term: nothing"):
        model.probabilities(["nothing"], [3], "may_treat")
    with pytest.raises(cs.UsageError, match="a name or a node id"):
        model.probabilities([None], [3], "may_treat")  # type: ignore[list-item]


def test_pairs_figures_and_corrections(model: CogStage) -> None:
    graph, data = small_data()
    pairs = data.pairs("may_treat", "dev")
    frame = pairs.to_frame(graph.vocabulary)
    assert frame["label"].tolist() == pairs.label.tolist()
    assert frame["head"].tolist() == [f"C{node:03d}" for node in pairs.head]
    assert pairs.to_frame(library="pyarrow").column("tail").to_pylist() == pairs.tail.tolist()
    figures = cs.evaluate(model, data, "dev", ["may_treat"], ranking_heads=0)
    table = figures.to_frame().set_index("metric")
    assert table.loc["auroc", "value"] == figures["relations"]["may_treat"]["metrics"]["auroc"]["value"]
    assert json.dumps(figures["relations"]["may_treat"]["pairs"])
    triple = {"head": ["Drug number 4"], "relation": ["may_treat"], "tail": ["Disorder number 7"], "verdict": ["right"]}
    assert model.corrected(cs.Corrections.read(pd.DataFrame(triple))).predict(4, 7, "may_treat").known_fact


def test_what_is_no_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(cs.UsageError, match="library"):
        cs.import_edges(pd.DataFrame({"source": ["a"], "target": ["b"], "count": [1]})).to_frame("R")  # type: ignore[arg-type]
    mixed = pd.DataFrame({"source": [1, "a"], "target": ["b", "c"], "count": [1, 2]})
    with pytest.raises(cs.UsageError, match="`edges` cannot be read as a table"):
        cs.import_edges(mixed)


def test_networkx_and_edge_index_have_the_same_edges() -> None:
    torch = pytest.importorskip("torch")
    networkx = pytest.importorskip("networkx")
    graph, _ = small_data()
    other = graph.to_networkx()
    assert isinstance(other, networkx.Graph)
    assert other.number_of_nodes() == graph.n_nodes
    term = graph.vocabulary.term
    expected = {
        frozenset((term[s], term[t])): c for s, t, c in zip(graph.source, graph.target, graph.count, strict=True)
    }
    assert {frozenset(edge[:2]): edge[2]["count"] for edge in other.edges(data=True)} == expected
    ppmi = graph.ppmi()
    assert all(
        other[term[s]][term[t]]["weight"] == ppmi[s, t]
        for s, t in zip(graph.source[:50], graph.target[:50], strict=True)
    )
    index, weight = graph.to_edge_index()
    dense = torch.zeros(graph.n_nodes, graph.n_nodes).index_put((index[0], index[1]), weight).numpy()
    assert np.array_equal(dense, graph.matrix.toarray())


def test_pykeen_takes_the_facts() -> None:
    pytest.importorskip("pykeen")
    graph, data = small_data()
    factory = data.to_pykeen(graph.vocabulary)
    assert factory.num_entities == graph.n_nodes
    facts = data.facts("train")
    expected = {
        (f"C{head:03d}", data.relations[relation], f"C{tail:03d}")
        for head, relation, tail in zip(facts.head, facts.relation, facts.tail, strict=True)
    }
    assert {tuple(row) for row in factory.triples.tolist()} == expected
