"""The study's pages: what each person may see and do, on both stores."""

import io
import json
import logging
import re
from csv import DictReader
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from starlette.testclient import TestClient
from study_material import small_study
from study_pages import BASE, Make, admin, client, join, token_of
from study_stores import PASSWORD

from cogstage.study.access import Invitation
from cogstage.web.security import CONTENT_POLICY, Attempts, loggable
from cogstage.web.study_app import create_study_app


def test_clicks_are_saved_and_shown_again(make_study: Make) -> None:
    opened = make_study(small_study())
    invitation = opened.access.invite("Dr A")
    browser, headers = join(opened, invitation)
    click = {"answers": {"score-A-0": "2", "compare": "B"}, "seconds": 1.0}
    done = browser.post("/case/1/save", json=click, headers=headers)
    assert done.json() == {"saved": ["compare", "score-A-0"], "complete": False, "done": 0}
    again, _ = join(opened, invitation)  # another device, the same link
    page = again.get("/case/1").text
    assert re.search(r'name="score-A-0" value="2"[^>]* checked', page)
    assert re.search(r'name="compare" value="B"[^>]* checked', page)
    assert page.count(" checked") == 2
    form = opened.answers.form(invitation.reviewer.id, 1)
    assert form is not None
    first, second = form.placement.set_order
    stored = opened.answers.of_case(invitation.reviewer.id, form.case.key)
    assert stored == {f"score:{first}:0": "2", f"rank:{first}": "2", f"rank:{second}": "1"}


def test_the_form_works_without_script(make_study: Make) -> None:
    opened = make_study(small_study(("open", "closed", "third")))
    person = opened.access.invite("Dr A")
    browser, headers = join(opened, person)
    page = browser.get("/case/1").text
    fields = dict.fromkeys(re.findall(r'type="radio" name="([^"]+)"', page), "1")
    assert {"rank-A", "rank-B", "rank-C", "score-C-4"} <= fields.keys()
    fields |= {"familiar-head": "yes", "familiar-tail": "no", "comment": "", "seconds": "", "go": "next"}
    fields |= {"form_token": headers["X-Form-Token"], "visit": re.findall(r'name="visit" value="([\w.]+)"', page)[0]}
    assert browser.post("/case/1", data=fields).headers["location"] == "/case/2"
    assert opened.answers.progress(person.reviewer.id).complete == (True, False, False, False)
    assert "comment" not in {row.item for row in opened.answers.all()}
    only = {"form_token": headers["X-Form-Token"]}
    assert browser.post("/case/4", data={**only, "go": "next"}).headers["location"] == "/case/4?unanswered=true"
    assert browser.post("/case/4", data={**only, "go": "skip"}).headers["location"] == "/finish"
    assert browser.post("/case/1", data={**only, "go": "previous"}).headers["location"] == "/welcome"
    assert "Almost done" in browser.get("/finish").text
    assert next(iter(opened.answers.seconds().values())) > 0


class Visible(HTMLParser):
    """Tags and attribute names of a page, without its text: what formatting can tell."""

    def __init__(self) -> None:
        super().__init__()
        self.shape: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        classes = dict(attrs).get("class")
        self.shape.append(f"{tag}.{classes}({','.join(name for name, _ in attrs)})")


def shape(html: str) -> list[str]:
    parser = Visible()
    parser.feed(html)
    return parser.shape


def test_sets_are_blind_and_formatted_identically(make_study: Make) -> None:
    opened = make_study(small_study(cases=8, repeats=2))
    first_shown = set()
    for number in range(3):
        browser, _ = join(opened, opened.access.invite(f"Dr {number}"))
        for position in range(1, 11):
            page = browser.get(f"/case/{position}").text
            for secret in ("closed", "modelhash", "graphhash", "probability", "0.9", "c00", "outcome", "repeat"):
                assert secret not in re.sub(r"\b[0-9a-f]{8,}\b", "", page), secret  # tokens aside
            assert "open" not in re.sub(r"\w* open<", "", page)  # the overview calls a case open
            cards = page.split('<div class="set card"')[1:]
            assert len(cards) == 2
            second = cards[1].split("</section>")[0]
            assert shape(cards[0]) == shape(second)[: len(shape(cards[0]))]
            first_shown.add(re.findall(r"[oc]\d(?=</span>)", cards[0])[0][0])
    assert first_shown == {"o", "c"}


