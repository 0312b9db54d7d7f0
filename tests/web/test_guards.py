"""The guards in front of the app: body size, rate, counters; and type-ahead."""

from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from cogstage.corpus.tokens import casefold_text
from cogstage.errors import UsageError
from cogstage.graph.term_search import TermSearch
from cogstage.graph.vocabulary import Vocabulary
from cogstage.web.base import create_app
from cogstage.web.security import loggable
from cogstage.web.serving import Address


def echo_app(**options: Any) -> FastAPI:
    app = create_app("test", **options)

    @app.post("/echo")
    async def echo(request: Request) -> dict[str, int]:
        return {"bytes": len(await request.body())}

    @app.get("/item/{name}")
    def item(name: str) -> dict[str, str]:
        return {"name": name}

    return app


def test_a_body_at_the_limit_passes_and_one_byte_more_is_refused() -> None:
    client = TestClient(echo_app(largest_body=100))
    assert client.post("/echo", content=b"x" * 100).json() == {"bytes": 100}
    refused = client.post("/echo", content=b"x" * 101)
    assert refused.status_code == 413
    assert refused.json()["error"]["code"] == "body_too_large"


def test_a_body_without_a_length_is_counted_as_it_comes() -> None:
    client = TestClient(echo_app(largest_body=100))
    assert client.post("/echo", content=(b"x" * 40 for _ in range(3))).status_code == 413


def test_rate_limit_refuses_past_the_allowance_and_says_when_to_return() -> None:
    client = TestClient(echo_app(requests_per_minute=5))
    answers = [client.get("/item/a") for _ in range(7)]
    assert [answer.status_code for answer in answers] == [200] * 5 + [429] * 2
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert answers[-1].json()["error"]["code"] == "rate_limited"


def test_metrics_count_by_route_and_not_by_what_was_asked() -> None:
    client = TestClient(echo_app(metrics=True))
    for name in ("secret-one", "secret-two"):
        client.get(f"/item/{name}")
    client.get("/nowhere")
    for number in range(50):
        client.request(f"RANDOM{number}", "/item/a")
    text = client.get("/metrics").text
    assert 'cogstage_requests_total{method="GET",route="/item/{name}",status="200"} 2.0' in text
    assert "secret" not in text
    assert "RANDOM" not in text  # a series for each would fill the memory
    assert 'method="other"' in text
    assert 'cogstage_request_seconds_count{route="/item/{name}"} 52.0' in text


@pytest.mark.parametrize("path", ["/join/abc.SECRET", "//join/abc.SECRET", "/join//abc.SECRET", "/join/a\nb.SECRET"])
def test_no_personal_link_stands_in_the_log(path: str) -> None:
    assert "SECRET" not in loggable(path)


@given(st.text())
def test_what_is_logged_is_one_printable_line(text: str) -> None:
    shown = loggable(text)
    assert shown.isascii()
    assert not shown or shown.isprintable()


def test_two_host_headers_are_refused() -> None:
    client = TestClient(echo_app())
    answer = client.get("/item/a", headers=[("Host", "testserver"), ("Host", "testserver")])
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "host_not_allowed")


def test_an_unexpected_error_is_a_page_with_all_headers() -> None:
    app = echo_app()

    @app.get("/broken")
    def broken() -> None:
        raise RuntimeError("secret")

    answer = TestClient(app).get("/broken")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


NAMES = ("Acute myocardial infarction", "Myocardial ischemia", "Aspirin", "Infarction")
VOCABULARY = Vocabulary(NAMES, NAMES, NAMES, ("",) * 4, np.array([5, 50, 9, 1]), (("heart attack", 0),))


@pytest.mark.parametrize(
    ("typed", "nodes"),
    [("myo", [1, 0]), ("infarction", [3, 0]), ("HEART", [0]), ("attack", [0]), ("asp", [2]), ("  ", [])],
)
def test_type_ahead_finds_word_starts_commonest_first(typed: str, nodes: list[int]) -> None:
    assert [match.node for match in TermSearch(VOCABULARY).find(typed)] == nodes


@given(
    st.lists(st.text("ab c-", min_size=1, max_size=8), min_size=1, max_size=12), st.text("abc", min_size=1, max_size=3)
)
def test_type_ahead_finds_just_the_names_with_such_a_word(names: list[str], typed: str) -> None:
    vocabulary = Vocabulary.from_terms([f"{name}\n{number}" for number, name in enumerate(names)])
    vocabulary = Vocabulary(vocabulary.term, vocabulary.term, tuple(names), ("",) * len(names), vocabulary.count)
    expected = {
        node
        for node, name in enumerate(names)
        if any(
            casefold_text(name)[place:].startswith(typed)
            for place in range(len(casefold_text(name)))
            if place == 0 or casefold_text(name)[place - 1] in " -/("
        )
    }
    found = {match.node for match in TermSearch(vocabulary).find(typed, most=len(names))}
    assert expected <= found
    if expected:  # otherwise names of like spelling are offered
        assert found == expected


@pytest.mark.parametrize("pattern", ["*example.org", "a*.example.org", "*.*.org", "**"])
def test_a_pattern_of_hosts_that_cannot_work_is_one_line(pattern: str) -> None:
    with pytest.raises(UsageError, match="allowed_hosts"):
        Address(allowed_hosts=(pattern,)).check()
    Address(allowed_hosts=("*", "*.example.org")).check()
