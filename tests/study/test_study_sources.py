"""Where reasons come from: records, tables of other systems, and several of them in one study."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_model import small_data, small_model
from study_material import prediction, write_sources

from cogstage.data import embedded
from cogstage.errors import CogstageError, UsageError
from cogstage.estimator import CogStage
from cogstage.knowledge.build import build_dataset
from cogstage.rationale.corrections import Correction, Corrections
from cogstage.study.draw import StudyOptions, draw_study
from cogstage.study.sources import (
    ExplainedPair,
    WeightedTriple,
    explained,
    labels_of_dataset,
    read_reasons,
    read_source,
)

COLUMNS = ("head", "relation", "tail", "reason_head", "reason_relation", "reason_tail")
ROWS = [
    ("D1", "may_treat", "S1", "ibuprofen", "may_treat", "migraine"),
    ("D1", "may_treat", "S1", "aspirin", "causes", "bleeding"),
    ("D2", "may_treat", "S1", "ibuprofen", "may_treat", "pain"),
]
MORE = [
    ("2.5", "0.8", "1", "Aspirin", "Headache"),
    ("-1", "0.8", "1", "Aspirin", "Headache"),
    ("1", "0.2", "0", "", ""),
]
FURTHER = ("weight", "probability", "label", "head_name", "tail_name")


def write(path: Path, columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> Path:
    records = [dict(zip(columns, row, strict=True)) for row in rows]
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(records), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    else:
        with path.open("w", newline="") as handle:
            writer = csv.writer(handle, delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writerows([columns, *rows])
    return path


@pytest.mark.parametrize("name", ["r.tsv", "r.csv", "r.jsonl", "r.parquet"])
def test_another_systems_reasons_are_a_table(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, COLUMNS + FURTHER, [row + more for row, more in zip(ROWS, MORE, strict=True)])
    source = read_source("other", path, {}, 5)
    assert source.labels == {("D1", "may_treat", "S1"): 1, ("D2", "may_treat", "S1"): 0}
    assert source.predictions["D1", "may_treat", "S1"] == ExplainedPair(
        "Aspirin",
        "may_treat",
        "Headache",
        0.8,
        (
            WeightedTriple("ibuprofen", "may_treat", "migraine", 2.5),
            WeightedTriple("aspirin", "causes", "bleeding", -1.0),
        ),
    )
    assert source.predictions["D2", "may_treat", "S1"].probability == 0.2


def test_the_shortest_table_counts_rows_as_ordered(tmp_path: Path) -> None:
    source = read_reasons("other", write(tmp_path / "r.tsv", COLUMNS, ROWS))
    first = source.predictions["D1", "may_treat", "S1"]
    assert (first.head, first.probability) == ("D1", 1.0)
    assert [reason.weight for reason in first.reasons] == [1.0, 0.5]
    assert source.labels == {}


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (("x", "0.8", "1", "", ""), "weight: 'x' is not a number"),
        (("nan", "0.8", "1", "", ""), "not a number"),
        (("1", "1.8", "1", "", ""), "between 0 and 1"),
        (("1", "0.8", "2", "Aspirin", "Headache"), "r.tsv:3, column label: label 2.0 is neither 0 nor 1"),
        (("1", "0.7", "1", "Aspirin", "Headache"), "different names or another probability"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, more: tuple[str, ...], word: str) -> None:
    path = write(tmp_path / "r.tsv", COLUMNS + FURTHER, [ROWS[0] + MORE[0], ROWS[1] + more])
    with pytest.raises(CogstageError, match=word):
        read_source("other", path, {}, 5)


def test_a_table_without_reasons_says_what_it_lacks(tmp_path: Path) -> None:
    path = write(tmp_path / "r.tsv", COLUMNS[:4], [row[:4] for row in ROWS])
    with pytest.raises(CogstageError, match="reason_relation"):
        read_source("other", path, {}, 5)
    with pytest.raises((CogstageError, UsageError), match="no reason"):
        read_source("other", write(tmp_path / "e.tsv", COLUMNS, []), {}, 5)


def test_records_and_another_systems_table_meet_in_one_study(tmp_path: Path) -> None:
    """Names come from whoever has them; sets are as long as the shorter one."""
    (records, _) = write_sources(tmp_path)
    ours = read_source("ours", records, {}, 5)
    rows = [(*pair, "theirs", "may_treat", f"sign {n}") for pair in ours.predictions for n in range(3)]
    theirs = read_source("theirs", write(tmp_path / "r.csv", COLUMNS, rows), {}, 5)
    study = draw_study([theirs, ours], {}, StudyOptions(cases=4, judged_by="first"))
    assert study.sources == ("theirs", "ours")
    for case in study.cases:
        assert {len(entry.rationales) for entry in case.sets} == {3}
        assert {reason.head for reason in case.set_of("theirs").rationales} == {"theirs"}


def test_what_a_study_reads_of_a_record() -> None:
    """Reasons keep their sign, and the strongest stands for most."""
    said = explained(prediction("aspirin", "fever", 0.9, "open", 3))
    assert (said.head, said.relation, said.tail, said.probability) == ("aspirin", "may_treat", "fever", 0.9)
    assert len(said.reasons) == 3
    assert all(reason.weight > 0 for reason in said.reasons)
    assert [abs(r.weight) for r in said.reasons] == sorted((abs(r.weight) for r in said.reasons), reverse=True)


@pytest.mark.slow
def test_known_facts_about_similar_terms(tmp_path: Path) -> None:
    """Against dense rows and a walk over every training fact."""
    graph = embedded.graph()
    embedded_graph = tmp_path / "graph"
    graph.save(embedded_graph)
    data = build_dataset(graph, embedded.facts(), tmp_path / "data", relations=("may_treat",))
    labels = dict(list(labels_of_dataset(tmp_path / "data", "may_treat").items())[:40])
    source = read_source("known", embedded_graph, labels, 5, tmp_path / "data")
    dense, node = graph.ppmi().toarray(), graph.vocabulary.index
    unit = dense / np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-12)
    facts = data.for_fitting().train_facts()
    known = set(zip(facts.head.tolist(), facts.tail.tolist(), strict=True))
    for pair in labels:
        head, tail = node[pair[0]], node[pair[2]]
        weights = [unit[i] @ unit[head] for i, j in known if j == tail and i != head]
        weights += [unit[j] @ unit[tail] for i, j in known if i == head and j != tail]
        best = sorted((w for w in weights if w > 0), reverse=True)[:5]
        if not best:
            assert pair not in source.predictions
            continue
        said = source.predictions[pair]
        assert [reason.weight for reason in said.reasons] == pytest.approx(best)
        assert all(graph.vocabulary.name[head] == r.head or graph.vocabulary.name[tail] == r.tail for r in said.reasons)
        assert said.probability == pytest.approx(1 - np.prod([1 - min(w, 1.0) for w in best]))
    assert len(source.predictions) > 20
    with pytest.raises(UsageError, match="`dataset`"):
        read_source("known", embedded_graph, {}, 5)


@pytest.mark.slow
def test_both_worlds_of_a_real_model_meet_in_a_study(small_model_folder: Path, shared_folder: Path) -> None:
    """What two trained models say about the data set's test pairs, drawn into cases with reasons for and against."""
    graph, data = small_data()
    test, term = data.pairs("may_treat", "test"), graph.vocabulary.term
    labels = {
        (term[h], "may_treat", term[t]): int(label)
        for h, t, label in zip(test.head, test.tail, test.label, strict=True)
    }
    folders = {"open": small_model_folder, "closed": small_model(shared_folder, world="closed")}
    made = [read_source(name, path, labels, 5) for name, path in folders.items()]
    model = CogStage.load(small_model_folder)
    pair = next(iter(labels))
    record = model.predict(pair[0], pair[2], pair[1])
    said = made[0].predictions[pair]
    assert said.probability == pytest.approx(record.probability)
    strongest = {(r.head.name, r.relation, r.tail.name): r.share for r in record.reasons}
    assert said.reasons
    for reason in said.reasons:
        assert reason.weight == pytest.approx(strongest[reason.head, reason.relation, reason.tail])
    options = StudyOptions(cases=2, relation="may_treat", judged_by="first")
    study = draw_study(made, labels, options)
    for case in study.cases:
        first, second = (entry.rationales for entry in case.sets)
        assert [r.against for r in first] == [r.against for r in second]


