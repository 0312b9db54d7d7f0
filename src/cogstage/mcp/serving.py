"""Running the agent interface: over standard input and output, or over HTTP."""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator
from contextlib import redirect_stdout
from typing import Any, BinaryIO

import anyio
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from cogstage.mcp.server import create_server
from cogstage.web.security import Guard, refuse
from cogstage.web.service import Service
from cogstage.web.serving import Address
from cogstage.web.workers import serve


class Messages:
    """The messages of an agent over standard input and output, one per line, each at most ``limit`` bytes long.

    The protocol's own reader takes lines of any length into memory, and never answers what is no message.
    """

    def __init__(self, source: BinaryIO, target: BinaryIO, limit: int) -> None:
        self._source, self._target, self._limit = source, target, limit
        self._writing = anyio.Lock()

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await anyio.to_thread.run_sync(self._line):
            try:
                jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                problem = ErrorData(code=PARSE_ERROR, message=f"not a message of at most {self._limit:,} bytes")
                error = JSONRPCError(jsonrpc="2.0", id=None, error=problem)
                await self.write(error.model_dump_json(exclude_unset=True) + "\n")
            else:
                yield line.decode()

    def _line(self) -> bytes:
        """The next line; of a longer one only the beginning, which is no message. Empty at the end."""
        line = rest = self._source.readline(self._limit + 1)
        while len(rest) > self._limit and not rest.endswith(b"\n"):
            rest = self._source.readline(self._limit + 1)
        return line

    async def write(self, text: str) -> None:
        async with self._writing:
            await anyio.to_thread.run_sync(self._target.write, text.encode("utf-8", "replace"))

    async def flush(self) -> None:
        async with self._writing:
            await anyio.to_thread.run_sync(self._target.flush)


def serve_stdio(service: Service) -> None:
    """Serve the agent that started this process over standard input and output; logs go to standard error."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    server = create_server(service)._lowlevel_server  # the server's own run() chooses the reader
    messages: Any = Messages(sys.stdin.buffer, sys.stdout.buffer, service.limits.body_bytes)

    async def answer() -> None:
        async with stdio_server(messages, messages) as (read, write):
            await server.run(read, write, server.create_initialization_options())

    with redirect_stdout(sys.stderr):  # what a library prints is no message
        anyio.run(answer)


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
    serve(lambda: http_app(service, address), address)
