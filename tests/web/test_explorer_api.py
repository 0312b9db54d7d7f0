"""The JSON API and the explorer's pages, asked in-process."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jsonschema
import pytest
from fastapi.testclient import TestClient

from cogstage.rationale.record import Prediction
from cogstage.rationale.schema import prediction_schema
from cogstage.web.explorer_app import create_explorer_app
from cogstage.web.service import Limits, Service

KEYS = {"head": "C004", "tail": "C007"}
PAIR = {"head": "remedy 4", "tail": "Disorder number 7", "relation": "may_treat"}


@pytest.fixture(scope="module")
def service(small_model_folder: Path) -> Service:
    return Service.load(small_model_folder, Limits(pairs=5, rationales=20, candidates=30, body_bytes=5000))


@pytest.fixture(scope="module")
def client(service: Service) -> TestClient:
    return TestClient(create_explorer_app(service, metrics=True))


def test_health_and_model(client: TestClient) -> None:
    assert client.get("/api/v1/health").json()["status"] == "ok"
    about = client.get("/api/v1/model").json()
    assert about["relations"] == ["may_treat", "causes"]
    assert about["terms"] == 200
    assert about["limits"]["pairs"] == 5


def test_terms_are_found_by_name_and_synonym(client: TestClient) -> None:
    found = client.get("/api/v1/terms", params={"q": "remedy 4", "limit": 3}).json()
    assert found[0] == {"key": "C004", "name": "Drug number 4", "type": "drug", "count": 10, "matched": "remedy 4"}
    assert len(found) == 3


def test_explain_gives_the_published_record(client: TestClient, service: Service) -> None:
    got = client.get("/api/v1/explain", params={**PAIR, "k": 4})
    posted = client.post("/api/v1/explain", json={**PAIR, "k": 4})
    assert got.json() == posted.json()
    jsonschema.validate(got.json(), prediction_schema())
    record = Prediction.from_dict(got.json())
    direct = service.model.predict_batch([4], [7], "may_treat", 4)[0]
    assert record == direct
    assert len(record.reasons) <= 4


def test_predict_is_a_batch_in_order(client: TestClient) -> None:
    pairs = [{"head": f"C{n:03d}", "tail": "C007"} for n in (4, 10, 2)]
    answer = client.post("/api/v1/predict", json={"pairs": pairs, "relation": "causes"})
    assert [record["head"]["key"] for record in answer.json()] == ["C004", "C010", "C002"]


def test_discover_gives_ranked_records(client: TestClient) -> None:
    answer = client.get("/api/v1/discover", params={"tail": "C007", "relation": "causes", "top": 5, "k": 2})
    chances = [record["probability"] for record in answer.json()]
    assert len(chances) == 5
    assert chances == sorted(chances, reverse=True)


@pytest.mark.parametrize(
    ("method", "path", "sent", "status", "code"),
    [
        ("GET", "/api/v1/explain", {**PAIR, "head": "remedi 4"}, 404, "unknown_term"),
        ("GET", "/api/v1/explain", {**PAIR, "tail": "C004", "head": "C004"}, 422, "wrong_use"),
        ("GET", "/api/v1/explain", {**PAIR, "relation": "cures"}, 422, "wrong_use"),
        ("GET", "/api/v1/explain", {**PAIR, "k": 21}, 422, "wrong_use"),
        ("GET", "/api/v1/explain", {"head": "C004"}, 422, "invalid_request"),
        ("GET", "/api/v1/discover", {"relation": "causes"}, 422, "wrong_use"),
        ("GET", "/api/v1/discover", {"relation": "causes", "head": "C004", "top": 31}, 422, "invalid_request"),
        ("GET", "/api/v1/nowhere", {}, 404, "not_found"),
        ("DELETE", "/api/v1/health", {}, 405, "method_not_allowed"),
        ("POST", "/api/v1/predict", {"pairs": [], "relation": "causes"}, 422, "invalid_request"),
        ("POST", "/api/v1/predict", {"pairs": [KEYS] * 6, "relation": "causes"}, 413, "too_many_pairs"),
        ("POST", "/api/v1/predict", {"pairs": [KEYS] * 300, "relation": "causes"}, 413, "body_too_large"),
        ("POST", "/api/v1/explain", {**PAIR, "unknown": 1}, 422, "invalid_request"),
    ],
)  # fmt: skip
def test_errors_have_a_status_a_code_and_words(
    client: TestClient, method: str, path: str, sent: dict[str, object], status: int, code: str
) -> None:
    how = {"json": sent} if method == "POST" else {"params": sent}
    answer = client.request(method, path, **how)  # type: ignore[arg-type]
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert answer.json()["error"]["message"]


def test_unknown_term_comes_with_suggestions(client: TestClient) -> None:
    answer = client.get("/api/v1/explain", params={**PAIR, "head": "remedi 4"})
    assert "Drug number 4" in answer.json()["error"]["suggestions"]


def test_openapi_refers_only_to_what_is_there(client: TestClient) -> None:
    schema = client.get("/api/v1/openapi.json").json()
    for reference in re.findall(r'"\$ref": "#/components/schemas/(\w+)"', json.dumps(schema)):
        assert reference in schema["components"]["schemas"]
    assert not any(path.startswith("/pair") for path in schema["paths"])


@pytest.mark.parametrize(
    "path", ["/", "/about", "/docs", "/discover", "/discover?term=remedy+4&relation=causes&side=head"]
)
def test_pages_are_whole_and_bring_everything_themselves(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    assert "</html>" in answer.text
    assert not re.search(r'(?:src|action)="(?:https?:)?//', answer.text)
    assert not re.search(r'<link[^>]*href="(?:https?:)?//', answer.text)
    assert not re.search(r"<script(?![^>]*src=)|\son\w+=|style=", answer.text)
    assert "script-src 'self'" in answer.headers["content-security-policy"]


def test_pair_page_tells_why(client: TestClient) -> None:
    answer = client.get("/pair", params={**PAIR, "k": 5})
    text = answer.text
    assert "Drug number 4" in text
    assert "What supports it?" in text
    assert "<svg" in text
    assert "pairs with this answer are true" in text
    link = re.search(r'id="link"[^>]*value="([^"]+)"', text)
    assert link
    assert "head=C004" in link.group(1)
    assert "k=5" in link.group(1)


@pytest.mark.parametrize(("kind", "begins"), [("json", "{"), ("tsv", "head\t"), ("svg", "<svg"), ("png", "\ufffdPNG")])
def test_downloads(client: TestClient, kind: str, begins: str) -> None:
    answer = client.get(f"/pair.{kind}", params=PAIR)
    assert answer.text.startswith(begins)
    assert "attachment" in answer.headers["content-disposition"]


def test_unknown_term_page_suggests_and_escapes(client: TestClient) -> None:
    answer = client.get("/pair", params={**PAIR, "head": "<script>remedy 4</script>"})
    assert answer.status_code == 404
    assert "<script>remedy" not in answer.text
    answer = client.get("/pair", params={**PAIR, "head": "remedi 4"})
    assert "Drug number 4" in answer.text


def test_about_page_says_what_it_is_not(client: TestClient) -> None:
    text = client.get("/about").text
    assert "Not medical advice" in text
    assert "F1" in text


def test_metrics_are_there_when_asked_for(client: TestClient, service: Service) -> None:
    assert "cogstage_requests_total" in client.get("/metrics").text
    assert TestClient(create_explorer_app(service)).get("/metrics").status_code == 404


@pytest.mark.slow
def test_schemathesis_finds_no_server_error(service: Service) -> None:
    """Random requests that follow the schema, and some that do not: never a 5xx."""
    import schemathesis
    from hypothesis import HealthCheck, given, settings

    schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", create_explorer_app(service))

    @given(case=schema.as_strategy())
    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    def never_fails(case: schemathesis.Case) -> None:
        answer = case.call()
        assert answer.status_code < 500, (case.path, answer.text)

    never_fails()


def test_many_at_once_get_the_answers_of_one_alone(small_model_folder: Path) -> None:
    """Requests run in threads over one model; what it remembers of earlier pairs must not mix them up."""
    alone, shared = (Service.load(small_model_folder) for _ in range(2))
    pairs = [(f"C{head:03d}", f"C{tail:03d}") for head in range(0, 200, 10) for tail in range(1, 200, 20)]
    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(lambda pair: shared.explain(*pair, "may_treat", 3), pairs))
    assert answers == [alone.explain(*pair, "may_treat", 3) for pair in pairs]


def test_a_base_rate_and_no_relation_in_batches_and_lists(client: TestClient, service: Service) -> None:
    pairs = [{"head": "C004", "tail": "C007"}, {"head": "C010", "tail": "C133"}]
    rows = client.post("/api/v1/predict", json={"pairs": pairs, "base_rate": 0.01}).json()
    for pair, row in zip(pairs, rows, strict=True):
        record = service.explain(pair["head"], pair["tail"], None, 0).with_base_rate(0.01)
        assert (row["relation"], row["statement"]) == (record.relation, record.statement)
    plain = client.get("/api/v1/discover", params={"head": "C004", "top": 3}).json()
    shifted = client.get("/api/v1/discover", params={"head": "C004", "top": 3, "base_rate": 0.01}).json()
    assert [row["relation"] for row in plain] == ["may_treat"] * 3 + ["causes"] * 3
    assert [row["rank"] for row in plain] == [1, 2, 3] * 2
    assert [row["tail"] for row in plain] == [row["tail"] for row in shifted]
    assert {row["base_rate"] for row in shifted} == {0.01}
    ranking = service.ranking("causes", "head", service.find("C004"))
    assert ranking.contradicted.any()
    assert ranking.contradicted.tolist() == sorted(ranking.contradicted.tolist())  # they come last
    asked = {"head": "C004", "relation": "causes", "top": 30, "drop_contradicted": True}
    kept = [row["tail"]["key"] for row in client.get("/api/v1/discover", params=asked).json()]
    assert kept == [service.term(int(node)).key for node in ranking.node[~ranking.contradicted][:30]]
