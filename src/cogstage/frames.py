"""Tables in memory: pandas, Polars and Arrow tables in place of files, and results as such tables."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar, runtime_checkable

import pyarrow as pa

from cogstage.choices import FrameLibrary, check_choice
from cogstage.errors import CogstageError, UsageError

P = ParamSpec("P")
R = TypeVar("R")


@runtime_checkable
class Frame(Protocol):
    """A table in memory: pandas, Polars, PyArrow, DuckDB and others have the Arrow interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as an Arrow stream."""


def to_frame(table: pa.Table, library: FrameLibrary = "pandas") -> Any:
    """The table as a data frame of the library, which must be installed."""
    check_choice("library", library, FrameLibrary)
    if library == "pyarrow":
        return table
    try:
        module = import_module(library)
    except ImportError:
        raise CogstageError(f"{library} is not installed; install it, or set `library` to pyarrow") from None
    return table.to_pandas() if library == "pandas" else module.from_arrow(table)


def takes_frames(*names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function take frames for parameters that are paths of tables.

    A frame is written to a temporary Parquet file for the time of the call, since other processes read the input and
    its hash identifies it.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = signature(function)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            bound = parameters.bind(*args, **kwargs)
            frames = {name: bound.arguments[name] for name in names if isinstance(bound.arguments.get(name), Frame)}
            if not frames:
                return function(*args, **kwargs)
            with _files(frames) as files:
                bound.arguments.update(files)
                return function(*bound.args, **bound.kwargs)

        return call

    return decorate


@contextmanager
def _files(frames: dict[str, Frame]) -> Iterator[dict[str, Path]]:
    """A Parquet file for each frame, readable by the user alone."""
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory(prefix="cogstage-") as folder:
        files = {name: Path(folder) / f"{name}.parquet" for name in frames}
        for name, frame in frames.items():
            try:
                pq.write_table(_plain(pa.table(frame)), files[name])
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError) as error:
                raise UsageError(f"`{name}` cannot be read as a table: {error}") from error
        yield files


def _plain(table: pa.Table) -> pa.Table:
    """The table without the metadata and index columns of pandas, so that equal tables have equal files."""
    columns = [name for name in table.column_names if not name.startswith("__index_level_")]
    return table.select(columns).replace_schema_metadata(None)