def test_nobody_sees_what_is_not_theirs(make_study: Make) -> None:
    opened = make_study(small_study())
    ada, john = opened.access.invite("Dr Ada"), opened.access.invite("Dr John")
    one, headers = join(opened, ada)
    other, other_headers = join(opened, john)
    one.post("/case/1/save", json={"answers": {"comment": "mine alone", "score-A-0": "3"}}, headers=headers)
    for position in range(1, 5):
        page = other.get(f"/case/{position}").text
        assert "mine alone" not in page
        assert " checked" not in page
    assert "Ada" not in other.get("/welcome").text + other.get("/finish").text
    # tokens belong to one session
    assert other.post("/case/1/save", json={"answers": {"trust": "1"}}, headers=headers).status_code == 403
    assert other.post("/case/1/save", json={"answers": {"comment": "x"}}, headers=other_headers).status_code == 200
    stranger = client(opened)
    for path in ("/welcome", "/case/1", "/finish"):
        assert stranger.get(path).status_code == 401
    assert stranger.post("/case/1/save", json={"answers": {}}, headers=headers).status_code == 401
    # neither reviewers nor strangers get to the administrator's pages
    paths = ["", "/answers.csv", "/times.csv", "/report.html"]
    for browser in (other, stranger):
        for path in paths:
            answer = browser.get("/admin" + path)
            assert answer.status_code == 303
            assert answer.headers["location"] == "/admin/sign-in"
            assert answer.content == b""
        for path in ("/reviewers", f"/reviewers/{ada.reviewer.id}/revoke", f"/reviewers/{ada.reviewer.id}/renew"):
            assert browser.post("/admin" + path, data={"name": "x", "form_token": "x"}).status_code == 401
    # a reviewer's cookie is no administrator's cookie
    cookie = one.cookies["cogstage_reviewer"]
    assert client(opened).get("/admin", headers={"Cookie": f"cogstage_administrator={cookie}"}).status_code == 303


def test_the_administrator_invites_renews_revokes_exports(make_study: Make) -> None:
    opened = make_study(small_study())
    browser, token = admin(opened)
    done = browser.post("/admin/reviewers", data={"form_token": token, "names": "Dr <i>A</i>\n", "days": "7"})
    assert done.status_code == 200
    page = done.text
    assert "Dr &lt;i&gt;A&lt;/i&gt;" in page
    assert "<i>" not in page
    link = re.search(rf'value="({BASE}/join/[^"]+)"', page)
    assert link is not None
    assert link[1] not in browser.get("/admin").text  # shown once
    ticket = link[1].rsplit("/", 1)[1]
    reviewer = opened.access.reviewer_with_link(ticket)
    assert reviewer is not None
    other, headers = join(opened, Invitation(reviewer, ticket))
    other.post("/case/1/save", json={"answers": {"comment": "=1+1", "familiar-head": "no"}}, headers=headers)
    rows = list(DictReader(io.StringIO(browser.get("/admin/answers.csv").text)))
    assert {(row["question"], row["answer"]) for row in rows} == {("comment", "'=1+1"), ("familiar_head", "no")}
    assert "attachment" in browser.get("/admin/times.csv").headers["content-disposition"]
    assert "<svg" in browser.get("/admin/report.html").text or "–" in browser.get("/admin/report.html").text

    renewed = browser.post(f"/admin/reviewers/{reviewer.id}/renew", data={"form_token": token, "days": "7"})
    assert other.get("/case/1").status_code == 401
    assert client(opened).get(f"/join/{ticket}").status_code == 404
    fresh = re.search(rf'value="{BASE}/join/([^"]+)"', renewed.text)
    assert fresh is not None
    other, _ = join(opened, Invitation(reviewer, fresh[1]))
    assert "no" in other.get("/case/1").text
    browser.post(f"/admin/reviewers/{reviewer.id}/revoke", data={"form_token": token})
    assert other.get("/case/1").status_code == 401
    assert "revoked" in browser.get("/admin").text
    assert browser.post("/admin/reviewers/none/revoke", data={"form_token": token}).status_code == 404

    for name, days in (("Dr <i>A</i>", "7"), ("", "7"), ("Dr B", "x"), ("Dr B", "0")):
        browser.post("/admin/reviewers", data={"form_token": token, "names": name, "days": days})
        assert 'class="problem"' in browser.get("/admin").text
    browser.post("/admin/sign-out", data={"form_token": token})
    assert browser.get("/admin").status_code == 303


