"""What the explorer and the study share: the application's frame, page templates, static files, error answers."""

from __future__ import annotations

import hashlib
import logging
import math
import os
import tempfile
import threading
import time
from collections.abc import Callable
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.staticfiles import StaticFiles
from fastapi.templating import Jinja2Templates
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from cogstage.artefact import software_version
from cogstage.errors import CogstageError, UsageError
from cogstage.reporting import look
from cogstage.web.security import Guard, HostAccess, RequestMetrics
from cogstage.web.security import PageError as PageError

STATIC = Path(__file__).parent / "static"
log = logging.getLogger("cogstage.web")
PROBE = 256 * 1024  # bytes that must fit on the disk for the service to be healthy
WORDS = {
    400: "The request could not be understood.",
    401: "You are not signed in.",
    403: "You are not allowed to do this.",
    404: "This page does not exist.",
    405: "This page does not support this kind of request.",
    413: "The request is too large.",
    422: "The request could not be understood.",
    429: "Too many attempts. Please wait a few minutes.",
    500: "An unexpected error occurred on the server. Saved data are not affected.",
    503: "The service is temporarily unavailable. Please try again soon.",
}


HEADINGS = {
    401: "You are not signed in",
    403: "Not allowed",
    404: "Page not found",
    413: "Request too large",
    422: "Invalid question",
    429: "Too many attempts",
    500: "Something went wrong",
    503: "Temporarily unavailable",
}
FIELDS = {  # what the pages call a value of an address
    "k": "reasons at most",
    "base_rate": "assumed share of true pairs",
    "least": "score at least",
    "head": "first term",
    "tail": "second term",
    "q": "find a term",
    "key": "term",
    "reason_relation": "relation",
}
KINDS = {  # what is wrong with a value, by the kind of error
    "missing": "is missing",
    "int_parsing": "must be a whole number",
    "float_parsing": "must be a number",
    "bool_parsing": "must be yes or no",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "string_too_long": "can have at most {max_length} characters",
    "string_too_short": "must not be empty",
    "too_long": "can have at most {max_length} entries",
}


@cache
def static_url(name: str) -> str:
    """The address of a static file; it changes with the content, so that browsers never hold an old one."""
    file = next(folder / name for folder in (STATIC, look.STATIC) if (folder / name).exists())
    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:12]
    return f"/static/{name}?v={digest}"


def chance(probability: float) -> str:
    """A probability for people: two digits, and never a flat 0 or 1."""
    if probability < 0.01:
        return "<0.01"
    return ">0.99" if probability > 0.99 else f"{probability:.2f}"


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("cogstage.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["chance"] = chance
    environment.globals["static_url"] = static_url
    environment.globals["software_version"] = software_version()
    return environment


TEMPLATES = Jinja2Templates(env=_environment())


def page(request: Request, template: str, status: int = 200, **context: Any) -> Response:
    """A page from a template; everything put into it is escaped."""
    return TEMPLATES.TemplateResponse(request, template, context, status_code=status)


def create_app(
    title: str,
    *,
    public_url: str | None = None,
    largest_body: int = 64 * 1024,
    page_cache: str = "no-store",
    openapi_url: str | None = None,
    access: HostAccess | None = None,
    requests_per_minute: int = 0,
    metrics: bool = False,
) -> FastAPI:
    """An empty application with headers, limits, log, static files and error pages.

    ``public_url`` is the address that people use, where it is known; ``access`` says which host names and proxies are
    believed; ``metrics`` serves counters for Prometheus at /metrics. FastAPI's own documentation pages load scripts
    from elsewhere and are off; ``openapi_url`` serves the schema.
    """
    counters = RequestMetrics() if metrics else None
    guard = Middleware(
        Guard,
        error_page=_unexpected_error,
        public_url=public_url,
        page_cache=page_cache,
        largest_body=largest_body,
        requests_per_minute=requests_per_minute,
        metrics=counters,
    )
    app = FastAPI(
        title=title,
        version=software_version(),
        docs_url=None,
        redoc_url=None,
        openapi_url=openapi_url,
        middleware=(access or HostAccess()).middleware(guard),
    )
    if counters:
        app.add_api_route("/metrics", counters.answer, include_in_schema=False)
    files = StaticFiles(directory=STATIC, packages=[("cogstage.reporting", look.STATIC.name)])  # tried in this order
    app.mount("/static", files, name="static")
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(CogstageError, _own_error)
    return app


def check_disk(folder: Path) -> None:
    """Raise 503 unless a small file can be written to ``folder``: free space alone does not tell (quotas, inodes)."""
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(PROBE))
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        log.error("cannot write to the disk: %s", error.strerror)
        raise PageError(503, "disk_full", "The service cannot write to its disk at the moment.") from None


