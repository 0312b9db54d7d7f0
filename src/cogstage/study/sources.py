"""Where a study's rationales come from: files of prediction records or model folders; and the labels of the pairs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cogstage.artefact import is_artefact
from cogstage.errors import CogstageError, UsageError
from cogstage.rationale.record import Prediction
from cogstage.tables import bare_suffix, open_bytes

Pair = tuple[str, str, str]  # keys of head, relation, tail


@dataclass(frozen=True)
class Source:
    """Predictions by pair, and the labels that stand beside the records (none where the file carries no labels)."""

    name: str
    predictions: Mapping[Pair, Prediction]
    labels: Mapping[Pair, int]


def pair_of(prediction: Prediction) -> Pair:
    """What identifies a case over sources."""
    return prediction.head.key, prediction.relation, prediction.tail.key


def read_source(name: str, path: Path, labels: Mapping[Pair, int], per_set: int) -> Source:
    """A source behind a path: a file of prediction records, or a model folder asked about every labelled pair."""
    if not path.exists():
        raise UsageError(f"source {name}: no such file or folder: {path}")
    if path.is_dir():
        if not is_artefact(path, "model"):
            raise UsageError(f"source {name}: {path} is a folder but not a model; give a model or a .jsonl file")
        if not labels:
            raise UsageError(f"source {name}: a model needs --dataset to know which pairs to predict")
        return predictions_from_model(name, path, list(labels), per_set)
    return read_records(name, path)


def read_records(name: str, path: Path) -> Source:
    """Prediction records, one JSON object a line, each with an optional ``label`` (0 or 1) beside its own fields."""
    if bare_suffix(path) not in (".jsonl", ".ndjson"):
        raise UsageError(f"source {name}: {path} is not a .jsonl file of prediction records")
    predictions: dict[Pair, Prediction] = {}
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
                    if label not in (0, 1):
                        raise CogstageError(f"label {label!r} is neither 0 nor 1")
                    labels[pair] = int(label)
            except (ValueError, CogstageError) as error:
                raise CogstageError(f"{path}:{number}: {error}") from None
            if pair in predictions:
                raise CogstageError(f"{path}:{number}: the pair {' / '.join(pair)} stands there twice")
            predictions[pair] = prediction
    if not predictions:
        raise CogstageError(f"{path} holds no prediction record")
    return Source(name, predictions, labels)


def predictions_from_model(name: str, path: Path, pairs: Sequence[Pair], per_set: int) -> Source:
    """Ask a model about every pair, relation by relation."""
    from cogstage.rationale.cogstage import CogStage

    model = CogStage.load(path)
    by_relation: dict[str, list[Pair]] = {}
    for pair in pairs:
        by_relation.setdefault(pair[1], []).append(pair)
    predictions: dict[Pair, Prediction] = {}
    node = model.vocabulary.index
    most = 2 * per_set  # a triple said both ways is shown once
    for relation, chosen in by_relation.items():
        known = [pair for pair in chosen if pair[0] in node and pair[2] in node]
        if relation in model.relations and known:
            heads, tails = [node[pair[0]] for pair in known], [node[pair[2]] for pair in known]
            predictions.update(zip(known, model.predict_batch(heads, tails, relation, most), strict=True))
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
