"""Attacks that once worked, in-process: forged addresses, parallel guesses, foreign host names, costly requests."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from fastapi import FastAPI, Request
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient
from study_material import small_study
from study_stores import PASSWORD

from cogstage.errors import UsageError
from cogstage.rationale.corrections import Corrections
from cogstage.rationale.filters import Filter
from cogstage.study.folder import OpenStudy
from cogstage.study.protocol import Study
from cogstage.web.base import check_disk, create_app
from cogstage.web.explorer_app import create_explorer_app
from cogstage.web.privacy import privacy_warning, without_counts
from cogstage.web.security import HEADERS, Attempts, HostAccess, networks
from cogstage.web.service import Limits, Service
from cogstage.web.serving import Address
from cogstage.web.study_app import create_study_app
from cogstage.web.work_queue import Busy, WorkQueue

Make = Callable[[Study], OpenStudy]


@pytest.fixture(scope="module")
def service(small_model_folder: Path) -> Service:
    return Service.load(small_model_folder, Limits(pairs=50, rationales=20, cost=300, requests_a_minute=10_000))


def whoami(access: HostAccess) -> FastAPI:
    """An application that says whom it believes to be talking to."""
    app = create_app("test", access=access)

    @app.get("/whoami")
    def ask(request: Request) -> dict[str, str]:
        return {"client": request.client.host if request.client else "", "scheme": request.url.scheme}

    return app


# Addresses


@pytest.mark.parametrize(
    ("proxies", "peer", "forwarded", "seen"),
    [
        ((), "127.0.0.1", "9.9.9.9", "127.0.0.1"),  # nobody is believed by default, not even loopback
        (("127.0.0.1",), "127.0.0.1", "9.9.9.9", "9.9.9.9"),
        (("127.0.0.1",), "10.0.0.1", "9.9.9.9", "10.0.0.1"),
        (("127.0.0.1",), "127.0.0.1", "1.1.1.1, 9.9.9.9", "9.9.9.9"),  # what stands before was written by the client
        (("127.0.0.1", "172.17.0.0/16"), "127.0.0.1", "9.9.9.9, 172.17.0.3", "9.9.9.9"),
        (("127.0.0.1",), "127.0.0.1", "unknown", "unknown"),  # as our own proxy says
        (("127.0.0.1",), "127.0.0.1", "", "127.0.0.1"),
        (("::1",), "::1", "2001:db8::1", "2001:db8::1"),
    ],
)
def test_forwarded_addresses(proxies: tuple[str, ...], peer: str, forwarded: str, seen: str) -> None:
    client = TestClient(whoami(HostAccess(proxies=proxies)), client=(peer, 5))
    headers = {"X-Forwarded-For": forwarded, "X-Forwarded-Proto": "https"}
    answer = client.get("/whoami", headers=headers).json()
    assert answer["client"] == seen
    assert answer["scheme"] == ("https" if peer in proxies else "http")


@given(st.lists(st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,3}){3}|[ -~]{0,12}", fullmatch=True), max_size=5))
def test_no_header_makes_a_stranger_somebody_else(chain: list[str]) -> None:
    client = TestClient(whoami(HostAccess(proxies=("127.0.0.1",))), client=("8.8.8.8", 5))
    answer = client.get("/whoami", headers={"X-Forwarded-For": ", ".join(chain)}).json()
    assert answer["client"] == "8.8.8.8"


def test_a_wrong_network_is_one_line() -> None:
    with pytest.raises(UsageError, match="trusted_proxies"):
        networks(["10.0.0.0/99"])


# Guessing the password


def sign_in(client: TestClient, password: str, **headers: str) -> int:
    form = re.search(r'name="form_token" value="([^"]+)"', client.get("/admin/sign-in").text)
    assert form
    data = {"form_token": form[1], "password": password}
    return client.post("/admin/sign-in", data=data, headers=headers).status_code


def test_forged_addresses_do_not_walk_round_the_limit(make_study: Make) -> None:
    app = create_study_app(make_study(small_study()), secure_cookies=False)
    client = TestClient(app, base_url="http://127.0.0.1:8765", follow_redirects=False, client=("127.0.0.1", 5))
    codes = [sign_in(client, "wrong", **{"X-Forwarded-For": f"9.9.9.{n}"}) for n in range(15)]
    assert codes == [303] * 10 + [429] * 5


def test_one_guesser_does_not_lock_the_administrator_out(make_study: Make) -> None:
    """Behind a trusted proxy the limit is that of the address; the right password still works from elsewhere."""
    access = HostAccess(proxies=("127.0.0.1",))
    app = create_study_app(make_study(small_study()), secure_cookies=False, access=access)
    client = TestClient(app, base_url="http://127.0.0.1:8765", follow_redirects=False, client=("127.0.0.1", 5))
    assert [sign_in(client, "wrong", **{"X-Forwarded-For": "9.9.9.9"}) for _ in range(12)][-1] == 429
    assert sign_in(client, PASSWORD, **{"X-Forwarded-For": "8.8.8.8"}) == 303
    assert client.get("/admin").status_code == 200


def test_simultaneous_guesses_are_counted_one_by_one() -> None:
    attempts, start = Attempts(most=10), threading.Barrier(40)

    def guess(_: int) -> bool:
        start.wait()
        return attempts.begin("administrator", "9.9.9.9")

    with ThreadPoolExecutor(40) as threads:
        assert sum(threads.map(guess, range(40))) == 10


def test_many_addresses_do_not_lock_the_administrator_out() -> None:
    attempts = Attempts(most=10, attack=200, most_under_attack=3)
    guessed = [attempts.begin("a", f"9.9.{n}.9") for n in range(40) for _ in range(10)]
    assert sum(guessed) == 200 + 3 * 20  # the first 20 addresses take their ten, the others three each
    assert attempts.begin("a", "1.1.1.1")  # the administrator still signs in
    attempts.succeeded("a", "1.1.1.1")
    attempts = Attempts(most=3)
    for _ in range(50):  # somebody who knows the password is never locked out by using it
        assert attempts.begin("a", "1.1.1.1")
        attempts.succeeded("a", "1.1.1.1")
    assert [attempts.begin("b", "1.1.1.1") for _ in range(4)] == [True] * 3 + [False]


def test_addresses_of_one_ipv6_network_are_one_client_and_the_table_has_an_end() -> None:
    attempts = Attempts(most=10, clients=50)
    assert sum(attempts.begin("a", f"2001:db8::{n:x}") for n in range(40)) == 10
    for number in range(500):
        attempts.begin("a", f"9.9.{number // 250}.{number % 250}")
        attempts.begin("b", f"9.9.{number // 250}.{number % 250}")
    assert len(attempts) == 50


# Host names


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8764", 200),
        ("localhost", 200),
        ("LOCALHOST:1", 200),
        ("[::1]:8764", 200),
        ("model.example.org", 200),
        ("attacker.example", 400),
        ("localhost.attacker.example", 400),
        ("127.0.0.1.attacker.example:8764", 400),
        ("", 400),
    ],
)
def test_only_known_names_are_answered(service: Service, host: str, status: int) -> None:
    access = Address(public_url="https://model.example.org").access
    client = TestClient(create_explorer_app(service, access=access))
    answer = client.get("/api/v1/model", headers={"Host": host})
    assert answer.status_code == status
    if status == 400:
        assert answer.text == "Invalid host header"
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_names_can_be_added_or_the_check_left_out(service: Service) -> None:
    for names, status in ((("own.example",), 200), (("*",), 200), ((), 400)):
        access = Address(host="0.0.0.0", allowed_hosts=names).access
        client = TestClient(create_explorer_app(service, access=access))
        assert client.get("/api/v1/health", headers={"Host": "own.example"}).status_code == status


# Headers


def test_every_answer_has_the_security_headers(small_model_folder: Path) -> None:
    strict = Service.load(small_model_folder, Limits(requests_a_minute=9, body_bytes=100))
    client = TestClient(create_explorer_app(strict, metrics=True, access=HostAccess(hosts=("testserver",))))
    answers = [
        client.get("/"),
        client.get("/nowhere"),
        client.get("/static/base.css"),
        client.get("/api/v1/terms"),
        client.delete("/"),
        client.post("/api/v1/predict", content=b"x" * 101),
        client.post("/api/v1/predict", content=b"{}", headers={"Origin": "https://attacker.example"}),
        client.get("/", headers={"Host": "attacker.example"}),
        client.get("/metrics"),
        *(client.get("/api/v1/health") for _ in range(6)),
    ]
    assert {200, 400, 403, 404, 405, 413, 422, 429} <= {answer.status_code for answer in answers}
    for answer in answers:
        for name, value in HEADERS.items():
            assert answer.headers[name] == value, (answer.url, answer.status_code)


# Costly requests


def unbounded(schema: object, path: str = "") -> list[str]:
    """Where a schema of requests sets no largest length or value."""
    most = {"string": {"maxLength"}, "integer": {"maximum"}, "number": {"maximum", "exclusiveMaximum"}}
    most["array"] = {"maxItems"}
    if isinstance(schema, list):
        return [entry for part in schema for entry in unbounded(part, path)]
    if not isinstance(schema, dict):
        return []
    kind = schema.get("type")
    missing = isinstance(kind, str) and kind in most and not most[kind] & schema.keys() and "enum" not in schema
    return [path] * missing + [entry for key, part in schema.items() for entry in unbounded(part, f"{path}/{key}")]


def test_the_schema_states_every_maximum(service: Service) -> None:
    schema = TestClient(create_explorer_app(service)).get("/api/v1/openapi.json").json()
    asked = [
        part
        for operations in schema["paths"].values()
        for operation in operations.values()
        for part in (operation.get("parameters", []), operation.get("requestBody", {}))
    ]
    bodies = {name: schema["components"]["schemas"][name] for name in ("Batch", "Pair", "ApiQuestion")}
    assert unbounded(asked) + unbounded(bodies) == []
    assert unbounded({"a": {"type": "integer", "minimum": 0}}) == ["/a"]


def test_a_request_has_a_price(service: Service) -> None:
    client = TestClient(create_explorer_app(service))
    pairs = [{"head": "C004", "tail": f"C{n:03d}"} for n in range(1, 100, 2)]
    cheap = client.post("/api/v1/predict", json={"pairs": pairs, "relation": "causes", "k": 5})
    assert (cheap.status_code, len(cheap.json())) == (200, 50)
    dear = client.post("/api/v1/predict", json={"pairs": pairs, "relation": "causes", "k": 6})
    assert (dear.status_code, dear.json()["error"]["code"]) == (413, "too_expensive")
    ranked = client.get("/api/v1/discover", params={"head": "C004", "relation": "causes", "top": 30, "k": 20})
    assert ranked.json()["error"]["code"] == "too_expensive"
    stated = client.get("/api/v1/openapi.json").json()
    assert "300" in stated["paths"]["/api/v1/predict"]["post"]["description"]
    assert stated["components"]["schemas"]["Batch"]["properties"]["pairs"]["maxItems"] == 50


def test_an_unknown_term_fails_its_row_alone(service: Service) -> None:
    client = TestClient(create_explorer_app(service))
    names = [("C004", "C007"), ("remedi 4", "C007"), ("C004", "C004"), ("C010", "C007")]
    body = {"pairs": [{"head": head, "tail": tail} for head, tail in names], "relation": "causes"}
    rows = client.post("/api/v1/predict", json=body).json()
    assert [row["head"]["key"] if "head" in row else row["error"]["code"] for row in rows] == [
        "C004", "unknown_term", "wrong_use", "C010",
    ]  # fmt: skip
    assert "remedi 4" in rows[1]["error"]["message"]
    lines = client.post("/api/v1/predict", json=body, headers={"Accept": "application/x-ndjson"}).text.splitlines()
    assert [json.loads(line) for line in lines] == rows


def test_large_requests_take_turns_and_the_queue_ends() -> None:
    queue = WorkQueue(2)
    running, most = 0, 0

    def work(part: list[int]) -> list[int]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        running -= 1
        return [2 * item for item in part]

    first, second = (queue.in_chunks(list(range(10)), 3, work) for _ in range(2))
    with pytest.raises(Busy):
        queue.in_chunks([1], 1, work)
    with ThreadPoolExecutor(2) as threads:
        done = list(threads.map(list, (first, second)))
    assert done == [[2 * item for item in range(10)]] * 2
    assert most == 1
    abandoned: list[Iterator[int]] = [queue.in_chunks([1], 1, work) for _ in range(2)]
    abandoned.clear()  # given up before the first item: the queue must not stay full
    assert list(queue.in_chunks([1], 1, work)) == [2]


def test_a_queue_that_is_full_says_when_to_come_back(service: Service) -> None:
    client = TestClient(create_explorer_app(service))
    held = [service.queue.enter(f"9.9.9.{n}") for n in range(service.limits.waiting)]
    try:
        body = {"pairs": [{"head": "C004", "tail": "C007"}], "relation": "causes"}
        answer = client.post("/api/v1/predict", json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "busy")
        assert answer.headers["retry-after"] == "5"
        assert client.get("/api/v1/explain", params={**body["pairs"][0], "relation": "causes"}).status_code == 200
    finally:
        for number, _ in enumerate(held):
            service.queue.leave(f"9.9.9.{number}")


def test_one_client_with_many_batches_leaves_space_for_others(service: Service) -> None:
    app = create_explorer_app(service)
    body = {"pairs": [{"head": "C004", "tail": "C007"}], "relation": "causes"}
    held = [service.queue.enter("9.9.9.9") for _ in range(service.queue.share)]
    try:
        with pytest.raises(Busy, match="of yours"):
            service.queue.enter("9.9.9.9")
        for address, status in (("9.9.9.9", 503), ("8.8.8.8", 200), ("2001:db8::1", 200)):
            assert TestClient(app, client=(address, 5)).post("/api/v1/predict", json=body).status_code == status
    finally:
        for _ in held:
            service.queue.leave("9.9.9.9")
    assert TestClient(app, client=("9.9.9.9", 5)).post("/api/v1/predict", json=body).status_code == 200


# Counts of patients


def test_private_models_are_required_or_warned_about() -> None:
    assert privacy_warning("counts below 11 suppressed", True, False) is None
    assert "not protected" in (privacy_warning("none", False, False) or "")
    with pytest.raises(UsageError, match="`require_private`"):
        privacy_warning("none", True, True)


@dataclass(frozen=True)
class Inner:
    count: int | None
    ppmi: float | None
    rank: int


@dataclass(frozen=True)
class Outer:
    parts: tuple[Inner, ...]
    inner: Inner | None
    count: int | None
    name: str


def test_hidden_counts_are_nowhere_in_a_record() -> None:
    hidden = without_counts(Outer((Inner(3, 0.5, 1), Inner(4, 0.5, 2)), Inner(5, 1.0, 3), 6, "a"))
    assert hidden == Outer((Inner(None, None, 1), Inner(None, None, 2)), Inner(None, None, 3), None, "a")


def test_a_service_with_hidden_counts_shows_none(small_model_folder: Path) -> None:
    client = TestClient(create_explorer_app(Service.load(small_model_folder, hide_counts=True)))
    pair = {"head": "C004", "tail": "C007", "relation": "may_treat"}
    counts = re.findall(r'"(?:count|ppmi|cooccurrence)": ?([^,}]+)', client.get("/api/v1/explain", params=pair).text)
    assert set(counts) == {"null"}
    assert {term["count"] for term in client.get("/api/v1/terms", params={"q": "drug"}).json()} == {None}
    assert client.get("/pair", params=pair).status_code == 200
    with_counts = Service.load(small_model_folder)
    assert with_counts.explain("C004", "C007", "may_treat", 5, Filter()) is not None


# Disk


def test_health_says_when_the_disk_is_full(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        check_disk(folder)
        app = create_app("test")
        app.add_api_route("/health", lambda: check_disk(folder), methods=["GET"])
        client = TestClient(app)
        assert client.get("/health").status_code == 200
        (folder / "filler").write_bytes(os.urandom(1_000_000))
        answer = client.get("/health", headers={"Accept": "application/json"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "disk_full")
        (folder / "filler").unlink()
        assert client.get("/health").status_code == 200
    finally:
        subprocess.run(["umount", folder], check=True)


def test_the_rate_limit_counts_the_client_behind_the_proxy() -> None:
    access = HostAccess(proxies=("127.0.0.1",))
    app = create_app("test", access=access, requests_per_minute=2)
    client = TestClient(app, client=("127.0.0.1", 5))
    codes = [client.get("/x", headers={"X-Forwarded-For": f"9.9.9.{n % 2}"}).status_code for n in range(6)]
    assert codes == [404] * 4 + [429] * 2


def test_head_is_get_without_the_body(service: Service) -> None:
    client = TestClient(create_explorer_app(service))
    for path in ("/", "/api/v1/health", "/static/base.css", "/nowhere"):
        got, head = client.get(path), client.head(path)
        assert head.status_code == got.status_code
        assert head.content == b""


# Random questions to the pages

FIELDS = {
    "/": (),
    "/pair": ("head", "tail", "relation", "k", "through", "by", "known", "wrong", "right", "rate"),
    "/pair.json": ("head", "tail", "relation", "k"),
    "/pair.tsv": ("head", "tail", "relation", "wrong"),
    "/pair.svg": ("head", "tail", "relation", "k"),
    "/discover": ("term", "relation", "side", "type", "known", "together", "least", "sort", "indications", "page"),
    "/discover.csv": ("term", "relation", "side", "known"),
    "/discover.kgx": ("term", "relation"),
    "/compare": ("term", "relation", "side", "with"),
    "/term": ("key",),
    "/search": ("q",),
    "/batch": ("pairs", "relation", "form"),
    "/corrections": ("triple", "verdict", "who", "why", "back"),
}
USUAL = {
    "relation": ["may_treat", "causes"],
    "by": ["may_treat", "causes_inverse"],
    "side": ["head", "tail"],
    "triple": ["C004\tmay_treat\tC007", "C004\tcauses\tC009"],
    "wrong": ["C004\tmay_treat\tC009"],
    "right": ["C004\tcauses\tC009"],
    "verdict": ["wrong", "right", "withdrawn"],
    "form": ["page", "tsv", "csv", "json"],
    "pairs": ["C004;C007\nnobody;C007", '"Drug number 4",C009', "C004\tC004"],
    "known": ["1", "new", "known"],
    "back": ["head=C004&tail=C007"],
} | {name: ["1", "5"] for name in ("k", "rate", "least", "page")}
TERMS = ["C004", "C007", "remedy 4", "Disorder number 9"]
BAD = [
    "",
    "0",
    "-1",
    "1e309",
    "nan",
    "9" * 400,
    "x" * 301,
    "\0",
    "\u202e",
    "\x1b[31m",
    "<script>",
    "{{7*7}}",
    "../..",
    "%00",
]
BAD += ["=1+1", "\t\t", "a\tb", '"', '"' * 50, "\ud7ff", "é" * 300, "' OR 1=1 --", "\r\nSet-Cookie: a=b"]


def test_random_questions_never_break_a_page(small_model_folder: Path, tmp_path: Path) -> None:
    service = Service.load(small_model_folder, Limits(pairs=50), corrections=tmp_path / "corrections.tsv")
    client = TestClient(create_explorer_app(service), follow_redirects=False)
    rng, seen = random.Random(0), Counter[int]()
    for _ in range(int(os.environ.get("COGSTAGE_FUZZ", "600"))):
        path = rng.choice(sorted(FIELDS))
        asked = [
            (name, rng.choice(USUAL.get(name, TERMS) if rng.random() < 0.8 else BAD))
            for name in FIELDS[path]
            if rng.random() < 0.8
        ]
        post = path in ("/batch", "/corrections") and rng.random() < 0.8
        method = "POST" if post else rng.choice(["GET", "GET", "GET", "HEAD"])
        answer = client.request(method, path, **({"data": dict(asked)} if post else {"params": asked}))  # type: ignore[arg-type]
        assert answer.status_code < 500, (method, path, asked)
        assert "set-cookie" not in answer.headers
        assert set(map(str.lower, HEADERS)) <= set(answer.headers), path
        assert "<script>" not in answer.text
        seen[answer.status_code] += 1
    assert seen[200] > 100
    assert seen[422] > 50
    assert Corrections.read(tmp_path / "corrections.tsv").entries  # some were saved, and the table can be read