def test_forms_need_their_token_and_their_own_site(make_study: Make) -> None:
    opened = make_study(small_study())
    browser, headers = join(opened, opened.access.invite("Dr A"))
    body = {"answers": {"familiar-head": "yes"}}
    for wrong in ({}, {"X-Form-Token": ""}, {"X-Form-Token": "0" * 64}, {"X-Form-Token": "ü".encode()}):
        assert browser.post("/case/1/save", json=body, headers=wrong).status_code == 403
    assert browser.post("/case/1", data={"familiar-head": "yes"}).status_code == 403
    assert browser.post("/leave", data={}).status_code == 403
    for foreign in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        assert browser.post("/case/1/save", json=body, headers={**headers, **foreign}).status_code == 403
    assert opened.answers.all() == []
    same = {**headers, "Origin": BASE, "Sec-Fetch-Site": "same-origin"}
    assert browser.post("/case/1/save", json=body, headers=same).status_code == 200
    manager, token = admin(opened)
    for path in ("reviewers", "sign-out"):
        assert manager.post(f"/admin/{path}", data={"name": "x", "form_token": token[:-1]}).status_code == 403
    no_cookie = client(opened)
    sign_in = {"form_token": token_of(no_cookie.get("/admin/sign-in").text), "password": PASSWORD}
    assert client(opened).post("/admin/sign-in", data=sign_in).status_code == 403


def test_wrong_passwords_are_slowed_down(make_study: Make) -> None:
    opened = make_study(small_study())
    browser = client(opened)
    browser.app.state.attempts = Attempts(most=3)  # type: ignore[attr-defined]
    token = token_of(browser.get("/admin/sign-in").text)
    codes = [
        browser.post("/admin/sign-in", data={"form_token": token, "password": f"guess {n}"}).status_code
        for n in range(4)
    ]
    assert codes == [303] * 3 + [429]
    assert browser.post("/admin/sign-in", data={"form_token": token, "password": PASSWORD}).status_code == 429


@pytest.mark.parametrize("secure", [False, True])
def test_cookies_and_headers(make_study: Make, secure: bool) -> None:
    opened = make_study(small_study())
    invitation = opened.access.invite("Dr A")
    cookies = client(opened, secure=secure).post(f"/join/{invitation.ticket}").headers["set-cookie"]
    name = "__Host-cogstage_reviewer" if secure else "cogstage_reviewer"
    assert cookies.startswith(name + "=")
    flags = {part.strip().lower() for part in cookies.split(";")}
    assert {"httponly", "samesite=strict", "path=/"} <= flags
    assert ("secure" in flags) == secure
    browser, headers = join(opened, invitation, secure=secure)
    answers = [
        browser.get("/"),
        browser.get("/welcome"),
        browser.get("/case/1"),
        browser.get("/case/99"),
        browser.get("/nowhere"),
        browser.get("/static/base.css"),
        browser.get("/static/../study_app.py"),
        browser.get(f"/join/{invitation.ticket}"),
        browser.get("/admin"),
        browser.post("/case/1/save", content=b"x" * 100_000, headers=headers),
        browser.post("/case/1/save", json={"answers": {"x": "y"}}, headers=headers),
    ]
    assert [a.status_code for a in answers] == [303, 200, 200, 404, 404, 200, 404, 200, 303, 413, 400]
    for answer in answers:
        assert answer.headers["content-security-policy"] == CONTENT_POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert "server" not in answer.headers
        if not answer.url.path.startswith("/static/base"):
            assert answer.headers["cache-control"] == "no-store"
    assert "unsafe" not in CONTENT_POLICY
    for answer in answers:
        assert not re.search(r"<script(?![^>]*src=)|\sstyle=|\son\w+=|https?://(?!127\.0\.0\.1)", answer.text)


def test_tls_is_announced_behind_an_https_address(make_study: Make) -> None:
    app = create_study_app(make_study(small_study()), "https://study.example.org")
    browser = TestClient(app)
    assert "max-age" in browser.get("/").headers["strict-transport-security"]
    # a proxy that passes another Host on: the public address counts as our own, no other does
    for origin, code in (("https://study.example.org", 404), ("https://other.example.org", 403)):
        assert browser.post("/join/none.none", headers={"Origin": origin}).status_code == code


