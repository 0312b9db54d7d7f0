"""Predictions as text and as files: the ending of a file sets its format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cogstage.artefact import new_file, write_text
from cogstage.errors import UsageError
from cogstage.evaluation.cases import Case, cases_section
from cogstage.rationale.exports import FORMATS, export
from cogstage.rationale.picture import png, svg
from cogstage.rationale.prose import prose
from cogstage.rationale.record import Prediction
from cogstage.rationale.text import prediction_text
from cogstage.reporting import Report


def predictions_text(predictions: Sequence[Prediction], form: str = "text") -> str:
    """Predictions as ``text`` with the whole sum, ``prose``, ``json`` (one record per line) or one ``html`` page."""
    if form == "prose":
        return "\n\n".join("\n".join(prose(prediction)) for prediction in predictions) + "\n"
    if form == "json":
        return "".join(prediction.to_json() + "\n" for prediction in predictions)
    if form == "html":
        cases = cases_section([Case(prediction) for prediction in predictions])
        return Report("Predictions and their rationales", sections=[cases]).html()
    return "\n".join(prediction_text(prediction) for prediction in predictions)


def write_predictions(predictions: Sequence[Prediction], out: Path) -> list[Path]:
    """Write predictions in the format that the ending of ``out`` names; returns the files that were written."""
    form = out.suffix.lower().removeprefix(".")
    if form in FORMATS:
        return export(predictions, out, form)
    if form not in ("svg", "png", "html"):
        raise UsageError(f"{out}: unknown file extension; choose one of .svg, .png, .html, .{', .'.join(FORMATS)}")
    if form == "html":
        write_text(out, predictions_text(predictions, "html"))
        return [out]
    if len(predictions) != 1:
        raise UsageError(f"a picture shows one prediction, and there are {len(predictions)}; choose one `relation`")
    if form == "svg":
        write_text(out, svg(predictions[0]))
    else:
        with new_file(out) as temporary:
            temporary.write_bytes(png(predictions[0]))
    return [out]
