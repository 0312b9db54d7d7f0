"""Graphs that others counted, and files that only pretend."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from cogstage.cli.main import app
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.importers import import_edges, import_finlayson
from cogstage.graph.xmedrela import import_xmedrela, read_plain_pickle
from cogstage.tables import BadRows


def pairs(graph: Graph) -> dict[tuple[str, str], int]:
    graph.check()
    term = graph.vocabulary.term
    triples = zip(graph.source.tolist(), graph.target.tolist(), graph.count.tolist(), strict=True)
    return {(term[source], term[target]): count for source, target, count in triples}


def test_edges_with_terms(tmp_path: Path) -> None:
    (tmp_path / "edges.tsv").write_text("source\ttarget\tcount\nb\ta\t3\na\tb\t3\na\tc\t1\n", encoding="utf-8")
    (tmp_path / "terms.csv").write_text("term,concept,name,type,count\na,C1,Alpha,drug,9\nd,C4,,,2\n", encoding="utf-8")
    graph = import_edges(tmp_path / "edges.tsv", tmp_path / "terms.csv")
    assert pairs(graph) == {("a", "b"): 3, ("a", "c"): 1}
    assert graph.vocabulary.name == ("Alpha", "b", "c", "d")
    assert graph.vocabulary.type == ("drug", "", "", "")
    assert graph.vocabulary.count.tolist() == [9, 3, 1, 2]
    graph.save(tmp_path / "graph")
    assert pairs(Graph.load(tmp_path / "graph")) == pairs(graph)


cells = st.sampled_from(["a", "b", "c", "07", "7", "ä b", 'say "so"', "x,y", "1.0"])
rows = st.lists(st.tuples(cells, cells, st.sampled_from(["1", "2", "30", "0", "2.0", "", "-1"])), max_size=8)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows, st.sampled_from(["e.csv", "e.tsv", "e.csv.gz", "e.parquet", "e.jsonl"]))
def test_edges_against_a_plain_reading(tmp_path: Path, table: list[tuple[str, str, str]], name: str) -> None:
    """Whatever the format, and whether or not a row is wrong: the rows that can be used, and how many cannot."""
    path = tmp_path / name
    header = ("Concept_1", "other column", "Concept_2", "n")
    lines = [header, *((one, "x", other, count) for one, other, count in table)]
    if name == "e.parquet":
        columns = list(zip(*lines[1:], strict=True)) or [()] * 4
        pq.write_table(pa.table([pa.array(column, pa.string()) for column in columns], list(header)), path)
    elif name == "e.jsonl":
        path.write_text("\n".join(json.dumps(dict(zip(header, line, strict=True))) for line in lines[1:]))
    else:
        text = io.StringIO()
        if name == "e.tsv":
            text.write("\n".join("\t".join(line) for line in lines))
        else:
            csv.writer(text).writerows(lines)
        path.write_bytes(gzip.compress(text.getvalue().encode()) if name.endswith(".gz") else text.getvalue().encode())
    expected: dict[tuple[str, str], int] = {}
    wrong = 0
    for one, other, count in table:
        pair = (min(one, other), max(one, other))
        usable = count in ("1", "2", "30") and one != other and expected.setdefault(pair, int(count)) == int(count)
        wrong += not usable
    bad = BadRows(skip=True)
    names = {"source": "concept_1", "target": "CONCEPT_2", "count": "n"}
    if not expected:
        with pytest.raises(CogstageError):
            import_edges(path, bad=bad, columns=names)
        return
    assert pairs(import_edges(path, bad=bad, columns=names)) == expected
    assert bad.count == wrong


def test_columns_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("concept_id_1,concept_id_2,n\n1,2,30\n")
    named = "source=concept_id_1,target=concept_id_2,count=n"
    command = ["graph", "import", "edges", str(tmp_path / "e.csv"), "--columns", named, "--out", str(tmp_path / "g")]
    assert CliRunner().invoke(app, command).exit_code == 0
    assert pairs(Graph.load(tmp_path / "g")) == {("1", "2"): 30}
    with pytest.raises(UsageError, match="unknown column sauce; the columns of edges are source, target, count"):
        import_edges(tmp_path / "e.csv", columns={"sauce": "n"})


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a\tb\tmany", r"edges\.tsv:3, column count"),
        ("a\tb\t0", r"edges\.tsv:3, column count"),
        ("a\tb\t2.5", "column count"),
        ("a\ta\t2", "has an edge to itself"),
        ("a\tb\t4", "twice with different counts"),
        ("a\t\t4", r"edges\.tsv:3, column target"),
        ("a\tb", r"edges\.tsv:3"),
    ],
)
def test_bad_edges(tmp_path: Path, row: str, message: str) -> None:
    (tmp_path / "edges.tsv").write_text(f"source\ttarget\tcount\na\tb\t3\n{row}\n", encoding="utf-8")
    with pytest.raises(CogstageError, match=message):
        import_edges(tmp_path / "edges.tsv")
    bad = BadRows(skip=True)
    assert pairs(import_edges(tmp_path / "edges.tsv", bad=bad)) == {("a", "b"): 3}
    assert bad.count == 1


def test_edges_without_a_column(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target\na,b\n", encoding="utf-8")
    with pytest.raises(CogstageError, match="no column count"):
        import_edges(tmp_path / "edges.csv")


@pytest.fixture
def dryad(tmp_path: Path) -> Path:
    """A few rows in the published layout: no headers, tabs, Latin-1, some files gzipped."""
    folder = tmp_path / "dryad"
    (folder / "mappings").mkdir(parents=True)
    (folder / "mappings" / "1_term_ID_to_string.txt").write_bytes(
        "1\taspirin\n2\tfever\n3\tm\xe9ni\xe8re disease\n4\trare\n".encode("latin-1")
    )
    (folder / "2a_concept_ID_to_string.txt").write_text("10\tAspirin\n20\tFever\n", encoding="utf-8")
    (folder / "2b_concept_ID_to_CUI.txt").write_text("10\tC0004057\n20\tC0015967\n", encoding="utf-8")
    (folder / "3_term_ID_to_concept_ID.txt").write_text("1\t10\n2\t20\n3\t30\n", encoding="utf-8")
    with gzip.open(folder / "cofreqs_terms_perBin_1d.txt.gz", "wt") as handle:
        handle.write("2\t1\t7\n1\t3\t2\n1\t4\t1\n1\t1\t9\n1\t2\t7\n")
    with gzip.open(folder / "singlets_terms_perBin_1d.txt.gz", "wt") as handle:
        handle.write("1\t50\n2\t40\n3\t5\n4\t1\n")
    (folder / "cofreqs_concepts_perPat_alld.txt").write_text("10\t20\t6\n", encoding="utf-8")
    (folder / "singlets_concepts_perPat_alld.txt").write_text("10\t30\n20\t20\n", encoding="utf-8")
    return folder


def test_finlayson_terms(dryad: Path) -> None:
    graph = import_finlayson(dryad, min_count=2)
    assert pairs(graph) == {("aspirin", "fever"): 7, ("aspirin", "ménière disease"): 2}
    assert graph.vocabulary.concept == ("C0004057", "C0015967", "concept 30")
    assert graph.vocabulary.count.tolist() == [50, 40, 5]
    assert graph.made_with["window"] == "1d"


def test_finlayson_concepts(dryad: Path) -> None:
    graph = import_finlayson(dryad, "concept", "patient", None)
    assert pairs(graph) == {("C0004057", "C0015967"): 6}
    assert graph.vocabulary.name == ("Aspirin", "Fever")


def test_finlayson_says_what_is_missing_or_broken(dryad: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cofreqs_terms_perPat_7d\.txt"):
        import_finlayson(dryad, per="patient", window=7)
    with pytest.raises(UsageError, match="not a folder"):
        import_finlayson(tmp_path / "nowhere")
    (dryad / "cofreqs_concepts_perPat_alld.txt").write_text("10\t20\tsix\n", encoding="utf-8")
    with pytest.raises(CogstageError, match=r"cofreqs_concepts_perPat_alld\.txt.*six"):
        import_finlayson(dryad, "concept", "patient", None)


def dump(path: Path, value: object) -> Path:
    path.write_bytes(pickle.dumps(value))
    return path


def test_xmedrela_gives_its_ppmi_back(tmp_path: Path) -> None:
    near = {5: [(6, 1.25), (7, 0.5), (5, 3.0), (99, 2.0)], 6: [(5, 1.25)], 7: [(5, 0.5), (6, 0.125)]}
    graph = import_xmedrela(
        dump(tmp_path / "g.pkl", near),
        dump(tmp_path / "s.pkl", {5: "aspirin", 6: "fever", 7: "fever"}),
        dump(tmp_path / "c.pkl", {5: "C1", 6: ["C2", "C9"]}),
    )
    assert graph.vocabulary.term == ("aspirin", "fever", "fever #7")
    assert graph.vocabulary.concept == ("C1", "C2", "fever #7")
    expected = np.array([[0, 1.25, 0.5], [1.25, 0, 0.125], [0.5, 0.125, 0]])
    graph.save(tmp_path / "graph")
    loaded = Graph.load(tmp_path / "graph")
    assert np.allclose(loaded.ppmi().toarray(), expected)
    assert np.allclose(loaded.ppmi(shift=0.4).toarray(), np.maximum(expected - 0.4, 0))
    with pytest.raises(UsageError, match="smoothed"):
        loaded.ppmi(smoothing=0.75)


def test_xmedrela_counts_stay_counts(tmp_path: Path) -> None:
    graph = import_xmedrela(dump(tmp_path / "g.pkl", {1: [(2, 4)], 2: [(1, 4)]}))
    assert pairs(graph) == {("1", "2"): 4}
    assert "values" not in graph.made_with


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch executed",)


@pytest.mark.parametrize("value", [{1: Evil()}, {1: np.float64(2.0)}, Path("x"), {1: complex(1, 2)}])
def test_pickles_of_anything_but_plain_data_are_refused(
    tmp_path: Path, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CogstageError, match="not a pickle of plain"):
        read_plain_pickle(dump(tmp_path / "g.pkl", value))
    assert not (tmp_path / "executed").exists()


def nested_key(depth: int) -> bytes:
    """{((((...),),),): None}, whose hash takes as many calls as it is deep."""
    return b"\x80\x04}N" + b"\x85" * depth + b"Ns."


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (nested_key(1_000_000), "a dictionary key"),
        (pickle.dumps({n * (2**61 - 1): 1 for n in range(1, 50)}), "a dictionary key"),  # all of one hash
        (pickle.dumps({1: {2, 3}}), "contains a set"),
        (pickle.dumps({1: frozenset({2})}), "contains a set"),
        (b"\x80\x04B\xff\xff\xff\x7fx.", "length is wrong"),
        (b"\x80\x04\x95" + b"\xff" * 7 + b"\x0f.", "length is wrong"),
        (b"\x80\x04]N\x85Ns.", "not a dictionary"),
    ],
)
def test_pickles_that_ask_for_too_much_are_refused(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "g.pkl").write_bytes(content)
    with pytest.raises(CogstageError, match=said):
        read_plain_pickle(tmp_path / "g.pkl")


def test_a_memo_of_any_number_takes_no_room(tmp_path: Path) -> None:
    (tmp_path / "g.pkl").write_bytes(b"\x80\x04}r\xff\xff\xff\x7fj\xff\xff\xff\x7f.")  # entry 2,147,483,647
    assert read_plain_pickle(tmp_path / "g.pkl") == {}
    (tmp_path / "deep.pkl").write_bytes(b"\x80\x04" + b"]" * 200_000 + b"a" * 199_999 + b".")
    assert len(read_plain_pickle(tmp_path / "deep.pkl")) == 1


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(),
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.integers(-99, 99), inner, max_size=4)
        ),
    ),
    st.integers(0, 5),
)
def test_plain_values_come_back(tmp_path_factory: pytest.TempPathFactory, value: object, protocol: int) -> None:
    path = tmp_path_factory.getbasetemp() / "plain.pkl"
    path.write_bytes(pickle.dumps(value, protocol))
    assert read_plain_pickle(path) == value


def shared(kind: type, depth: int = 40) -> object:
    """A small file, and a text of 2 to the power of ``depth`` letters if anybody writes it out or hashes it."""
    value: object = kind([0])
    for _ in range(depth):
        value = kind([value, value])
    return value


@pytest.mark.parametrize(
    ("near", "said"),
    [
        ({1: [(2, 1)], 2: [shared(list)]}, "holds a list, not"),
        ({1: [(2, 1)], 2: [(shared(tuple), 1)]}, "holds a tuple, not"),
        ({1: [(2, 1)], 2: [([], 1)]}, "holds a tuple, not"),
        ({1: [(2, 1)], 2: shared(tuple)}, "holds a tuple, not"),
        (dict.fromkeys(range(6000), tuple((n, 1) for n in range(6000))), "more entries than bytes"),
    ],
)
def test_what_is_shared_in_a_pickle_is_not_written_out(tmp_path: Path, near: object, said: str) -> None:
    file = dump(tmp_path / "g.pkl", near)
    assert file.stat().st_size < 100_000
    with pytest.raises(CogstageError, match=said):
        import_xmedrela(file)


@pytest.mark.parametrize("value", [shared(list), shared(tuple), {}, None, []])
def test_names_and_concepts_of_a_pickle_are_texts(tmp_path: Path, value: object) -> None:
    near = dump(tmp_path / "g.pkl", {1: [(2, 4)], 2: [(1, 4)]})
    mapping = dump(tmp_path / "m.pkl", {1: value})
    for files in ((near, mapping), (near, None, mapping)):
        with pytest.raises(CogstageError, match="neither a text nor a list of texts"):
            import_xmedrela(*files)


def test_pickles_that_are_broken_or_shaped_otherwise(tmp_path: Path) -> None:
    for content in (b"", b"hello", pickle.dumps({1: [(2, 1.0)]})[:-4], b"\x80\x04\x8c\xff", b"\x80\x05N0N0."):
        (tmp_path / "g.pkl").write_bytes(content)
        with pytest.raises(CogstageError):
            read_plain_pickle(tmp_path / "g.pkl")
    for value in ([1, 2], {}, {1: 5}, {1: [7]}, {1: [(2, "x")], 2: []}, {1: [], 2: []}):
        with pytest.raises(CogstageError):
            import_xmedrela(dump(tmp_path / "g.pkl", value))
    with pytest.raises(UsageError):
        read_plain_pickle(tmp_path / "nowhere.pkl")
