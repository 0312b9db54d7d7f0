"""The administrator's view of single cases: answers, comments, disagreements and decisions."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import RedirectResponse
from starlette.requests import Request
from starlette.responses import Response

from cogstage.errors import UsageError
from cogstage.study.adjudication import case_overviews, decide, decisions_csv
from cogstage.web.base import PageError, page
from cogstage.web.study_access import FORM_FIELD, check_token, record, site_of
from cogstage.web.study_admin import Fields, Token, download

router = APIRouter(prefix="/admin")


@router.get("/cases")
def show_cases(request: Request, token: Token) -> Response:
    """All cases with the number of answers, disagreements and comments."""
    opened = site_of(request).opened
    return page(request, "study/cases.html", study=opened.study, cases=case_overviews(opened))


@router.get("/cases/{key}")
def show_case(request: Request, key: str, token: Token) -> Response:
    """One case with the answers of all reviewers, and the forms to decide."""
    opened = site_of(request).opened
    overview = next((one for one in case_overviews(opened) if one.case.key == key), None)
    if overview is None:
        raise PageError(404, "no_such_case", "This case does not exist.")
    return page(request, "study/case_answers.html", study=opened.study, overview=overview, form_token=token)


@router.post("/cases/{key}")
def decide_question(request: Request, key: str, fields: Fields, token: Token) -> Response:
    """Keep what was decided on one question."""
    check_token(fields.get(FORM_FIELD, ""), token)
    number = fields.get("question", "")
    if not (number.isascii() and number.isdecimal() and len(number) < 4):
        raise UsageError("there is no such question")
    decide(site_of(request).opened, key, int(number), fields.get("value", ""), fields.get("note", ""))
    record(request, f"decided question {int(number) + 1} of case {key}")
    return RedirectResponse(f"/admin/cases/{key}", 303)


@router.get("/decisions.csv")
def download_decisions(request: Request, token: Token) -> Response:
    """All decisions."""
    return download(request, decisions_csv(site_of(request).opened), "text/csv; charset=utf-8", "decisions.csv")
