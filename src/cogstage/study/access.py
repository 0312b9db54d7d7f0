"""Access control of reviewers: personal links and sessions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Table, delete, func, insert, select, update

from cogstage.errors import UsageError
from cogstage.study.database import Database
from cogstage.study.placement import place_cases
from cogstage.study.protocol import Study
from cogstage.study.schema import placement, reviewer, session
from cogstage.study.schema import study as study_table
from cogstage.study.secret import (
    new_ticket,
    secret_matches,
    split_ticket,
)

DAY = 86_400.0
REVIEWER_SESSION = 30 * DAY
LONGEST_LINK = 366
LONGEST_PRACTICE = 80  # years


@dataclass(frozen=True)
class Reviewer:
    """A reviewer as the administrator sees them."""

    id: str
    number: int
    name: str
    created_at: float
    expires_at: float
    revoked_at: float | None
    consented_at: float | None = None
    specialty: str | None = None
    years: int | None = None  # in practice

    def state(self, now: float | None = None) -> str:
        """``active``, ``expired`` or ``revoked``."""
        if self.revoked_at is not None:
            return "revoked"
        return "active" if (time.time() if now is None else now) < self.expires_at else "expired"


@dataclass(frozen=True)
class Invitation:
    """A new reviewer with the secret of their link, which is shown only once."""

    reviewer: Reviewer
    ticket: str


class Access:
    """Reviewers, links and sessions of one study."""

    def __init__(self, database: Database, study: Study) -> None:
        self._database = database
        self._study = study

    # Reviewers

    def invite(self, name: str, days: int = 30) -> Invitation:
        """A new reviewer with a personal link; the order in which they meet cases and sets is fixed here."""
        return self.invite_all([name], days)[0]

    def invite_all(self, names: Sequence[str], days: int = 30) -> list[Invitation]:
        """Several new reviewers at once: all of them, or none if one name cannot be used."""
        names = [" ".join(name.split())[:200] for name in names]
        if not names or not all(name and name.isprintable() for name in names):
            raise UsageError("a reviewer needs a name")
        _check_days(days)
        with self._database.writing() as connection:
            secret = connection.scalar(
                select(study_table.c.order_secret).where(study_table.c.id == self._study.id).with_for_update()
            )
            there = set(connection.scalars(select(reviewer.c.name).where(reviewer.c.study_id == self._study.id)))
            twice = next((name for n, name in enumerate(names) if name in there or name in names[:n]), None)
            if twice is not None:
                raise UsageError(f"a reviewer named {twice} already exists; choose another name")
            last = connection.scalar(select(func.max(reviewer.c.number)).where(reviewer.c.study_id == self._study.id))
            return [
                self._add(connection, name, number, days, str(secret))
                for number, name in enumerate(names, (last or 0) + 1)
            ]

    def _add(self, connection: Connection, name: str, number: int, days: int, secret: str) -> Invitation:
        ticket, now = new_ticket(), time.time()
        person = Reviewer(ticket.id, number, name, now, now + days * DAY, None)
        connection.execute(insert(reviewer).values(**person.__dict__, study_id=self._study.id, token_hash=ticket.hash))
        connection.execute(
            insert(placement),
            [
                {
                    "reviewer_id": person.id,
                    "position": placed.position,
                    "case_key": placed.case_key,
                    "set_order": " ".join(placed.set_order),
                    "bare": placed.bare,
                    "evidence_only": placed.evidence_only,
                }
                for placed in place_cases(self._study, number, secret)
            ],
        )
        return Invitation(person, ticket.text)

    def introduce(self, reviewer_id: str, specialty: str, years: str) -> None:
        """Keep that a reviewer agreed to take part, and their profile; both answers may be empty."""
        specialty = "".join(c for c in " ".join(specialty.split()) if c.isprintable())[:200]
        years = years.strip()
        if years and not (years.isascii() and years.isdecimal() and len(years) < 4 and int(years) <= LONGEST_PRACTICE):
            raise UsageError(f"the years in practice must be a whole number from 0 to {LONGEST_PRACTICE}, or empty")
        with self._database.writing() as connection:
            connection.execute(
                update(reviewer)
                .where(reviewer.c.id == reviewer_id, reviewer.c.study_id == self._study.id)
                .values(consented_at=time.time(), specialty=specialty or None, years=int(years) if years else None)
            )

    def renew_link(self, reviewer_id: str, days: int = 30) -> Invitation:
        """A new link for a reviewer: the old one and its sessions end, the answers stay."""
        _check_days(days)
        ticket, now = new_ticket(reviewer_id), time.time()
        with self._database.writing() as connection:
            connection.execute(
                update(reviewer)
                .where(reviewer.c.id == reviewer_id, reviewer.c.study_id == self._study.id)
                .values(token_hash=ticket.hash, expires_at=now + days * DAY, revoked_at=None)
            )
            connection.execute(delete(session).where(session.c.reviewer_id == reviewer_id))
        return Invitation(self.reviewer(reviewer_id), ticket.text)

    def revoke(self, reviewer_id: str) -> None:
        """End a link and its sessions at once; the answers stay."""
        person = self.reviewer(reviewer_id)
        with self._database.writing() as connection:
            connection.execute(update(reviewer).where(reviewer.c.id == person.id).values(revoked_at=time.time()))
            connection.execute(delete(session).where(session.c.reviewer_id == person.id))

    def reviewers(self) -> list[Reviewer]:
        """All reviewers, in the order they were invited."""
        with self._database.reading() as connection:
            rows = connection.execute(
                select(reviewer).where(reviewer.c.study_id == self._study.id).order_by(reviewer.c.number)
            )
            return [_reviewer(row) for row in rows]

    def reviewer(self, reviewer_id: str) -> Reviewer:
        """One reviewer by id."""
        row = self._row(reviewer, reviewer_id)
        if row is None:
            raise UsageError("there is no such reviewer in this study")
        return _reviewer(row)

    def reviewer_with_link(self, ticket: str) -> Reviewer | None:
        """Whose link this is; None for links that are wrong, revoked or expired."""
        identifier, secret = split_ticket(ticket)
        row = self._row(reviewer, identifier)
        matches = secret_matches(secret, row.token_hash if row is not None else None)
        if row is None or not matches:
            return None
        person = _reviewer(row)
        return person if person.state() == "active" else None

    # Sessions

    def open_session(self, person: Reviewer) -> tuple[str, float]:
        """A session of a reviewer: the cookie's value and how long it lasts."""
        ticket, now = new_ticket(), time.time()
        ends = min(now + REVIEWER_SESSION, person.expires_at)
        with self._database.writing() as connection:
            connection.execute(delete(session).where(session.c.expires_at < now))
            connection.execute(
                insert(session).values(
                    id=ticket.id,
                    study_id=self._study.id,
                    reviewer_id=person.id,
                    secret_hash=ticket.hash,
                    expires_at=ends,
                )
            )
        return ticket.text, ends - now

    def reviewer_in_session(self, ticket: str) -> Reviewer | None:
        """The reviewer whose session this is, if it and their link still hold."""
        row = self._session(ticket)
        if row is None or row.reviewer_id is None:
            return None
        person = self.reviewer(row.reviewer_id)
        return person if person.state() == "active" else None

    def close_session(self, ticket: str) -> None:
        """Sign a reviewer or an administrator out; an unknown ticket is ignored."""
        if self._session(ticket) is not None:
            with self._database.writing() as connection:
                connection.execute(delete(session).where(session.c.id == split_ticket(ticket)[0]))

    def _row(self, table: Table, identifier: str) -> Row[Any] | None:
        """A row of this study by its id."""
        with self._database.reading() as connection:
            return connection.execute(
                select(table).where(table.c.id == identifier, table.c.study_id == self._study.id)
            ).first()

    def _session(self, ticket: str) -> Row[Any] | None:
        identifier, secret = split_ticket(ticket)
        row = self._row(session, identifier)
        matches = secret_matches(secret, row.secret_hash if row is not None else None)
        return row if row is not None and matches and time.time() < row.expires_at else None


def _check_days(days: int) -> None:
    if not 1 <= days <= LONGEST_LINK:
        raise UsageError(f"a link can be valid for 1 to {LONGEST_LINK} days, not {days}")


def _reviewer(row: Row[tuple[object, ...]]) -> Reviewer:
    return Reviewer(
        row.id,
        row.number,
        row.name,
        row.created_at,
        row.expires_at,
        row.revoked_at,
        row.consented_at,
        row.specialty,
        row.years,
    )
