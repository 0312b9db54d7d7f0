"""Administrators by name: two-step sign-in, the end of idle sessions, the log of what they did."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.testclient import TestClient
from study_material import small_study
from study_stores import PASSWORD

from cogstage.cli.main import run
from cogstage.errors import UsageError
from cogstage.study.administrators import IDLE_SECONDS, LONGEST_SESSION
from cogstage.study.folder import OpenStudy
from cogstage.study.protocol import Study
from cogstage.study.secret import time_address, time_code
from cogstage.web.study_app import create_study_app

Make = Callable[[Study], OpenStudy]
OTHER = "another long password"


def browser(opened: OpenStudy, address: str = "9.9.9.9") -> TestClient:
    app = create_study_app(opened, secure_cookies=False, link_base="http://127.0.0.1:8765")
    return TestClient(app, base_url="http://127.0.0.1:8765", follow_redirects=False, client=(address, 5))


def token_of(page: str) -> str:
    form = re.search(r'name="form_token" value="([^"]+)"', page)
    assert form
    return form[1]


def sign_in(client: TestClient, **fields: str) -> str:
    token = token_of(client.get("/admin/sign-in").text)
    answer = client.post("/admin/sign-in", data={"form_token": token, **fields})
    return answer.headers.get("location", str(answer.status_code))


@pytest.mark.parametrize(
    ("moment", "code"),
    [(59, 94287082), (1111111109, 7081804), (1111111111, 14050471), (1234567890, 89005924), (20000000000, 65353130)],
)
def test_codes_are_those_of_rfc_6238(moment: int, code: int) -> None:
    """The examples of its appendix B, whose last six digits are the code of six."""
    secret = base64.b32encode(b"12345678901234567890").decode()
    assert time_code(secret, moment // 30).decode() == f"{code % 10**6:06d}"


def test_the_address_for_an_app_can_be_read_again() -> None:
    parts = urlsplit(time_address("ABC", "Do reasons help: yes/no?", "Ada & Co"))
    assert (parts.scheme, parts.netloc) == ("otpauth", "totp")
    fields = {"secret": ["ABC"], "issuer": ["Do reasons help: yes/no?"], "period": ["30"], "digits": ["6"]}
    assert parse_qs(parts.query) == fields
    assert parts.path == "/Do%20reasons%20help%3A%20yes%2Fno%3F:Ada%20%26%20Co"


def test_a_code_is_asked_for_and_used_once(make_study: Make) -> None:
    opened = make_study(small_study())
    accounts, now = opened.administrators, time.time()
    secret = accounts.set_two_step()
    assert secret

    def code(shift: int) -> str:
        return time_code(secret, int(now // 30) + shift).decode()

    client = browser(opened)
    for wrong in ({}, {"code": "000000"}, {"code": code(-5)}, {"code": code(5)}):
        assert sign_in(client, password=PASSWORD, **wrong) == "/admin/sign-in?wrong=true"
    assert sign_in(client, password="wrong", code=code(0)) == "/admin/sign-in?wrong=true"  # and the code is still good
    assert accounts.is_code(f" {code(0)[:3]} {code(0)[3:]} ", now=now)
    assert not accounts.is_code(code(0), now=now)  # seen over a shoulder
    assert not accounts.is_code(code(-1), now=now)
    assert accounts.is_code(code(1), now=now)
    accounts.set_two_step(required=False)
    assert sign_in(client, password=PASSWORD) == "/admin"


def test_a_session_ends_without_activity(make_study: Make) -> None:
    opened = make_study(small_study())
    accounts, start = opened.administrators, time.time()
    idle, busy = (accounts.open_session()[0] for _ in range(2))
    for passed in range(0, int(LONGEST_SESSION) + 2000, 1000):
        assert (accounts.in_session(idle, by_person=False, now=start + passed) is not None) == (passed < IDLE_SECONDS)
        assert (accounts.in_session(busy, now=start + passed) is not None) == (passed < LONGEST_SESSION)


def test_figures_that_a_page_asks_for_do_not_keep_a_session_open(
    make_study: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = make_study(small_study())
    client = browser(opened)
    assert sign_in(client, password=PASSWORD) == "/admin"
    begun = time.time()
    for minutes, path, status in (
        (20, "/admin", 200),
        (40, "/admin/live", 200),  # 20 minutes after the latest click
        (49, "/admin/live", 200),
        (51, "/admin/live", 303),
        (51, "/admin", 303),
    ):
        monkeypatch.setattr(time, "time", lambda passed=60 * minutes: begun + passed)
        assert client.get(path).status_code == status, minutes


def test_what_administrators_do_is_written_down(make_study: Make) -> None:
    opened = make_study(small_study())
    opened.administrators.set_password(OTHER, "Ada Lovelace")
    client = browser(opened)
    assert sign_in(client, name="Ada Lovelace", password=PASSWORD) == "/admin/sign-in?wrong=true"
    assert sign_in(client, name="Ada Lovelace", password=OTHER) == "/admin"
    page = client.get("/admin").text
    assert "Ada Lovelace" in page
    form = {"form_token": token_of(page)}
    client.post("/admin/reviewers", data={**form, "names": "Dr A\nDr <b>", "days": "3"})
    person = opened.access.reviewers()[0]
    client.post(f"/admin/reviewers/{person.id}/renew", data={**form, "days": "3"})
    client.post(f"/admin/reviewers/{person.id}/revoke", data=form)
    for path in ("answers.csv", "times.csv", "report.html"):
        assert client.get(f"/admin/{path}").status_code == 200
    client.get("/admin/live")
    client.post("/admin/close", data=form)
    client.post("/admin/reopen", data=form)
    client.post("/admin/close", data={"form_token": "foreign"})  # refused, and so not written down
    log = client.get("/admin/activity").text
    client.post("/admin/sign-out", data=form)
    assert client.get("/admin/activity").headers["location"] == "/admin/sign-in"
    expected = [
        "signed in",
        "saw the overview",
        "invited Dr A, Dr <b>",
        "made a new link for Dr A",
        "revoked the link of Dr A",
        "downloaded answers.csv",
        "downloaded times.csv",
        "downloaded report.html",
        "closed the study",
        "reopened the study",
        "saw the log",
        "signed out",
    ]
    entries = opened.administrators.activities()[::-1]
    assert [(entry.who, entry.what) for entry in entries] == [("Ada Lovelace", what) for what in expected]
    assert "Dr &lt;b&gt;" in log
    assert "<b>" not in log


def test_accounts_are_added_changed_and_removed(make_study: Make) -> None:
    opened = make_study(small_study())
    accounts = opened.administrators
    with pytest.raises(UsageError, match="only administrator"):
        accounts.remove("administrator")
    accounts.set_password(OTHER, " Ada  Lovelace ")
    assert accounts.names == ["administrator", "Ada Lovelace"]
    assert accounts.is_password(OTHER, "Ada Lovelace")
    assert not accounts.is_password(PASSWORD, "Ada Lovelace")
    cookies = {name: accounts.open_session(name)[0] for name in accounts.names}
    assert {name: accounts.in_session(cookie) for name, cookie in cookies.items()} == {name: name for name in cookies}
    assert all(opened.access.reviewer_in_session(cookie) is None for cookie in cookies.values())
    accounts.set_password("a third password", "Ada Lovelace")
    assert accounts.in_session(cookies["Ada Lovelace"]) is None
    assert accounts.in_session(cookies["administrator"]) == "administrator"
    accounts.remove("administrator")
    assert accounts.in_session(cookies["administrator"]) is None
    assert not accounts.is_password(PASSWORD)
    for name in ("", " ", "a\0b", "x" * 201):
        with pytest.raises(UsageError, match="needs a name"):
            accounts.set_password(OTHER, name)
    with pytest.raises(UsageError, match="at least 10"):
        accounts.set_password("short")
    with pytest.raises(UsageError, match="no administrator named"):
        accounts.set_two_step("nobody")
    for wrong in ("", ".", "a.b", "\0.\0", "\ud800.x", cookies["administrator"] + "x"):
        assert accounts.in_session(wrong) is None


def test_made_up_names_do_not_go_round_the_limit(make_study: Make) -> None:
    opened = make_study(small_study())
    client = browser(opened)
    answers = [sign_in(client, name=f"nobody {n}", password="wrong") for n in range(12)]
    assert answers == ["/admin/sign-in?wrong=true"] * 10 + ["429"] * 2
    assert sign_in(client, password=PASSWORD) == "/admin"
    for name in ("\0", "x" * 60_000, "\ud7ff", "' OR 1=1 --"):
        assert sign_in(browser(opened, "8.8.8.8"), name=name, password=PASSWORD) != "/admin"


def test_the_command_line_adds_one_with_two_steps(
    make_study: Make, capsys: pytest.CaptureFixture[str], database_url: str | None, tmp_path: object
) -> None:
    opened = make_study(small_study())
    words = ["study", "admin-password", f"{tmp_path}/study0", "--name", "Ada"]
    words += ["--database", database_url] if database_url else []

    def cogstage(*more: str) -> str:
        with pytest.raises(SystemExit) as ended:
            run([*words, *more])
        assert not ended.value.code
        return capsys.readouterr().out

    out = cogstage("--generate", "--two-step")
    password, secret = re.search(r"Password of Ada: (\S+)", out), re.search(r"shown only now\): (\S+)", out)
    assert password
    assert secret
    assert opened.administrators.is_password(password[1], "Ada")
    assert not opened.administrators.is_code("", "Ada")
    assert opened.administrators.is_code(time_code(secret[1], int(time.time() // 30)).decode(), "Ada")
    cogstage("--one-step")
    assert opened.administrators.is_code("", "Ada")
    assert opened.administrators.is_password(password[1], "Ada")
    cogstage("--remove")
    assert opened.administrators.names == ["administrator"]
    assert {entry.who for entry in opened.administrators.activities()} == {"command line"}
