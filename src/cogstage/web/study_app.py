"""The study as a web application."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import RedirectResponse
from starlette.requests import Request
from starlette.responses import Response

from cogstage.study.answers import StudyClosed
from cogstage.study.folder import OpenStudy
from cogstage.web import study_admin, study_cases, study_review
from cogstage.web.base import RecentCheck, add_health, check_disk, create_app, error_answer, wants_json
from cogstage.web.security import Attempts, HostAccess
from cogstage.web.study_access import NotAdministrator, StudySite


def create_study_app(
    opened: OpenStudy,
    public_url: str | None = None,
    secure_cookies: bool = True,
    access: HostAccess | None = None,
    link_base: str | None = None,
) -> FastAPI:
    """Reviewer's and administrator's pages of one study.

    ``public_url`` is the address that reviewers use and begins their personal links. Without it links begin with
    ``link_base``; without either, none can be made.
    """
    app = create_app(opened.study.title, public_url=public_url, access=access)
    app.state.site = StudySite(opened, (public_url or link_base or "").rstrip("/") or None, secure_cookies)
    app.state.attempts = Attempts()
    app.include_router(study_review.router)
    app.include_router(study_admin.router)
    app.include_router(study_cases.router)
    check = RecentCheck(lambda: check_storage(opened))
    add_health(app, check)
    app.add_exception_handler(NotAdministrator, _to_sign_in)
    app.add_exception_handler(study_review.NotIntroduced, _to_start)
    app.add_exception_handler(StudyClosed, _closed)
    return app


def check_storage(opened: OpenStudy) -> None:
    """Raise unless the database answers and there is space on its disk."""
    opened.answers.check()
    url = opened.database.engine.url
    if url.get_backend_name() == "sqlite" and url.database:
        check_disk(Path(url.database).parent)


def _to_start(request: Request, error: Exception) -> Response:
    if wants_json(request) or request.method != "GET":
        return error_answer(request, 403, "not_introduced", "Please agree to take part first.")
    return RedirectResponse("/start", 303)


def _closed(request: Request, error: Exception) -> Response:
    return error_answer(request, 409, "closed", "The study is closed. Your saved answers are kept.")


def _to_sign_in(request: Request, error: Exception) -> Response:
    if wants_json(request) or request.method != "GET":
        return error_answer(request, 401, "not_administrator", "Please sign in as administrator.")
    return RedirectResponse("/admin/sign-in", 303)
