"""Running the agent interface: over standard input and output, or over HTTP."""

from __future__ import annotations

import logging
import sys

from mcp.server.transport_security import TransportSecuritySettings
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from cogstage.mcp.server import create_server
from cogstage.web.connections import configuration
from cogstage.web.security import Guard, refuse
from cogstage.web.service import Service
from cogstage.web.serving import Address, check_free


def serve_stdio(service: Service) -> None:
    """Serve the agent that started this process over standard input and output; logs go to standard error."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    create_server(service).run("stdio")


def http_app(service: Service, address: Address) -> ASGIApp:
    """The application at /mcp. It keeps no sessions, so that any number of copies may run.

    Every answer ends: a stream for messages of the server would be held open by a client that never reads, and this
    server has none to send.
    """
    app = create_server(service).streamable_http_app(
        stateless_http=True,
        json_response=True,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # done below
    )

    async def post_only(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] != "POST":
            await refuse(send, 405, "method_not_allowed", "Send messages by POST.", {"allow": "POST"})
        else:
            await app(scope, receive, send)

    guard = Middleware(Guard, error_page=_internal_error, largest_body=service.limits.body_bytes)
    guarded: ASGIApp = post_only
    for layer in reversed(address.access.middleware(guard)):
        guarded = layer.cls(guarded, *layer.args, **layer.kwargs)
    return guarded


def _internal_error(scope: Scope) -> Response:
    error = {"code": -32603, "message": "Internal error"}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, 500)


def serve_http(service: Service, address: Address) -> None:
    """Serve over HTTP until stopped."""
    import uvicorn

    check_free(address)
    config = configuration(http_app(service, address), level=logging.WARNING, host=address.host, port=address.port)
    uvicorn.Server(config).run()
