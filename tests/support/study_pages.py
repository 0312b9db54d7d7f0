"""Browsers of reviewers and administrator, without a browser: what the tests of the study's pages share."""

from __future__ import annotations

import re
from collections.abc import Callable

from starlette.testclient import TestClient
from study_stores import PASSWORD

from cogstage.study.access import Invitation
from cogstage.study.folder import OpenStudy
from cogstage.study.protocol import Study
from cogstage.web.study_app import create_study_app

Make = Callable[[Study], OpenStudy]
BASE = "http://127.0.0.1:8765"


def client(opened: OpenStudy, **options: bool) -> TestClient:
    app = create_study_app(opened, secure_cookies=options.get("secure", False), link_base=BASE)
    scheme = "https" if options.get("secure") else "http"
    return TestClient(app, base_url=f"{scheme}://127.0.0.1:8765", follow_redirects=False)


def token_of(page: str) -> str:
    found = re.search(r'name="form_token" value="([^"]+)"', page)
    assert found is not None
    return found[1]


def join(opened: OpenStudy, invitation: Invitation, **options: bool) -> tuple[TestClient, dict[str, str]]:
    """A reviewer's browser, signed in, with the header that its script sends."""
    browser = client(opened, **options)
    assert browser.get(f"/join/{invitation.ticket}").status_code == 200
    where = browser.post(f"/join/{invitation.ticket}").headers["location"]
    if where == "/start":
        begun = {"form_token": token_of(browser.get("/start").text), "agree": "yes", "specialty": "", "years": ""}
        where = browser.post("/start", data=begun).headers["location"]
    assert where == "/welcome" or where.startswith("/case/")  # where they stopped
    return browser, {"X-Form-Token": token_of(browser.get("/case/1").text)}


def admin(opened: OpenStudy) -> tuple[TestClient, str]:
    browser = client(opened)
    token = token_of(browser.get("/admin/sign-in").text)
    done = browser.post("/admin/sign-in", data={"form_token": token, "password": PASSWORD})
    assert done.headers["location"] == "/admin"
    return browser, token_of(browser.get("/admin").text)
