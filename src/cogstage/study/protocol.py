"""The protocol of a study: which cases are shown with which rationale sets, and where each reviewer meets them."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cogstage.artefact import read_meta, to_json
from cogstage.errors import CogstageError, UsageError
from cogstage.relations import phrase

STUDY = "study.json"
KIND = "study"
SOURCE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
OUTCOMES = ("true_positive", "false_positive", "false_negative")


@dataclass(frozen=True)
class ShownRationale:
    """A triple as the reviewer reads it: bare of scores and evidence, which would tell the sets apart."""

    head: str
    relation: str
    tail: str

    @property
    def phrase(self) -> str:
        """The relation as it reads between the two terms."""
        return phrase(self.relation)

    @property
    def text(self) -> str:
        """The whole triple in one line."""
        return f"{self.head} {self.phrase} {self.tail}"


@dataclass(frozen=True)
class RationaleSet:
    """The best rationales of one source for one case."""

    source: str
    rationales: tuple[ShownRationale, ...]


@dataclass(frozen=True)
class Case:
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
        return self.outcome != "false_negative"

    @property
    def text(self) -> str:
        """The pair in one line."""
        return f"{self.head} {self.phrase} {self.tail}"

    def set_of(self, source: str) -> RationaleSet:
        """The rationale set of one source."""
        return next(entry for entry in self.sets if entry.source == source)


@dataclass(frozen=True)
class Study:
    """All that is fixed when a study begins. It names the source of every set: it is for the administrator alone."""

    id: str
    title: str
    seed: int
    sources: tuple[str, ...]
    per_set: int
    without_rationales: int  # how many cases each reviewer judges from the bare prediction
    cases: tuple[Case, ...]

    def case(self, key: str) -> Case:
        """A case by its key."""
        return next(case for case in self.cases if case.key == key)

    @property
    def asks_trust(self) -> bool:
        """Whether every case asks for trust in the prediction: what the arm without rationales is compared by."""
        return self.without_rationales > 0

    @property
    def hash(self) -> str:
        """Identity of the protocol, kept beside the answers so that they are never read with another one."""
        return hashlib.sha256(to_json(asdict(self)).encode()).hexdigest()

    def write(self, folder: Path) -> None:
        """Write ``study.json`` into a folder."""
        (folder / STUDY).write_text(to_json(asdict(self)), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path | str) -> Study:
        """Read a study folder; what is wrong with it is said in one line."""
        folder = Path(folder)
        read_meta(folder, KIND, (STUDY,))
        try:
            return study_from_dict(json.loads((folder / STUDY).read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CogstageError(f"{folder / STUDY} is damaged ({error}); restore it from a copy") from error


def study_from_dict(record: Mapping[str, Any]) -> Study:
    """The study behind plain values."""
    cases = tuple(
        Case(
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
    return Study(**{**record, "sources": tuple(record["sources"]), "cases": cases})


def check_source_names(names: Sequence[str]) -> None:
    """Raise unless there are two or more different names that can stand in a file and a table."""
    if len(names) < 2:
        raise UsageError("a study compares at least two sources; give --source NAME=PATH twice or more")
    for name in names:
        if not SOURCE_NAME.fullmatch(name):
            raise UsageError(f"source name {name!r}: use up to 40 letters, digits, dots, hyphens and underscores")
    if len(set(names)) < len(names):
        raise UsageError("two sources have the same name; each --source NAME=PATH needs a name of its own")


@dataclass(frozen=True)
class Placement:
    """Where one reviewer meets one case: the order in which its sets stand, or ``bare`` for no rationales at all."""

    position: int  # from 1
    case_key: str
    set_order: tuple[str, ...]  # sources in the order shown: Set A, Set B, ...
    bare: bool = False


def place_cases(study: Study, reviewer_number: int) -> tuple[Placement, ...]:
    """The cases in random order with their sets in random order, from the study's seed and the reviewer's number.

    A repeated case is met first in the first half and again in the last part, so that memory helps little. The cases
    without rationales are drawn for each reviewer anew, so that over reviewers each case is judged both ways.
    """
    rng = random.Random(f"{study.seed}:{reviewer_number}")
    firsts = [case for case in study.cases if case.repeat_of is None]
    repeats = [case for case in study.cases if case.repeat_of is not None]
    repeated = {case.repeat_of for case in repeats}
    early = [case for case in firsts if case.key in repeated]
    others = [case for case in firsts if case.key not in repeated]
    rng.shuffle(others)
    bare = {case.key for case in others[: study.without_rationales]}
    rng.shuffle(others)
    half = max(0, len(firsts) // 2 - len(early))
    third = min(len(others) - half, len(firsts) // 3)
    blocks = [early + others[:half], others[half : len(others) - third], others[len(others) - third :] + repeats]
    placements: list[Placement] = []
    for block in blocks:
        rng.shuffle(block)
        for case in block:
            order = list(study.sources)
            rng.shuffle(order)
            placements.append(Placement(len(placements) + 1, case.key, tuple(order), case.key in bare))
    return tuple(placements)
