"""Input files as streams: plain, gzip, zstd, or inside a .zip archive; bounded lines, bounded decompression, UTF-8.

A file inside an archive has a path like ``notes.zip/ward/a.csv``, so that it can be named, sorted and sent to another
process like any other file.
"""

from __future__ import annotations

import glob
import io
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, AnyStr, Protocol

import pyarrow as pa

from cogstage.errors import CogstageError, UsageError
from cogstage.frames import Frame

Paths = str | Path | Frame | Sequence[str | Path]  # files, folders or glob patterns; public functions take frames
COMPRESSED = {".gz": "gzip", ".zst": "zstd"}
ARCHIVE = ".zip"
_MAGIC = {b"\x1f\x8b": ("gzip", ".gz"), b"\x28\xb5\x2f\xfd": ("zstd", ".zst"), b"PK\x03\x04": ("zip", ".zip"),
          b"PAR1": ("Parquet", ".parquet")}  # fmt: skip
LONGEST_LINE = 64 << 20  # characters (bytes) of one line or one JSON value; more is refused
HIGHEST_RATIO = 200  # bytes out for each byte in: text packs 3 to 30 times, a decompression bomb 1,000 times
UNGUARDED = 64 << 20  # bytes that any file may unpack to, whatever the ratio

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class Reports(Protocol):
    """Where a line that is refused is reported (:class:`cogstage.tables.BadRows`)."""

    skip: bool

    def report(self, message: str, lines: int = 1) -> None:
        """Raise an error, or skip and count the row."""


def listed(paths: Paths) -> list[str | Path]:
    """The paths as a list."""
    if isinstance(paths, Frame):
        raise UsageError(f"expected the path of a file, not a table ({type(paths).__name__})")
    return [paths] if isinstance(paths, (str, Path)) else list(paths)


def expand(paths: Paths) -> list[Path]:
    """Files behind a path, several paths, or globs, in a stable order; a path that is not there is an error."""
    found: list[Path] = []
    for entry in listed(paths):
        path = Path(entry)
        if path.exists() or archive_of(path) is not None:
            found.append(path)
            continue
        matches = sorted(glob.glob(str(entry), recursive=True))
        if not matches and "://" in str(entry):  # its password must not be shown
            raise UsageError("expected files, not a URL; only `cogstage graph build` reads databases")
        if not matches:
            raise UsageError(f"no such file: {entry}")
        found.extend(Path(match) for match in matches)
    return found


def files_in(path: Path) -> list[Path]:
    """The files of a folder or an archive, sorted, hidden ones left out; a plain file is its own only one."""
    if is_archive(path):
        with _archive(path) as archive:
            members = sorted(info.filename for info in archive.infolist() if not info.is_dir())
        shown = [name for name in members if not any(part.startswith((".", "_")) for part in name.split("/"))]
        files = [path / name for name in shown]
    elif path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith((".", "_")))
        files = [inner for file in files for inner in (files_in(file) if is_archive(file) else [file])]
    else:
        return [path]
    if not files:
        raise UsageError(f"{path} contains no files")
    return files


def is_archive(path: Path) -> bool:
    """Whether this is a .zip archive (and not a file inside one)."""
    return path.suffix.lower() == ARCHIVE and path.is_file()


def archive_of(path: Path) -> Path | None:
    """The archive that a file lies in, None for one that lies in a folder."""
    if ARCHIVE not in str(path).lower():
        return None
    return next((parent for parent in path.parents if is_archive(parent)), None)


def file_on_disk(path: Path) -> Path:
    """The file itself, or the archive that holds it."""
    return archive_of(path) or path


def file_size(path: Path) -> int:
    """Bytes that reading the file takes from the disk."""
    archive = archive_of(path)
    if archive is None:
        return path.stat().st_size
    with _archive(archive) as opened:
        return opened.getinfo(path.relative_to(archive).as_posix()).compress_size


