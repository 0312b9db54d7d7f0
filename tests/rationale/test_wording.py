"""One sentence per verdict and one clause per triple, the same in every output."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from check_all import check_all
from sample_predictions import inapplicable, judged, prediction

from cogstage.evaluation.cases import Case, cases_text
from cogstage.rationale.exports import dot, export, graphml, rows_of, table
from cogstage.rationale.kgx import kgx
from cogstage.rationale.layout import lay_out
from cogstage.rationale.picture import svg
from cogstage.rationale.prose import prose
from cogstage.rationale.record import Prediction
from cogstage.rationale.text import prediction_text
from cogstage.rationale.wording import in_words, statement
from cogstage.study.draw import forward_reasons
from cogstage.study.sources import explained
from cogstage.web.downloads import download

LIKELY = judged(prediction(6), {"may_treat": 3.5, "causes": -2.0, "contraindicates": 0.5})
KNOWN = judged(prediction(6), {"may_treat": -1.0, "causes": 1.0}, known=("may_treat",))
BOTH_KNOWN = judged(prediction(6), {"may_treat": 2.0, "causes": 1.0}, known=("may_treat", "causes"))
CONTRADICTED = judged(prediction(6), {"may_treat": 1.7, "causes": -1.0}, known=("causes",))
OUTDONE = judged(prediction(6), {"may_treat": 1.7, "causes": 3.0})
UNLIKELY = judged(prediction(6), {"may_treat": -1.0, "causes": 2.0})
REFUSED = judged(prediction(6), {"may_treat": 2.0, "causes": -2.0}, wrong=("may_treat",))
INAPPLICABLE = inapplicable(prediction(6))
ALL = [LIKELY, KNOWN, BOTH_KNOWN, CONTRADICTED, OUTDONE, UNLIKELY, REFUSED, INAPPLICABLE]


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        (
            LIKELY,
            "Aspirin may treat Headache (likely, 0.97); it is not thought to be contraindicated in it or to cause it.",
        ),
        (
            KNOWN,
            "Aspirin is known to treat Headache (known fact; the model alone: 0.27); it is not thought to cause it.",
        ),
        (
            BOTH_KNOWN,
            "Aspirin is known to treat Headache (known fact; the model alone: 0.88); it is also known to cause it.",
        ),
        (
            CONTRADICTED,
            "Aspirin is not thought to treat Headache: contradicted (0.85 on its own), since it is known to cause it.",
        ),
        (
            OUTDONE,
            "Aspirin is not thought to treat Headache: contradicted (0.85 on its own),"
            " since it is thought to cause it (likely, 0.95).",
        ),
        (
            UNLIKELY,
            "Aspirin is not thought to treat Headache (unlikely, 0.27); it is thought to cause it (likely, 0.88).",
        ),
        (REFUSED, "Aspirin is not thought to treat Headache (marked wrong by a reader; 0.88 on its own)."),
        (
            INAPPLICABLE,
            "Aspirin may treat Headache: does not apply, since “may treat” does not join terms of the types drug and"
            " symptom; “Headache may treat Aspirin” or “Aspirin causes Headache” would apply.",
        ),
    ],
)
def test_the_sentence_of_every_verdict(record: Prediction, sentence: str) -> None:
    assert statement(record) == record.statement == str(record) == sentence


def outputs() -> dict[str, Callable[[Prediction, Path], str]]:
    """Everything that words an answer, as text."""
    return {
        "text": lambda p, _: prediction_text(p),
        "prose": lambda p, _: prose(p)[0],
        "json": lambda p, _: json.loads(p.to_json())["statement"],
        "tsv": lambda p, _: next(csv.DictReader(io.StringIO(table(rows_of([p]))), delimiter="\t"))["statement"],
        "csv": lambda p, _: bytes(download([p], "csv", "x").body).decode(),
        "parquet": _parquet,
        "kgx": lambda p, _: kgx([p])[1][0]["statement"],
        "graphml": lambda p, _: html.unescape(graphml([p])),
        "dot": lambda p, _: dot([p]),
        "picture title": lambda p, _: lay_out(p).title,
        "svg": lambda p, _: html.unescape(svg(p)),
        **{f"cases {form}": _cases(form) for form in ("text", "markdown", "latex", "html", "jsonl")},
    }


def _parquet(p: Prediction, folder: Path) -> str:
    import pyarrow.parquet as pq

    export([p], folder / "p.parquet", "parquet")
    return str(pq.read_table(folder / "p.parquet").to_pylist()[0]["statement"])


def _cases(form: str) -> Callable[[Prediction, Path], str]:
    return lambda p, _: html.unescape(cases_text([Case(p, None)], form, "Cases"))  # type: ignore[arg-type]


def test_every_output_has_the_sentence(tmp_path: Path) -> None:
    cases = [(name, record, tmp_path) for record in ALL for name in outputs()]
    check_all(check_output, cases)


def check_output(name: str, record: Prediction, tmp_path: Path) -> None:
    text = outputs()[name](record, tmp_path)
    expected = record.statement
    if name == "cases latex":
        text = text.replace("$<$", "<").replace("$>$", ">")
    assert expected in text


def with_unlikely_reason() -> Prediction:
    """A record whose strongest reason against is a triple that the model considers unlikely."""
    record = prediction(6)
    doubted = replace(record.reasons_against[0], relation="causes", relation_probability=0.09, known_fact=False)
    return replace(record, reasons_against=(doubted, *record.reasons_against[1:]))


REASON_WORDS: dict[str, Callable[[Prediction], str]] = {
    "text": prediction_text,
    "prose": lambda p: " ".join(prose(p)),
    "tsv": lambda p: table(rows_of([p])),
    "kgx": lambda p: " ".join(edge["statement"] for edge in kgx([p])[1][1:]),
    "picture": lambda p: html.unescape(svg(p)),
    "cases": lambda p: cases_text([Case(p, None)], "text", ""),
    "cases html": lambda p: re.sub("<[^>]*>", "", html.unescape(cases_text([Case(p, None)], "html", ""))),
    "study": lambda p: " ".join(shown.text for shown in forward_reasons(explained(p))),
}


@pytest.mark.parametrize("name", list(REASON_WORDS))
def test_a_triple_that_is_considered_unlikely_is_denied_everywhere(name: str) -> None:
    record = with_unlikely_reason()
    doubted = record.reasons_against[0]
    assert not doubted.recognised
    clause = f"{doubted.head.name} is not thought to cause {doubted.tail.name}"
    assert in_words(doubted) == clause
    text = REASON_WORDS[name](record)
    assert clause in text
    assert f"{doubted.head.name} causes {doubted.tail.name}" not in text


@pytest.mark.parametrize("draw", [graphml, dot])
def test_graphs_label_an_unlikely_triple_as_such(draw: Callable[[list[Prediction]], str]) -> None:
    assert "is not thought to cause" in draw([with_unlikely_reason()])
