"""The page of the team's corrections: list, download, and adding to them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response

from cogstage.errors import CogstageError, UsageError
from cogstage.rationale.corrections import WITHDRAWN
from cogstage.relations import phrase
from cogstage.web.asked import code_of, triple_of
from cogstage.web.base import PageError
from cogstage.web.discover_pages import posted_fields
from cogstage.web.downloads import send_file
from cogstage.web.explorer import explorer_page
from cogstage.web.service import Service

AT_ONCE = 20  # verdicts in one form
LISTED = 500  # the page shows the latest; the file has all


def router(service: Service) -> APIRouter:
    """The pages over one service."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/corrections", name="corrections")
    def corrections(request: Request) -> Response:
        entered = service.corrected.entries
        last = {(entry.head, entry.relation, entry.tail): entry for entry in entered}
        entries = [
            {
                **vars(entry),
                "words": _words(service, entry),
                "code": code_of(triple),
                "holds": entry is last[triple] and entry.verdict != WITHDRAWN,
            }
            for entry in entered[: -LISTED - 1 : -1]
            for triple in [(entry.head, entry.relation, entry.tail)]
        ]
        return explorer_page(
            service,
            request,
            "corrections.html",
            entries=entries,
            not_listed=len(entered) - len(entries),
            kept=service.corrected.path is not None,
        )

    @routes.get("/corrections.tsv")
    def corrections_file() -> Response:
        path = service.corrected.path
        if path is None or not path.exists():
            raise PageError(404, "no_corrections", "This server does not store corrections.")
        return send_file(path.read_bytes(), "text/tab-separated-values; charset=utf-8", "corrections.tsv")

    @routes.post("/corrections")
    async def correct(request: Request) -> Response:
        fields = await posted_fields(request)
        who, why = (fields.get(name, [""])[0] for name in ("who", "why"))
        codes, verdicts = fields.get("triple", []), fields.get("verdict", [])
        if not codes or len(codes) != len(verdicts):
            raise UsageError("nothing to save; remove or confirm a reason first")
        given = [(triple_of(code), verdict) for code, verdict in zip(codes, verdicts, strict=True)]
        if len(given) > AT_ONCE:
            raise UsageError(f"at most {AT_ONCE} corrections can be saved at once, not {len(given)}")
        await run_in_threadpool(service.corrected.add, given, who, why)
        back = fields.get("back", [""])[0]
        return RedirectResponse(f"/pair?{back}&saved={len(given)}" if back.startswith("head=") else "/corrections", 303)

    return routes


def _words(service: Service, entry: Any) -> str:
    names = []
    for key in (entry.head, entry.tail):
        try:
            names.append(service.term(service.find(key)).name)
        except CogstageError:
            names.append(key)
    return f"{names[0]} {phrase(entry.relation)} {names[1]}"
