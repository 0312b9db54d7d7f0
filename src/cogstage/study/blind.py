"""The blind form of a case: what a reviewer's browser may name (Set A, Set B) and what is stored (the source)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from string import ascii_uppercase

from cogstage.errors import UsageError
from cogstage.study.protocol import Case, Placement, ShownRationale, Study

FAMILIARITY = {"yes": "Yes", "kind_of": "Kind of", "no": "No"}
SCORES = {"0": "not helpful", "1": "a little helpful", "2": "helpful", "3": "very helpful"}
TRUST = {"0": "not at all", "1": "a little", "2": "mostly", "3": "fully"}
SAME = "same"
LONGEST_COMMENT = 4000


class AnswerError(UsageError):
    """An answer to a question that was not asked, or a value that is no answer to it."""


@dataclass(frozen=True)
class BlindSet:
    """A set as the reviewer sees it."""

    letter: str
    rationales: tuple[ShownRationale, ...]


@dataclass(frozen=True)
class BlindForm:
    """Translates between the fields of a reviewer's page and the items that are stored."""

    study: Study
    case: Case
    placement: Placement

    @property
    def sets(self) -> tuple[BlindSet, ...]:
        """The sets in the order shown; none in the arm without rationales."""
        if self.placement.bare:
            return ()
        order = zip(ascii_uppercase, self.placement.set_order, strict=False)
        return tuple(BlindSet(letter, self.case.set_of(source).rationales) for letter, source in order)

    @property
    def source_of(self) -> dict[str, str]:
        """Source by letter. Never leaves the server."""
        return dict(zip(ascii_uppercase, self.placement.set_order, strict=False))

    @property
    def needed(self) -> frozenset[str]:
        """The stored items that make the case complete."""
        items = {"familiar:head", "familiar:tail"}
        if self.study.asks_trust:
            items.add("trust")
        if not self.placement.bare:
            for entry in self.case.sets:
                items.add(f"rank:{entry.source}")
                items.update(f"score:{entry.source}:{n}" for n in range(len(entry.rationales)))
        return frozenset(items)

    def to_items(self, field: str, value: str) -> dict[str, str]:
        """What one field of the page stores; raises :class:`AnswerError` on anything the page does not ask."""
        if field == "comment":
            return {"comment": _clean(value)}
        name, _, rest = field.partition("-")
        items: dict[str, str] = {}
        allowed: Mapping[str, str] = {}
        if name == "familiar" and rest in ("head", "tail"):
            items, allowed = {f"familiar:{rest}": value}, FAMILIARITY
        elif field == "trust" and self.study.asks_trust:
            items, allowed = {"trust": value}, TRUST
        elif not self.placement.bare:
            items, allowed = self._about_sets(field, value)
        if not items:
            raise AnswerError(f"this case has no question {field[:40]!r}")
        if value not in allowed:
            raise AnswerError(f"{value[:40]!r} is no answer to {field}; the answers are {', '.join(allowed)}")
        return items

    def _about_sets(self, field: str, value: str) -> tuple[dict[str, str], Mapping[str, str]]:
        source_of = self.source_of
        name, _, rest = field.partition("-")
        letter, _, number = rest.partition("-")
        if name == "compare" and not rest and len(source_of) == 2:
            allowed = {**source_of, SAME: ""}
            ranks = {s: "1" if value in (SAME, mark) else "2" for mark, s in source_of.items()}
            return {f"rank:{source}": rank for source, rank in ranks.items()}, allowed
        if name == "rank" and rest in source_of and len(source_of) > 2:
            return {f"rank:{source_of[rest]}": value}, {str(n): "" for n in range(1, len(source_of) + 1)}
        if name == "score" and letter in source_of and number.isascii() and number.isdecimal():
            source = source_of[letter]
            if str(int(number)) == number and int(number) < len(self.case.set_of(source).rationales):
                return {f"score:{source}:{number}": value}, SCORES
        return {}, {}

    def to_fields(self, items: Mapping[str, str]) -> dict[str, str]:
        """The page's fields behind stored items: the inverse of :meth:`to_items`."""
        fields: dict[str, str] = {}
        letter_of = {source: letter for letter, source in self.source_of.items()}
        ranks: dict[str, str] = {}
        for item, value in items.items():
            name, _, rest = item.partition(":")
            if name == "familiar":
                fields[f"familiar-{rest}"] = value
            elif name in ("trust", "comment"):
                fields[name] = value
            elif name == "rank":
                ranks[letter_of[rest]] = value
            elif name == "score":
                source, _, number = rest.rpartition(":")
                fields[f"score-{letter_of[source]}-{number}"] = value
        if len(letter_of) == 2 and len(ranks) == 2:
            first, second = ranks["A"], ranks["B"]
            fields["compare"] = SAME if first == second else ("A" if first < second else "B")
        elif len(letter_of) > 2:
            fields.update({f"rank-{letter}": value for letter, value in ranks.items()})
        return fields


def _clean(text: str) -> str:
    """A comment as it is kept: valid text without control characters, of bounded length."""
    text = text.replace("\r\n", "\n").encode("utf-8", "replace").decode("utf-8")
    return "".join(c for c in text if c in "\n\t" or ord(c) >= 32).strip()[:LONGEST_COMMENT]
