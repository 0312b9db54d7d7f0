"""The administrator's pages: sign in, watch progress, make and revoke links, export."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import RedirectResponse
from starlette.requests import Request
from starlette.responses import Response

from cogstage.errors import UsageError
from cogstage.study.access import LONGEST_LINK, Invitation
from cogstage.study.administrators import FIRST
from cogstage.study.export import answers_csv, times_csv
from cogstage.study.monitor import watch
from cogstage.study.report import html_report
from cogstage.web.base import PageError, page
from cogstage.web.security import Attempts
from cogstage.web.study_access import (
    ADMINISTRATOR_COOKIE,
    FLASH_COOKIE,
    FORM_FIELD,
    administrator,
    check_token,
    form_fields,
    record,
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
    """Check name, password and code."""
    site = site_of(request)
    expected = site.read_cookie(request, SIGN_IN_COOKIE)
    check_token(fields.get(FORM_FIELD, ""), expected or secrets.token_urlsafe(24))
    attempts: Attempts = request.app.state.attempts
    client = request.client.host if request.client else ""
    accounts, name = site.opened.administrators, fields.get("name", FIRST).strip()
    account = name if name in accounts.names else ""  # all names that nobody has count as one
    if not attempts.begin(account, client):
        raise PageError(429, "too_many_attempts", "Too many wrong passwords. Please wait ten minutes.")
    if not (accounts.is_password(fields.get("password", ""), name) and accounts.is_code(fields.get("code", ""), name)):
        return RedirectResponse("/admin/sign-in?wrong=true", 303)
    attempts.succeeded(account, client)
    value, lasts = accounts.open_session(name)
    accounts.record(name, "signed in")
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
    record(request, "signed out")
    response = RedirectResponse("/admin/sign-in", 303)
    site.drop_cookie(response, ADMINISTRATOR_COOKIE)
    return response


@router.get("")
def overview(request: Request, token: Token) -> Response:
    """Reviewers, how far they are, the state of their links; nothing that tells which set is whose."""
    site = site_of(request)
    opened = site.opened
    people = [
        {"id": person.id, "name": person.name, "state": person.state(), "expires": _day(person.expires_at)}
        for person in opened.access.reviewers()
    ]
    problem = _flash(site.read_cookie(request, FLASH_COOKIE), token)
    response = page(
        request,
        "study/admin.html",
        study=opened.study,
        form_token=token,
        people=people,
        problem=problem,
        live=watch(opened),
        moment=_moment,
        closed_at=opened.answers.closed_at,
        longest_link=LONGEST_LINK,
        repeats=sum(case.repeat_of is not None for case in opened.study.cases),
        name=request.state.administrator,
    )
    record(request, "saw the overview")
    if problem:
        site.drop_cookie(response, FLASH_COOKIE)
    return response


@router.get("/live")
def live(request: Request, token: Token) -> Response:
    """The figures of the overview that change while people answer."""
    opened = site_of(request).opened
    return page(request, "study/_live.html", study=opened.study, live=watch(opened), moment=_moment)


@router.post("/close")
def close(request: Request, fields: Fields, token: Token) -> Response:
    """Close the study to new answers."""
    check_token(fields.get(FORM_FIELD, ""), token)
    site_of(request).opened.answers.close()
    record(request, "closed the study")
    return RedirectResponse("/admin", 303)


@router.post("/reopen")
def reopen(request: Request, fields: Fields, token: Token) -> Response:
    """Open the study to answers again."""
    check_token(fields.get(FORM_FIELD, ""), token)
    site_of(request).opened.answers.reopen()
    record(request, "reopened the study")
    return RedirectResponse("/admin", 303)


@router.post("/reviewers")
def invite(request: Request, fields: Fields, token: Token) -> Response:
    """New reviewers, one name per line; the links are shown once."""
    check_token(fields.get(FORM_FIELD, ""), token)
    site = site_of(request)
    try:
        site.check_links()
        names = [name for name in fields.get("names", "").splitlines() if name.strip()]
        invitations = site.opened.access.invite_all(names, _days(fields))
        record(request, f"invited {', '.join(entry.reviewer.name for entry in invitations)}")
        return _show_links(request, invitations)
    except UsageError as error:
        return _back(request, str(error), token)


@router.post("/reviewers/{reviewer_id}/renew")
def renew(request: Request, reviewer_id: str, fields: Fields, token: Token) -> Response:
    """A new link in place of the old one."""
    check_token(fields.get(FORM_FIELD, ""), token)
    site, person = site_of(request), _known(request, reviewer_id)
    try:
        site.check_links()
        invitation = site.opened.access.renew_link(person, _days(fields))
        record(request, f"made a new link for {invitation.reviewer.name}")
        return _show_links(request, [invitation])
    except UsageError as error:
        return _back(request, str(error), token)


@router.post("/reviewers/{reviewer_id}/revoke")
def revoke(request: Request, reviewer_id: str, fields: Fields, token: Token) -> Response:
    """End a link at once."""
    check_token(fields.get(FORM_FIELD, ""), token)
    access, identifier = site_of(request).opened.access, _known(request, reviewer_id)
    access.revoke(identifier)
    record(request, f"revoked the link of {access.reviewer(identifier).name}")
    return RedirectResponse("/admin", 303)


@router.get("/answers.csv")
def download_answers(request: Request, token: Token) -> Response:
    """One row per answer as CSV, with the source of each set: unblinded."""
    return _download(request, answers_csv(site_of(request).opened), "text/csv; charset=utf-8", "answers.csv")


@router.get("/times.csv")
def download_times(request: Request, token: Token) -> Response:
    """The time looked at each case."""
    return _download(request, times_csv(site_of(request).opened), "text/csv; charset=utf-8", "times.csv")


@router.get("/report.html")
def download_report(request: Request, token: Token) -> Response:
    """The report as it stands, one file."""
    report = html_report(site_of(request).opened)
    return _download(request, report, "text/html; charset=utf-8", "report.html")


@router.get("/activity")
def show_activity(request: Request, token: Token) -> Response:
    """What the administrators did, latest first."""
    opened = site_of(request).opened
    record(request, "saw the log")
    entries = opened.administrators.activities()
    return page(
        request,
        "study/activity.html",
        study=opened.study,
        form_token=token,
        entries=entries,
        moment=_moment,
        name=request.state.administrator,
    )


def _known(request: Request, reviewer_id: str) -> str:
    try:
        return site_of(request).opened.access.reviewer(reviewer_id.replace("\0", "")).id
    except UsageError as error:
        raise PageError(404, "no_such_reviewer", str(error)) from None


def _download(request: Request, text: str, kind: str, name: str) -> Response:
    record(request, f"downloaded {name}")
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Content-Type": kind}
    return Response(text.encode("utf-8"), headers=headers)


def _days(fields: dict[str, str]) -> int:
    try:
        return int(fields.get("days", "30"))
    except ValueError:
        raise UsageError("the number of days must be a whole number") from None


def _show_links(request: Request, invitations: Sequence[Invitation]) -> Response:
    """The links, this once: they are not kept on the server. Sent again, the form finds the names taken."""
    site = site_of(request)
    links = [(entry.reviewer.name, site.link(entry.ticket)) for entry in invitations]
    return page(request, "study/links.html", study=site.opened.study, links=links)


def _back(request: Request, problem: str, token: str) -> Response:
    response = RedirectResponse("/admin", 303)
    text = problem[:400].encode("utf-8", "replace")
    site_of(request).set_cookie(response, FLASH_COOKIE, f"{text.hex()}.{_signature(text, token)}", 60)
    return response


def _flash(cookie: str, token: str) -> str:
    """What the last step had to say; a cookie that this server did not write for this session is refused."""
    if not cookie:
        return ""
    written, _, signature = cookie.partition(".")
    try:
        text = bytes.fromhex(written)
        if hmac.compare_digest(signature.encode("utf-8", "replace"), _signature(text, token).encode()):
            return text.decode("utf-8", "replace")
    except ValueError:
        pass
    raise PageError(400, "bad_cookie", f"The cookie {FLASH_COOKIE} was not set by this server. Please delete it.")


def _signature(text: bytes, token: str) -> str:
    return hmac.new(token.encode(), b"flash " + text, hashlib.sha256).hexdigest()


def _moment(at: float | None) -> str:
    return "–" if at is None else datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%d")
