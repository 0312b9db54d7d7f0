"""The JSON API under /api/v1. Every error is ``{"error": {"code", "message", ...}}`` with a fitting status."""

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from cogstage.artefact import software_version
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.vocabulary import UnknownTerm
from cogstage.rationale.record import Prediction
from cogstage.web.asked import ApiQuestion
from cogstage.web.service import Limits, Service, TooExpensive
from cogstage.web.work_queue import Busy

Name = Annotated[str, Field(min_length=1, max_length=300)]
BaseRate = Annotated[float, Field(gt=0, lt=1, description="Share of true pairs that the probabilities assume.")]


class Problem(BaseModel):
    """What went wrong, for machines (code) and for people (message)."""

    code: str
    message: str
    suggestions: list[str] | None = None


class Failure(BaseModel):
    """The body of every answer that is not 2xx."""

    error: Problem


class SearchResult(BaseModel):
    """A search result: key, name and type of a term, how often it was counted, and the synonym that matched."""

    key: str
    name: str
    type: str
    count: int | None
    matched: str = ""


class Pair(BaseModel):
    """Head and tail, typed loosely."""

    model_config = ConfigDict(extra="forbid")

    head: Name
    tail: Name


def batch_of(limits: Limits) -> type[BaseModel]:
    """The body of a batch, its schema stating the limits."""

    class Batch(BaseModel):
        """Pairs to predict."""

        model_config = ConfigDict(extra="forbid")

        pairs: list[Pair] = Field(min_length=1, json_schema_extra={"maxItems": limits.pairs})
        relation: Name | None = Field(None, description="Relation; by default, for each pair the strongest verdict.")
        k: int = Field(
            0, ge=0, json_schema_extra={"maximum": limits.rationales}, description="Largest number of reasons per pair."
        )
        base_rate: BaseRate = 0.5

    return Batch


FAILURES: dict[int | str, dict[str, Any]] = {
    status: {"model": Failure} for status in (400, 404, 405, 413, 422, 429, 503)
}
RECORD = {"$ref": "#/components/schemas/Prediction"}  # put there by the app
PREDICTION = {"description": "A prediction record.", "content": {"application/json": {"schema": RECORD}}}
PREDICTIONS = {
    "description": "Prediction records.",
    "content": {"application/json": {"schema": {"type": "array", "items": RECORD}}},
}
ROW = {"anyOf": [RECORD, {"$ref": "#/components/schemas/Failure"}]}
ROWS = {
    "description": "For each pair, in order, a prediction record or the error of that pair. Streamed as one JSON array,"
    " or as JSON lines for `Accept: application/x-ndjson`.",
    "content": {
        "application/json": {"schema": {"type": "array", "items": ROW}},
        "application/x-ndjson": {"schema": {"type": "string"}},
    },
}


def failure(status: int, code: str, message: str, suggestions: list[str] | None = None) -> JSONResponse:
    """Return an error response with its code, message and status."""
    headers = {"Retry-After": "5"} if status == 503 else None
    return JSONResponse(problem(code, message, suggestions), status_code=status, headers=headers)


def problem(code: str, message: str, suggestions: list[str] | None = None) -> dict[str, Any]:
    """The body of an error answer."""
    return {"error": Problem(code=code, message=message, suggestions=suggestions).model_dump(exclude_none=True)}


def described(error: CogstageError) -> tuple[int, str, str, list[str] | None]:
    """Status, code, message and suggestions of an error that the model raised."""
    if isinstance(error, UnknownTerm):
        return 404, "unknown_term", str(error), error.suggestions
    if isinstance(error, TooExpensive):
        return 413, "too_expensive", str(error), None
    if isinstance(error, Busy):
        return 503, "busy", str(error), None
    return 422, "wrong_use" if isinstance(error, UsageError) else "cannot_answer", str(error), None


def answer(error: CogstageError) -> JSONResponse:
    """The answer to an error that the model raised."""
    return failure(*described(error))


