"""The queue of assumptions as a page: one question after another, each verdict stored as a correction."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Depends, FastAPI
from fastapi.responses import RedirectResponse
from starlette.requests import Request
from starlette.responses import Response

from cogstage.errors import UsageError
from cogstage.estimator import CogStage
from cogstage.rationale.evidence import Triple
from cogstage.review.queue import AskedPair, Assumption, queue_table, review_queue
from cogstage.web.base import add_health, create_app, page
from cogstage.web.corrections import CorrectedModel
from cogstage.web.security import HostAccess
from cogstage.web.study_access import form_fields

AGAIN = 20  # verdicts after which the queue is made again
ANSWERS = {"right": "Right", "wrong": "Wrong", "skip": "Cannot say"}


class ReviewQueue:
    """The queue for some pairs as verdicts come in; verdicts of other pages on the same table count too."""

    def __init__(self, model: CogStage, pairs: Sequence[AskedPair], corrections: Path, top: int) -> None:
        self.corrected = CorrectedModel(model, corrections)
        self._pairs, self._top = pairs, top
        self._skipped: set[Triple] = set()
        self._lock = threading.Lock()
        self._queue, self._entries = self._make(), len(self.corrected.entries)

    def _make(self) -> list[Assumption]:
        return review_queue(self.corrected.model, self._pairs, self._top + len(self._skipped))

    @property
    def open(self) -> list[Assumption]:
        """The assumptions without a verdict, in order; made again after every 20 verdicts."""
        with self._lock:
            entries = self.corrected.entries
            if len(entries) >= self._entries + AGAIN:
                self._queue, self._entries = self._make(), len(entries)
            marked = {(entry.head, entry.relation, entry.tail) for entry in entries} | self._skipped
            return [entry for entry in self._queue if entry.triple not in marked][: self._top]

    @property
    def answered(self) -> int:
        """Number of verdicts in the table."""
        return len(self.corrected.entries)

    def answer(self, triple: Triple, verdict: str, who: str, why: str) -> None:
        """Store a verdict on a triple of the queue, or put the triple aside until the server stops."""
        if verdict not in ANSWERS:
            raise UsageError("choose one of the buttons")
        if triple not in {entry.triple for entry in self.open}:
            return  # another browser was faster
        if verdict == "skip":
            self._skipped.add(triple)
        else:
            self.corrected.add([(triple, verdict)], who, why)


def create_review_app(queue: ReviewQueue, public_url: str | None = None, access: HostAccess | None = None) -> FastAPI:
    """The page of a queue and its table."""
    app = create_app("cogstage", public_url=public_url, access=access)

    def show(request: Request, who: str = "") -> Response:
        return page(request, "review.html", entries=queue.open, answered=queue.answered, answers=ANSWERS, who=who[:200])

    def answer(request: Request, fields: Annotated[dict[str, str], Depends(form_fields)]) -> Response:
        triple = (fields.get("head", ""), fields.get("relation", ""), fields.get("tail", ""))
        queue.answer(triple, fields.get("verdict", ""), fields.get("who", ""), fields.get("why", ""))
        return RedirectResponse(f"/?{urlencode({'who': fields.get('who', '')[:200]})}", 303)

    def table() -> Response:
        kind = "text/tab-separated-values; charset=utf-8"
        headers = {"Content-Disposition": 'attachment; filename="queue.tsv"', "Content-Type": kind}
        return Response(queue_table(queue.open).encode(), headers=headers)

    app.add_api_route("/", show)
    app.add_api_route("/", answer, methods=["POST"])
    app.add_api_route("/queue.tsv", table)
    add_health(app)
    return app
