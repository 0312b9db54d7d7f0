"""The blind form of a case: the browser sees Set A and Set B, and the database stores the source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from string import ascii_uppercase

from cogstage.errors import UsageError
from cogstage.study.placement import Placement
from cogstage.study.protocol import ShownRationale, Study, StudyCase

CANNOT_JUDGE = "n"
FAMILIARITY = {"yes": "Yes", "kind_of": "Kind of", "no": "No"}
SCORES = {
    "0": "not helpful",
    "1": "a little helpful",
    "2": "helpful",
    "3": "very helpful",
    CANNOT_JUDGE: "cannot judge",
}
TRUST = {"0": "not at all", "1": "a little", "2": "mostly", "3": "fully"}
VERDICT = {"yes": "Yes, it holds", "no": "No, it does not"}
CONFIDENCE = {"0": "a guess", "1": "rather unsure", "2": "rather sure", "3": "certain"}
SAME = "same"
LONGEST_COMMENT = 4000


class AnswerError(UsageError):
    """An answer to an unknown question, or an invalid value."""


@dataclass(frozen=True)
class BlindReason:
    """One reason of a set: the field that scores it, or the set in which the same reason is scored already."""

    field: str
    triple: ShownRationale
    scored_in: str | None = None  # letter of an earlier set


@dataclass(frozen=True)
class BlindSet:
    """A set as the reviewer sees it."""

    letter: str
    rows: tuple[BlindReason, ...]

    @property
    def rationales(self) -> tuple[ShownRationale, ...]:
        """The reasons in the order shown."""
        return tuple(row.triple for row in self.rows)

    def side(self, against: bool) -> tuple[BlindReason, ...]:
        """The reasons for the relation, or those against it."""
        return tuple(row for row in self.rows if row.triple.against == against)


@dataclass(frozen=True)
class BlindForm:
    """Translates between the fields of a reviewer's page and the items that are stored."""

    study: Study
    case: StudyCase
    placement: Placement

    @cached_property
    def sets(self) -> tuple[BlindSet, ...]:
        """The sets in the order shown; none in the arm without rationales. A reason in two sets is scored once."""
        if self.placement.bare:
            return ()
        scored: dict[ShownRationale, str] = {}
        made = []
        for letter, source in self.source_of.items():
            rows = []
            for number, triple in enumerate(self.case.set_of(source).rationales):
                earlier = scored.setdefault(triple, letter)
                rows.append(BlindReason(f"score-{letter}-{number}", triple, None if earlier == letter else earlier))
            made.append(BlindSet(letter, tuple(rows)))
        return tuple(made)

    @property
    def hides_prediction(self) -> bool:
        """Whether the reasons are shown without the prediction."""
        return self.placement.evidence_only

    @property
    def sides(self) -> tuple[bool, bool]:
        """``against`` of the two groups of reasons: what agrees with the prediction first, where it is shown."""
        return (False, True) if self.case.predicted or self.hides_prediction else (True, False)

    @cached_property
    def source_of(self) -> dict[str, str]:
        """Source by letter. Never leaves the server."""
        return dict(zip(ascii_uppercase, self.placement.set_order, strict=False))

    @cached_property
    def fields(self) -> dict[str, Mapping[str, str]]:
        """All questions of the page with their possible answers, in order, except the comment."""
        asked: dict[str, Mapping[str, str]] = {"familiar-head": FAMILIARITY, "familiar-tail": FAMILIARITY}
        if self.study.is_crossover:
            return {**asked, "verdict": VERDICT, "confidence": CONFIDENCE}
        asked.update({row.field: SCORES for entry in self.sets for row in entry.rows if row.scored_in is None})
        letters = [entry.letter for entry in self.sets]
        if len(letters) == 2:
            asked["compare"] = {**dict.fromkeys(letters, ""), SAME: "", CANNOT_JUDGE: ""}
        elif letters:
            places = {**{str(n): "" for n in range(1, len(letters) + 1)}, CANNOT_JUDGE: ""}
            asked.update({f"rank-{letter}": places for letter in letters})
        return {**asked, "trust": TRUST} if self.study.asks_trust else asked

    @property
    def needed(self) -> frozenset[str]:
        """The stored items that make the case complete."""
        return frozenset(item for field in self.fields for item in self._items(field, ""))

    def missing(self, stored: Mapping[str, str]) -> tuple[str, ...]:
        """The questions that are not answered yet, in the order asked."""
        return tuple(field for field in self.fields if not stored.keys() >= self._items(field, "").keys())

    def to_items(self, field: str, value: str) -> dict[str, str]:
        """What one field of the page stores; raises :class:`AnswerError` on anything the page does not ask."""
        if field == "comment":
            return {"comment": _clean(value)}
        allowed = self.fields.get(field)
        if allowed is None:
            raise AnswerError(f"this case has no question {field[:40]!r}")
        if value not in allowed:
            raise AnswerError(f"{value[:40]!r} is not an answer to {field}; choose one of {', '.join(allowed)}")
        return self._items(field, value)

    def _items(self, field: str, value: str) -> dict[str, str]:
        name, _, rest = field.partition("-")
        if name == "familiar":
            return {f"familiar:{rest}": value}
        if name == "compare":
            if value == CANNOT_JUDGE:
                return {f"rank:{source}": CANNOT_JUDGE for source in self.source_of.values()}
            return {f"rank:{source}": "1" if value in (SAME, mark) else "2" for mark, source in self.source_of.items()}
        if name == "rank":
            return {f"rank:{self.source_of[rest]}": value}
        if name == "score":
            letter, _, number = rest.partition("-")
            triple = self.case.set_of(self.source_of[letter]).rationales[int(number)]
            return {
                f"score:{entry.source}:{n}": value
                for entry in self.case.sets
                for n, other in enumerate(entry.rationales)
                if other == triple
            }
        return {field: value}

    def to_fields(self, items: Mapping[str, str]) -> dict[str, str]:
        """The page's fields behind stored items: the inverse of :meth:`to_items`."""
        fields: dict[str, str] = {}
        for field in self.fields:
            stored = {item: items[item] for item in self._items(field, "") if item in items}
            if field == "compare" and len(stored) == 2:
                first, second = (stored[f"rank:{source}"] for source in self.placement.set_order)
                if CANNOT_JUDGE in (first, second):
                    fields[field] = CANNOT_JUDGE
                else:
                    fields[field] = SAME if first == second else ("A" if first < second else "B")
            elif field != "compare" and stored:
                fields[field] = next(iter(stored.values()))
        if "comment" in items:
            fields["comment"] = items["comment"]
        return fields


def _clean(text: str) -> str:
    """A comment as it is kept: valid text without control characters, of bounded length."""
    text = text.replace("\r\n", "\n").encode("utf-8", "replace").decode("utf-8")
    return "".join(c for c in text if c in "\n\t" or ord(c) >= 32).strip()[:LONGEST_COMMENT]
