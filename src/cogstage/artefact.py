"""Artefacts on disk: folders of open formats that are written atomically, each with a ``meta.json``.

Writing holds a lock on the folder's name, so that two commands never write one folder. A finished folder is written to
the disk (fsync) before it takes its name. ``meta.json`` lists every file with its size and hash;
:func:`read_folder` checks
them, and reads all files of one version of a folder even while it is replaced.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import xxhash

from cogstage.artefact_checks import BLOCK, check_files, check_sizes, meta_text, size_and_hash, version_of
from cogstage.artefact_checks import META as META
from cogstage.errors import CogstageError, UsageError
from cogstage.locks import lock_folder

FORMAT_VERSION = 1
REPORT = "REPORT.md"
LIVE = re.compile(r"\.sqlite(-\w+)?$")  # databases change while they are used, so they have no fixed hash
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
FULL_WORDS = re.compile(  # of Arrow, safetensors, shutil, numpy and tempfile, whose errors carry no number
    r"No space left|File too large|os error (27|28|122)\b|\d requested and \d+ written|No usable temporary directory"
)
NO_VERIFY = "COGSTAGE_NO_VERIFY"  # environment variable: folders are read without checking their hashes
FULL_DISK = "no space left on the disk, or a limit on the size of files; free some and run the command again"
PATIENCE = 20.0  # seconds that a reader waits for a folder that is being replaced
T = TypeVar("T")

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


@contextmanager
def one_line_if_full(path: Path) -> Iterator[None]:
    """Turn the errors of a full disk into one line, whichever library raises them."""
    try:
        yield
    except CogstageError:
        raise
    except Exception as error:
        if disk_is_full(error):
            raise CogstageError(f"{path}: {FULL_DISK}") from error
        raise


def disk_is_full(error: Exception) -> bool:
    """Whether an error means that nothing more can be written, whichever library raised it."""
    return (isinstance(error, OSError) and error.errno in FULL) or bool(FULL_WORDS.search(str(error)))


def _hidden_name(path: Path) -> Path:
    """A new name beside ``path``, for what is being written. Modes of files under it follow the user's umask."""
    return path.parent / f".{path.name}.{secrets.token_hex(6)}"


