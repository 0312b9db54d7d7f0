"""The JSON API under /api/v1. Every error is ``{"error": {"code", "message", ...}}`` with a fitting status."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from cogstage.artefact import software_version
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.vocabulary import UnknownTerm
from cogstage.web.service import Service

Name = Annotated[str, Field(min_length=1, max_length=300)]


class Problem(BaseModel):
    """What went wrong, for machines (code) and for people (message)."""

    code: str
    message: str
    suggestions: list[str] | None = None


class Failure(BaseModel):
    """The body of every answer that is not 2xx."""

    error: Problem


class TermFound(BaseModel):
    """A term of the vocabulary."""

    key: str
    name: str
    type: str
    count: int


class Pair(BaseModel):
    """Head and tail, typed loosely."""

    model_config = ConfigDict(extra="forbid")

    head: Name
    tail: Name


class Batch(BaseModel):
    """Pairs of one relation to predict."""

    model_config = ConfigDict(extra="forbid")

    pairs: list[Pair] = Field(min_length=1)
    relation: Name
    k: int = Field(0, ge=0, description="Rationales for each pair.")


class Asked(Pair):
    """A pair to explain."""

    relation: Name
    k: int = Field(5, ge=0)


FAILURES: dict[int | str, dict[str, Any]] = {status: {"model": Failure} for status in (400, 404, 405, 413, 422, 429)}
RECORD = {"$ref": "#/components/schemas/Prediction"}  # put there by the app
PREDICTION = {"description": "A prediction record.", "content": {"application/json": {"schema": RECORD}}}
PREDICTIONS = {
    "description": "Prediction records.",
    "content": {"application/json": {"schema": {"type": "array", "items": RECORD}}},
}


def failure(status: int, code: str, message: str, suggestions: list[str] | None = None) -> JSONResponse:
    """An error answer."""
    problem = Problem(code=code, message=message, suggestions=suggestions)
    return JSONResponse({"error": problem.model_dump(exclude_none=True)}, status_code=status)


def answer(error: CogstageError) -> JSONResponse:
    """The answer to an error that the model room raised."""
    if isinstance(error, UnknownTerm):
        return failure(404, "unknown_term", str(error), error.suggestions)
    if isinstance(error, UsageError):
        return failure(422, "wrong_use", str(error))
    return failure(422, "cannot_answer", str(error))


def router(service: Service) -> APIRouter:
    """The routes over one service."""
    routes = APIRouter(prefix="/api/v1", responses=FAILURES)
    limits = service.limits

    @routes.get("/health", summary="Is the service up?")
    def health() -> dict[str, str]:
        return {"status": "ok", "version": software_version()}

    @routes.get("/model", summary="What the model is and how well it does")
    def model() -> dict[str, Any]:
        return service.about()

    @routes.get("/terms", summary="Type-ahead over names and synonyms")
    def terms(
        q: Annotated[
            str, Query(min_length=1, max_length=300, description="First letters of a name or of a word of it.")
        ],
        limit: Annotated[int, Query(ge=1, le=50)] = 10,
    ) -> list[TermFound]:
        found = service.terms(q, limit)
        return [TermFound(key=term.key, name=term.name, type=term.type, count=count) for term, count in found]

    @routes.get("/explain", summary="One pair with its rationales", responses={200: PREDICTION})
    def explain(
        head: Annotated[str, Query(min_length=1, max_length=300)],
        tail: Annotated[str, Query(min_length=1, max_length=300)],
        relation: Annotated[str, Query(min_length=1, max_length=300)],
        k: Annotated[int, Query(ge=0, le=limits.rationales)] = 5,
    ) -> JSONResponse:
        return JSONResponse(service.explain(head, tail, relation, k).to_dict())

    @routes.post("/explain", summary="One pair with its rationales", responses={200: PREDICTION})
    def explain_posted(asked: Asked) -> JSONResponse:
        return JSONResponse(service.explain(asked.head, asked.tail, asked.relation, asked.k).to_dict())

    @routes.post("/predict", summary="A batch of pairs", responses={200: PREDICTIONS})
    def predict(batch: Batch) -> JSONResponse:
        if len(batch.pairs) > limits.pairs:
            return failure(413, "too_many_pairs", f"a batch may have {limits.pairs} pairs, not {len(batch.pairs)}")
        if batch.k > limits.rationales:
            return failure(422, "too_many_rationales", f"k may be at most {limits.rationales}, not {batch.k}")
        pairs = [(pair.head, pair.tail) for pair in batch.pairs]
        return JSONResponse([record.to_dict() for record in service.predict(pairs, batch.relation, batch.k)])

    @routes.get("/discover", summary="Likeliest tails of a head, or heads of a tail", responses={200: PREDICTIONS})
    def discover(
        relation: Annotated[str, Query(min_length=1, max_length=300)],
        head: Annotated[str | None, Query(min_length=1, max_length=300)] = None,
        tail: Annotated[str | None, Query(min_length=1, max_length=300)] = None,
        top: Annotated[int, Query(ge=1, le=limits.candidates)] = 20,
        new_only: bool = False,
        k: Annotated[int, Query(ge=0, le=limits.rationales)] = 0,
    ) -> JSONResponse:
        found = service.discover(relation, head, tail, top, new_only, k)
        return JSONResponse([record.to_dict() for record in found])

    return routes
