"""The first tables: studies, reviewers, sessions, placements, answers, their changes, and visits."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

KEY = sa.String(64)


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "study",
        sa.Column("id", KEY, nullable=False),
        sa.Column("definition_hash", KEY, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("password_hash", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_study"),
    )
    op.create_table(
        "study_reviewer",
        sa.Column("id", KEY, nullable=False),
        sa.Column("study_id", KEY, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("token_hash", KEY, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.Column("revoked_at", sa.Double),
        sa.PrimaryKeyConstraint("id", name="pk_study_reviewer"),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name="fk_study_reviewer_study_id"),
        sa.UniqueConstraint("study_id", "number", name="uq_study_reviewer_study_id_number"),
        sa.UniqueConstraint("study_id", "name", name="uq_study_reviewer_study_id_name"),
    )
    op.create_table(
        "study_session",
        sa.Column("id", KEY, nullable=False),
        sa.Column("study_id", KEY, nullable=False),
        sa.Column("reviewer_id", KEY),
        sa.Column("secret_hash", KEY, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_study_session"),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name="fk_study_session_study_id"),
        sa.ForeignKeyConstraint(["reviewer_id"], ["study_reviewer.id"], name="fk_study_session_reviewer_id"),
    )
    op.create_table(
        "study_placement",
        sa.Column("reviewer_id", KEY, nullable=False),
        sa.Column("position", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("case_key", KEY, nullable=False),
        sa.Column("set_order", sa.Text, nullable=False),
        sa.Column("bare", sa.Boolean(create_constraint=False), nullable=False),
        sa.PrimaryKeyConstraint("reviewer_id", "position", name="pk_study_placement"),
        sa.ForeignKeyConstraint(["reviewer_id"], ["study_reviewer.id"], name="fk_study_placement_reviewer_id"),
        sa.UniqueConstraint("reviewer_id", "case_key", name="uq_study_placement_reviewer_id_case_key"),
    )
    op.create_table(
        "study_answer",
        sa.Column("reviewer_id", KEY, nullable=False),
        sa.Column("case_key", KEY, nullable=False),
        sa.Column("item", KEY, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("answered_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("reviewer_id", "case_key", "item", name="pk_study_answer"),
        sa.ForeignKeyConstraint(["reviewer_id"], ["study_reviewer.id"], name="fk_study_answer_reviewer_id"),
    )
    op.create_table(
        "study_change",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False, autoincrement=True),
        sa.Column("reviewer_id", KEY, nullable=False),
        sa.Column("case_key", KEY, nullable=False),
        sa.Column("item", KEY, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("changed_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_study_change"),
        sa.ForeignKeyConstraint(["reviewer_id"], ["study_reviewer.id"], name="fk_study_change_reviewer_id"),
    )
    op.create_index("ix_study_change_reviewer_id_case_key_item", "study_change", ["reviewer_id", "case_key", "item"])
    op.create_table(
        "study_visit",
        sa.Column("id", KEY, nullable=False),
        sa.Column("reviewer_id", KEY, nullable=False),
        sa.Column("case_key", KEY, nullable=False),
        sa.Column("opened_at", sa.Double, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_study_visit"),
        sa.ForeignKeyConstraint(["reviewer_id"], ["study_reviewer.id"], name="fk_study_visit_reviewer_id"),
    )
    op.create_index("ix_study_visit_reviewer_id_case_key", "study_visit", ["reviewer_id", "case_key"])


def downgrade() -> None:
    """Drop the tables, those that lean on others first."""
    for name in ("visit", "change", "answer", "placement", "session", "reviewer"):
        op.drop_table(f"study_{name}")
    op.drop_table("study")
