"""Artefacts on disk: folders of open formats that are written atomically, each with a ``meta.json``.

Writing holds a lock on the folder's name, so that two commands never write one folder. A finished folder is written to
the disk (fsync) before it takes its name. ``meta.json`` lists every file with its size and hash; :func:`read_meta`
checks them.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath
from typing import Any

import xxhash

from cogstage.errors import CogstageError, UsageError
from cogstage.locks import lock_folder

FORMAT_VERSION = 1
META = "meta.json"
REPORT = "REPORT.md"
LIVE = re.compile(r"\.sqlite(-\w+)?$")  # databases change while they are used, so they have no fixed hash
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NO_VERIFY = "COGSTAGE_NO_VERIFY"  # environment variable: folders are read without checking their hashes
FULL_DISK = "no space left on the disk; free some and run the command again"
BLOCK = 1 << 22

Describe = Callable[[Path, Mapping[str, Any]], str]
"""The text of a folder's ``REPORT.md``, from the folder and its ``meta.json``."""


def software_version() -> str:
    """Return the installed version of cogstage.

    Examples
    --------
    >>> cs.software_version()[0].isdigit()
    True
    """
    try:
        return version("cogstage")
    except PackageNotFoundError:  # running from a source tree that was never installed
        return "0+source"


def to_json(value: Any) -> str:
    """Return JSON with sorted keys and a final newline, so that equal content gives equal bytes."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def safe_name(name: Any, where: Path | str) -> str:
    """Return ``name`` if it is a plain file name without a path; otherwise raise an error that names ``where``.

    Every name that is read from an artefact and becomes part of a path goes through here.
    """
    text = str(name)
    if not isinstance(name, str) or text in ("", ".", "..") or re.search(r"[/\\\0]", text) or len(text) > 200:
        raise CogstageError(f"{where}: {text[:60]!r} is not a valid file name; the artefact is damaged or hostile")
    return text


def file_hash(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while block := handle.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def fast_hash(path: Path) -> str:
    """Return the XXH3 hash (128 bits) of a file. It detects damage quickly, but does not protect against forgery."""
    digest = xxhash.xxh3_128()
    with path.open("rb") as handle:
        while block := handle.read(BLOCK):
            digest.update(block)
    return str(digest.hexdigest())


@contextmanager
def one_line_if_full(path: Path) -> Iterator[None]:
    """Turn the errors of a full disk into one line, whichever library raises them."""
    try:
        yield
    except CogstageError:
        raise
    except Exception as error:
        if _disk_is_full(error, path):
            raise CogstageError(f"{path}: {FULL_DISK}") from error
        raise


def _disk_is_full(error: Exception, path: Path) -> bool:
    if isinstance(error, OSError) and error.errno in FULL:
        return True
    if "No space left" in str(error) or "os error 28" in str(error):
        return True
    if not (isinstance(error, OSError) and error.errno is None):
        return False
    with suppress(OSError):  # numpy only says how many items it could not write
        return shutil.disk_usage(path.parent).free < 1 << 20
    return False


@contextmanager
def new_file(path: Path, mode: int = 0o644, durable: bool = True) -> Iterator[Path]:
    """Yield a temporary path to write to; on success it is renamed to ``path``, so that no reader sees a partial file.

    With ``durable=False``, the file is not synced to disk and may be lost in a power cut.
    """
    with one_line_if_full(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        except OSError as error:
            if error.errno in FULL:
                raise
            raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error
        os.close(descriptor)
        temporary = Path(name)
        try:
            yield temporary
            os.chmod(temporary, mode)
            if durable:
                _to_disk(temporary)
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def write_text(path: Path, text: str, mode: int = 0o644, durable: bool = True) -> None:
    """Write a text file atomically."""
    with new_file(path, mode, durable=durable) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _to_disk(path: Path) -> None:
    """Sync a file or folder to disk; ignored for folders on file systems that do not support it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno in FULL or not path.is_dir():
            raise
    finally:
        os.close(descriptor)