@contextmanager
def new_file(path: Path, mode: int = 0o644, durable: bool = True) -> Iterator[Path]:
    """Yield a temporary path to write to; on success it is renamed to ``path``, so that no reader sees a partial file.

    With ``durable=False``, file and folder are not synced to disk, and the file may be lost in a power cut.
    """
    with one_line_if_full(path):
        temporary = _hidden_name(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        except OSError as error:
            if error.errno in FULL:
                raise
            raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error
        try:
            allowed = temporary.stat().st_mode
            yield temporary
            os.chmod(temporary, allowed)  # some libraries make a file of their own
            if durable:
                sync_to_disk(temporary)
            os.replace(temporary, path)
            if durable:
                sync_to_disk(path.parent)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def write_text(path: Path, text: str, mode: int = 0o644, durable: bool = True) -> None:
    """Write a text file atomically."""
    with new_file(path, mode, durable=durable) as temporary:
        temporary.write_text(text, encoding="utf-8")


def sync_to_disk(path: Path) -> None:
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
        temporary = _hidden_name(path)
        try:
            temporary.mkdir(0o755)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error
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
    write_meta(new, kind, made_with, report)
    replace_folder(new, path)


def write_meta(
    folder: Path,
    kind: str,
    made_with: Mapping[str, Any],
    report: Describe | None = None,
    version: str | None = None,
) -> None:
    """Write ``meta.json`` with the hashes of all files in the folder, and ``REPORT.md`` if ``report`` is given."""
    files = {
        file.relative_to(folder).as_posix(): size_and_hash(file)
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file != folder / META and not LIVE.search(file.name)
    }
    meta = {
        "kind": kind,
        "format": FORMAT_VERSION,
        "version": software_version() if version is None else version,
        "made_with": dict(made_with),
        "files": files,
    }
    if report is not None:
        write_text(folder / REPORT, report(folder, json.loads(to_json(meta))), durable=False)
        files[REPORT] = size_and_hash(folder / REPORT)
    write_text(folder / META, to_json({**meta, "check": meta_hash(meta)}), durable=False)


def add_text(folder: Path, name: str, text: str) -> None:
    """Add a text file to a finished folder, or replace one, and record its hash in ``meta.json``.

    The old hash goes first, so that a kill in between leaves a file without a hash and never one with a wrong hash.
    """
    with lock_folder(folder):
        meta = json.loads((folder / META).read_text(encoding="utf-8"))
        meta.setdefault("files", {}).pop(name, None)
        write_text(folder / META, to_json({**meta, "check": meta_hash(meta)}))
        write_text(folder / name, text)
        meta["files"][name] = size_and_hash(folder / name)
        write_text(folder / META, to_json({**meta, "check": meta_hash(meta)}))


def meta_hash(meta: Mapping[str, Any]) -> str:
    """Hash of a ``meta.json`` without this hash."""
    rest = {key: value for key, value in meta.items() if key != "check"}
    return str(xxhash.xxh3_128_hexdigest(to_json(rest).encode("utf-8", "surrogatepass")))


def replace_folder(new: Path, path: Path) -> None:
    """Rename ``new`` to ``path``, synced to disk before and after, and remove the folder that had the name.

    Between the two renames no folder has the name. ``.NAME.next`` then contains the complete new folder, and
    :func:`recover_folder` finishes the work.
    """
    for entry in [*new.rglob("*"), new]:
        sync_to_disk(entry)
    if path.exists():
        following, old = replacement_names(path)
        shutil.rmtree(following, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
        os.replace(new, following)
        os.replace(path, old)
        os.replace(following, path)
        sync_to_disk(path.parent)
        shutil.rmtree(old, ignore_errors=True)
    else:
        os.replace(new, path)
        sync_to_disk(path.parent)


def replacement_names(path: Path) -> tuple[Path, Path]:
    """The names that the new and the old folder have for a moment while ``path`` is replaced."""
    return path.parent / f".{path.name}.next", path.parent / f".{path.name}.old"


def recover_folder(path: Path) -> None:
    """Finish a replacement that was killed between its two renames; nothing to do if the folder is there."""
    if not _between_renames(path):
        return
    following, old = replacement_names(path)
    with suppress(OSError, UsageError), lock_folder(path):  # UsageError: its writer lives and is about to finish
        if not path.exists():
            os.replace(following if following.is_dir() else old, path)
            sync_to_disk(path.parent)
            shutil.rmtree(old, ignore_errors=True)


def _between_renames(path: Path) -> bool:
    """Whether a replacement of the folder is between its two renames."""
    return not path.exists() and any(folder.is_dir() for folder in replacement_names(path))


def read_folder(
    path: Path | str,
    kind: str,
    files: Iterable[str],
    read: Callable[[Path, dict[str, Any]], T],
    verify: bool = True,
) -> T:
    """Check an artefact and return ``read(path, meta)``, all of one version of the folder.

    If the folder was replaced meanwhile, all of it is read again, so that files of two versions never mix. See
    :func:`read_meta` for the checks. What ``read`` opens, it must open before it returns.
    """
    path = Path(path)
    deadline = time.monotonic() + PATIENCE
    while True:
        before = version_of(path)
        try:
            value = read(path, read_meta(path, kind, files, verify))
        except Exception as error:
            if version_of(path) == before and not _between_renames(path):
                if isinstance(error, FileNotFoundError):
                    raise CogstageError(f"{path} is damaged ({error}); create the {kind} again") from error
                raise
        else:
            if version_of(path) == before:
                return value
        if time.monotonic() > deadline:
            raise CogstageError(f"{path} is replaced again and again while it is read; try again later")
        time.sleep(0.005)


def is_artefact(path: Path, kind: str) -> bool:
    """Whether ``path`` is a folder whose ``meta.json`` says it is of this kind."""
    return read_kind(path) == kind


def read_kind(path: Path) -> str | None:
    """The kind of artefact that the folder's ``meta.json`` names; None if there is none."""
    recover_folder(path)
    deadline = time.monotonic() + PATIENCE
    while _between_renames(path) and time.monotonic() < deadline:
        time.sleep(0.005)
    try:
        meta = json.loads(meta_text(path))
    except (OSError, ValueError, RecursionError):
        return None
    kind = meta.get("kind") if isinstance(meta, dict) else None
    return kind if isinstance(kind, str) else None


def read_meta(path: Path | str, kind: str, files: Iterable[str] = (), verify: bool = True) -> dict[str, Any]:
    """The ``meta.json`` of an artefact, checked: right kind, known format, every needed file there and undamaged.

    ``verify=False``, or the environment variable ``COGSTAGE_NO_VERIFY``, leaves the hashes unchecked. Otherwise a
    folder without hashes is refused.
    """
    path = Path(path)
    recover_folder(path)
    if not path.is_dir():
        raise UsageError(f"{path} is not a folder; expected a {kind} made by cogstage")
    try:
        text = meta_text(path)
        meta = json.loads(text)
    except FileNotFoundError:
        raise UsageError(f"{path} has no {META}; expected a {kind} made by cogstage") from None
    except (OSError, ValueError, RecursionError) as error:
        raise CogstageError(f"{path / META} is not valid JSON ({error}); create the {kind} again") from None
    own_kind = meta.get("kind") if isinstance(meta, dict) else None
    if own_kind != kind:
        raise UsageError(f"{path} is a {own_kind or 'folder of another program'}, not a {kind}")
    if meta.get("format") != FORMAT_VERSION:
        raise CogstageError(
            f"{path} has format {meta.get('format')}, but this version reads format {FORMAT_VERSION}; "
            f"create the {kind} again"
        )
    for name in files:
        if not (path / name).exists():
            raise CogstageError(f"{path} does not contain {name}; create the {kind} again")
    recorded = meta.get("files")
    if verify and not os.environ.get(NO_VERIFY):
        _check_hashes(path, kind, meta, text)
        check_files(path, kind, meta["files"])
    check_sizes(path / name for name in {*files, *(recorded if isinstance(recorded, dict) else ())})
    return dict(meta)


def _check_hashes(path: Path, kind: str, meta: Mapping[str, Any], text: str) -> None:
    """Raise unless ``meta.json`` is as it was written and records hashes of files in this folder."""
    if "files" not in meta and "check" not in meta:
        raise CogstageError(
            f"{path} records no hashes of its files, so damage would go unnoticed; "
            f"create the {kind} again, or read it with `no_verify`"
        )
    if meta.get("check") != meta_hash(meta) or text != to_json(meta) or not isinstance(meta.get("files"), dict):
        raise CogstageError(
            f"{path / META} is damaged: its content has changed since it was written; create the {kind} again"
        )
    for name in meta["files"]:
        for part in PurePosixPath(name).parts or ("",):
            safe_name(part, path / META)
