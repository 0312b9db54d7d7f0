"""MEDS, the Medical Event Data Standard: Parquet shards of events with subject_id, time and code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from cogstage.corpus.formats.table import TableReader
from cogstage.corpus.readers import Sample
from cogstage.errors import UsageError
from cogstage.tables import BadRows, column_names, read_rows

EVENT = {"subject_id", "time", "code"}


class MedsReader(TableReader):
    """Events of subjects as coded records; names come from ``metadata/codes.parquet``."""

    format = "meds"
    title = "MEDS: Parquet shards of events (subject_id, time, code)"
    suffixes = (".parquet",)
    renames: ClassVar[dict[str, str]] = {"subject_id": "patient_id", "time": "date"}

    @classmethod
    def recognises(cls, sample: Sample) -> int:
        """A table with the columns of MEDS, or a folder with shards of them below ``data``."""
        if not sample.is_folder:
            return 2 * int(sample.columns >= EVENT)
        shards = sorted(sample.path.glob("data/**/*.parquet")) if sample.path.is_dir() else []
        return 2 * int(bool(shards) and set(column_names(shards[0])) >= EVENT)

    def __init__(self, files: Sequence[Path], bad: BadRows, **options: Any) -> None:
        columns = {path: set(column_names(path)) for path in files}
        shards = [path for path in files if columns[path] >= EVENT]
        if not shards:
            raise UsageError(f"{files[0]}: no events; MEDS shards have the columns subject_id, time and code")
        super().__init__(shards, bad, **options)
        described = [path for path in files if columns[path] >= {"code", "description"} and path not in shards]
        for row in read_rows(described, ["code"], ["description"], bad) if described else ():
            if row["description"]:
                self.code_names.add(str(row["code"]), str(row["description"]), "", "", vocabulary=True)
