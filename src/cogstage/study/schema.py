"""The tables behind a study. A change here needs a migration next to it; a test compares the two.

Times are seconds since 1970 in UTC. Secrets are stored as hashes only, but for those that codes are computed from.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
)

VERSION_TABLE = "study_schema_version"
KEY = String(64)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

study = Table(
    "study",
    metadata,
    Column("id", KEY, primary_key=True),
    Column("definition_hash", KEY, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("closed_at", Double),  # none: open
    Column("order_secret", KEY),  # every random order follows from it; it is never shown or exported
)

reviewer = Table(
    "study_reviewer",
    metadata,
    Column("id", KEY, primary_key=True),
    Column("study_id", KEY, ForeignKey("study.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("name", String(200), nullable=False),
    Column("token_hash", KEY, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("revoked_at", Double),
    Column("consented_at", Double),
    Column("specialty", String(200)),
    Column("years", Integer),  # in practice
    UniqueConstraint("study_id", "number"),
    UniqueConstraint("study_id", "name"),
)

administrator = Table(
    "study_administrator",
    metadata,
    Column("id", KEY, primary_key=True),
    Column("study_id", KEY, ForeignKey("study.id"), nullable=False),
    Column("name", String(200), nullable=False),
    Column("password_hash", Text, nullable=False),
    Column("time_secret", KEY),  # of two-step sign-in
    Column("time_step", BigInteger),  # of the last code, which cannot be used again
    Column("created_at", Double, nullable=False),
    UniqueConstraint("study_id", "name"),
)

# What administrators did, only ever added to.
activity = Table(
    "study_activity",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("study_id", KEY, ForeignKey("study.id"), nullable=False),
    Column("at", Double, nullable=False),
    Column("who", String(200), nullable=False),
    Column("what", Text, nullable=False),
)

session = Table(
    "study_session",
    metadata,
    Column("id", KEY, primary_key=True),
    Column("study_id", KEY, ForeignKey("study.id"), nullable=False),
    Column("reviewer_id", KEY, ForeignKey("study_reviewer.id")),  # none: an administrator
    Column("secret_hash", KEY, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("administrator_id", KEY, ForeignKey("study_administrator.id")),  # none: a reviewer
    Column("used_at", Double),  # by an administrator
)

placement = Table(
    "study_placement",
    metadata,
    Column("reviewer_id", KEY, ForeignKey("study_reviewer.id"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("case_key", KEY, nullable=False),
    Column("set_order", Text, nullable=False),  # source names in the order shown, separated by spaces
    Column("bare", Boolean(create_constraint=False), nullable=False),
    Column("evidence_only", Boolean(create_constraint=False), nullable=False, server_default=false()),
    UniqueConstraint("reviewer_id", "case_key"),
)

answer = Table(
    "study_answer",
    metadata,
    Column("reviewer_id", KEY, ForeignKey("study_reviewer.id"), primary_key=True),
    Column("case_key", KEY, primary_key=True),
    Column("item", KEY, primary_key=True),
    Column("value", Text, nullable=False),
    Column("answered_at", Double, nullable=False),
)

# Every value an answer ever had, only ever added to.
change = Table(
    "study_change",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("reviewer_id", KEY, ForeignKey("study_reviewer.id"), nullable=False),
    Column("case_key", KEY, nullable=False),
    Column("item", KEY, nullable=False),
    Column("value", Text, nullable=False),
    Column("changed_at", Double, nullable=False),
)
Index(None, change.c.reviewer_id, change.c.case_key, change.c.item)

# What the administrator decided where reviewers disagree.
adjudication = Table(
    "study_adjudication",
    metadata,
    Column("study_id", KEY, ForeignKey("study.id"), primary_key=True),
    Column("case_key", KEY, primary_key=True),
    Column("item", KEY, primary_key=True),
    Column("value", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("decided_at", Double, nullable=False),
)

# One showing of a case's page and how long it was looked at.
visit = Table(
    "study_visit",
    metadata,
    Column("id", KEY, primary_key=True),
    Column("reviewer_id", KEY, ForeignKey("study_reviewer.id"), nullable=False),
    Column("case_key", KEY, nullable=False),
    Column("opened_at", Double, nullable=False),
    Column("seconds", Double, nullable=False),
)
Index(None, visit.c.reviewer_id, visit.c.case_key)
