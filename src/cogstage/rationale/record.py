"""The Prediction record: one schema for the command line, the API, the pages, the study and the files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from cogstage.errors import CogstageError

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Term:
    """A node as people see it."""

    key: str
    name: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class Recall:
    """Why an association was recalled for its target: p(association | target), its rank, and the graph's own counts.

    ``count`` and ``ppmi`` are None where the two never co-occur (or are the same term).
    """

    probability: float
    rank: int
    count: int | None
    ppmi: float | None


@dataclass(frozen=True, slots=True)
class Rationale:
    """One assumption (head, relation, tail) between an association of the target's head and one of its tail.

    ``score`` = ``attention`` × ``relation_probability``; ``contribution`` is its signed share of the logit.
    """

    head: Term
    relation: str
    tail: Term
    score: float
    attention: float
    relation_probability: float
    contribution: float
    head_recall: Recall
    tail_recall: Recall
    known_fact: bool  # the triple is a training fact
    types_fit: bool | None  # the two types are usual for the relation in the training facts; None without types
    cooccurrence: int | None  # how often the two associations co-occur; None if never


@dataclass(frozen=True, slots=True)
class Provenance:
    """What made the prediction."""

    model: str  # hash of the model's weights
    graph: str  # hash of the graph
    version: str  # of cogstage
    world: str = "open"


@dataclass(frozen=True, slots=True)
class Prediction:
    """The probability that ``head`` holds ``relation`` to ``tail``, and the assumptions it rests on most."""

    head: Term
    relation: str
    tail: Term
    probability: float  # calibrated where the model has a calibration, else the raw one
    raw_probability: float
    calibrated: bool
    known_fact: bool  # the pair is a training fact of this relation
    rationales: tuple[Rationale, ...]
    assumptions: int  # how many assumptions with a relation were weighed
    effective_assumptions: float  # exp of the entropy of the attention among them
    provenance: Provenance
    schema: int = SCHEMA_VERSION

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as in the JSON form."""
        return asdict(self)

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Prediction:
        """The record behind plain values; anything that does not fit raises with one line."""
        try:
            if record["schema"] != SCHEMA_VERSION:
                raise CogstageError(
                    f"prediction record of schema {record['schema']}, this version reads {SCHEMA_VERSION}"
                )
            rationales = tuple(
                Rationale(
                    **{
                        **entry,
                        "head": Term(**entry["head"]),
                        "tail": Term(**entry["tail"]),
                        "head_recall": Recall(**entry["head_recall"]),
                        "tail_recall": Recall(**entry["tail_recall"]),
                    }
                )
                for entry in record["rationales"]
            )
            nested = {
                "head": Term(**record["head"]),
                "tail": Term(**record["tail"]),
                "rationales": rationales,
                "provenance": Provenance(**record["provenance"]),
            }
            return cls(**{**record, **nested})
        except (KeyError, TypeError) as error:
            raise CogstageError(f"not a prediction record: {error}") from None

    @classmethod
    def from_json(cls, line: str) -> Prediction:
        """The record behind one line of JSON."""
        try:
            record = json.loads(line)
        except ValueError as error:
            raise CogstageError(f"not a prediction record: {error}") from None
        if not isinstance(record, dict):
            raise CogstageError("not a prediction record: expected a JSON object")
        return cls.from_dict(record)
