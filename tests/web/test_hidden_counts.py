"""With hidden counts, no output tells one count from another."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
from collections.abc import Sequence
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
TRIPLE = "C004\tmay_treat\tC009"
ASKED: list[tuple[str, str, dict[str, Any]]] = [
    *(("GET", path, {}) for path in ("/", "/about", "/docs", "/batch", "/corrections", "/workspace", "/health")),
    *(
        ("GET", path, {})
        for path in ("/health/live", "/health/ready", "/api/v1/openapi.json", "/api/v1/health", "/api/v1/model")
    ),
    *(("GET", f"/pair{form}", {**PAIR, "k": 50}) for form in ("", ".json", ".tsv", ".svg", ".png")),
    ("GET", "/pair", {"head": "C004", "tail": "C007", "base_rate": 0.1, "known_only": 1}),
    ("GET", "/pair", {**PAIR, "wrong": TRIPLE, "reason_relation": "may_treat"}),
    *(("GET", f"/discover.{form}", LIST) for form in ("json", "csv", "kgx")),
    *(
        ("GET", path, {**LIST, "together": value})
        for value in ("yes", "never")
        for path in ("/discover", "/discover.json")
    ),
    *(("GET", path, {**LIST, "sort": "together"}) for path in ("/discover", "/discover.json")),
    *(("GET", "/discover", {"term": term}) for term in ("C004", "C007")),
    *(("GET", "/discover", {**LIST, "known": known, "page": page}) for known in ("new", "known") for page in (1, 2)),
    ("GET", "/compare", {**LIST, "with": "C010"}),
    ("GET", "/term", {"key": "C004"}),
    ("GET", "/term", {"key": "C007"}),
    *(("GET", "/search", {"q": text}) for text in ("number", "drug", "remedi 4", "C004")),
    *(("POST", "/batch", {"pairs": "C004;C007\nnobody;C007", "form": form}) for form in ("page", "tsv", "csv", "json")),
    ("POST", "/corrections", {"triple": TRIPLE, "verdict": "wrong", "who": "A"}),
    ("GET", "/corrections.tsv", {}),
    *(("GET", "/api/v1/terms", {"q": text, "limit": 50}) for text in ("number", "drug", "remedi 4")),
    ("GET", "/api/v1/explain", {**PAIR, "k": 50}),
    ("POST", "/api/v1/explain", {**PAIR, "k": 50}),
    (
        "POST",
        "/api/v1/predict",
        {"pairs": [{"head": "C004", "tail": "C007"}, {"head": "C010", "tail": "C007"}], "k": 9},
    ),
    ("GET", "/api/v1/discover", {"head": "C004", "relation": "may_treat", "top": 50, "k": 5}),
    ("GET", "/api/v1/discover", {"tail": "C007", "top": 50, "indications": "drop", "relation": "causes"}),
]
TOOLS: list[tuple[str, dict[str, Any]]] = [
    ("search_terms", {"query": "number", "limit": 50}),
    ("search_terms", {"query": "remedi 4"}),
    ("predict", PAIR),
    ("explain", {"head": "C004", "tail": "C007", "reasons": 50}),
    ("explain", {**PAIR, "wrong": [["C004", "may_treat", "C009"]]}),
    ("discover", {"term": "C004", "relation": "may_treat", "side": "head", "top": 50}),
    ("discover", {"term": "C007", "relation": "causes", "side": "tail", "top": 50, "drop_indications": True}),
    ("evidence", {"one": "C004", "other": "C007"}),
    ("evidence", {"one": "C007", "other": "C004"}),
]
VARYING = re.compile(r"max-age=\d+|\d{4}-\d\d-\d\dT[\d:]+Z")  # times


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


def paths_of(routes: Sequence[Any]) -> set[tuple[str, str]]:
    """Method and path of every route, those of included routers among them."""
    every: set[tuple[str, str]] = set()
    for route in routes:
        if inner := getattr(route, "original_router", None):
            every |= paths_of(inner.routes)
        every |= {(method, route.path) for method in getattr(route, "methods", None) or ()}
    return every


def outputs(model: CogStage, hide: bool, corrections: Path) -> dict[str, str]:
    """Everything that the service says to the questions above: pages, downloads, API, agent tools."""
    service = Service(model, hide_counts=hide, corrections=corrections)
    app = create_explorer_app(service)
    client = TestClient(app, follow_redirects=False)
    answers = {}
    for method, path, asked in ASKED:
        given: dict[str, Any] = {"params": asked}
        if method == "POST":
            given = {"json": asked} if path.startswith("/api/") else {"data": asked}
        answer = client.request(method, path, **given)
        assert answer.status_code < 400, (path, asked, answer.text[:500])
        headers = sorted((name, value) for name, value in answer.headers.items())
        answers[f"{method} {path} {asked}"] = VARYING.sub("", f"{headers}\n{answer.content.decode('latin-1')}")
    mcp = pytest.importorskip("mcp")
    from cogstage.mcp.server import create_server

    async def ask() -> None:
        async with mcp.Client(create_server(service)) as agent:
            assert {tool.name for tool in (await agent.list_tools()).tools} == {name for name, _ in TOOLS}
            for name, arguments in TOOLS:
                answer = await agent.call_tool(name, arguments)
                assert not answer.is_error
                answers[f"{name} {arguments}"] = json.dumps(answer.structured_content)

    asyncio.run(ask())
    unasked = paths_of(app.router.routes) - {
        (method, re.sub(r"^/discover\.\w+$", "/discover.{form}", path)) for method, path, _ in ASKED
    }
    assert {path for method, path in unasked if method != "HEAD"} <= {"/metrics"}  # a new page is asked here, too
    return answers


def test_two_models_that_differ_in_one_count_look_the_same(small_model_folder: Path, tmp_path: Path) -> None:
    models = CogStage.load(small_model_folder), with_other_count(small_model_folder)

    def both(hide: bool) -> list[dict[str, str]]:
        return [outputs(model, hide, tmp_path / f"{hide}{number}.tsv") for number, model in enumerate(models)]

    shown = both(hide=False)
    different = {name.split(" {")[0] for name in shown[0] if shown[0][name] != shown[1][name]}
    assert {
        "GET /search",
        "GET /pair",
        "GET /discover.json",
        "GET /api/v1/explain",
        "POST /api/v1/predict",
    } <= different
    assert {"evidence", "search_terms", "explain"} <= different  # the comparison sees a count where it is shown
    hidden = both(hide=True)
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
