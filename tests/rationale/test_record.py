"""The Prediction record: round trip, schema, filters and exports."""

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pyarrow.parquet as pq
import pytest
from sample_predictions import HEAD, TAIL, prediction

from cogstage.artefact import to_json
from cogstage.errors import CogstageError, UsageError
from cogstage.rationale.exports import export
from cogstage.rationale.filters import Filter
from cogstage.rationale.record import Prediction
from cogstage.rationale.schema import prediction_schema

DOCS = Path(__file__).parents[2] / "docs"


def test_json_round_trip() -> None:
    record = prediction(7)
    assert Prediction.from_json(record.to_json()) == record


@pytest.mark.parametrize(
    "line",
    ["", "[]", "{}", '{"schema": 99}', '{"schema": 1, "head": {"key": "a"}}', '{"schema": 2, "head": {"key": "a"}}'],
)
def test_what_is_no_record_gets_one_line(line: str) -> None:
    with pytest.raises(CogstageError, match="prediction record"):
        Prediction.from_json(line)


def test_records_satisfy_the_schema_and_the_schema_is_strict() -> None:
    schema = prediction_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    record = json.loads(prediction(5).to_json())
    jsonschema.validate(record, schema)
    del record["reasons_for"][0]["share"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(record, schema)


def test_published_schema_is_the_current_one() -> None:
    assert (DOCS / "prediction.schema.json").read_text(encoding="utf-8") == to_json(prediction_schema())


def test_filters_keep_what_they_say() -> None:
    record = prediction(15)
    assert Filter().apply(record) == record
    assert not Filter()
    through = Filter(through="caff").apply(record).reasons
    assert through
    assert all(r.head.name == "Caffeine" for r in through)
    contra = Filter(relation="contraindicates").apply(record)
    assert {r.relation for r in contra.reasons} == {"contraindicates_inverse"}
    assert contra.baseline + contra.pair_share + sum(r.share for r in contra.reasons) + contra.rest == pytest.approx(
        record.logit
    )
    assert all(r.known_fact for r in Filter(known_only=True).apply(record).reasons)


def test_tsv_and_parquet_hold_the_same_rows(tmp_path: Path) -> None:
    records = [prediction(5), prediction(0)]
    export(records, tmp_path / "p.tsv", "tsv")
    export(records, tmp_path / "p.parquet", "parquet")
    with (tmp_path / "p.tsv").open(encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle, delimiter="\t", quoting=csv.QUOTE_NONE))
    table = pq.read_table(tmp_path / "p.parquet").to_pylist()
    assert len(rows) == len(table) == 6
    assert [row["reason_head"] for row in rows] == [row["reason_head"] or "" for row in table]
    assert list(rows[0]) == list(table[0])


def test_graphml_and_dot_hold_every_term(tmp_path: Path) -> None:
    record = prediction(9)
    export([record], tmp_path / "p.graphml", "graphml")
    export([record], tmp_path / "p.dot", "dot")
    root = ElementTree.parse(tmp_path / "p.graphml").getroot()
    ids = {node.get("id") for node in root.iter("{http://graphml.graphdrawing.org/xmlns}node")}
    expected = {HEAD.key, TAIL.key} | {t.key for r in record.reasons for t in (r.head, r.tail)}
    assert ids == expected
    dot = (tmp_path / "p.dot").read_text(encoding="utf-8")
    assert all(f'"{key}" [label=' in dot for key in expected)
    # The inverse triple is drawn forward: the disorder contraindicates nothing, the drug does.
    inverse = next(r for r in record.reasons if r.relation == "contraindicates_inverse")
    assert f'"{inverse.tail.key}" -> "{inverse.head.key}" [label="is contraindicated in"' in dot


def test_unknown_form_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="choose one of"):
        export([], tmp_path / "x", "xls")
