"""The protocol of a study: its cases, the reasons of each case, and the questions."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

from cogstage.artefact import read_meta, to_json
from cogstage.choices import ProtocolName
from cogstage.errors import CogstageError, UsageError
from cogstage.rationale.wording import triple_phrase
from cogstage.relations import phrase

STUDY = "study.json"
KIND = "study"
SOURCE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
WITH, WITHOUT, EVIDENCE = "with reasons", "without reasons", "evidence only"  # arms of a crossover
OUTCOMES = ("true_positive", "false_positive", "false_negative", "true_negative")
# Fields that older study.json files lack. At their defaults they do not count in a protocol's identity.
_ADDED_TO_STUDY = {"protocol": "sets", "consent": "", "contact": "", "same_sets_left_out": 0} | {
    "evidence_arm": False, "planted_bias": "none"}  # fmt: skip
_ADDED_TO_RATIONALE = {"against": False, "unlikely": False}


@dataclass(frozen=True)
class ShownRationale:
    """A triple as shown to reviewers, without scores and evidence, which could reveal the source."""

    head: str
    relation: str
    tail: str
    against: bool = False  # it speaks against the relation of the case
    unlikely: bool = False  # the model considers the triple unlikely, and it is denied in words

    @property
    def phrase(self) -> str:
        """The relation as it reads between the two terms."""
        return triple_phrase(self.relation, not self.unlikely)

    @property
    def text(self) -> str:
        """The whole triple in one line."""
        return f"{self.head} {self.phrase} {self.tail}"


@dataclass(frozen=True)
class RationaleSet:
    """The strongest reasons of one source for one case."""

    source: str
    rationales: tuple[ShownRationale, ...]


@dataclass(frozen=True)
class StudyCase:
    """A target pair with a rationale set from every source. ``repeat_of`` names the case that this one shows again."""

    key: str
    head: str
    relation: str
    tail: str
    label: int
    outcome: str
    sets: tuple[RationaleSet, ...]
    repeat_of: str | None = None

    @property
    def phrase(self) -> str:
        """The relation as it reads between the two terms."""
        return phrase(self.relation)

    @property
    def predicted(self) -> bool:
        """Whether the relation was predicted to hold."""
        return self.outcome in ("true_positive", "false_positive")

    @property
    def correct(self) -> bool:
        """Whether the prediction agrees with the label."""
        return self.outcome.startswith("true")

    @property
    def text(self) -> str:
        """The pair in one line."""
        return f"{self.head} {self.phrase} {self.tail}"

    def set_of(self, source: str) -> RationaleSet:
        """The rationale set of one source."""
        return next(entry for entry in self.sets if entry.source == source)


@dataclass(frozen=True)
class Study:
    """The fixed part of a study. It contains the source of every set, so only the administrator may see it."""

    id: str
    title: str
    seed: int
    sources: tuple[str, ...]
    per_set: int
    without_rationales: int  # how many cases each reviewer judges from the bare prediction
    cases: tuple[StudyCase, ...]
    protocol: str = "sets"  # "sets": which source's reasons help more; "crossover": do reasons help at all
    consent: str = ""  # what reviewers agree to before they begin
    contact: str = ""  # contact for questions
    same_sets_left_out: int = 0  # pairs that were not drawn because two sources give the same reasons
    evidence_arm: bool = False  # crossover: a third arm shows the reasons without the prediction
    planted_bias: str = "none"  # crossover: "overcalls" if all wrong predictions say yes, "undercalls" if all say no

    def case(self, key: str) -> StudyCase:
        """A case by its key."""
        return next(case for case in self.cases if case.key == key)

    @property
    def is_crossover(self) -> bool:
        """Whether reviewers judge pairs with and without reasons."""
        return self.protocol == "crossover"

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms of a crossover, in the order of tables."""
        return (WITH, WITHOUT, EVIDENCE) if self.evidence_arm else (WITH, WITHOUT)

    @property
    def asks_trust(self) -> bool:
        """Whether every case asks for trust in the prediction: what the arm without rationales is compared by."""
        return self.without_rationales > 0 and not self.is_crossover

    def to_dict(self) -> dict[str, Any]:
        """Plain values. What older versions did not know is left out at its default."""
        record = {key: value for key, value in asdict(self).items() if _ADDED_TO_STUDY.get(key) != value}
        for case in record["cases"]:
            for entry in case["sets"]:
                entry["rationales"] = [
                    {key: value for key, value in triple.items() if _ADDED_TO_RATIONALE.get(key) is not value}
                    for triple in entry["rationales"]
                ]
        return record

    @property
    def hash(self) -> str:
        """Identity of the protocol, kept next to the answers so that they are never read with another one."""
        return hashlib.sha256(to_json(self.to_dict()).encode()).hexdigest()

    def write(self, folder: Path) -> None:
        """Write ``study.json`` into a folder."""
        (folder / STUDY).write_text(to_json(self.to_dict()), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path | str) -> Study:
        """Read a study folder; raise a one-line error if it is invalid."""
        folder = Path(folder)
        read_meta(folder, KIND, (STUDY,), verify=False)  # the database holds a hash that says more
        try:
            return study_from_dict(json.loads((folder / STUDY).read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CogstageError(f"{folder / STUDY} is damaged ({error}); restore it from a copy") from error


def study_from_dict(record: Mapping[str, Any]) -> Study:
    """The study behind plain values."""
    cases = tuple(
        StudyCase(
            **{
                **case,
                "sets": tuple(
                    RationaleSet(entry["source"], tuple(ShownRationale(**triple) for triple in entry["rationales"]))
                    for entry in case["sets"]
                ),
            }
        )
        for case in record["cases"]
    )
    study = Study(**{**record, "sources": tuple(record["sources"]), "cases": cases})
    if study.protocol not in get_args(ProtocolName):
        raise ValueError(f"protocol {study.protocol!r} is unknown to this version")
    return study


def check_source_names(names: Sequence[str], protocol: str = "sets") -> None:
    """Raise unless the names can occur in a file and a table, and there are as many as the protocol compares."""
    if protocol == "crossover" and len(names) != 1:
        raise UsageError(f"a crossover study shows the reasons of one source, not of {len(names)}")
    if protocol == "sets" and len(names) < 2:
        raise UsageError("a study compares at least two sources; give each as a `source` NAME=PATH")
    for name in names:
        if not SOURCE_NAME.fullmatch(name):
            raise UsageError(f"source name {name!r}: use up to 40 letters, digits, dots, hyphens and underscores")
    if len(set(names)) < len(names):
        raise UsageError("two sources have the same name; each `source` NAME=PATH needs a unique name")
