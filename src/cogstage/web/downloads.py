"""Answers as files that a browser saves: tables, records, nodes and edges."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from typing import Any

from fastapi.responses import Response

from cogstage.errors import CogstageError
from cogstage.rationale.exports import rows_of, table
from cogstage.rationale.kgx import kgx
from cogstage.rationale.record import Prediction
from cogstage.reporting.escape import spreadsheet
from cogstage.web.api import described, problem
from cogstage.web.base import PageError


def send_file(content: str | bytes, kind: str, name: str) -> Response:
    """A response that the browser saves under ``name``."""
    return Response(content, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})


def download(
    answers: Sequence[Prediction | CogstageError], form: str, name: str, pairs: Sequence[tuple[str, str]] = ()
) -> Response:
    """Answers as a file: one row per reason in TSV and CSV, whole records in JSON, nodes and edges in KGX (JSON).

    A pair without an answer keeps its place, with the error: what was asked stands in ``pairs``.
    """
    records = [row for row in answers if isinstance(row, Prediction)]
    if form == "json":
        text = json.dumps([_record(row) for row in answers], ensure_ascii=False)
        return send_file(text, "application/json", f"{name}.json")
    if form == "kgx":
        nodes, edges = kgx(records)
        text = json.dumps({"nodes": nodes, "edges": edges}, ensure_ascii=False)
        return send_file(text, "application/json", f"{name}.kgx.json")
    rows = rows_of(records) if len(records) == len(answers) else _with_errors(answers, pairs)
    return send_table(rows, form, name)


def send_table(rows: Sequence[dict[str, Any]], form: str, name: str) -> Response:
    """A table as TSV or CSV."""
    if form == "tsv":
        return send_file(table(rows) if rows else "\n", "text/tab-separated-values; charset=utf-8", f"{name}.tsv")
    if form != "csv":
        raise PageError(404, "unknown_format", "Candidates can be exported as TSV, CSV, JSON and KGX.")
    stream = io.StringIO()
    if rows:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\r\n")
        writer.writeheader()
        writer.writerows(
            [
                {key: spreadsheet(value) if isinstance(value, str) else value for key, value in row.items()}
                for row in rows
            ]
        )
    return send_file(stream.getvalue(), "text/csv; charset=utf-8", f"{name}.csv")


def file_name(*parts: str) -> str:
    """A file name that says what the file holds: "candidates_may-treat_diabetes-mellitus"."""
    cleaned = (re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-")[:60] for part in parts)
    return "_".join(part for part in cleaned if part)


def _record(row: Prediction | CogstageError) -> dict[str, Any]:
    return row.to_dict() if isinstance(row, Prediction) else problem(*described(row)[1:])


def _with_errors(answers: Sequence[Prediction | CogstageError], pairs: Sequence[tuple[str, str]]) -> list[Any]:
    """The rows of a table, in the order of the pairs; a pair that has no answer has one row with its error."""
    columns = dict.fromkeys([*(rows_of([p])[0] if (p := _first(answers)) else ("head", "tail")), "error"], "")
    rows = []
    for answer, (head, tail) in zip(answers, pairs, strict=True):
        if isinstance(answer, Prediction):
            rows += [{**columns, **row} for row in rows_of([answer])]
        else:
            rows.append({**columns, "head": head, "tail": tail, "error": str(answer)})
    return rows


def _first(answers: Sequence[Prediction | CogstageError]) -> Prediction | None:
    return next((row for row in answers if isinstance(row, Prediction)), None)
