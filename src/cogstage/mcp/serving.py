"""Running the agent interface: over standard input and output, or over HTTP."""

from __future__ import annotations

import logging
import sys
from typing import Any

from mcp.server.transport_security import TransportSecuritySettings

from cogstage.mcp.server import create_server
from cogstage.web.connections import configuration
from cogstage.web.security import AllowedHosts, SecurityHeaders
from cogstage.web.service import Service
from cogstage.web.serving import Address, check_free


def serve_stdio(service: Service) -> None:
    """Serve the agent that started this process over standard input and output; logs go to standard error."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    create_server(service).run("stdio")


def http_app(service: Service, address: Address) -> Any:
    """The application at /mcp. It keeps no sessions, so that any number of copies may run."""
    app = create_server(service).streamable_http_app(
        stateless_http=True,
        json_response=True,
        max_request_body_size=service.limits.body_bytes,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # AllowedHosts does it
    )
    return SecurityHeaders(AllowedHosts(app, address.access.hosts))


def serve_http(service: Service, address: Address) -> None:
    """Serve over HTTP until stopped."""
    import uvicorn

    check_free(address)
    config = configuration(http_app(service, address), level=logging.WARNING, host=address.host, port=address.port)
    uvicorn.Server(config).run()
