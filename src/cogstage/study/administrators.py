"""The administrators of a study: passwords, two-step sign-in, sessions, and a log of what they did."""

from __future__ import annotations

import hmac
import time
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from cogstage.errors import UsageError
from cogstage.study.database import Database
from cogstage.study.protocol import Study
from cogstage.study.schema import activity, administrator, session
from cogstage.study.secret import (
    TIME_STEP,
    hash_password,
    new_ticket,
    new_time_secret,
    password_matches,
    secret_matches,
    split_ticket,
    time_code,
)

FIRST = "administrator"  # the account that every study is created with
LONGEST_SESSION = 43_200.0  # seconds
IDLE_SECONDS = 1800.0  # without a request of the administrator, the session ends
TOUCH_SECONDS = 60.0  # between two notes of the time of the last request


@dataclass(frozen=True)
class Activity:
    """What an administrator did."""

    at: float
    who: str
    what: str


class Administrators:
    """Accounts by name; all may do the same."""

    def __init__(self, database: Database, study: Study) -> None:
        self._database = database
        self._study = study

    @property
    def names(self) -> list[str]:
        """The names of all accounts."""
        with self._database.reading() as connection:
            chosen = select(administrator.c.name).where(administrator.c.study_id == self._study.id)
            return list(connection.scalars(chosen.order_by(administrator.c.created_at)))

    def set_password(self, password: str, name: str = FIRST) -> None:
        """Set the password of an account, which is created if it is new, and end its sessions."""
        name, stored = _checked(name), hash_password(password)
        with self._database.writing() as connection:
            identifier = self._id(connection, name)
            if identifier is None:
                values = {"id": new_ticket().id, "name": name, "password_hash": stored, "created_at": time.time()}
                connection.execute(insert(administrator).values(study_id=self._study.id, **values))
                return
            connection.execute(
                update(administrator).where(administrator.c.id == identifier).values(password_hash=stored)
            )
            connection.execute(delete(session).where(session.c.administrator_id == identifier))

    def set_two_step(self, name: str = FIRST, required: bool = True) -> str | None:
        """Ask for a code at sign-in, or no longer; returns the new secret for the program that shows the codes."""
        secret = new_time_secret() if required else None
        with self._database.writing() as connection:
            identifier = self._known(connection, name)
            values = {"time_secret": secret, "time_step": None}
            connection.execute(update(administrator).where(administrator.c.id == identifier).values(values))
            connection.execute(delete(session).where(session.c.administrator_id == identifier))
        return secret

    def remove(self, name: str) -> None:
        """Remove an account and end its sessions; the last one stays."""
        if self.names == [name]:
            raise UsageError(f"{name} is the only administrator of this study; add another one first")
        with self._database.writing() as connection:
            identifier = self._known(connection, name)
            connection.execute(delete(session).where(session.c.administrator_id == identifier))
            connection.execute(delete(administrator).where(administrator.c.id == identifier))

    # Sign-in

    def is_password(self, password: str, name: str = FIRST) -> bool:
        """Whether this is the password of the account; slow on purpose, and as slow for a name that nobody has."""
        with self._database.reading() as connection:
            chosen = select(administrator.c.password_hash)
            stored = connection.scalar(chosen.where(*self._named(name)))
        return password_matches(password, stored)

    def is_code(self, code: str, name: str = FIRST, now: float | None = None) -> bool:
        """Whether this is a current code of the account, used for the first time; true for accounts without codes."""
        with self._database.writing() as connection:
            row = connection.execute(select(administrator).where(*self._named(name)).with_for_update()).first()
            if row is None or row.time_secret is None:
                return row is not None
            current = int((time.time() if now is None else now) // TIME_STEP)
            for step in (current - 1, current, current + 1):  # clocks differ
                fits = hmac.compare_digest(time_code(row.time_secret, step), "".join(code.split()).encode()[:20])
                if fits and step > (row.time_step or 0):
                    connection.execute(update(administrator).where(administrator.c.id == row.id).values(time_step=step))
                    return True
        return False

    def open_session(self, name: str = FIRST) -> tuple[str, float]:
        """A new session of an account: the value of its cookie and how long it lasts at most."""
        ticket, now = new_ticket(), time.time()
        with self._database.writing() as connection:
            connection.execute(delete(session).where(session.c.expires_at < now))
            connection.execute(
                insert(session).values(
                    id=ticket.id,
                    study_id=self._study.id,
                    administrator_id=self._known(connection, name),
                    secret_hash=ticket.hash,
                    expires_at=now + LONGEST_SESSION,
                    used_at=now,
                )
            )
        return ticket.text, LONGEST_SESSION

    def in_session(self, ticket: str, by_person: bool = True, now: float | None = None) -> str | None:
        """The name of the account that this session belongs to; None once it has ended.

        A request that a page makes by itself (``by_person`` False) does not keep the session open.
        """
        identifier, secret = split_ticket(ticket)
        now = time.time() if now is None else now
        with self._database.reading() as connection:
            chosen = select(session, administrator.c.name).join(
                administrator, administrator.c.id == session.c.administrator_id
            )
            row = connection.execute(
                chosen.where(session.c.id == identifier, session.c.study_id == self._study.id)
            ).first()
        matches = secret_matches(secret, None if row is None else row.secret_hash)
        if row is None or not matches or now >= min(row.expires_at, row.used_at + IDLE_SECONDS):
            return None
        if by_person and now > row.used_at + TOUCH_SECONDS:
            with self._database.writing() as connection:
                connection.execute(update(session).where(session.c.id == row.id).values(used_at=now))
        return str(row.name)

    # Log

    def record(self, who: str, what: str) -> None:
        """Add a line to the log."""
        with self._database.writing() as connection:
            values = {"study_id": self._study.id, "at": time.time(), "who": who[:200], "what": what[:1000]}
            connection.execute(insert(activity).values(values))

    def activities(self, most: int = 500) -> list[Activity]:
        """The log, latest first."""
        with self._database.reading() as connection:
            chosen = select(activity).where(activity.c.study_id == self._study.id).order_by(activity.c.id.desc())
            return [Activity(row.at, row.who, row.what) for row in connection.execute(chosen.limit(most))]

    def _named(self, name: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
        kept = name[:200].encode("utf-8", "replace").decode().replace("\0", "")
        return administrator.c.study_id == self._study.id, administrator.c.name == kept

    def _id(self, connection: Connection, name: str) -> str | None:
        return connection.scalar(select(administrator.c.id).where(*self._named(name)))

    def _known(self, connection: Connection, name: str) -> str:
        identifier = self._id(connection, name)
        if identifier is None:
            raise UsageError(f"this study has no administrator named {name}")
        return identifier


def _checked(name: str) -> str:
    name = " ".join(name.split())
    if not name or len(name) > 200 or not name.isprintable():
        raise UsageError("an administrator needs a name of at most 200 letters")
    return name
