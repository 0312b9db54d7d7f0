"""Whole builds against a count by hand: every unit, window and per; spilling, resuming, suppressing, bad input."""

from __future__ import annotations

import datetime
import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from functools import partial
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cogstage.corpus.lexicon import Entry, Lexicon
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.build import build_folder, build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.engines.local import LocalEngine
from cogstage.graph.options import WINDOWS, BuildOptions, parse_lag, parse_size, parse_until, parse_window
from cogstage.tables import BadRows

WORDS = ["aspirin", "asa", "fever", "cough", "gout", "rash"]
CONCEPT = {"aspirin": "D1", "asa": "D1", "fever": "S1", "cough": "S2", "gout": "X1", "rash": "S3"}
LEXICON = Lexicon.build([Entry(word, concept, concept.lower()) for word, concept in CONCEPT.items()])
DAY0 = datetime.date(2019, 12, 20)
Options = partial(BuildOptions, copies="keep")  # the same note twice is two notes here

notes = st.lists(
    st.tuples(
        st.integers(0, 3),  # patient
        st.integers(0, 400),  # days after DAY0
        st.lists(st.lists(st.sampled_from([*WORDS, "other"]), max_size=4), max_size=3),  # sentences of words
    ),
    min_size=1,
    max_size=12,
)


def write_notes(path: Path, some: list[tuple[int, int, list[list[str]]]]) -> None:
    with path.open("w", encoding="utf-8") as handle:
        for number, (patient, day, sentences) in enumerate(some):
            record = {
                "doc_id": f"n{number}",
                "patient_id": f"p{patient}",
                "date": str(DAY0 + datetime.timedelta(days=day)),
                "text": "\n".join("We saw " + " and ".join(words) + " here." for words in sentences) or "nothing",
            }
            handle.write(json.dumps(record) + "\n")


def by_hand(some: list[tuple[int, int, list[list[str]]]], options: BuildOptions) -> tuple[dict, dict]:
    """Node and edge counts in the plainest way: sets of units, then sets of what counts."""
    has: dict[object, set[str]] = defaultdict(set)
    for number, (patient, day, sentences) in enumerate(some):
        for place, words in enumerate(sentences):
            if options.unit == "document":
                unit: object = (patient, number)
            elif options.unit == "sentence":
                unit = (patient, number, place)
            elif options.window is None:
                unit = (patient, 0)
            else:
                days = (DAY0 + datetime.timedelta(days=day) - datetime.date(1970, 1, 1)).days
                unit = (patient, days // options.window)
            has[unit] |= {CONCEPT[w] if options.level == "concept" else w for w in words if w in CONCEPT}
    nodes, edges = defaultdict(set), defaultdict(set)
    for unit, terms in has.items():
        counted = unit[0] if options.per == "patient" else unit  # type: ignore[index]
        for term in terms:
            nodes[term].add(counted)
        for pair in combinations(sorted(terms), 2):
            edges[pair].add(counted)
    node_count = {term: len(units) for term, units in nodes.items() if len(units) >= options.min_count}
    edge_count = {pair: len(units) for pair, units in edges.items() if set(pair) <= set(node_count)}
    return node_count, edge_count


def content(folder: Path) -> tuple[dict[str, int], dict[tuple[str, str], int]]:
    graph = Graph.load(folder)
    term = graph.vocabulary.term
    assert list(term) == sorted(term)
    nodes = dict(zip(term, graph.vocabulary.count.tolist(), strict=True))
    triples = zip(graph.source.tolist(), graph.target.tolist(), graph.count.tolist(), strict=True)
    return nodes, {(term[source], term[target]): count for source, target, count in triples}


def same_bytes(one: Path, other: Path) -> bool:
    names = sorted(path.name for path in one.iterdir())
    assert names == sorted(path.name for path in other.iterdir())
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in names)


