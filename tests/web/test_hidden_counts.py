"""With hidden counts, no output tells one count from another."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from cogstage.estimator import CogStage
from cogstage.web.explorer_app import create_explorer_app
from cogstage.web.service import Service

PAIR = {"head": "C004", "tail": "C007", "relation": "may_treat"}
LIST = {"term": "C004", "relation": "may_treat", "side": "head"}
PATHS: list[tuple[str, dict[str, Any]]] = [
    ("/", {}),
    ("/about", {}),
    *((f"/pair{form}", {**PAIR, "k": 50}) for form in ("", ".json", ".tsv", ".svg")),
    *((f"/discover{form}", LIST) for form in ("", ".json", ".csv", ".kgx")),
    *(("/discover", {**LIST, "together": value}) for value in ("yes", "never")),
    *(("/discover.json", {**LIST, "together": value}) for value in ("yes", "never")),
    ("/discover", {**LIST, "sort": "together"}),
    ("/discover.json", {**LIST, "sort": "together"}),
    ("/compare", {**LIST, "with": "C010"}),
    ("/term", {"key": "C004"}),
    ("/term", {"key": "C007"}),
    ("/search", {"q": "number"}),
    ("/api/v1/terms", {"q": "number"}),
    ("/api/v1/model", {}),
    ("/api/v1/explain", {**PAIR, "k": 50}),
    ("/api/v1/discover", {"head": "C004", "relation": "may_treat", "top": 50}),
]
TOOLS: list[tuple[str, dict[str, Any]]] = [
    ("search_terms", {"query": "number", "limit": 50}),
    ("explain", PAIR),
    ("discover", {"term": "C004", "relation": "may_treat", "side": "head", "top": 50}),
    ("evidence", {"one": "C004", "other": "C007"}),
]


def with_other_count(folder: Path) -> CogStage:
    """The model as if C004 and C007 had been counted 1,000 times more often; it predicts the same."""
    model = CogStage.load(folder)
    one, other = (model.vocabulary.index[key] for key in ("C004", "C007"))
    graph = model.graph
    edge = np.flatnonzero((graph.source == min(one, other)) & (graph.target == max(one, other)))
    assert len(edge) <= 1
    predictor, facts, fitted = model.predictor, model.facts, model.fitted
    count = fitted.counts.count.copy()
    count[edge if len(edge) else fitted.counts.start[one]] += 1000
    terms = fitted.vocabulary.count.copy()
    terms[[one, other]] += 1000
    changed = CogStage.load(folder)
    changed._fitted = dataclasses.replace(
        fitted,
        counts=dataclasses.replace(fitted.counts, count=count),
        vocabulary=dataclasses.replace(fitted.vocabulary, count=terms),
    )
    vars(changed).update(predictor=predictor, facts=facts)
    return changed


def outputs(model: CogStage, hide: bool) -> dict[str, str]:
    service = Service(model, hide_counts=hide)
    client = TestClient(create_explorer_app(service))
    found = {}
    for path, asked in PATHS:
        answer = client.get(path, params=asked)
        assert answer.status_code == 200, (path, asked)
        found[f"{path} {asked}"] = answer.text
    mcp = pytest.importorskip("mcp")
    from cogstage.mcp.server import create_server

    async def ask() -> None:
        async with mcp.Client(create_server(service)) as agent:
            for name, arguments in TOOLS:
                answer = await agent.call_tool(name, arguments)
                assert not answer.is_error
                found[name] = json.dumps(answer.structured_content)

    asyncio.run(ask())
    return found


def test_two_models_that_differ_in_one_count_look_the_same(small_model_folder: Path) -> None:
    models = CogStage.load(small_model_folder), with_other_count(small_model_folder)
    shown = [outputs(model, hide=False) for model in models]
    assert {"/search {'q': 'number'}", "evidence", "search_terms"} <= {
        name for name in shown[0] if shown[0][name] != shown[1][name]
    }  # the comparison sees a count where it is shown
    hidden = [outputs(model, hide=True) for model in models]
    assert [name for name in hidden[0] if hidden[0][name] != hidden[1][name]] == []


def test_the_share_of_the_pairs_counts_is_in_the_rest(small_model_folder: Path) -> None:
    model = CogStage.load(small_model_folder)
    shown, hidden = (Service(model, hide_counts=hide).explain(*PAIR.values(), 5) for hide in (False, True))
    assert hidden.pair is None
    assert hidden.logit == shown.logit
    assert hidden.rest == pytest.approx(shown.rest + shown.pair_share)
    shares = sum(reason.share for reason in hidden.reasons)
    assert hidden.logit == pytest.approx(hidden.baseline + shares + hidden.rest)
    assert {"count", "ppmi", "ppmi_share"} & {
        key for key, value in json.loads(json.dumps(hidden.to_dict())).items() if value
    } == set()
