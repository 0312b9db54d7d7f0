"""The answers: saved click by click, stored once per (reviewer, case, item), with a history of changes."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, update

from cogstage.errors import CogstageError, UsageError
from cogstage.study.blind import BlindForm
from cogstage.study.database import Database
from cogstage.study.effort import minutes_left
from cogstage.study.placement import Placement
from cogstage.study.protocol import Study
from cogstage.study.schema import answer, change, placement, reviewer, visit
from cogstage.study.schema import study as study_table

LONGEST_LOOK = 4 * 3600.0  # seconds counted for one showing of a page at most


class StudyClosed(CogstageError):
    """Answers came in after the administrator closed the study."""


@dataclass(frozen=True)
class StoredAnswer:
    """What a reviewer answered to one question of one case, and when."""

    reviewer_id: str
    case_key: str
    item: str
    value: str
    answered_at: float


@dataclass(frozen=True)
class ReviewProgress:
    """Complete and open cases of a reviewer, and the time of the last answer."""

    complete: tuple[bool, ...]  # by position
    last_answer_at: float | None

    @property
    def done(self) -> int:
        """How many cases are complete."""
        return sum(self.complete)

    @property
    def total(self) -> int:
        """How many cases there are."""
        return len(self.complete)

    @property
    def next_open(self) -> int | None:
        """The first position that is not complete, from 1."""
        return next((n for n, complete in enumerate(self.complete, 1) if not complete), None)


def _placement(row: Row[Any]) -> Placement:
    return Placement(row.position, row.case_key, tuple(row.set_order.split()), row.bare, row.evidence_only)


class Answers:
    """Placements, answers and visits of one study."""

    def __init__(self, database: Database, study: Study) -> None:
        self._database = database
        self._study = study
        self._cases = {case.key: case for case in study.cases}

    def register(self) -> None:
        """Register the study in a database."""
        with self._database.writing() as connection:
            connection.execute(
                insert(study_table).values(
                    id=self._study.id,
                    definition_hash=self._study.hash,
                    created_at=time.time(),
                    order_secret=secrets.token_hex(32),
                )
            )

    def check(self) -> None:
        """Raise unless the database contains this study with the same protocol as the folder."""
        with self._database.reading() as connection:
            stored = connection.scalar(select(study_table.c.definition_hash).where(study_table.c.id == self._study.id))
        if stored is None:
            raise CogstageError(
                "the database does not contain this study; set `database` to the one it was created with"
            )
        if stored != self._study.hash:
            raise CogstageError("study.json was changed after the study began; restore it from a copy")

    @cached_property
    def order_secret(self) -> str:
        """The secret behind random orders and visits. Never leaves the server."""
        with self._database.reading() as connection:
            stored = connection.scalar(select(study_table.c.order_secret).where(study_table.c.id == self._study.id))
        if not stored:
            raise CogstageError("the study has no order secret; run `cogstage study upgrade`")
        return str(stored)

    # Open or closed

    @property
    def closed_at(self) -> float | None:
        """When the study was closed; None while it is open."""
        with self._database.reading() as connection:
            return connection.scalar(select(study_table.c.closed_at).where(study_table.c.id == self._study.id))

    def close(self) -> None:
        """Close the study to answers until it is reopened."""
        self._set_closed(time.time())

    def reopen(self) -> None:
        """Open the study for answers again."""
        self._set_closed(None)

    def _set_closed(self, moment: float | None) -> None:
        with self._database.writing() as connection:
            connection.execute(update(study_table).where(study_table.c.id == self._study.id).values(closed_at=moment))

    def _check_open(self, connection: Connection) -> None:
        mine = study_table.c.id == self._study.id
        # On PostgreSQL the lock makes a click and the closing of the study take turns.
        if connection.scalar(select(study_table.c.closed_at).where(mine).with_for_update(read=True)) is not None:
            raise StudyClosed("the study is closed")

    # Cases and answers

    def placements(self, reviewer_id: str) -> tuple[Placement, ...]:
        """The cases of a reviewer, in order."""
        with self._database.reading() as connection:
            rows = connection.execute(
                select(placement).where(placement.c.reviewer_id == reviewer_id).order_by(placement.c.position)
            )
            return tuple(map(_placement, rows))

    def form(self, reviewer_id: str, position: int) -> BlindForm | None:
        """The blind form at a position, from 1; None beyond the last."""
        with self._database.reading() as connection:
            row = connection.execute(
                select(placement).where(placement.c.reviewer_id == reviewer_id, placement.c.position == position)
            ).first()
        if row is None:
            return None
        placed = _placement(row)
        return BlindForm(self._study, self._cases[placed.case_key], placed)

    def save(self, reviewer_id: str, case_key: str, items: Mapping[str, str]) -> None:
        """Store answers in one transaction. Saving the same answer again changes nothing."""
        if not items:
            return
        now = time.time()
        with self._database.writing() as connection:
            self._check_open(connection)
            for item, value in sorted(items.items()):
                statement = self._database.upsert(answer).values(
                    reviewer_id=reviewer_id, case_key=case_key, item=item, value=value, answered_at=now
                )
                done = connection.execute(
                    statement.on_conflict_do_update(
                        index_elements=[answer.c.reviewer_id, answer.c.case_key, answer.c.item],
                        set_={"value": statement.excluded.value, "answered_at": statement.excluded.answered_at},
                        where=answer.c.value != statement.excluded.value,
                    ).returning(answer.c.item)
                )
                if done.first() is not None:  # new or changed
                    connection.execute(
                        insert(change).values(
                            reviewer_id=reviewer_id, case_key=case_key, item=item, value=value, changed_at=now
                        )
                    )

    def of_case(self, reviewer_id: str, case_key: str) -> dict[str, str]:
        """A reviewer's answers to one case, by item."""
        with self._database.reading() as connection:
            rows = connection.execute(
                select(answer.c.item, answer.c.value).where(
                    answer.c.reviewer_id == reviewer_id, answer.c.case_key == case_key
                )
            )
            return {row.item: row.value for row in rows}

    def all(self) -> list[StoredAnswer]:
        """Every answer to the study, by reviewer, case and item."""
        with self._database.reading() as connection:
            rows = connection.execute(
                select(answer)
                .join(reviewer, reviewer.c.id == answer.c.reviewer_id)
                .where(reviewer.c.study_id == self._study.id)
                .order_by(reviewer.c.number, answer.c.case_key, answer.c.item)
            )
            return [StoredAnswer(r.reviewer_id, r.case_key, r.item, r.value, r.answered_at) for r in rows]

    def progress(self, reviewer_id: str) -> ReviewProgress:
        """Return which cases a reviewer has completed."""
        with self._database.reading() as connection:
            rows = connection.execute(
                select(answer.c.case_key, answer.c.item, answer.c.answered_at).where(
                    answer.c.reviewer_id == reviewer_id
                )
            )
            given: dict[str, set[str]] = {}
            last: float | None = None
            for case_key, item, answered_at in rows:
                given.setdefault(case_key, set()).add(item)
                last = answered_at if last is None else max(last, answered_at)
        complete = tuple(
            BlindForm(self._study, self._cases[placed.case_key], placed).needed <= given.get(placed.case_key, set())
            for placed in self.placements(reviewer_id)
        )
        return ReviewProgress(complete, last)

    # Time

    def minutes_left(self, reviewer_id: str) -> int:
        """Estimated time for the open cases of a reviewer."""
        placed = self.placements(reviewer_id)
        forms = [BlindForm(self._study, self._cases[entry.case_key], entry) for entry in placed]
        seconds = self.seconds(reviewer_id)
        looked = [seconds.get((reviewer_id, entry.case_key), 0.0) for entry in placed]
        return minutes_left(forms, self.progress(reviewer_id).complete, looked)

    def new_visit(self, reviewer_id: str, case_key: str) -> str:
        """Return a signed timestamp for showing a case. Nothing is stored until the page reports back."""
        note = f"{secrets.token_hex(12)}.{int(1000 * time.time()):x}"
        return f"{note}.{self._signature(reviewer_id, case_key, note)}"

    def record_time(self, reviewer_id: str, case_key: str, note: str, seconds: float | None) -> None:
        """How long the page of a visit has been looked at so far; None: since it was opened.

        Reports may come twice or out of order: the longest counts, and never more than has passed. A note that was
        not made by :meth:`new_visit` for this reviewer and case raises.
        """
        unsigned, _, signature = note.rpartition(".")
        expected = self._signature(reviewer_id, case_key, unsigned)
        if not hmac.compare_digest(signature.encode("utf-8", "replace"), expected.encode()):
            raise UsageError("this visit does not belong to this case")
        identifier, _, opened = unsigned.partition(".")
        opened_at = int(opened, 16) / 1000
        passed = min(max(0.0, time.time() - opened_at), LONGEST_LOOK)
        looked = passed if seconds is None else min(max(0.0, seconds), passed)
        with self._database.writing() as connection:
            statement = self._database.upsert(visit).values(
                id=identifier, reviewer_id=reviewer_id, case_key=case_key, opened_at=opened_at, seconds=looked
            )
            connection.execute(
                statement.on_conflict_do_update(
                    index_elements=[visit.c.id],
                    set_={"seconds": statement.excluded.seconds},
                    where=visit.c.seconds < statement.excluded.seconds,
                )
            )

    def _signature(self, reviewer_id: str, case_key: str, note: str) -> str:
        signed = f"visit {reviewer_id} {case_key} {note}".encode("utf-8", "replace")
        return hmac.new(self.order_secret.encode(), signed, hashlib.sha256).hexdigest()[:32]

    def seconds(self, reviewer_id: str | None = None) -> dict[tuple[str, str], float]:
        """Time looked at each case, by reviewer id and case key; of one reviewer or of all."""
        chosen = reviewer.c.study_id == self._study.id
        if reviewer_id is not None:
            chosen &= reviewer.c.id == reviewer_id
        with self._database.reading() as connection:
            rows = connection.execute(
                select(visit.c.reviewer_id, visit.c.case_key, func.sum(visit.c.seconds))
                .join(reviewer, reviewer.c.id == visit.c.reviewer_id)
                .where(chosen)
                .group_by(visit.c.reviewer_id, visit.c.case_key)
            )
            return {(reviewer_id, case_key): float(total) for reviewer_id, case_key, total in rows}
