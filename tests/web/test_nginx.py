"""A real nginx in front, with the configuration of the documentation."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import uvicorn
from fastapi import Request
from postgres_cluster import free_port

from cogstage.web.base import create_app
from cogstage.web.connections import ConnectionLimits, configuration
from cogstage.web.serving import Address

pytestmark = pytest.mark.service
PAGE = Path(__file__).parents[2] / "docs" / "howto" / "proxy.md"
HOST = "explorer.example.org"


def configured(folder: Path, front: int, back: int) -> Path:
    """The documented server block, on free ports of loopback and without TLS."""
    block = re.search(r"```nginx\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert block
    server = block[1].replace("listen 443 ssl;", f"listen 127.0.0.1:{front};")
    assert server != block[1]
    server, changed = re.subn(r"http://127\.0\.0\.1:8764", f"http://127.0.0.1:{back}", server)
    assert changed == 1
    paths = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in ("proxy", "fastcgi", "uwsgi", "scgi"))
    file = folder / "nginx.conf"
    file.write_text(
        f"daemon off; user root; pid {folder}/pid; error_log stderr; events {{ worker_connections 512; }}"
        f" http {{ access_log off; client_body_temp_path {folder}/body; {paths}\n{server}\n}}"
    )
    return file


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[int, uvicorn.Server]]:
    if shutil.which("nginx") is None:
        pytest.skip("nginx is not installed")
    front, back = free_port(), free_port()
    address = Address(port=back, public_url=f"https://{HOST}", trusted_proxies=("127.0.0.1",))
    app = create_app("test", public_url=address.public_url, access=address.access)

    @app.get("/whoami")
    def whoami(request: Request) -> dict[str, str]:
        return {"client": request.client.host if request.client else "", "scheme": request.url.scheme}

    @app.post("/echo")
    async def echo(request: Request) -> int:
        return len(await request.body())

    server = uvicorn.Server(
        configuration(app, ConnectionLimits(unlimited=address.trusted_proxies), host="127.0.0.1", port=back)
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    file = configured(tmp_path, front, back)
    nginx = subprocess.Popen(["nginx", "-p", tmp_path, "-c", file])
    try:
        for _ in range(300):
            try:
                socket.create_connection(("127.0.0.1", front), 5).close()
                break
            except OSError:
                time.sleep(0.1)
        while not server.started:
            time.sleep(0.01)
        yield front, server
    finally:
        nginx.terminate()
        nginx.wait(30)
        server.should_exit = True
        thread.join(30)


def ask(port: int, path: str = "/whoami", host: str = HOST, **headers: str) -> httpx.Response:
    return httpx.get(f"http://127.0.0.1:{port}{path}", headers={"Host": host, **headers}, timeout=20)


def test_the_documented_proxy(servers: tuple[int, uvicorn.Server]) -> None:
    port, server = servers
    for headers in ({}, {"X-Forwarded-For": "9.9.9.9"}, {"X-Forwarded-For": "9.9.9.9, 8.8.8.8"}):
        transport = httpx.HTTPTransport(local_address="127.0.0.7")
        with httpx.Client(transport=transport) as client:
            answer = client.get(f"http://127.0.0.1:{port}/whoami", headers={"Host": HOST, **headers})
        assert answer.json() == {"client": "127.0.0.7", "scheme": "http"}
        assert answer.headers["strict-transport-security"]
    assert ask(port, host="attacker.example").status_code == 400
    large = httpx.post(f"http://127.0.0.1:{port}/echo", headers={"Host": HOST}, content=b"x" * 1_100_000)
    assert large.status_code == 413
    slow = f"POST /echo HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 1000\r\n\r\nab".encode()
    held = []
    for _ in range(40):
        connection = socket.create_connection(("127.0.0.1", port), 20)
        connection.sendall(slow)
        held.append(connection)
    assert ask(port).status_code == 200
    assert len(server.server_state.connections) < 5  # the proxy waits for the bodies, not the server
    for _ in range(40):
        connection = socket.create_connection(("127.0.0.1", port), 20)
        connection.sendall(slow)
        held.append(connection)
    assert ask(port).status_code == 503  # above the connections of one client
    transport = httpx.HTTPTransport(local_address="127.0.0.8")
    with httpx.Client(transport=transport) as client:
        assert client.get(f"http://127.0.0.1:{port}/whoami", headers={"Host": HOST}).status_code == 200
    for connection in held:
        connection.close()
