"""The reviewer's pages: the personal link, the explanation, the cases, the end."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse, RedirectResponse
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from cogstage.study.access import Reviewer
from cogstage.study.blind import FAMILIARITY, LONGEST_COMMENT, SAME, SCORES, TRUST, BlindForm
from cogstage.web.base import PageError, page
from cogstage.web.study_access import (
    FORM_FIELD,
    FORM_HEADER,
    REVIEWER_COOKIE,
    SignedIn,
    check_token,
    form_fields,
    signed_in,
    site_of,
)

router = APIRouter()
Person = Annotated[SignedIn, Depends(signed_in)]
Fields = Annotated[dict[str, str], Depends(form_fields)]
CONTROLS = frozenset({FORM_FIELD, "visit", "seconds", "go"})  # fields of a case's form that are no answers


class Save(BaseModel):
    """What the page sends on every click."""

    answers: dict[str, str] = Field(default_factory=dict, max_length=200)
    visit: str = Field("", max_length=64)
    seconds: float = Field(0.0, ge=0, le=1e7, allow_inf_nan=False)


@router.get("/")
def front(request: Request) -> Response:
    """Signed-in reviewers go on where they were; others read that they need a link."""
    site = site_of(request)
    cookie = site.read_cookie(request, REVIEWER_COOKIE)
    if cookie and site.opened.access.reviewer_in_session(cookie) is not None:
        return RedirectResponse("/welcome", 303)
    return page(request, "study/front.html", study=site.opened.study)


@router.get("/join/{ticket}")
def show_link(request: Request, ticket: str) -> Response:
    """The personal link: greets and offers to begin. Nothing changes yet, so that mail scanners do no harm."""
    person = _holder(request, ticket)
    return page(request, "study/join.html", study=site_of(request).opened.study, person=person, ticket=ticket)


@router.post("/join/{ticket}")
def sign_in(request: Request, ticket: str) -> Response:
    """Sign in with the personal link."""
    site, person = site_of(request), _holder(request, ticket)
    value, lasts = site.opened.access.open_session(person)
    response = RedirectResponse("/welcome", 303)
    site.set_cookie(response, REVIEWER_COOKIE, value, lasts)
    return response


def _holder(request: Request, ticket: str) -> Reviewer:
    person = site_of(request).opened.access.reviewer_with_link(ticket)
    if person is None:
        raise PageError(
            404,
            "unknown_link",
            "This link is not valid, or not valid any more. Please ask the person who sent it for a new one.",
        )
    return person


@router.get("/welcome")
def welcome(request: Request, who: Person) -> Response:
    """What the study asks, in plain words, with a worked example."""
    opened = site_of(request).opened
    progress = opened.answers.progress(who.person.id)
    return page(request, "study/welcome.html", study=opened.study, who=who, progress=progress, scores=SCORES)


@router.get("/case/{position}")
def show_case(request: Request, position: int, who: Person) -> Response:
    """A case with the answers given so far."""
    opened = site_of(request).opened
    form = _form(request, who, position)
    stored = opened.answers.of_case(who.person.id, form.case.key)
    return page(
        request,
        "study/case.html",
        study=opened.study,
        who=who,
        form=form,
        position=position,
        progress=opened.answers.progress(who.person.id),
        given=form.to_fields(stored),
        visit=opened.answers.open_visit(who.person.id, form.case.key),
        familiarity=FAMILIARITY,
        scores=SCORES,
        score_keys=[(score, score) for score in SCORES],
        places=[(str(n), str(n)) for n in range(1, len(form.sets) + 1)],
        trust=TRUST,
        same=SAME,
        longest_comment=LONGEST_COMMENT,
    )


@router.post("/case/{position}/save")
def save_click(request: Request, position: int, body: Save, who: Person) -> Response:
    """Save what was clicked; the answer comes when it is on disk."""
    check_token(request.headers.get(FORM_HEADER, ""), who.token)
    form = _form(request, who, position)
    _store(request, who, form, body.answers, body.visit, body.seconds)
    progress = site_of(request).opened.answers.progress(who.person.id)
    complete = progress.complete[position - 1]
    return JSONResponse({"saved": sorted(body.answers), "complete": complete, "done": progress.done})


@router.post("/case/{position}")
def save_form(request: Request, position: int, fields: Fields, who: Person) -> Response:
    """Save the whole form, which is how it works without scripts too, and go where the button says."""
    check_token(fields.get(FORM_FIELD, ""), who.token)
    form = _form(request, who, position)
    try:
        seconds = float(fields.get("seconds") or "nan")
    except ValueError:
        seconds = float("nan")
    answers = {name: value for name, value in fields.items() if name not in CONTROLS}
    looked = seconds if seconds == seconds else None
    _store(request, who, form, answers, fields.get("visit", ""), looked)
    last = len(form.study.cases)
    target = {"previous": position - 1, "next": position + 1}.get(fields.get("go", ""), position)
    if target > last:
        return RedirectResponse("/finish", 303)
    return RedirectResponse(f"/case/{max(1, target)}" if target >= 1 else "/welcome", 303)


@router.get("/finish")
def finish(request: Request, who: Person) -> Response:
    """Thanks, or the cases in which something is missing."""
    opened = site_of(request).opened
    progress = opened.answers.progress(who.person.id)
    return page(request, "study/finish.html", study=opened.study, who=who, progress=progress)


@router.post("/leave")
def leave(request: Request, fields: Fields, who: Person) -> Response:
    """Sign out on this device; the link and the answers stay."""
    check_token(fields.get(FORM_FIELD, ""), who.token)
    site = site_of(request)
    site.opened.access.close_session(site.read_cookie(request, REVIEWER_COOKIE))
    response = RedirectResponse("/", 303)
    site.drop_cookie(response, REVIEWER_COOKIE)
    return response


def _form(request: Request, who: SignedIn, position: int) -> BlindForm:
    form = site_of(request).opened.answers.form(who.person.id, position) if 0 < position < 100_000 else None
    if form is None:
        raise PageError(404, "no_such_case", "There is no such case.")
    return form


def _store(
    request: Request, who: SignedIn, form: BlindForm, answers: dict[str, str], visit: str, seconds: float | None
) -> None:
    items: dict[str, str] = {}
    for field, value in answers.items():
        items.update(form.to_items(field, value))
    stored = site_of(request).opened.answers
    if items.get("comment") == "" and "comment" not in stored.of_case(who.person.id, form.case.key):
        del items["comment"]  # a box that was never written into is no answer
    stored.save(who.person.id, form.case.key, items)
    if visit:
        stored.record_time(who.person.id, form.case.key, visit, seconds)