def check_writable(path: Path) -> None:
    """Create the folder ``path`` and raise unless files can be written to it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path):
            pass
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error


def check_target(path: Path, kind: str) -> None:
    """Raise unless an artefact of this kind may be written to ``path``."""
    if path.exists() and not is_artefact(path, kind) and not (path.is_dir() and not any(path.iterdir())):
        raise UsageError(f"{path} already exists and is not a {kind} folder; choose another `out` or remove it")


@contextmanager
def new_folder(
    path: Path | str, kind: str, made_with: Mapping[str, Any], report: Describe | None = None
) -> Iterator[Path]:
    """Yield a temporary folder to fill; on success it gets a ``meta.json`` and takes the name ``path``.

    An existing folder is replaced only if it is an artefact of the same kind. If anything fails, or if the process is
    stopped, it stays unchanged. ``report`` writes the text of ``REPORT.md``.
    """
    path = Path(path)
    check_target(path, kind)
    with lock_folder(path), one_line_if_full(path):
        try:
            temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error
        os.chmod(temporary, 0o755)
        try:
            yield temporary
            finish_folder(temporary, path, kind, made_with, report)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def finish_folder(
    new: Path, path: Path, kind: str, made_with: Mapping[str, Any], report: Describe | None = None
) -> None:
    """Add ``meta.json`` with the hashes of all files and the report, then rename the folder to ``path``."""
    files = {
        file.relative_to(new).as_posix(): _size_and_hash(file)
        for file in sorted(new.rglob("*"))
        if file.is_file() and file != new / META and not LIVE.search(file.name)
    }
    meta = {
        "kind": kind,
        "format": FORMAT_VERSION,
        "version": software_version(),
        "made_with": dict(made_with),
        "files": files,
    }
    if report is not None:
        write_text(new / REPORT, report(new, json.loads(to_json(meta))), durable=False)
        files[REPORT] = _size_and_hash(new / REPORT)
    write_text(new / META, to_json({**meta, "check": _check(meta)}), durable=False)  # synced with the rest below
    replace_folder(new, path)


def _size_and_hash(file: Path) -> dict[str, Any]:
    return {"bytes": file.stat().st_size, "xxh3": fast_hash(file)}


def _check(meta: Mapping[str, Any]) -> str:
    """Hash of a ``meta.json`` without this hash."""
    rest = {key: value for key, value in meta.items() if key != "check"}
    return str(xxhash.xxh3_128_hexdigest(to_json(rest).encode("utf-8", "surrogatepass")))


def replace_folder(new: Path, path: Path) -> None:
    """Rename ``new`` to ``path``, synced to disk before and after, and remove the folder that had the name.

    Between the two renames no folder has the name. ``.NAME.next`` then contains the complete new folder, and
    :func:`recover_folder` finishes the work.
    """
    for entry in [*new.rglob("*"), new]:
        _to_disk(entry)
    if path.exists():
        following, old = _beside(path)
        shutil.rmtree(following, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
        os.replace(new, following)
        os.replace(path, old)
        os.replace(following, path)
        _to_disk(path.parent)
        shutil.rmtree(old, ignore_errors=True)
    else:
        os.replace(new, path)
        _to_disk(path.parent)


def _beside(path: Path) -> tuple[Path, Path]:
    return path.parent / f".{path.name}.next", path.parent / f".{path.name}.old"


def recover_folder(path: Path) -> None:
    """Finish a replacement that was killed between its two renames; nothing to do if the folder is there."""
    following, old = _beside(path)
    if path.exists() or not (following.is_dir() or old.is_dir()):
        return
    with suppress(OSError), lock_folder(path):
        if not path.exists():
            os.replace(following if following.is_dir() else old, path)
            _to_disk(path.parent)
            shutil.rmtree(old, ignore_errors=True)


def is_artefact(path: Path, kind: str) -> bool:
    """Whether ``path`` is a folder whose ``meta.json`` says it is of this kind."""
    return read_kind(path) == kind


def read_kind(path: Path) -> str | None:
    """The kind of artefact that the folder's ``meta.json`` names; None if there is none."""
    recover_folder(path)
    try:
        meta = json.loads((path / META).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    kind = meta.get("kind") if isinstance(meta, dict) else None
    return kind if isinstance(kind, str) else None


def read_meta(path: Path | str, kind: str, files: Iterable[str] = (), verify: bool = True) -> dict[str, Any]:
    """The ``meta.json`` of an artefact, checked: right kind, known format, every needed file there and undamaged.

    ``verify=False``, or the environment variable ``COGSTAGE_NO_VERIFY``, leaves the hashes unchecked.
    Artefacts of versions that wrote no hashes are read without.
    """
    path = Path(path)
    recover_folder(path)
    if not path.is_dir():
        raise UsageError(f"{path} is not a folder; expected a {kind} made by cogstage")
    try:
        text = (path / META).read_text(encoding="utf-8")
        meta = json.loads(text)
    except FileNotFoundError:
        raise UsageError(f"{path} has no {META}; expected a {kind} made by cogstage") from None
    except ValueError as error:
        raise CogstageError(f"{path / META} is not valid JSON ({error}); create the {kind} again") from None
    found = meta.get("kind") if isinstance(meta, dict) else None
    if found != kind:
        raise UsageError(f"{path} is a {found or 'folder of another program'}, not a {kind}")
    if meta.get("format") != FORMAT_VERSION:
        raise CogstageError(
            f"{path} has format {meta.get('format')}, but this version reads format {FORMAT_VERSION}; "
            f"create the {kind} again"
        )
    for name in files:
        if not (path / name).exists():
            raise CogstageError(f"{path} does not contain {name}; create the {kind} again")
    if verify and not os.environ.get(NO_VERIFY) and ("files" in meta or "check" in meta):
        if meta.get("check") != _check(meta) or text != to_json(meta):
            raise CogstageError(
                f"{path / META} is damaged: its content has changed since it was written; create the {kind} again"
            )
        _verify(path, kind, meta.get("files", {}))
    return dict(meta)


def _verify(path: Path, kind: str, files: Any) -> None:
    """Raise unless every file has the size and hash that ``meta.json`` gives."""
    if not isinstance(files, dict):
        raise CogstageError(f"{path / META} is damaged (files); create the {kind} again")
    for name, about in files.items():
        parts = PurePosixPath(name).parts
        for part in parts or ("",):
            safe_name(part, path / META)
        file = path.joinpath(*parts)
        try:
            size, digest = about["bytes"], about["xxh3"]
            sound = file.is_file() and file.stat().st_size == size and fast_hash(file) == digest
        except (KeyError, TypeError):
            raise CogstageError(f"{path / META} is damaged ({name}); create the {kind} again") from None
        if not sound:
            raise CogstageError(
                f"{path / name} is damaged: its content has changed since it was written; create the {kind} again"
            )