ways = st.one_of(
    st.builds(
        Options,
        unit=st.sampled_from(["document", "sentence"]),
        level=st.sampled_from(["term", "concept"]),
        min_count=st.integers(1, 3),
    ),
    st.builds(
        Options,
        unit=st.just("patient-window"),
        window=st.sampled_from([*WINDOWS, None]),
        per=st.sampled_from(["bin", "patient"]),
        level=st.sampled_from(["term", "concept"]),
        min_count=st.integers(1, 2),
    ),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some=notes, options=ways, memory=st.sampled_from([700, 1 << 30]))
def test_build_equals_a_count_by_hand(
    tmp_path: Path, some: list[tuple[int, int, list[list[str]]]], options: BuildOptions, memory: int
) -> None:
    write_notes(tmp_path / "notes.jsonl", some)
    nodes, edges = by_hand(some, options)
    if nodes and not edges:
        with pytest.raises(CogstageError, match=r"but no edges: no (two occur in one|patient has two)"):
            build_graph(tmp_path / "notes.jsonl", tmp_path / "graph", LEXICON, options, memory=memory)
        return
    built = build_folder(tmp_path / "notes.jsonl", tmp_path / "graph", LEXICON, options, memory=memory)
    assert content(tmp_path / "graph") == (nodes, edges)
    assert (built.nodes, built.edges, built.documents) == (len(nodes), len(edges), len(some))
    assert not list(tmp_path.glob(".graph*"))


@pytest.mark.parametrize("window", [*WINDOWS, None])
@pytest.mark.parametrize("per", ["bin", "patient"])
def test_every_window_and_per(tmp_path: Path, window: int | None, per: str) -> None:
    some = [(i % 3, (i * 37) % 400, [[WORDS[i % 6], WORDS[(i * i + 1) % 6]]]) for i in range(60)]
    write_notes(tmp_path / "notes.jsonl", some)
    options = Options(unit="patient-window", window=window, per=per)  # type: ignore[arg-type]
    build_graph(tmp_path / "notes.jsonl", tmp_path / "graph", LEXICON, options)
    assert content(tmp_path / "graph") == by_hand(some, options)


def many_notes(path: Path, count: int = 6000) -> None:
    write_notes(path, [(i % 97, (i * 13) % 300, [[WORDS[(i * k) % 6] for k in range(1, 5)]] * 2) for i in range(count)])


@pytest.mark.slow
def test_spilled_and_parallel_builds_are_the_same_bytes(tmp_path: Path) -> None:
    many_notes(tmp_path / "notes.jsonl")
    options = Options(unit="patient-window", window=7, per="patient", suppress_below=2)
    for name, how in {
        "plain": {},
        "spilled": {"memory": 20_000},
        "parallel": {"workers": 2},
        "both": {"memory": 3_000, "workers": 3},
    }.items():
        build_graph(tmp_path / "notes.jsonl", tmp_path / name, LEXICON, options, **how)  # type: ignore[arg-type]
    assert content(tmp_path / "plain")[1]
    for name in ("spilled", "parallel", "both"):
        assert same_bytes(tmp_path / "plain", tmp_path / name)
    Graph.load(tmp_path / "plain").save(tmp_path / "saved")
    for file in ("edges.parquet", "terms.parquet"):
        assert (tmp_path / "saved" / file).read_bytes() == (tmp_path / "plain" / file).read_bytes()


SLOW_BUILD = """
import sys, time
from pathlib import Path
from cogstage.graph.engines import local as local_engine
from cogstage.graph.build import build_graph
from cogstage.graph.options import BuildOptions
folder, resume = Path(sys.argv[1]), sys.argv[2] == "resume"
local_engine.RUN_TASKS, local_engine.TASK_DOCUMENTS = 1, 300
if not resume:
    plain = local_engine.Finder.find
    def slowly(self, documents):
        time.sleep(0.4)
        return plain(self, documents)
    local_engine.Finder.find = slowly
build_graph(folder / "notes.jsonl", folder / "graph", folder / "lexicon.tsv",
            BuildOptions(unit="patient-window", window=30, copies="keep"), resume=resume, workers=2, memory=1_000_000)
"""


