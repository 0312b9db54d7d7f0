"""A throw-away PostgreSQL server on loopback, where the Debian package is installed."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def binaries() -> Path | None:
    """The folder of initdb and pg_ctl, newest version first; None if PostgreSQL is not installed."""
    if found := shutil.which("initdb"):
        return Path(found).parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    return versions[-1].parent if versions else None


def reason_to_skip() -> str | None:
    """Why no server can be started here; None if one can."""
    if binaries() is None:
        return "PostgreSQL is not installed (apt-get install postgresql)"
    if os.getuid() == 0 and _unprivileged() is None:
        return "PostgreSQL refuses to run as root and there is no user postgres or nobody to run it as"
    return None


def _unprivileged() -> pwd.struct_passwd | None:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    return None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def cluster() -> Iterator[str]:
    """Start a server with a database, yield its URL, stop and remove it."""
    home = binaries()
    assert home is not None
    base = Path(tempfile.mkdtemp(prefix="study-postgres."))
    as_user: dict[str, object] = {}
    if os.getuid() == 0:
        user = _unprivileged()
        assert user is not None
        os.chown(base, user.pw_uid, user.pw_gid)
        as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}

    def run(*arguments: str) -> None:
        done = subprocess.run(arguments, cwd=base, capture_output=True, text=True, **as_user)  # type: ignore[call-overload]
        if done.returncode:
            log = base / "log"
            raise RuntimeError(f"{arguments[0]}: {done.stderr}{log.read_text() if log.exists() else ''}")

    password, port = secrets.token_hex(8), free_port()
    (base / "password").write_text(password)
    (base / "password").chmod(0o644)
    data = str(base / "data")
    run(
        str(home / "initdb"), "-D", data, "-U", "study", "-A", "scram-sha-256", "--pwfile", str(base / "password"),
        "-E", "UTF8", "--no-locale", "--no-sync",
    )  # fmt: skip
    settings = f"-c listen_addresses=127.0.0.1 -p {port} -k {base} -c fsync=off"
    # the log goes to a file: a server that holds our pipe open would never let run() end
    run(str(home / "pg_ctl"), "-D", data, "-l", str(base / "log"), "-o", settings, "-w", "-t", "60", "start")
    try:
        yield f"postgresql://study:{password}@127.0.0.1:{port}/postgres"
    finally:
        run(str(home / "pg_ctl"), "-D", data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(base, ignore_errors=True)
