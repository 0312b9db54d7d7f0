"""A lock on the name of a folder, so that two commands never write the same artefact."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cogstage.errors import UsageError

_held: dict[Path, tuple[int, int, int]] = {}  # lock file -> descriptor, thread, how often that thread holds it
_guard = threading.Lock()


def _forget_locks() -> None:
    """A forked worker must not keep its parent's locks alive when the parent is killed."""
    global _guard
    _guard = threading.Lock()
    for descriptor, _, _ in _held.values():
        with suppress(OSError):
            os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_forget_locks)


@contextmanager
def lock_folder(path: Path | str) -> Iterator[None]:
    """Hold the right to write the artefact ``path``; a second writer stops at once with a line that names the first.

    The lock is the kernel's (flock on a file beside the folder), so it ends with its process, however that ends. The
    same thread may take it again.
    """
    path = Path(os.path.abspath(path))
    file, thread = path.parent / f".{path.name}.lock", threading.get_ident()
    with _guard:
        if (mine := _held.get(file)) is not None and mine[1] == thread:
            _held[file] = (mine[0], thread, mine[2] + 1)
        else:
            _held[file] = (_take_lock(file, path), thread, 1)
    try:
        yield
    finally:
        with _guard:
            descriptor, thread, times = _held.get(file, (-1, 0, 0))
            if times > 1:
                _held[file] = (descriptor, thread, times - 1)
            elif times == 1:
                del _held[file]
                file.unlink(missing_ok=True)  # while the lock is held: whoever waits sees that the file is another
                os.close(descriptor)


def _take_lock(file: Path, path: Path) -> int:
    while True:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise UsageError(
                f"{path} is being written by {_holder(file)}; wait for it, or choose another folder"
            ) from None
        with suppress(FileNotFoundError):
            if os.fstat(descriptor).st_ino == file.stat().st_ino:
                break
        os.close(descriptor)  # released and removed between opening and locking
    about = {"pid": os.getpid(), "host": socket.gethostname(), "command": " ".join(sys.argv)[:300]}
    os.ftruncate(descriptor, 0)
    with suppress(OSError):  # on a full disk the lock still holds, it only does not say whose it is
        os.write(descriptor, json.dumps(about).encode("utf-8", "replace"))
    return descriptor


def _holder(file: Path) -> str:
    try:
        about = json.loads(file.read_text(encoding="utf-8"))
        return f"process {int(about['pid'])} on {about['host']} ({about['command']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