def test_the_published_model_is_a_source(tmp_path: Path, small_model_folder: Path) -> None:
    """A model of the preset `paper` beside the default one: its reasons in its own order, its own probability."""
    graph, data = small_data()
    quick = {"dimension": 16, "associations": 6, "negatives": 10, "epochs": 2, "patience": 2, "learning_rate": 0.01}
    paper = CogStage("may_treat", preset="paper", **quick).fit(graph, data)
    paper.save(tmp_path / "paper")
    test, term = data.pairs("may_treat", "test"), graph.vocabulary.term
    labels = {
        (term[h], "may_treat", term[t]): int(label)
        for h, t, label in zip(test.head, test.tail, test.label, strict=True)
    }
    source = read_source("paper", tmp_path / "paper", labels, 5)
    assert source.predictions
    for pair, said in list(source.predictions.items())[:20]:
        record = paper.predict(pair[0], pair[2], pair[1])
        assert said.probability == pytest.approx(record.probability, abs=1e-6)
        shares = {(r.head.name, r.relation, r.tail.name): r.share for r in record.reasons}
        for reason in said.reasons:
            assert reason.weight == pytest.approx(shares[reason.head, reason.relation, reason.tail], abs=1e-6)
    assert sum(bool(said.reasons) for said in source.predictions.values()) > len(labels) / 2
    default = read_source("default", small_model_folder, labels, 5)
    study = draw_study([source, default], labels, StudyOptions(cases=2, relation="may_treat", judged_by="first"))
    assert study.sources == ("paper", "default")


def test_a_model_is_asked_with_the_corrections_of_a_team(small_model_folder: Path) -> None:
    model = CogStage.load(small_model_folder)
    pair = ("C004", "may_treat", "C007")
    before = model.predict("C004", "C007", "may_treat")
    struck = before.reasons[0]
    corrections = Corrections((Correction(struck.head.key, struck.relation, struck.tail.key, "wrong"),))
    plain = read_source("open", small_model_folder, {pair: 1}, 5)
    source = read_source("open", small_model_folder, {pair: 1}, 5, corrections=corrections)
    assert plain.predictions[pair].probability == before.probability
    assert source.predictions[pair].probability == before.without(struck.triple).probability
    shown = {(reason.head, reason.relation, reason.tail) for reason in source.predictions[pair].reasons}
    assert (struck.head.name, struck.relation, struck.tail.name) not in shown
