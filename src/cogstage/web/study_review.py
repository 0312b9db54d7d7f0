"""The reviewer's pages: the personal link, the explanation, the cases, the end."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse, RedirectResponse
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from cogstage.errors import UsageError
from cogstage.study.access import Reviewer
from cogstage.study.answers import StudyClosed
from cogstage.study.blind import (
    CANNOT_JUDGE,
    CONFIDENCE,
    FAMILIARITY,
    LONGEST_COMMENT,
    SAME,
    SCORES,
    TRUST,
    VERDICT,
    BlindForm,
)
from cogstage.study.practice import practice_form
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
Button = tuple[str, str, str]  # value, text, key
NO_ANSWER: Button = (CANNOT_JUDGE, "N", "N")
SCORE_KEYS: list[Button] = [(score, score, score) for score in SCORES if score != CANNOT_JUDGE] + [NO_ANSWER]


class NotIntroduced(Exception):
    """The reviewer has not agreed to take part yet."""


def introduced(who: Person) -> SignedIn:
    """A reviewer who has begun, or the way to the page where one begins."""
    if who.person.consented_at is None:
        raise NotIntroduced
    return who


Introduced = Annotated[SignedIn, Depends(introduced)]


class AnswerUpdate(BaseModel):
    """What the page sends on every click."""

    answers: dict[str, str] = Field(default_factory=dict, max_length=200)
    visit: str = Field("", max_length=200)
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
    response = RedirectResponse("/welcome" if person.consented_at is not None else "/start", 303)
    site.set_cookie(response, REVIEWER_COOKIE, value, lasts)
    return response


def _holder(request: Request, ticket: str) -> Reviewer:
    person = site_of(request).opened.access.reviewer_with_link(ticket)
    if person is None:
        raise PageError(
            404,
            "unknown_link",
            "This link is invalid or has expired. Please ask the person who sent it for a new one.",
        )
    return person


@router.get("/start")
def show_start(request: Request, who: Person) -> Response:
    """What a reviewer agrees to, and what they may say of themselves."""
    return _start_page(request, who)


def _start_page(request: Request, who: SignedIn, problem: str = "") -> Response:
    answers = site_of(request).opened.answers
    return page(
        request,
        "study/start.html",
        study=site_of(request).opened.study,
        who=who,
        progress=answers.progress(who.person.id),
        minutes=answers.minutes_left(who.person.id),
        problem=problem,
    )


@router.post("/start")
def start(request: Request, fields: Fields, who: Person) -> Response:
    """Keep the agreement and the profile."""
    check_token(fields.get(FORM_FIELD, ""), who.token)
    opened = site_of(request).opened
    if opened.study.consent and fields.get("agree") != "yes":
        return _start_page(request, who, "Please agree to take part, or close this page.")
    try:
        opened.access.introduce(who.person.id, fields.get("specialty", ""), fields.get("years", ""))
    except UsageError as error:
        return _start_page(request, who, str(error))
    return RedirectResponse("/welcome", 303)


@router.get("/welcome")
def welcome(request: Request, who: Introduced) -> Response:
    """What the study asks, in plain words, with a worked example."""
    opened = site_of(request).opened
    if opened.answers.closed_at is not None:
        return page(request, "study/closed.html", study=opened.study, who=who)
    return page(
        request,
        "study/welcome.html",
        study=opened.study,
        who=who,
        progress=opened.answers.progress(who.person.id),
        minutes=opened.answers.minutes_left(who.person.id),
        scores=SCORES,
        score_keys=SCORE_KEYS,
    )


@router.get("/practice")
def practise(request: Request, who: Introduced) -> Response:
    """A case whose answers go nowhere."""
    return _case_page(request, who, practice_form(site_of(request).opened.study), practice=True)


@router.post("/practice")
def practised(request: Request, who: Introduced) -> Response:
    """On to the first open case."""
    position = site_of(request).opened.answers.progress(who.person.id).next_open
    return RedirectResponse(f"/case/{position}" if position else "/finish", 303)


@router.get("/case/{position}")
def show_case(request: Request, position: int, who: Introduced, unanswered: bool = False) -> Response:
    """A case with the answers given so far; ``unanswered`` marks what is missing."""
    opened = site_of(request).opened
    form = _form(request, who, position)
    if opened.answers.closed_at is not None:
        return page(request, "study/closed.html", 409, study=opened.study, who=who)
    stored = opened.answers.of_case(who.person.id, form.case.key)
    return _case_page(
        request,
        who,
        form,
        position=position,
        progress=opened.answers.progress(who.person.id),
        given=form.to_fields(stored),
        visit=opened.answers.new_visit(who.person.id, form.case.key),
        minutes=opened.answers.minutes_left(who.person.id),
        unanswered=form.missing(stored) if unanswered else (),
    )


def _case_page(request: Request, who: SignedIn, form: BlindForm, **more: Any) -> Response:
    letters = [entry.letter for entry in form.sets]
    compare = [
        ("A", "Set A", "1"),
        (SAME, "Both the same", "2"),
        ("B", "Set B", "3"),
        (CANNOT_JUDGE, "Cannot judge", "N"),
    ]
    keys = {
        "familiarity": _keys(FAMILIARITY),
        "scores": SCORE_KEYS,
        "compare": compare,
        "ranks": [*((str(n), str(n), str(n)) for n in range(1, len(letters) + 1)), NO_ANSWER],
        "trust": _keys(TRUST),
        "verdict": _keys(VERDICT),
        "confidence": _keys(CONFIDENCE),
    }
    context: dict[str, Any] = {
        "study": form.study,
        "who": who,
        "form": form,
        "keys": keys,
        "scores": SCORES,
        "longest_comment": LONGEST_COMMENT,
        "practice": False,
        "given": {},
        "visit": "",
        "unanswered": (),
    }
    return page(request, "study/case.html", **(context | more))


def _keys(answers: dict[str, str]) -> list[Button]:
    """Digits as keys: the value itself where it is one, else the position in the row, from 1."""
    return [
        (value, text, value if value.isdecimal() else str(position))
        for position, (value, text) in enumerate(answers.items(), 1)
    ]


@router.post("/case/{position}/save")
def save_click(request: Request, position: int, body: AnswerUpdate, who: Introduced) -> Response:
    """Save what was clicked; the answer comes when it is on disk."""
    check_token(request.headers.get(FORM_HEADER, ""), who.token)
    form = _form(request, who, position)
    _store(request, who, form, body.answers, body.visit, body.seconds)
    progress = site_of(request).opened.answers.progress(who.person.id)
    complete = progress.complete[position - 1]
    return JSONResponse({"saved": sorted(body.answers), "complete": complete, "done": progress.done})


@router.post("/case/{position}")
def save_form(request: Request, position: int, fields: Fields, who: Introduced) -> Response:
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
    last, go = len(form.study.cases), fields.get("go", "")
    if go == "next" and form.missing(site_of(request).opened.answers.of_case(who.person.id, form.case.key)):
        return RedirectResponse(f"/case/{position}?unanswered=true", 303)
    target = {"previous": position - 1, "next": position + 1, "skip": position + 1}.get(go, position)
    if target > last:
        return RedirectResponse("/finish", 303)
    return RedirectResponse(f"/case/{max(1, target)}" if target >= 1 else "/welcome", 303)


@router.get("/finish")
def finish(request: Request, who: Introduced) -> Response:
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
        raise PageError(404, "no_such_case", "This case does not exist.")
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
    if stored.closed_at is not None:
        raise StudyClosed("the study is closed")
    stored.save(who.person.id, form.case.key, items)
    if visit:
        stored.record_time(who.person.id, form.case.key, visit, seconds)
