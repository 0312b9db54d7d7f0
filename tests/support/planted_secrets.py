"""A secret to plant in one patient's records, and the search for it in a folder."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

SECRET = "zebra"  # part of everything that only one patient's records say


def folder_holds(folder: Path, secret: str) -> list[str]:
    """Files of a folder that hold the secret: in their names, in their bytes, or in what Parquet compresses."""
    found = []
    for path in sorted(folder.rglob("*")):
        if secret in path.name.lower():
            found.append(str(path))
        if path.is_file():
            raw = path.read_bytes().lower()
            if path.suffix == ".parquet":
                raw += str(pq.read_table(path).to_pydict()).lower().encode()
            if any(secret.encode(coding) in raw for coding in ("utf-8", "utf-16-le", "utf-32-le")):
                found.append(str(path))
    return found
