"""A list of prediction records that is also a table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from cogstage.choices import FrameLibrary
from cogstage.frames import to_frame
from cogstage.rationale.exports import NO_REASON, rows_of
from cogstage.rationale.record import Prediction
from cogstage.reporting.table import Table

SHOWN = 20  # rows in a notebook


class Predictions(list[Prediction]):
    """Prediction records in the order of the question, which pandas, Polars and Arrow also read as a table.

    Parameters
    ----------
    iterable
        The records.

    Examples
    --------
    >>> model = cs.CogStage.load("model")
    >>> frame = model.discover("Drug number 4", "may_treat", top=3).to_frame()
    >>> frame["rank"].tolist(), frame["head_name"].unique().tolist()
    ([1, 2, 3], ['Drug number 4'])
    """

    def to_frame(self, library: FrameLibrary = "pandas", *, reasons: bool = False) -> Any:
        """Return the predictions as a table.

        Parameters
        ----------
        library
            "pandas", "polars" or "pyarrow".
        reasons
            Whether the table has one row per reason, as in the TSV export, instead of one row per prediction.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            The columns of the TSV export, without those of reasons unless ``reasons`` is set.
        """
        return to_frame(self._table(reasons), library)

    def _table(self, reasons: bool = False) -> pa.Table:
        rows = rows_of(self if reasons else [prediction.top(0) for prediction in self])
        if not reasons:
            rows = [{name: value for name, value in row.items() if name not in NO_REASON} for row in rows]
        return pa.Table.from_pylist(rows)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        """The first predictions as a table, for notebooks."""
        rows = tuple((p.head.name, p.relation, p.tail.name, p.verdict, f"{p.probability:.3f}") for p in self[:SHOWN])
        more = f", the first {SHOWN}" if len(self) > SHOWN else ""
        title = f"{len(self):,} predictions{more}"
        return Table(title, ("head", "relation", "tail", "verdict", "probability"), rows).html()
