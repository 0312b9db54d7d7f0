"""The administrator's pages: sign in, watch progress, make and revoke links, export."""

from __future__ import annotations

import json
import secrets
from datetime import datetime, timezone
from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import RedirectResponse
from starlette.requests import Request
from starlette.responses import Response

from cogstage.errors import UsageError
from cogstage.study.access import LONGEST_LINK, Invitation
from cogstage.study.export import answers_csv, times_csv
from cogstage.study.report import html
from cogstage.study.results import analyse, judgements
from cogstage.web.base import PageError, page
from cogstage.web.limits import Attempts
from cogstage.web.study_access import (
    ADMINISTRATOR_COOKIE,
    FLASH_COOKIE,
    FORM_FIELD,
    administrator,
    check_token,
    form_fields,
    site_of,
)

router = APIRouter(prefix="/admin")
Token = Annotated[str, Depends(administrator)]
Fields = Annotated[dict[str, str], Depends(form_fields)]
SIGN_IN_COOKIE = "cogstage_sign_in"


@router.get("/sign-in")
def show_sign_in(request: Request, wrong: bool = False) -> Response:
    """The administrator's sign-in page."""
    site, token = site_of(request), secrets.token_urlsafe(24)
    response = page(request, "study/sign_in.html", study=site.opened.study, form_token=token, wrong=wrong)
    site.set_cookie(response, SIGN_IN_COOKIE, token, None)
    return response


@router.post("/sign-in")
def sign_in(request: Request, fields: Fields) -> Response:
    """Check the password."""
    site = site_of(request)
    expected = site.read_cookie(request, SIGN_IN_COOKIE)
    check_token(fields.get(FORM_FIELD, ""), expected or secrets.token_urlsafe(24))
    attempts: Attempts = request.app.state.attempts
    client = request.client.host if request.client else ""
    if not attempts.begin("administrator", client):
        raise PageError(429, "too_many_attempts", "Too many wrong passwords. Please wait ten minutes.")
    if not site.opened.access.is_password(fields.get("password", "")):
        return RedirectResponse("/admin/sign-in?wrong=true", 303)
    attempts.succeeded("administrator", client)
    value, lasts = site.opened.access.open_session(None)
    response = RedirectResponse("/admin", 303)
    site.set_cookie(response, ADMINISTRATOR_COOKIE, value, lasts)
    site.drop_cookie(response, SIGN_IN_COOKIE)
    return response


@router.post("/sign-out")
def sign_out(request: Request, fields: Fields, token: Token) -> Response:
    """End the administrator's session."""
    check_token(fields.get(FORM_FIELD, ""), token)
    site = site_of(request)
    site.opened.access.close_session(site.read_cookie(request, ADMINISTRATOR_COOKIE))
    response = RedirectResponse("/admin/sign-in", 303)
    site.drop_cookie(response, ADMINISTRATOR_COOKIE)
    return response


@router.get("")
def overview(request: Request, token: Token) -> Response:
    """Reviewers, how far they are, the state of their links."""
    site = site_of(request)
    opened = site.opened
    people = [
        {
            "id": person.id,
            "name": person.name,
            "state": person.state(),
            "expires": _day(person.expires_at),
            "progress": progress,
            "last": _moment(progress.last_answer_at),
        }
        for person in opened.access.reviewers()
        for progress in [opened.answers.progress(person.id)]
    ]
    flash = _flash(site.read_cookie(request, FLASH_COOKIE))
    response = page(
        request,
        "study/admin.html",
        study=opened.study,
        form_token=token,
        people=people,
        flash=flash,
        longest_link=LONGEST_LINK,
        repeats=sum(case.repeat_of is not None for case in opened.study.cases),
    )
    if flash:
        site.drop_cookie(response, FLASH_COOKIE)
    return response


@router.post("/reviewers")
def invite(request: Request, fields: Fields, token: Token) -> Response:
    """A new reviewer; the link is shown once."""
    check_token(fields.get(FORM_FIELD, ""), token)
    try:
        return _show_link(request, site_of(request).opened.access.invite(fields.get("name", ""), _days(fields)))
    except UsageError as error:
        return _back(request, {"problem": str(error)})


@router.post("/reviewers/{reviewer_id}/renew")
def renew(request: Request, reviewer_id: str, fields: Fields, token: Token) -> Response:
    """A new link in place of the old one."""
    check_token(fields.get(FORM_FIELD, ""), token)
    person = _known(request, reviewer_id)
    try:
        return _show_link(request, site_of(request).opened.access.renew_link(person, _days(fields)))
    except UsageError as error:
        return _back(request, {"problem": str(error)})


@router.post("/reviewers/{reviewer_id}/revoke")
def revoke(request: Request, reviewer_id: str, fields: Fields, token: Token) -> Response:
    """End a link at once."""
    check_token(fields.get(FORM_FIELD, ""), token)
    site_of(request).opened.access.revoke(_known(request, reviewer_id))
    return RedirectResponse("/admin", 303)


@router.get("/answers.csv")
def download_answers(request: Request, token: Token) -> Response:
    """The raw answers."""
    return _download(answers_csv(site_of(request).opened), "text/csv; charset=utf-8", "answers.csv")


@router.get("/times.csv")
def download_times(request: Request, token: Token) -> Response:
    """The time looked at each case."""
    return _download(times_csv(site_of(request).opened), "text/csv; charset=utf-8", "times.csv")


@router.get("/report.html")
def download_report(request: Request, token: Token) -> Response:
    """The report as it stands, one file."""
    opened = site_of(request).opened
    report = html(analyse(opened.study, judgements(opened)))
    return _download(report, "text/html; charset=utf-8", "report.html")


def _known(request: Request, reviewer_id: str) -> str:
    try:
        return site_of(request).opened.access.reviewer(reviewer_id.replace("\0", "")).id
    except UsageError as error:
        raise PageError(404, "no_such_reviewer", str(error)) from None


def _download(text: str, kind: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Content-Type": kind}
    return Response(text.encode("utf-8"), headers=headers)


def _days(fields: dict[str, str]) -> int:
    try:
        return int(fields.get("days", "30"))
    except ValueError:
        raise UsageError("the days a link lasts are a whole number") from None


def _show_link(request: Request, invitation: Invitation) -> Response:
    """Back to the overview, which shows the link once: it travels in a cookie and is not kept on the server."""
    link = site_of(request).link(request, invitation.ticket)
    return _back(request, {"name": invitation.reviewer.name, "link": link})


def _back(request: Request, flash: dict[str, str]) -> Response:
    response = RedirectResponse("/admin", 303)
    site_of(request).set_cookie(response, FLASH_COOKIE, json.dumps(flash).encode().hex(), 60)
    return response


def _flash(cookie: str) -> dict[str, str]:
    try:
        value = json.loads(bytes.fromhex(cookie))
    except ValueError:
        return {}
    return (
        {key: str(value[key]) for key in ("name", "link", "problem") if key in value} if isinstance(value, dict) else {}
    )


def _moment(at: float | None) -> str:
    return "–" if at is None else datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%d")
