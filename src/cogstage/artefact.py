"""Artefacts on disk: folders of open formats that appear whole or not at all, each with a ``meta.json``."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from cogstage.errors import CogstageError, UsageError

FORMAT_VERSION = 1
META = "meta.json"


def software_version() -> str:
    """The installed version of cogstage."""
    try:
        return version("cogstage")
    except PackageNotFoundError:  # running from a source tree that was never installed
        return "0+source"


def to_json(value: Any) -> str:
    """JSON with sorted keys and a final newline, so that equal content is equal bytes."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def write_text(path: Path, text: str) -> None:
    """Write a file under a temporary name and rename it, so that no reader sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
            handle.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def file_hash(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while block := handle.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextmanager
def new_folder(path: Path | str, kind: str, made_with: Mapping[str, Any]) -> Iterator[Path]:
    """Yield a temporary folder to fill; on success it gets a ``meta.json`` and takes the name ``path``.

    A folder that is already there is replaced only if it is an artefact of the same kind; if anything fails, or the
    process is stopped, what was there stays as it was.
    """
    path = Path(path)
    if path.exists() and not is_artefact(path, kind) and not (path.is_dir() and not any(path.iterdir())):
        raise UsageError(f"{path} is there already and is not a {kind} folder; choose another --out or remove it")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error
    os.chmod(temporary, 0o755)
    try:
        yield temporary
        meta = {"kind": kind, "format": FORMAT_VERSION, "version": software_version(), "made_with": dict(made_with)}
        write_text(temporary / META, to_json(meta))
        replace_folder(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def replace_folder(new: Path, path: Path) -> None:
    """Give ``new`` the name ``path``; the folder that had the name goes only after the new one stands."""
    if path.exists():
        old = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.old."))
        os.replace(path, old / "folder")
        os.replace(new, path)
        shutil.rmtree(old, ignore_errors=True)
    else:
        os.replace(new, path)


def is_artefact(path: Path, kind: str) -> bool:
    """Whether ``path`` is a folder whose ``meta.json`` says it is of this kind."""
    try:
        meta = json.loads((path / META).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(meta, dict) and meta.get("kind") == kind


def read_meta(path: Path | str, kind: str, files: tuple[str, ...] = ()) -> dict[str, Any]:
    """The ``meta.json`` of an artefact, checked: right kind, known format, every needed file there."""
    path = Path(path)
    if not path.is_dir():
        raise UsageError(f"{path} is not a folder; expected a {kind} made by cogstage")
    try:
        meta = json.loads((path / META).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{path} has no {META}; expected a {kind} made by cogstage") from None
    except ValueError as error:
        raise CogstageError(f"{path / META} is not valid JSON ({error}); make the {kind} again") from None
    found = meta.get("kind") if isinstance(meta, dict) else None
    if found != kind:
        raise UsageError(f"{path} is a {found or 'folder of another program'}, not a {kind}")
    if meta.get("format") != FORMAT_VERSION:
        raise CogstageError(
            f"{path} has format {meta.get('format')}, this version reads {FORMAT_VERSION}; make the {kind} again"
        )
    for name in files:
        if not (path / name).exists():
            raise CogstageError(f"{path} lacks {name}; make the {kind} again")
    return dict(meta)
