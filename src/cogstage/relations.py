"""Relations: names, inverses, phrases, colours and predicates. ``relations.tsv`` lists the known relations.

A data set may have relations that the file does not list. They read as their name, share one colour, and export as
``biolink:related_to``.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np

NA = "NA"
_INVERSE = "_inverse"
_FILE = Path(__file__).parent / "relations.tsv"


@dataclass(frozen=True)
class Relation:
    """One relation, read forward. ``colour`` and ``dash`` tell relations apart in pictures, each on its own."""

    name: str
    phrase: str  # "may treat", between head and tail
    inverse_phrase: str  # "may be treated by", between tail and head
    infinitive: str  # "treat", after "is known to" and "is not thought to"
    inverse_infinitive: str  # "be treated by"
    colour: str = "#56B4E9"
    dash: tuple[float, ...] = (2.0, 5.0)
    biolink: str = "biolink:related_to"
    opposite: tuple[str, ...] = ()  # relations that speak against this one between the same two terms


@cache
def _listed() -> dict[str, Relation]:
    with _FILE.open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle, delimiter="\t", quoting=csv.QUOTE_NONE))
    return {
        row["name"]: Relation(
            row["name"],
            row["phrase"],
            row["inverse_phrase"],
            row["infinitive"],
            row["inverse_infinitive"],
            row["colour"],
            tuple(map(float, filter(None, row["dash"].split(",")))),
            row["biolink"],
            tuple(filter(None, row["opposite"].split(","))),
        )
        for row in rows
    }


RELATIONS = tuple(_listed())  # the paper's five, in its order


def is_inverse(name: str) -> bool:
    """Whether the name is that of an r⁻¹."""
    return name.endswith(_INVERSE)


def forward(name: str) -> str:
    """The relation itself, given its name or the name of its inverse."""
    return name.removesuffix(_INVERSE)


def inverse(name: str) -> str:
    """The name of r⁻¹; the inverse of an inverse is the relation again."""
    return forward(name) if is_inverse(name) else name + _INVERSE


def relation(name: str) -> Relation:
    """What is known of a relation, given its name or the name of its inverse."""
    name = forward(name)
    words = name.replace("_", " ")
    inverse_words = f"(inverse of) {words}"
    infinitives = (f"have the relation “{words}” to", f"have the relation “{inverse_words}” to")
    return _listed().get(name) or Relation(name, words, inverse_words, *infinitives)


def phrase(name: str) -> str:
    """How a relation reads between its two terms; relations that are not listed read as their name."""
    about = relation(name)
    return about.inverse_phrase if is_inverse(name) else about.phrase


def infinitive(name: str) -> str:
    """How a relation reads after "is known to" or "is not thought to": "treat", and "be treated by" for its inverse."""
    about = relation(name)
    return about.inverse_infinitive if is_inverse(name) else about.infinitive


def is_opposite(name: str, other: str) -> bool:
    """Whether two relations contradict each other for the same head and tail, from a clinical point of view."""
    return is_inverse(name) == is_inverse(other) and forward(other) in relation(name).opposite


def contradict(name: str, other: str) -> bool:
    """Whether either of two relations speaks against the other."""
    return is_opposite(name, other) or is_opposite(other, name)


def ordered(names: Iterable[str]) -> tuple[str, ...]:
    """The listed relations first, in the order of the file, then the others by name."""
    names = set(names)
    return (*(name for name in RELATIONS if name in names), *sorted(names - set(RELATIONS)))


class RelationIndex:
    """The relations of a data set by number: 0..R-1 as named, R..2R-1 their inverses, 2R is NA."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)  # (R,)

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def all_names(self) -> tuple[str, ...]:
        """The name of every number, inverses and NA included: (2R + 1,)."""
        return (*self.names, *map(inverse, self.names), NA)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.all_names)}

    def number(self, name: str) -> int:
        """The number of a relation, of an inverse or of NA; KeyError where the data set has none of that name."""
        return self._numbers[name]

    def inverse(self, number: np.ndarray) -> np.ndarray:
        """The number of r⁻¹ for each number below 2R."""
        result: np.ndarray = (np.asarray(number) + len(self)) % (2 * len(self))
        return result

    @cached_property
    def opposite(self) -> np.ndarray:
        """Which relations speak against which between the same head and tail: (2R, 2R) bool, symmetric."""
        names = self.all_names[:-1]
        found = [[contradict(one, other) for other in names] for one in names]
        return np.array(found, bool).reshape(len(names), len(names))
