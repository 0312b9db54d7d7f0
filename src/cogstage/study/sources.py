"""Sources of reasons for a study: prediction records, model folders, or a table from any system.

This is the only file of the study that knows the Prediction record; :func:`explained` is where it is read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cogstage.artefact import is_artefact
from cogstage.errors import CogstageError, UsageError
from cogstage.rationale.corrections import Corrections
from cogstage.rationale.record import UNLIKELY, Prediction
from cogstage.tables import Row, bare_suffix, column_names, open_bytes, read_rows

Pair = tuple[str, str, str]  # keys of head, relation, tail
REASON_COLUMNS = ("head", "relation", "tail", "reason_head", "reason_relation", "reason_tail")
FURTHER_COLUMNS = ("reason_status", "weight", "probability", "label", "head_name", "tail_name")


@dataclass(frozen=True)
class WeightedTriple:
    """A triple with its signed weight: positive for the relation of the pair, negative against it."""

    head: str
    relation: str
    tail: str
    weight: float
    unlikely: bool = False  # the source considers the triple unlikely
    known: bool = False  # the triple is a known fact


@dataclass(frozen=True)
class ExplainedPair:
    """The prediction and reasons of a source for one pair, with readable names."""

    head: str
    relation: str
    tail: str
    probability: float
    reasons: tuple[WeightedTriple, ...]
    contradicted: bool = False  # an opposite relation is known or more likely, so the source does not predict this one


@dataclass(frozen=True)
class Source:
    """Predictions by pair, and the labels that stand next to the records (none where the file carries no labels)."""

    name: str
    predictions: Mapping[Pair, ExplainedPair]
    labels: Mapping[Pair, int]


def explained(prediction: Prediction) -> ExplainedPair:
    """The part of a prediction record that a study uses."""
    reasons = tuple(
        WeightedTriple(
            entry.head.name, entry.relation, entry.tail.name, entry.share, not entry.recognised, entry.known_fact
        )
        for entry in prediction.reasons
    )
    return ExplainedPair(
        prediction.head.name,
        prediction.relation,
        prediction.tail.name,
        prediction.probability,
        reasons,
        prediction.verdict == "contradicted",
    )


def pair_of(prediction: Prediction) -> Pair:
    """What identifies a case over sources."""
    return prediction.head.key, prediction.relation, prediction.tail.key


def read_source(
    name: str,
    path: Path,
    labels: Mapping[Pair, int],
    per_set: int,
    dataset: Path | None = None,
    corrections: Corrections | None = None,
) -> Source:
    """Read a source from a path: a file of records or reasons, or a folder that predicts every labelled pair.

    A model folder predicts, with a team's ``corrections`` if given; a graph folder gives known facts about similar
    terms.
    """
    if not path.exists():
        raise UsageError(f"source {name}: no such file or folder: {path}")
    if path.is_dir():
        is_model = is_artefact(path, "model")
        if not is_model and not is_artefact(path, "graph"):
            raise UsageError(
                f"source {name}: {path} is a folder but not a model or graph; give one of these or a file of reasons"
            )
        if not labels or (dataset is None and not is_model):
            raise UsageError(f"source {name}: a folder needs a `dataset` to know which pairs to predict")
        if is_model:
            return predictions_from_model(name, path, list(labels), per_set, corrections)
        from cogstage.study.neighbours import reasons_of_neighbours

        assert dataset is not None
        return reasons_of_neighbours(name, path, dataset, list(labels), per_set)
    if bare_suffix(path) in (".jsonl", ".ndjson") and "reason_head" not in column_names(path):
        return read_records(name, path)
    return read_reasons(name, path)


def read_records(name: str, path: Path) -> Source:
    """Prediction records, one JSON object per line, each with an optional ``label`` (0 or 1) next to its own fields."""
    predictions: dict[Pair, ExplainedPair] = {}
    labels: dict[Pair, int] = {}
    with open_bytes(path) as handle:
        for number, raw in enumerate(handle, start=1):
            if not raw.strip():
                continue
            try:
                record = json.loads(raw)
                if not isinstance(record, dict):
                    raise CogstageError("expected a JSON object")
                label = record.pop("label", None)
                prediction = Prediction.from_dict(record)
                pair = pair_of(prediction)
                if label is not None:
                    labels[pair] = _label(label)
            except (ValueError, RecursionError, CogstageError) as error:
                raise CogstageError(f"{path}:{number}: {error}") from None
            if pair in predictions:
                raise CogstageError(f"{path}:{number}: the pair {' / '.join(pair)} occurs twice")
            predictions[pair] = explained(prediction)
    if not predictions:
        raise CogstageError(f"{path} contains no prediction records")
    return Source(name, predictions, labels)


def read_reasons(name: str, path: Path) -> Source:
    """Any system's reasons: a table (TSV, CSV, JSON lines, Parquet) with one reason per row.

    The columns ``head``, ``relation`` and ``tail`` name the pair, ``reason_head``, ``reason_relation`` and
    ``reason_tail`` the triple. Optional are ``reason_status`` ("considered unlikely": the triple is denied in words;
    "known fact"),
    ``weight`` (below zero: the triple speaks against the relation; without it, rows count as ordered),
    ``probability`` of the pair (without it, 1), ``label``, ``head_name``, ``tail_name``.
    """
    reasons: dict[Pair, list[WeightedTriple]] = {}
    about: dict[Pair, tuple[str, str, float]] = {}
    labels: dict[Pair, int] = {}
    try:
        for row in read_rows(path, REASON_COLUMNS, FURTHER_COLUMNS):
            pair = (str(row["head"]), str(row["relation"]), str(row["tail"]))
            listed = reasons.setdefault(pair, [])
            weight = _number(row, "weight", 1.0 / (1 + len(listed)))
            probability = _number(row, "probability", 1.0)
            if not 0 <= probability <= 1:
                raise CogstageError(f"{row.where('probability')}: {probability} is not between 0 and 1")
            triple = (str(row["reason_head"]), str(row["reason_relation"]), str(row["reason_tail"]))
            status = row["reason_status"]
            listed.append(WeightedTriple(*triple, weight, status == UNLIKELY, status == "known fact"))
            names = (str(row["head_name"] or pair[0]), str(row["tail_name"] or pair[2]), probability)
            if about.setdefault(pair, names) != names:
                raise CogstageError(
                    f"{row.where()}: another row of the same pair has different names or another probability"
                )
            if row["label"] is not None:
                labels[pair] = _label(_number(row, "label", 0.0), f"{row.where('label')}: ")
    except UsageError as error:
        raise UsageError(f"source {name}: {error}") from None
    if not reasons:
        raise CogstageError(f"{path} contains no reasons")
    predictions = {
        pair: ExplainedPair(about[pair][0], pair[1], about[pair][1], about[pair][2], tuple(listed))
        for pair, listed in reasons.items()
    }
    return Source(name, predictions, labels)


def _number(row: Row, column: str, missing: float) -> float:
    try:
        value = missing if row[column] is None else float(row[column])
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise CogstageError(f"{row.where(column)}: {str(row[column])[:40]!r} is not a number")
    return value


def _label(value: object, where: str = "") -> int:
    if value not in (0, 1):
        raise CogstageError(f"{where}label {value!r} is neither 0 nor 1")
    return int(value)  # type: ignore[call-overload, no-any-return]


def predictions_from_model(
    name: str, path: Path, pairs: Sequence[Pair], per_set: int, corrections: Corrections | None = None
) -> Source:
    """Predict every pair with a model, relation by relation."""
    from cogstage.estimator import CogStage

    model = CogStage.load(path)
    if corrections is not None and len(corrections):
        model = model.corrected(corrections)
    by_relation: dict[str, list[Pair]] = {}
    for pair in pairs:
        by_relation.setdefault(pair[1], []).append(pair)
    predictions: dict[Pair, ExplainedPair] = {}
    node = model.vocabulary.index
    most = 2 * per_set  # a triple in both directions is shown once
    for relation, chosen in by_relation.items():
        known = [pair for pair in chosen if pair[0] in node and pair[2] in node]
        if relation in model.relations and known:
            heads, tails = [node[pair[0]] for pair in known], [node[pair[2]] for pair in known]
            records = model.predict_batch(heads, tails, relation, most)
            predictions.update(zip(known, map(explained, records), strict=True))
    if not predictions:
        raise UsageError(f"source {name}: the model {path} knows none of the data set's test pairs")
    return Source(name, predictions, {})


def labels_of_dataset(path: Path, relation: str | None) -> dict[Pair, int]:
    """The label of every test pair of a data set, of one relation or of all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from cogstage.knowledge.dataset import Dataset

    dataset = Dataset.load(path)
    if relation is not None and relation not in dataset.relations:
        raise UsageError(f"the data set has no relation {relation}; it has {', '.join(dataset.relations)}")
    labels: dict[Pair, int] = {}
    for name in dataset.relations if relation is None else (relation,):
        file = path / "pairs" / name / "test.parquet"
        try:
            table = pq.read_table(file, columns=["head", "tail", "label"]).to_pydict()
        except (pa.ArrowInvalid, KeyError, OSError) as error:
            raise CogstageError(f"{file} is damaged ({error}); build the data set again") from error
        for head, tail, label in zip(table["head"], table["tail"], table["label"], strict=True):
            labels[head, name, tail] = int(label)
    return labels