def bare_suffix(path: Path) -> str:
    """The suffix that names the format: ``.tsv`` of ``notes.tsv.gz``."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


@dataclass
class Meter:
    """Counts the bytes read so far (before decompression), for a progress bar."""

    position: int = 0


class _MeteredFile(io.RawIOBase):
    """A file that reports bytes read to a meter."""

    def __init__(self, path: Path, meter: Meter) -> None:
        self._file = path.open("rb", buffering=0)
        self._meter = meter
        self.taken = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(buffer) or 0
        self._meter.position += count
        self.taken += count
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


class _Unpacked(io.RawIOBase):
    """Decompressed data; refused if it is out of proportion to the compressed size."""

    def __init__(self, stream: Any, taken: Callable[[], int], path: Path, meter: Meter | None = None) -> None:
        self._stream, self._taken, self._path, self._meter = stream, taken, path, meter
        self._given = 0
        self._metered = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        raw = self._stream.read(len(buffer))
        buffer[: len(raw)] = raw
        self._given += len(raw)
        taken = self._taken()
        if self._given > max(UNGUARDED, HIGHEST_RATIO * taken):
            raise CogstageError(
                f"{self._path}: unpacks to more than {HIGHEST_RATIO} times its size; "
                "if this is expected, unpack it yourself"
            )
        if self._meter is not None:
            self._meter.position += taken - self._metered
            self._metered = taken
        return len(raw)

    def close(self) -> None:
        self._stream.close()
        super().close()


def open_bytes(path: Path, meter: Meter | None = None) -> io.BufferedReader:
    """The file's content as a byte stream, decompressed on the way where its name says so."""
    meter = meter or Meter()
    try:
        archive = archive_of(path)
        file: Any
        if archive is not None:
            file = _member(archive, path, meter)
        else:
            file = _MeteredFile(path, meter)
        compression = COMPRESSED.get(path.suffix.lower())
        if compression is not None:
            source = file
            stream = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), compression)
            file = _Unpacked(stream, lambda: source.taken, path)
        handle = io.BufferedReader(file, 1 << 16)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
    if compression is None:
        _refuse_other_kind(handle, path)
    return handle


def _refuse_other_kind(handle: io.BufferedReader, path: Path) -> None:
    """Raise if the file is compressed, an archive or Parquet, but its name does not say so."""
    first = handle.peek(4)[:4]
    for magic, (kind, suffix) in _MAGIC.items():
        if first.startswith(magic) and path.suffix.lower() != suffix:
            handle.close()
            name = path.with_suffix(suffix).name if suffix in (".zip", ".parquet") else path.name + suffix
            raise UsageError(f"{path} contains {kind} data, but its name says otherwise; rename it to {name}")


def _archive(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as error:
        raise CogstageError(f"{path} is not a readable .zip archive: {error}") from error


class _Member(_Unpacked):
    """A file inside an archive; how much was read is estimated from its share of the archive."""

    def __init__(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path, meter: Meter) -> None:
        self._archive, self._info = archive, info
        super().__init__(archive.open(info), lambda: self.taken, path, meter)

    @property
    def taken(self) -> int:
        share = min(1.0, self._given / self._info.file_size) if self._info.file_size else 1.0
        return round(share * self._info.compress_size)

    def readinto(self, buffer: Any) -> int:
        try:
            return super().readinto(buffer)
        except zipfile.BadZipFile as error:
            raise CogstageError(f"{self._path} is damaged: {error}") from error

    def close(self) -> None:
        super().close()
        self._archive.close()


def _member(archive: Path, path: Path, meter: Meter) -> _Member:
    opened = _archive(archive)
    try:
        return _Member(opened, opened.getinfo(path.relative_to(archive).as_posix()), path, meter)
    except KeyError:
        raise UsageError(f"no such file: {path}") from None
    except (RuntimeError, NotImplementedError) as error:  # encrypted, or packed in a way that Python cannot undo
        raise UsageError(f"{path} cannot be read ({error}); unpack the archive yourself") from error


def open_text(path: Path, meter: Meter | None = None) -> io.TextIOWrapper:
    """The file's content as UTF-8 text (a byte order mark is passed over).

    Bytes that are not UTF-8 come as lone surrogates, so that the reader can say in which line they stand: see
    :func:`is_clean`. UTF-16 is refused by name.
    """
    handle = open_bytes(path, meter)
    refuse_utf_16(handle, path)
    return io.TextIOWrapper(handle, encoding="utf-8-sig", errors="surrogateescape", newline="")


def refuse_utf_16(handle: io.BufferedReader, path: Path) -> None:
    """Raise if the file begins like UTF-16 text, without consuming it."""
    first = handle.peek(4)[:4]
    if first[:2] in _UTF_16 or (len(first) == 4 and first.count(0) == 2 and first[0:2].count(0) == 1):
        handle.close()
        raise CogstageError(f"{path}: UTF-16 text; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)")


def is_clean(text: str) -> bool:
    """Whether the text was UTF-8 throughout."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def lines_of(handle: IO[AnyStr], path: Path, bad: Reports) -> Iterator[tuple[int, AnyStr]]:
    """The lines of a text or byte stream with their numbers; one beyond the limit is reported and passed over."""
    number = 0
    while line := handle.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) <= LONGEST_LINE:
            yield number, line
            continue
        bad.report(f"{path}:{number}: line longer than the limit of {LONGEST_LINE:,} characters")
        while line and line[-1:] not in ("\n", b"\n", "\r"):
            line = handle.readline(1 << 20)
