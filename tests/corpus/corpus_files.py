"""What the tests of the readers share: files written small, plain or packed, and documents without their place."""

from __future__ import annotations

import datetime
import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa

from cogstage.corpus.readers import open_reader
from cogstage.corpus.records import Document

DAY = datetime.date(2011, 8, 11)


def put(path: Path, content: str | bytes) -> Path:
    raw = content.encode() if isinstance(content, str) else content
    if path.suffix == ".gz":
        raw = gzip.compress(raw)
    elif path.suffix == ".zst":
        raw = pa.compress(raw, codec="zstd", asbytes=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(raw)
    return path


def read(path: Path | str | list[Path], format: str = "auto", **options: Any) -> list[Document]:
    return list(open_reader(path, format, **options))


def without_place(documents: list[Document]) -> list[tuple[Any, ...]]:
    return [(d.doc_id, d.text, d.patient_id, d.date, d.codes) for d in documents]