@pytest.mark.slow
def test_resume_after_a_kill_gives_the_same_bytes(tmp_path: Path) -> None:
    many_notes(tmp_path / "notes.jsonl", 3_000)
    rows = "".join(f"{word}\t{concept}\n" for word, concept in CONCEPT.items())
    (tmp_path / "lexicon.tsv").write_text("term\tconcept\n" + rows, encoding="utf-8")
    options = Options(unit="patient-window", window=30)
    build_graph(tmp_path / "notes.jsonl", tmp_path / "whole", tmp_path / "lexicon.tsv", options)
    build_graph(tmp_path / "notes.jsonl", tmp_path / "graph", tmp_path / "lexicon.tsv", Options())
    before = (tmp_path / "graph" / "edges.parquet").read_bytes()
    command = [sys.executable, "-c", SLOW_BUILD, str(tmp_path)]
    process = subprocess.Popen([*command, "first"], start_new_session=True)
    work = tmp_path / ".graph.work"
    deadline = time.monotonic() + 60
    while len(list(work.glob("run-*.json"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    runs = {path.name: path.stat().st_mtime_ns for path in work.glob("run-*.npy")}
    assert len(runs) >= 3
    assert (tmp_path / "graph" / "edges.parquet").read_bytes() == before  # what was there stays
    subprocess.run([*command, "resume"], check=True, env={**os.environ, "PYTHONWARNINGS": "ignore"})
    assert same_bytes(tmp_path / "graph", tmp_path / "whole")
    assert not work.exists()


def test_resume_refuses_work_of_another_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many_notes(tmp_path / "notes.jsonl", 50)

    def stopped(self: LocalEngine) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(LocalEngine, "census", stopped)
        with pytest.raises(KeyboardInterrupt):
            build_graph(tmp_path / "notes.jsonl", tmp_path / "graph", LEXICON, Options())
    assert (tmp_path / ".graph.work").exists()
    assert not (tmp_path / "graph").exists()
    with pytest.raises(UsageError, match="other options or inputs"):
        build_graph(tmp_path / "notes.jsonl", tmp_path / "graph", LEXICON, Options(unit="sentence"), resume=True)
    build_graph(tmp_path / "notes.jsonl", tmp_path / "graph", LEXICON, Options(), resume=True)
    assert Graph.load(tmp_path / "graph").n_nodes == 5


def test_coded_records_need_no_lexicon_and_keep_their_names(tmp_path: Path) -> None:
    (tmp_path / "records.csv").write_text(
        "patient_id,date,code,name,type\n1,2020-01-01,E11,Diabetes,disorder\n1,2020-01-01,I10,,\n"
        "2,2020-01-05,E11,Diabetes,disorder\n2,2020-03-05,I10,,\n",
        encoding="utf-8",
    )
    options = Options(unit="patient-window", window=30, per="patient")
    build_graph(tmp_path / "records.csv", tmp_path / "graph", options=options)
    assert content(tmp_path / "graph") == ({"E11": 2, "I10": 2}, {("E11", "I10"): 1})
    vocabulary = Graph.load(tmp_path / "graph").vocabulary
    assert vocabulary.name == ("Diabetes", "I10")
    assert vocabulary.type == ("disorder", "")


def test_coded_records_are_counted_in_patient_windows_by_default(tmp_path: Path) -> None:
    rows = "patient_id,date,code\n1,2020-01-01,E11\n1,2020-01-01,I10\n2,2020-01-05,E11\n2,2020-03-05,I10\n"
    (tmp_path / "records.csv").write_text(rows, encoding="utf-8")
    build_graph(tmp_path / "records.csv", tmp_path / "graph")
    assert content(tmp_path / "graph") == ({"E11": 2, "I10": 2}, {("E11", "I10"): 1})
    assert Graph.load(tmp_path / "graph").made_with["unit"] == "patient-window"
    with pytest.raises(CogstageError, match=r"no two occur in one document; .* the `unit` patient-window"):
        build_graph(tmp_path / "records.csv", tmp_path / "none", options=Options(unit="document"))
    (tmp_path / "records.csv").write_text(rows[: rows.index("2,2020")].replace("01,I10", "02,I10"), encoding="utf-8")
    with pytest.raises(CogstageError, match="in one window of 1 days; use a larger `window`"):
        build_graph(tmp_path / "records.csv", tmp_path / "none")
    others = "4,2020-01-01,Z10\n5,2020-01-01,Z10\n"
    (tmp_path / "records.csv").write_text(rows.replace("2,2020-03", "3,2020-03") + others, encoding="utf-8")
    options = Options(suppress_below=2, window=None)
    with pytest.raises(CogstageError, match="lower `suppress_below`"):
        build_graph(tmp_path / "records.csv", tmp_path / "none", options=options)
    assert not (tmp_path / "none").exists()


def test_visits_are_units_and_records_without_one_stand_alone(tmp_path: Path) -> None:
    rows = [
        ("1", "v1", "E11"),
        ("1", "v1", "I10"),
        ("1", "v2", "J45"),
        ("2", "v1", "E11"),
        ("2", "", "I10"),
        ("2", "", "J45"),
    ]
    with (tmp_path / "r.csv").open("w", encoding="utf-8") as handle:
        handle.write("patient_id,date,code,visit_id\n")
        handle.writelines(f"{patient},2020-01-01,{code},{visit}\n" for patient, visit, code in rows)
    build_graph(tmp_path / "r.csv", tmp_path / "g", options=Options(unit="visit"))
    assert content(tmp_path / "g") == ({"E11": 2, "I10": 2, "J45": 2}, {("E11", "I10"): 1})  # v1 of 2 is another visit


def test_documents_after_the_last_day_are_left_out(tmp_path: Path) -> None:
    some = [(0, 0, [["asa", "fever"]]), (1, 11, [["asa", "fever"]]), (2, 12, [["asa", "fever"]])]
    write_notes(tmp_path / "notes.jsonl", some)
    bad = BadRows()
    options = Options(until=parse_until("2019"))
    build_graph(tmp_path / "notes.jsonl", tmp_path / "graph", LEXICON, options, bad=bad)
    assert content(tmp_path / "graph")[1] == {("D1", "S1"): 2}  # 20 and 31 December; 1 January is left out
    assert bad.notices == {"documents after 2019-12-31, left out": 1}
    assert Graph.load(tmp_path / "graph").made_with["until"] == "2019-12-31"
    with (tmp_path / "notes.jsonl").open("a", encoding="utf-8") as handle:
        handle.write('{"doc_id": "x", "text": "fever", "patient_id": "1"}')
    with pytest.raises(CogstageError, match="column date: no value, but until needs one"):
        build_graph(tmp_path / "notes.jsonl", tmp_path / "graph", LEXICON, options)


def test_text_without_a_lexicon_is_an_error(tmp_path: Path) -> None:
    write_notes(tmp_path / "notes.jsonl", [(0, 0, [["asa", "fever"]])])
    with pytest.raises(CogstageError, match="set `lexicon`"):
        build_graph(tmp_path / "notes.jsonl", tmp_path / "graph")
    assert not (tmp_path / "graph").exists()


def test_codes_and_text_meet_on_one_concept(tmp_path: Path) -> None:
    record = {"doc_id": "a", "text": "fever and cough", "codes": ["D1", "Z9"]}
    (tmp_path / "notes.jsonl").write_text(json.dumps(record), encoding="utf-8")
    counted = {}
    for codes in ("auto", "text", "codes", "both"):
        build_graph(tmp_path / "notes.jsonl", tmp_path / codes, LEXICON, Options(content=codes))  # type: ignore[arg-type]
        counted[codes] = set(content(tmp_path / codes)[0])
    text = {"S1", "S2"}
    assert counted == {"auto": text, "text": text, "codes": {"D1", "Z9"}, "both": {*text, "D1", "Z9"}}


def test_context_is_left_out_unless_kept(tmp_path: Path) -> None:
    record = {"doc_id": "a", "text": "Patient has cough. Denies fever. Takes aspirin."}
    (tmp_path / "notes.jsonl").write_text(json.dumps(record), encoding="utf-8")
    build_graph(tmp_path / "notes.jsonl", tmp_path / "without", LEXICON)
    build_graph(tmp_path / "notes.jsonl", tmp_path / "with", LEXICON, Options(keep_context=True))
    assert set(content(tmp_path / "without")[0]) == {"S2", "D1"}
    assert set(content(tmp_path / "with")[0]) == {"S1", "S2", "D1"}


def test_synonyms_are_kept_at_concept_level(tmp_path: Path) -> None:
    write_notes(tmp_path / "notes.jsonl", [(0, 0, [["asa", "fever"]])])
    build_graph(tmp_path / "notes.jsonl", tmp_path / "graph", LEXICON)
    vocabulary = Graph.load(tmp_path / "graph").vocabulary
    assert vocabulary.find("Aspirin") == vocabulary.find("ASA") == vocabulary.index["D1"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('{"doc_id": "b"}', "notes.jsonl:2"),
        ('{"doc_id": "b", "text": "x", "patient_id": "1", "date": "yesterday"}', "column date"),
        ('{"doc_id": "b", "text": ', "notes.jsonl:2.*not JSON"),
        ('{"doc_id": "b", "text": "x", "patient_id": "1"}', "column date"),
    ],
)
def test_bad_rows_end_the_build_or_are_counted(tmp_path: Path, row: str, message: str) -> None:
    good = '{"doc_id": "a", "text": "fever and cough", "patient_id": "1", "date": "2020-01-01"}'
    (tmp_path / "good.jsonl").write_text(good, encoding="utf-8")
    (tmp_path / "notes.jsonl").write_text(f"{good}\n{row}\n", encoding="utf-8")
    options = Options(unit="patient-window", window=7)
    build_graph(tmp_path / "good.jsonl", tmp_path / "graph", LEXICON, options)
    before = {path.name: path.read_bytes() for path in (tmp_path / "graph").iterdir()}
    with pytest.raises(CogstageError, match=message) as caught:
        build_graph(tmp_path / "notes.jsonl", tmp_path / "graph", LEXICON, options)
    assert "\n" not in str(caught.value)
    assert {path.name: path.read_bytes() for path in (tmp_path / "graph").iterdir()} == before
    assert not list(tmp_path.glob(".graph*"))
    bad = BadRows(skip=True)
    built = build_folder(tmp_path / "notes.jsonl", tmp_path / "graph", LEXICON, options, bad=bad)
    assert (bad.count, built.skipped, built.documents) == (1, 1, 1)
    assert Graph.load(tmp_path / "graph").made_with["skipped"] == 1


def test_a_folder_that_is_no_graph_is_left_alone(tmp_path: Path) -> None:
    write_notes(tmp_path / "notes.jsonl", [(0, 0, [["asa", "fever"]])])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(UsageError, match="not a graph folder"):
        build_graph(tmp_path / "notes.jsonl", tmp_path / "mine", LEXICON)
    assert (tmp_path / "mine" / "thesis.txt").exists()


def test_options_that_make_no_sense_are_refused() -> None:
    for wrong in (
        {"unit": "page"},
        {"per": "patient", "unit": "document"},
        {"lag": -1},
        {"level": "word"},
        {"window": 3},
        {"min_count": 0},
        {"content": "x"},
        {"copies": "x"},
        {"ambiguity": "x"},
    ):
        with pytest.raises(UsageError):
            Options(**wrong)  # type: ignore[arg-type]
    assert parse_window("ever") is None
    assert parse_window("30d") == 30
    assert (parse_lag("90d"), parse_lag("7"), parse_lag("any")) == (90, 7, None)
    assert str(parse_until("1991")) == "1991-12-31"
    assert str(parse_until("1992-02")) == "1992-02-29"
    assert str(parse_until("1992-02-01")) == "1992-02-01"
    for text in ("soon", "1991-13", "1991-02-30", "91"):
        with pytest.raises(UsageError, match="until"):
            parse_until(text)
    assert parse_size("4GB") == 4 * 2**30
    assert parse_size("512m") == 512 * 2**20
    for text in ("2d", "week"):
        with pytest.raises(UsageError):
            parse_window(text)
    for text in ("much", "0", "4XB"):
        with pytest.raises(UsageError):
            parse_size(text)
