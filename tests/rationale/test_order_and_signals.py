"""A model of records with planted order: what tells causes from treatments, and what every output shows of counts."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from benchmarks.order_in_time import Plan, write_hospital
from fastapi.testclient import TestClient
from filelock import FileLock
from scipy.stats.contingency import odds_ratio

from cogstage.cli.main import run
from cogstage.errors import UsageError
from cogstage.estimator import CogStage
from cogstage.evaluation.prediction_files import predictions_text
from cogstage.graph.build import build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.options import BuildOptions
from cogstage.knowledge.build import build_dataset
from cogstage.knowledge.dataset import Dataset
from cogstage.knowledge.hold_out import HoldOut
from cogstage.knowledge.table import facts_from_table
from cogstage.rationale.exports import rows_of
from cogstage.rationale.kgx import kgx
from cogstage.rationale.record import Prediction
from cogstage.rationale.side_effects import discover_effects, use_and_effect
from cogstage.rationale.text import prediction_text, ranking_text
from cogstage.rationale.wording import chance
from cogstage.relations import phrase
from cogstage.statistics import auroc
from cogstage.tables import read_rows
from cogstage.web.explorer_app import create_explorer_app
from cogstage.web.service import Service

pytestmark = pytest.mark.slow  # records are counted and a model is trained until it learns their order
PLAN = Plan(classes=12, members=4, joined=3, patients=2500, held_out=0.25)
QUICK = {
    "dimension": 32,
    "tower": 32,
    "associations": 8,
    "recognition_passes": 60,
    "folds": 2,
    "decision_epochs": 1,
    "decision_steps": 60,
}


class Hospital(NamedTuple):
    graph: Graph
    data: Dataset
    head: np.ndarray  # tested pairs
    tail: np.ndarray
    causes: np.ndarray
    model: CogStage
    folder: Path


def make_hospital(folder: Path) -> None:
    """Records, graph, data set and model."""
    folder.mkdir(exist_ok=True)
    write_hospital(PLAN, folder)
    options = BuildOptions(unit="patient-window", window=None, per="patient", order=True)
    build_graph(folder / "records.csv", folder / "graph", options=options)
    graph = Graph.load(folder / "graph")
    held_out = HoldOut.read(folder / "tested.tsv")
    data = build_dataset(graph, facts_from_table(folder / "facts.tsv"), folder / "data", hold_out=held_out, minimum=20)
    CogStage(**QUICK).fit(graph, data).save(folder / "model")


@pytest.fixture(scope="module")
def hospital(shared_folder: Path) -> Hospital:
    """Made once for all processes of a test run."""
    folder = shared_folder / "hospital-with-order"
    with FileLock(f"{folder}.lock"):
        if not (folder / "model").exists():
            make_hospital(folder)
    graph, data = Graph.load(folder / "graph"), Dataset.load(folder / "data")
    rows = list(read_rows(folder / "tested.tsv", ["head", "tail", "relation"]))
    head, tail = (np.array([graph.vocabulary.index[str(row[end])] for row in rows]) for end in ("head", "tail"))
    causes = np.array([row["relation"] == "causes" for row in rows])
    return Hospital(graph, data, head, tail, causes, CogStage.load(folder / "model"), folder)


def separation(model: CogStage, hospital: Hospital) -> float:
    logits = [model.logits(hospital.head, hospital.tail, name) for name in ("causes", "may_treat")]
    found = auroc(hospital.causes, logits[0] - logits[1])
    assert found is not None
    return found


def test_only_the_order_tells_causes_from_treatments(hospital: Hospital) -> None:
    assert separation(hospital.model, hospital) > 0.85
    without = CogStage(**QUICK).fit(replace(hospital.graph, in_order=None), hospital.data)
    assert separation(without, hospital) < 0.75  # chance, from few pairs
    weight, unused = (m.fitted.network.recognition.order for m in (hospital.model, without))
    assert not unused.any()
    may_treat, causes = (hospital.model.all_relations.index(name) for name in ("may_treat", "causes"))
    assert weight[may_treat] < 0 < weight[causes]  # the drug comes second, the drug comes first


def test_a_graph_without_order_can_take_its_place(hospital: Hospital) -> None:
    moved = hospital.model.on_graph(replace(hospital.graph, in_order=None))
    record = moved.predict_batch(hospital.head[:1], hospital.tail[:1], "causes")[0]
    assert record.order is None
    assert all(reason.order is None for reason in record.reasons)


def test_every_reason_shows_the_order_that_the_graph_has(hospital: Hospital) -> None:
    graph, index = hospital.graph, hospital.graph.vocabulary.index
    record = hospital.model.predict_batch(hospital.head[:1], hospital.tail[:1], "causes")[0]
    seen = 0
    for shown in (record, *record.reasons):
        cells = graph.order(np.array([index[shown.head.key]]), np.array([index[shown.tail.key]]))[0].tolist()
        if not any(cells):
            assert shown.order is None
            continue
        assert shown.order is not None
        assert [shown.order.head_first, shown.order.tail_first, shown.order.same_day] == cells
        seen += 1
        first = shown.head if cells[0] >= cells[1] else shown.tail
        words = f"{first.name} first in {100 * max(cells[:2]) / sum(cells):.0f} % of {sum(cells):,} patients"
        assert words in prediction_text(record)
        assert words in predictions_text([record], "html")
    assert seen > 1
    assert Prediction.from_json(record.to_json()) == record
    row = rows_of([record])[0]
    assert record.order is not None
    assert (row["head_first"], row["tail_first"]) == (record.order.head_first, record.order.tail_first)
    known = next(n for n, reason in enumerate(record.reasons) if reason.order is not None)
    order = record.reasons[known].order
    assert order is not None
    assert rows_of([record])[known]["reason_head_first"] == order.head_first


def test_signals_are_those_of_the_records(hospital: Hospital) -> None:
    """Counted by hand from the file: patients with both, with each, and all."""
    patients: dict[str, set[str]] = {}
    for row in read_rows(hospital.folder / "records.csv", ["patient_id", "code"]):
        patients.setdefault(str(row["code"]), set()).add(str(row["patient_id"]))
    for record in hospital.model.predict_batch(hospital.head[:20], hospital.tail[:20], "causes", 0):
        drug, event = patients[record.head.key], patients[record.tail.key]
        a, n = len(drug & event), PLAN.patients
        signal = record.signal
        assert signal is not None
        assert (signal.together, signal.head, signal.tail, signal.total) == (a, len(drug), len(event), n)
        table = [[a, len(drug) - a], [len(event) - a, n - len(drug | event)]]
        assert signal.ror.value == pytest.approx(odds_ratio(table, kind="sample").statistic)
        assert signal.ic.low < signal.ic.value < signal.ic.high
        assert signal.basis == "patients"
        assert f"ROR {signal.ror.value:.2f}" in prediction_text(record)
        assert f"ROR {signal.ror.value:.2f}" in predictions_text([record], "html")
        assert rows_of([record])[0]["ic_low"] == signal.ic.low
        assert kgx([record])[1][0]["prr"] == signal.prr.value
        assert f"{signal.ic.value:.2f} ({signal.ic.low:.2f}" in ranking_text([record], by_head=True)
    turned = hospital.model.explainer.signals(hospital.tail[:1], hospital.head[:1])
    assert turned == [None]  # an event and a drug


def drug_with_indications(model: CogStage) -> tuple[int, set[int]]:
    """A drug, and the events that it is known to treat among those that some drug is known to cause."""
    facts, number = model.fitted.facts, model.all_relations.index("may_treat")
    caused = set(model.ends("causes", "tail").tolist())
    for drug in model.ends("may_treat", "head").tolist():
        treated = set(facts.tail[(facts.relation == number) & (facts.head == drug)].tolist()) & caused
        if treated:
            return drug, treated
    raise AssertionError("no drug has indications")


def test_indications_are_left_out_and_named(hospital: Hospital, capsys: pytest.CaptureFixture[str]) -> None:
    model = hospital.model
    drug, treated = drug_with_indications(model)
    everything, none = discover_effects(model, head=drug, top=500)
    assert everything
    shown = {model.vocabulary.index[p.tail.key] for p in everything}
    out_of_list = {model.vocabulary.index[p.tail.key] for p in none}
    called = {p.tail.key: {entry.relation: entry.holds for entry in p.profile} for p in [*everything, *none]}
    assert all(called[p.tail.key]["may_treat"] and not called[p.tail.key]["causes"] for p in none)
    assert all(called[p.tail.key]["causes"] or not called[p.tail.key]["may_treat"] for p in everything)
    assert not shown & out_of_list
    causing = {node for node in treated if called[model.vocabulary.term[node]]["causes"]}
    assert treated - causing <= out_of_list
    assert causing <= shown
    assert [p.rank for p in everything] == list(range(1, len(everything) + 1))
    few, left_out = discover_effects(model, head=drug, top=3)
    assert [p.tail.key for p in few] == [p.tail.key for p in everything[:3]]
    assert {p.tail.key for p in left_out} <= {p.tail.key for p in none}
    key = model.vocabulary.term[drug]
    arguments = ["discover", str(hospital.folder / "model"), key, "-r", "causes", "--top", "500"]
    with pytest.raises(SystemExit) as end:
        run([*arguments, "--drop-indications", "--json"])
    out = capsys.readouterr()
    assert end.value.code in (0, None)
    assert {json.loads(line)["tail"]["key"] for line in out.out.splitlines()} == {p.tail.key for p in everything}
    assert "left out as indications: " in out.err
    assert all(f"{p.tail.name} ({use_and_effect(p)})" in out.err for p in none)
    for entry in none[0].profile:
        assert f"{phrase(entry.relation)} {chance(entry.probability)}" in use_and_effect(none[0])
    with pytest.raises(UsageError, match="left out for causes only"):
        Service(model).discover("may_treat", key, None, 5, False, 0, "drop")


def tools(service: Service, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """What a tool of the agent interface answers."""
    from cogstage.mcp.server import create_server
    from mcp import Client

    async def ask() -> Any:
        async with Client(create_server(service)) as client:
            return (await client.call_tool(name, arguments)).structured_content

    answer: dict[str, Any] = asyncio.run(ask())
    return answer


def test_pages_and_api_show_both_and_hide_both(hospital: Hospital) -> None:
    model = hospital.model
    head, tail = (model.vocabulary.term[int(end[0])] for end in (hospital.head, hospital.tail))
    drug = model.vocabulary.term[drug_with_indications(model)[0]]
    asked = {"head": head, "tail": tail, "relation": "causes"}
    record = model.predict_batch(hospital.head[:1], hospital.tail[:1], "causes")[0]
    assert record.signal is not None
    shown, hidden = (TestClient(create_explorer_app(Service(model, hide_counts=hide))) for hide in (False, True))
    answer = shown.get("/api/v1/explain", params=asked).json()
    assert answer["signal"]["ic"]["low"] == record.signal.ic.low
    assert any(reason["order"] for reason in answer["reasons_for"] + answer["reasons_against"])
    page = shown.get("/pair", params=asked).text
    assert f"ROR {record.signal.ror.value:.2f}" in page
    assert page.count(" first in ") > 2
    answer = hidden.get("/api/v1/explain", params=asked).json()
    assert answer["signal"] is None
    assert answer["order"] is None
    assert not any(reason["order"] for reason in answer["reasons_for"] + answer["reasons_against"])
    page = hidden.get("/pair", params=asked).text
    assert "ROR" not in page
    assert " first in " not in page
    discover = {"term": drug, "relation": "causes", "side": "head"}
    every, dropped = (
        "".join(shown.get("/discover", params={**discover, **more, "page": n}).text for n in (1, 2))
        for more in ({}, {"indications": "drop"})
    )
    assert "Left out as indications" in dropped
    assert "Left out as indications" not in every
    assert all(model.vocabulary.name[node] in dropped for node in drug_with_indications(model)[1])
    asked = {"term": drug, "relation": "causes", "drop_indications": True, "top": 200}
    answer = tools(Service(model), "discover", asked)
    left_out = answer["left_out"]
    for node in drug_with_indications(model)[1]:
        assert any(line.startswith(f"{model.vocabulary.name[node]} (may treat ") for line in left_out)
    assert all("; causes " in line for line in left_out)
    assert any(candidate["counts_alone"] for candidate in answer["candidates"])
    answer = tools(Service(model), "evidence", {"one": head, "other": tail})
    assert "IC " in answer["counts_alone"]
    assert " first in " in answer["order_in_time"]
    lists = {
        choice: shown.get(
            "/api/v1/discover", params={"head": drug, "relation": "causes", "top": 200, "indications": choice}
        ).json()
        for choice in ("keep", "drop", "only")
    }
    keys = {choice: [p["tail"]["key"] for p in found] for choice, found in lists.items()}
    assert sorted(keys["drop"] + keys["only"]) == sorted(keys["keep"])
    assert keys["only"]