def stream(rows: Iterator[Prediction | CogstageError], lines: bool, base_rate: float = 0.5) -> Iterator[str]:
    """Rows as JSON text, each as soon as it is there: one array, or one object per line."""
    before = "" if lines else "["
    for row in rows:
        if isinstance(row, CogstageError):
            plain = problem(*described(row)[1:])
        else:
            plain = row.with_base_rate(base_rate).to_dict()
        yield before + json.dumps(plain, ensure_ascii=False, allow_nan=False) + ("\n" if lines else "")
        before = "" if lines else ",\n"
    if not lines:
        yield ("[" if before == "[" else "") + "]\n"


def router(service: Service) -> APIRouter:
    """The routes over one service."""
    routes = APIRouter(prefix="/api/v1", responses=FAILURES)
    limits = service.limits

    @routes.get("/health", summary="Status of the service")
    def health() -> dict[str, str]:
        return {"status": "ok", "version": software_version()}

    @routes.get("/model", summary="Description and figures of the model")
    def model() -> dict[str, Any]:
        return service.about()

    @routes.get("/terms", summary="Completion of names and synonyms")
    def terms(
        q: Annotated[
            str, Query(min_length=1, max_length=300, description="First letters of a name, or of a word in it.")
        ],
        limit: Annotated[int, Query(ge=1, le=50)] = 10,
    ) -> list[SearchResult]:
        return [
            SearchResult(key=m.term.key, name=m.term.name, type=m.term.type, count=m.count, matched=m.matched)
            for m in service.terms(q, limit)
        ]

    @routes.get("/explain", summary="One pair with its reasons", responses={200: PREDICTION})
    def explain(asked: Annotated[ApiQuestion, Query()]) -> JSONResponse:
        return JSONResponse(asked.ask(service).to_dict())

    @routes.post("/explain", summary="One pair with its reasons", responses={200: PREDICTION})
    def explain_posted(asked: ApiQuestion) -> JSONResponse:
        return JSONResponse(asked.ask(service).to_dict())

    @routes.post(
        "/predict",
        summary="A batch of pairs, streamed row by row",
        description=f"At most {limits.pairs:,} pairs, and pairs × (1 + k) at most {limits.cost:,}.",
        responses={200: ROWS},
    )
    def predict(request: Request, batch: batch_of(limits)) -> Response:  # type: ignore[valid-type]
        asked: Any = batch
        if len(asked.pairs) > limits.pairs:
            return failure(
                413, "too_many_pairs", f"a batch can have at most {limits.pairs} pairs, not {len(asked.pairs)}"
            )
        rows = service.predict([(pair.head, pair.tail) for pair in asked.pairs], asked.relation, asked.k)
        lines = "application/x-ndjson" in request.headers.get("accept", "")
        kind = "application/x-ndjson" if lines else "application/json"
        return StreamingResponse(stream(rows, lines, asked.base_rate), media_type=kind)

    @routes.get("/discover", summary="Most likely tails of a head, or heads of a tail", responses={200: PREDICTIONS})
    def discover(
        relation: Annotated[
            str | None, Query(max_length=300, description="Relation; by default all that fit the type of the term.")
        ] = None,
        head: Annotated[str | None, Query(min_length=1, max_length=300)] = None,
        tail: Annotated[str | None, Query(min_length=1, max_length=300)] = None,
        top: Annotated[int, Query(ge=1, le=limits.candidates)] = 20,
        new_only: bool = False,
        k: Annotated[int, Query(ge=0, le=limits.rationales)] = 0,
        indications: Annotated[
            Literal["keep", "drop", "only"],
            Query(
                description="For the relation causes: drop leaves out disorders that the drug treats"
                " rather than causes; only lists just these."
            ),
        ] = "keep",
        drop_contradicted: Annotated[
            bool, Query(description="Leave out candidates for which an opposite relation is known or more likely.")
        ] = False,
        base_rate: BaseRate = 0.5,
    ) -> JSONResponse:
        records = service.discover(relation, head, tail, top, new_only, k, indications, drop_contradicted)
        return JSONResponse([record.with_base_rate(base_rate).to_dict() for record in records])

    return routes
