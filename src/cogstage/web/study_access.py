"""Sessions of reviewers and the administrator: cookies and CSRF tokens."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from cogstage.errors import UsageError
from cogstage.study.access import Reviewer
from cogstage.study.folder import OpenStudy
from cogstage.study.secret import form_token
from cogstage.web.base import PageError

REVIEWER_COOKIE = "cogstage_reviewer"
ADMINISTRATOR_COOKIE = "cogstage_administrator"
FLASH_COOKIE = "cogstage_flash"
LIVE_PATH = "/admin/live"
FORM_FIELD = "form_token"
FORM_HEADER = "x-form-token"


@dataclass(frozen=True)
class StudySite:
    """What the study's pages need: the study, the address that links begin with, and whether cookies demand TLS."""

    opened: OpenStudy
    link_base: str | None
    secure_cookies: bool

    def cookie_name(self, name: str) -> str:
        """With TLS the name binds the cookie to this very host."""
        return f"__Host-{name}" if self.secure_cookies else name

    def read_cookie(self, request: Request, name: str) -> str:
        """A cookie's value, empty without one."""
        return request.cookies.get(self.cookie_name(name), "")

    def set_cookie(self, response: Response, name: str, value: str, lasts: float | None) -> None:
        """A cookie that scripts cannot read and other sites cannot make a browser send."""
        response.set_cookie(
            self.cookie_name(name),
            value,
            max_age=None if lasts is None else int(lasts),
            path="/",
            secure=self.secure_cookies,
            httponly=True,
            samesite="strict",
        )

    def drop_cookie(self, response: Response, name: str) -> None:
        """Make the browser forget a cookie."""
        response.delete_cookie(
            self.cookie_name(name), path="/", secure=self.secure_cookies, httponly=True, samesite="strict"
        )

    def link(self, ticket: str) -> str:
        """The personal link behind a ticket. The request's own Host is not asked: whoever sent it chose it."""
        self.check_links()
        return f"{self.link_base}/join/{ticket}"

    def check_links(self) -> None:
        """Raise unless links can be made."""
        if self.link_base is None:
            raise UsageError("links need a public address; start the server with one (`url`)")


@dataclass(frozen=True)
class SignedIn:
    """A reviewer with the CSRF token of their session."""

    person: Reviewer
    token: str

    @property
    def storage_key(self) -> str:
        """Names the part of the browser's storage that holds this reviewer's unsent answers, on any session."""
        return hashlib.sha256(f"shelf {self.person.id}".encode()).hexdigest()[:16]


def site_of(request: Request) -> StudySite:
    """The site that the application serves."""
    site = request.app.state.site
    assert isinstance(site, StudySite)
    return site


def signed_in(request: Request) -> SignedIn:
    """The reviewer of this request, or 401."""
    site = site_of(request)
    cookie = site.read_cookie(request, REVIEWER_COOKIE)
    person = site.opened.access.reviewer_in_session(cookie) if cookie else None
    if person is None:
        raise PageError(401, "not_signed_in", "You are not signed in. Please open your personal link again.")
    return SignedIn(person, form_token(cookie))


class NotAdministrator(Exception):
    """The administrator's pages were asked for without the administrator's session."""


def administrator(request: Request) -> str:
    """The CSRF token of an administrator's session; without one, the way to the sign-in page.

    The pages' own requests for new figures do not count as activity: an idle session ends.
    """
    site = site_of(request)
    cookie = site.read_cookie(request, ADMINISTRATOR_COOKIE)
    by_person = request.url.path != LIVE_PATH
    name = site.opened.administrators.in_session(cookie, by_person) if cookie else None
    if name is None:
        raise NotAdministrator
    request.state.administrator = name
    return form_token(cookie)


def record(request: Request, what: str) -> None:
    """Add to the log what the administrator of this request did."""
    site_of(request).opened.administrators.record(request.state.administrator, what)


async def form_fields(request: Request) -> dict[str, str]:
    """The fields of a posted form (the last one where a name stands twice)."""
    try:
        body = (await request.body()).decode("utf-8")
        return dict(parse_qsl(body, keep_blank_values=True, max_num_fields=500, errors="strict"))
    except ValueError:
        raise PageError(400, "bad_form", "The form could not be understood.") from None


def check_token(given: str, expected: str) -> None:
    """Raise unless the CSRF token is that of the session."""
    if not hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode()):
        raise PageError(
            403,
            "form_token",
            "The form has expired or comes from another site. Go back, reload the page and try again.",
        )
