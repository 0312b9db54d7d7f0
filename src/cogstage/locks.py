"""A lock on the name of a folder, so that two commands never write the same artefact."""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from cogstage.errors import UsageError

NOTE_BYTES = 4096  # longest note that is read; whoever planted a larger one is not quoted
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@contextmanager
def lock_folder(path: Path | str) -> Iterator[None]:
    """Hold the right to write the artefact ``path``; a second writer stops at once with a line that names the first.

    The lock is the operating system's, on a file beside the folder, so it ends with its process, however that ends.
    The same thread may take it again. Nothing is ever written through the lock file, and a symbolic link in its place
    is refused, so that a planted link cannot damage the file behind it. Who holds the lock stands in a second file.
    """
    path = Path(os.path.abspath(path))
    file, note = path.parent / f".{path.name}.lock", path.parent / f".{path.name}.holder"
    lock = FileLock(file, timeout=0, is_singleton=True)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise UsageError(f"{path} is being written by {_holder(note)}; wait for it, or choose another folder") from None
    except OSError as error:
        if file.is_symlink():
            raise UsageError(f"{path} cannot be written: {file} is a symbolic link; remove it") from error
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error
    try:
        if lock.lock_counter == 1:
            _write_note(note)
        yield
    finally:
        if lock.lock_counter == 1:
            for left in (note, file):  # while the lock is held: whoever waits sees that the file has lost its name
                with suppress(OSError):
                    left.unlink()
        lock.release()


def _write_note(note: Path) -> None:
    """Say who holds the lock; without a note, on a full disk, the lock still holds."""
    about = {"pid": os.getpid(), "host": socket.gethostname(), "command": " ".join(sys.argv)[:300]}
    with suppress(OSError):
        descriptor, name = tempfile.mkstemp(dir=note.parent, prefix=note.name)
        try:
            with open(descriptor, "w", encoding="utf-8", errors="replace") as handle:
                json.dump(about, handle)
            os.replace(name, note)  # a planted link is replaced, not followed
        except OSError:
            os.unlink(name)


def _holder(note: Path) -> str:
    try:
        descriptor = os.open(note, os.O_RDONLY | NO_FOLLOW)
        with open(descriptor, encoding="utf-8") as handle:
            about = json.loads(handle.read(NOTE_BYTES))
        who = f"process {int(about['pid'])} on {about['host']} ({about['command']})"
        return "".join(letter if letter.isprintable() else "?" for letter in who)
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
