"""The arm without a prediction, and decisions where reviewers disagree."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

KEY = sa.String(64)


def upgrade() -> None:
    """Add a column and a table; placements that are there show their prediction."""
    kind = sa.Boolean(create_constraint=False)
    op.add_column("study_placement", sa.Column("evidence_only", kind, nullable=False, server_default=sa.false()))
    op.create_table(
        "study_adjudication",
        sa.Column("study_id", KEY, nullable=False),
        sa.Column("case_key", KEY, nullable=False),
        sa.Column("item", KEY, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("decided_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("study_id", "case_key", "item", name="pk_study_adjudication"),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name="fk_study_adjudication_study_id"),
    )


def downgrade() -> None:
    """Drop them."""
    op.drop_table("study_adjudication")
    op.drop_column("study_placement", "evidence_only")
