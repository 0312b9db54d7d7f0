"""The answers of the reviewers, case by case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cogstage.study.blind import CANNOT_JUDGE, BlindForm
from cogstage.study.folder import OpenStudy
from cogstage.study.protocol import StudyCase


@dataclass(frozen=True)
class Judgement:
    """All answers of one reviewer to one case; unanswered questions are None or missing."""

    reviewer: str
    case: StudyCase
    bare: bool
    set_order: tuple[str, ...]
    scores: dict[str, tuple[int | None, ...]]
    ranks: dict[str, int]
    familiar_head: str | None = None
    familiar_tail: str | None = None
    trust: int | None = None
    verdict: bool | None = None  # crossover: whether the relation holds
    confidence: int | None = None  # crossover
    comment: str = ""
    seconds: float = 0.0
    position: int = 0  # where the reviewer met the case, from 1
    questions: int = 0
    unanswered: int = 0
    cannot_judge: int = 0
    arm: str = ""

    def whole_scores(self, source: str) -> tuple[int, ...] | None:
        """The scores of a set if every rationale in it was scored."""
        given = [score for score in self.scores.get(source, ()) if score is not None]
        return tuple(given) if given and len(given) == len(self.scores[source]) else None

    def preference(self, first: str, second: str) -> int | None:
        """1 where ``first`` was ranked above ``second``, -1 below, 0 the same."""
        if first not in self.ranks or second not in self.ranks:
            return None
        difference = self.ranks[second] - self.ranks[first]
        return (difference > 0) - (difference < 0)

    @property
    def sole_winner(self) -> str | None:
        """The set that was ranked above all others."""
        best = min(self.ranks.values(), default=0)
        top = [source for source, rank in self.ranks.items() if rank == best]
        return top[0] if len(top) == 1 else None

    @property
    def familiar(self) -> bool | None:
        """Whether both terms are familiar; None if one was not answered."""
        if self.familiar_head is None or self.familiar_tail is None:
            return None
        return self.familiar_head == self.familiar_tail == "yes"


def by_familiarity(answered: Iterable[Judgement]) -> dict[str, list[Judgement]]:
    """Judgements of pairs whose terms the reviewer knows, and of others; unanswered ones are in neither."""
    groups: dict[str, list[Judgement]] = {"both terms familiar": [], "one term or both not familiar": []}
    for judgement in answered:
        if judgement.familiar is not None:
            groups["both terms familiar" if judgement.familiar else "one term or both not familiar"].append(judgement)
    return groups


def judgements(opened: OpenStudy, pseudonyms: bool = False) -> list[Judgement]:
    """Every judgement with at least one answer, by reviewer in the order of invitation, then as they met the cases.

    With ``pseudonyms`` reviewers are called R1, R2, ... in the order of invitation.
    """
    given: dict[tuple[str, str], dict[str, str]] = {}
    for entry in opened.answers.all():
        given.setdefault((entry.reviewer_id, entry.case_key), {})[entry.item] = entry.value
    seconds = opened.answers.seconds()
    cases = {case.key: case for case in opened.study.cases}
    answered = []
    for person in opened.access.reviewers():
        for placed in opened.answers.placements(person.id):
            items = given.get((person.id, placed.case_key))
            if not items:
                continue
            case = cases[placed.case_key]
            form = BlindForm(opened.study, case, placed)
            asked = not placed.bare and not opened.study.is_crossover
            sets = case.sets if asked else ()
            answered.append(
                Judgement(
                    reviewer=f"R{person.number}" if pseudonyms else person.name,
                    case=case,
                    bare=placed.bare,
                    arm=placed.arm,
                    set_order=placed.set_order,
                    scores={s.source: _scores(items, s.source, len(s.rationales)) for s in sets},
                    ranks={
                        s.source: rank for s in sets if (rank := _number(items.get(f"rank:{s.source}"))) is not None
                    },
                    familiar_head=items.get("familiar:head"),
                    familiar_tail=items.get("familiar:tail"),
                    trust=_number(items.get("trust")),
                    verdict=items["verdict"] == "yes" if "verdict" in items else None,
                    confidence=_number(items.get("confidence")),
                    comment=items.get("comment", ""),
                    seconds=seconds.get((person.id, placed.case_key), 0.0),
                    position=placed.position,
                    questions=len(form.fields),
                    unanswered=len(form.missing(items)),
                    cannot_judge=sum(value == CANNOT_JUDGE for value in form.to_fields(items).values()),
                )
            )
    return answered


def _scores(items: Mapping[str, str], source: str, number: int) -> tuple[int | None, ...]:
    return tuple(_number(items.get(f"score:{source}:{n}")) for n in range(number))


def _number(value: str | None) -> int | None:
    return None if value in (None, CANNOT_JUDGE) else int(str(value))
