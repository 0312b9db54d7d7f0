"""The rules of the guard one by one: other sites, clients behind addresses, attempts and rates over time."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from cogstage.web import security
from cogstage.web.security import Attempts, Guard, RateLimit, client_network


class Clock:
    """Time that a test sets."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now

    perf_counter = monotonic


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(security, "time", made)
    return made


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "http://testserver"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://[broken"}, 403),
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "none"}, 200),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
    ],
)
def test_changes_for_other_sites_are_refused(headers: dict[str, str], status: int) -> None:
    app = Starlette(routes=[Route("/", lambda request: PlainTextResponse("done"), methods=["GET", "POST"])])
    client = TestClient(Guard(app, lambda scope: PlainTextResponse("error", 500)))
    assert client.post("/", headers=headers).status_code == status
    assert client.get("/", headers=headers).status_code == 200


def test_an_ipv6_client_is_its_network_and_an_ipv4_client_its_address() -> None:
    assert client_network("2001:db8:1:2:3:4:5:6") == client_network("2001:db8:1:2::9") == "2001:db8:1:2::/64"
    assert client_network("2001:db8:1:3::9") != client_network("2001:db8:1:2::9")
    assert client_network("::ffff:192.0.2.7") == client_network("192.0.2.7") == "192.0.2.7"


def test_failed_attempts_are_forgotten_after_the_window(clock: Clock) -> None:
    attempts = Attempts(most=2, window=60.0)
    assert [attempts.begin("admin", "192.0.2.7") for _ in range(3)] == [True, True, False]
    clock.now += 59
    assert not attempts.begin("admin", "192.0.2.7")
    clock.now += 2
    assert attempts.begin("admin", "192.0.2.7")


def test_a_rate_refills_evenly_over_a_minute(clock: Clock) -> None:
    rate = RateLimit(6)
    assert [rate.wait("one") for _ in range(6)] == [0] * 6
    assert rate.wait("one") == 11
    assert rate.wait("two") == 0
    clock.now += 10.1
    assert rate.wait("one") == 0
    assert rate.wait("one") > 0