def test_user_text_is_never_html(make_study: Make) -> None:
    nasty = '"><img src=x onerror=alert(1)>'
    opened = make_study(small_study(title=nasty))
    browser, headers = join(opened, opened.access.invite(nasty))
    browser.post("/case/1/save", json={"answers": {"comment": "</textarea>" + nasty}}, headers=headers)
    manager, _ = admin(opened)
    pages = [browser.get(path).text for path in ("/welcome", "/case/1", "/finish")]
    pages += [manager.get("/admin").text, manager.get("/admin/report.html").text, client(opened).get("/").text]
    for page in pages:
        assert "<img" not in page
        assert "&lt;img" in page


def test_logs_hold_no_secrets(make_study: Make, caplog: pytest.LogCaptureFixture) -> None:
    opened = make_study(small_study())
    invitation = opened.access.invite("Dr A")
    with caplog.at_level(logging.DEBUG):
        browser, headers = join(opened, invitation)
        browser.post("/case/1/save", json={"answers": {"comment": "confidential"}}, headers=headers)
        browser.get(f"/join/{invitation.ticket}/x?{invitation.ticket}")
        admin(opened)
    cookie = browser.cookies["cogstage_reviewer"]
    ours = "\n".join(r.getMessage() for r in caplog.records if r.name.startswith(("cogstage", "uvicorn", "sqlalchemy")))
    assert "GET /join/*** 200" in ours
    for secret in (invitation.ticket.split(".")[1], cookie.split(".")[1], headers["X-Form-Token"], PASSWORD):
        assert secret not in ours
    assert "confidential" not in ours
    assert "\n" not in loggable("/a\nb\u2028c")


def test_the_unexpected_has_a_page_and_headers_too(make_study: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = make_study(small_study())
    browser = client(opened)
    monkeypatch.setattr(type(opened.answers), "check", lambda self: 1 / 0)
    answer = browser.get("/health")
    assert answer.status_code == 500
    assert "Saved data are not affected" in answer.text
    assert answer.headers["content-security-policy"] == CONTENT_POLICY
    assert browser.get("/health", headers={"Accept": "application/json"}).json()["error"]["code"] == "internal"


def test_a_lost_database_is_503_and_says_nothing_inside(make_study: Make) -> None:
    opened = make_study(small_study())
    browser, _ = join(opened, opened.access.invite("Dr A"))
    with opened.database.writing() as connection:
        connection.exec_driver_sql("ALTER TABLE study RENAME TO elsewhere")
    answer = browser.get("/health")
    assert answer.status_code in (500, 503)
    assert "elsewhere" not in answer.text
    assert "SELECT" not in answer.text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    body=json_values
    | st.fixed_dictionaries(
        {"answers": st.dictionaries(st.sampled_from(["comment", "score-A-0", "compare", "\x00"]), json_values)},
        optional={"visit": json_values, "seconds": json_values},
    ),
)
def test_no_body_breaks_saving(fuzzed: tuple[TestClient, dict[str, str]], body: object) -> None:
    browser, headers = fuzzed
    raw = json.dumps(body).encode()
    answer = browser.post("/case/1/save", content=raw, headers={**headers, "Content-Type": "application/json"})
    assert answer.status_code in (200, 400, 422)


@pytest.fixture
def fuzzed(make_study: Make) -> tuple[TestClient, dict[str, str]]:
    opened = make_study(small_study())
    return join(opened, opened.access.invite("Dr A"))


@pytest.mark.parametrize(
    "path", ["/case/0", "/case/-1", "/case/abc", "/case/99999999999999999999", "/join/%00", "/join/%ff.x", "/%00"]
)
def test_odd_addresses_are_not_found(fuzzed: tuple[TestClient, dict[str, str]], path: str) -> None:
    assert fuzzed[0].get(path).status_code in (404, 422)


def test_health_can_be_asked_often_without_writing_each_time(make_study: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Path] = []
    monkeypatch.setattr("cogstage.web.study_app.check_disk", written.append)
    opened = make_study(small_study())
    browser = TestClient(create_study_app(opened, secure_cookies=False), base_url=BASE)
    paths = ("/health", "/health/ready", "/health/live")
    assert [browser.get(path).text for path in paths * 50] == ["ok\n"] * 150
    assert len(written) <= 1


def test_live_and_ready_are_apart(make_study: Make) -> None:
    opened = make_study(small_study())
    browser = TestClient(create_study_app(opened, secure_cookies=False), base_url=BASE)
    with opened.database.writing() as connection:
        connection.execute(text("DROP TABLE study_answer"))
        connection.execute(text("DELETE FROM study_administrator"))
        connection.execute(text("DELETE FROM study"))
    assert browser.get("/health/live").status_code == 200
    assert browser.get("/health/ready").status_code == 503