class RecentCheck:
    """A check that anybody may ask for, made at most once in ``seconds``: it writes to the disk."""

    def __init__(self, check: Callable[[], None], seconds: float = 10.0) -> None:
        self._check, self._seconds = check, seconds
        self._made, self._problem = -math.inf, None  # type: float, Exception | None
        self._lock = threading.Lock()

    def __call__(self) -> None:
        """Raise if the latest check failed."""
        with self._lock:
            if time.monotonic() - self._made > self._seconds:
                try:
                    self._check()
                    self._problem = None
                except Exception as problem:
                    self._problem = problem
                self._made = time.monotonic()
            if self._problem is not None:
                raise self._problem


def add_health(app: FastAPI, check: Callable[[], None] = lambda: None) -> None:
    """``/health/live``: the process answers; ``/health/ready``: it can also do its work, by ``check``."""

    def checked() -> Response:
        check()
        return PlainTextResponse("ok\n")

    app.add_api_route("/health/live", lambda: PlainTextResponse("ok\n"), include_in_schema=False)
    for path in ("/health/ready", "/health"):
        app.add_api_route(path, checked, include_in_schema=False)


def wants_json(request: Request) -> bool:
    """Whether the answer to an error should be JSON: the API, and scripts that send or ask for JSON."""
    return (
        request.url.path.startswith("/api/")
        or "application/json" in request.headers.get("accept", "")
        or request.headers.get("content-type", "").startswith("application/json")
    )


def error_answer(request: Request, status: int, code: str, message: str) -> Response:
    """An error as a page for people or as JSON for programs."""
    if wants_json(request):
        return JSONResponse({"error": {"code": code, "message": message}}, status)
    layout = getattr(request.app.state, "layout", "base.html") if "app" in request.scope else "base.html"
    return page(
        request, "error.html", status, words=message, heading=HEADINGS.get(status, "Request failed"), layout=layout
    )


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = error.status_code
    if isinstance(error, PageError):
        return error_answer(request, status, error.code, error.detail)
    code = HTTPStatus(status).phrase.lower().replace(" ", "_")
    answer = error_answer(request, status, code, WORDS.get(status, HTTPStatus(status).phrase))
    answer.headers.update(error.headers or {})
    return answer


def _validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    # Says where and what, never the value itself: it may be anything, and it goes back to a browser.
    first = error.errors()[0]
    where = ".".join(str(part)[:40] for part in first["loc"]).encode("ascii", "replace").decode()
    if wants_json(request):
        return error_answer(request, 422, "invalid_request", f"{where}: {first['msg']}"[:300])
    field = where.rpartition(".")[2]
    field = FIELDS.get(field, field)
    known = KINDS.get(first["type"], "cannot be understood")
    words = known.format_map(first.get("ctx", {})) if "ctx" in first or "{" not in known else "cannot be understood"
    return error_answer(request, 422, "invalid_request", f"The value of “{field}” {words}.")


def _unexpected_error(scope: Scope) -> Response:
    return error_answer(Request(scope), 500, "internal", WORDS[500])


def _own_error(request: Request, error: Exception) -> Response:
    if isinstance(error, UsageError):
        return error_answer(request, 400, "bad_request", str(error))
    log.error("%s", error)
    return error_answer(request, 503, "unavailable", WORDS[503])
