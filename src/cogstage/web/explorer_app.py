"""The explorer and its JSON API as one application over a loaded model."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.requests import Request
from starlette.responses import Response

from cogstage.errors import CogstageError, UsageError
from cogstage.graph.vocabulary import UnknownTerm
from cogstage.rationale.schema import record_schemas
from cogstage.relations import phrase
from cogstage.web import api, corrections_pages, discover_pages, explorer
from cogstage.web.base import add_health, create_app, error_answer, page, wants_json
from cogstage.web.security import HostAccess
from cogstage.web.service import Limits, Service
from cogstage.web.work_queue import Busy


def create_explorer_app(
    service: Service, public_url: str | None = None, metrics: bool = False, access: HostAccess | None = None
) -> FastAPI:
    """Pages and API. Holds nothing but the model, so that any number of workers or replicas may run.

    ``public_url`` is the address that people use, where a proxy stands before it; ``metrics`` serves counters for
    Prometheus at /metrics; the rate limit is one of the service's limits; ``access`` says which host names are answered
    and which proxies are believed.
    """
    app = create_app(
        "cogstage",
        public_url=public_url,
        largest_body=service.limits.body_bytes,
        page_cache="no-cache",
        openapi_url="/api/v1/openapi.json",
        access=access,
        requests_per_minute=service.limits.requests_a_minute,
        metrics=metrics,
    )
    for pages in (api, explorer, discover_pages, corrections_pages):
        app.include_router(pages.router(service))
    add_health(app)
    app.state.layout = "explorer/layout.html"
    app.state.service = service
    app.add_exception_handler(UnknownTerm, _unknown_term)
    app.add_exception_handler(UsageError, _wrong_use)
    app.add_exception_handler(Busy, _wrong_use)
    app.openapi = lambda: _schema(app, service.limits)  # type: ignore[method-assign]
    return app


def _schema(app: FastAPI, limits: Limits) -> dict[str, Any]:
    """FastAPI's schema of the routes, with the prediction record's own among the components, and the limits."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title="cogstage",
            version=app.version,
            description="Medical relations from co-occurrence counts, each prediction with its reasons. "
            "A research tool; its answers are not medical advice. "
            f"Limits: {limits.pairs:,} pairs per batch, k up to {limits.rationales}, pairs × (1 + k) up to "
            f"{limits.cost:,}, {limits.candidates} candidates, {limits.body_bytes:,} bytes per request, "
            + (f"{limits.requests_a_minute:,} requests" if limits.requests_a_minute else "no limit on requests")
            + f" per minute and client; {limits.waiting} large requests, a quarter of them "
            "of one client, are processed in turns; further ones get 503.",
            routes=app.routes,
        )
        schema["components"]["schemas"] |= record_schemas("#/components/schemas/")
        app.openapi_schema = schema
    return app.openapi_schema


def _unknown_term(request: Request, error: Exception) -> Response:
    """Offers the nearest names; everything else that was asked stays as it was."""
    assert isinstance(error, UnknownTerm)
    if wants_json(request):
        return api.answer(error)
    asked = list(request.query_params.multi_items())
    unknown = str(error).removeprefix("unknown term: ").split("; did you mean")[0]
    suggestions = [
        {
            "name": name,
            "address": f"{request.url.path}?"
            + urlencode([(field, name if value.strip() == unknown else value) for field, value in asked]),
        }
        for name in error.suggestions
    ]
    values = {field: value for field, value in asked if field in ("head", "tail", "relation")}
    pair = {"head": "", "tail": "", "relation": "", **values} if request.url.path.startswith("/pair") else {}
    discover = {name: dict(asked).get(name, "") for name in ("term", "relation", "side")}
    relations = request.app.state.service.relations
    return page(
        request,
        "explorer/unknown.html",
        404,
        unknown=unknown,
        suggestions=suggestions,
        asked=pair,
        discover=discover if request.url.path.startswith("/discover") else None,
        relations=relations,
        phrase=phrase,
    )


def _wrong_use(request: Request, error: Exception) -> Response:
    assert isinstance(error, CogstageError)
    status, code, message, _ = api.described(error)
    return api.answer(error) if wants_json(request) else error_answer(request, status, code, message)
