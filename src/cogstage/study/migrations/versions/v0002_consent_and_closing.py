"""Consent and profile of a reviewer, a study's end, and the secret behind every random order."""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

KEY = sa.String(64)


def upgrade() -> None:
    """Add the columns; a study that is there gets a secret of its own."""
    op.add_column("study", sa.Column("closed_at", sa.Double))
    op.add_column("study", sa.Column("order_secret", KEY))
    op.add_column("study_reviewer", sa.Column("consented_at", sa.Double))
    op.add_column("study_reviewer", sa.Column("specialty", sa.String(200)))
    op.add_column("study_reviewer", sa.Column("years", sa.Integer))
    connection = op.get_bind()
    study = sa.table("study", sa.column("id"), sa.column("order_secret"))
    for (identifier,) in connection.execute(sa.select(study.c.id)).fetchall():
        connection.execute(sa.update(study).where(study.c.id == identifier).values(order_secret=secrets.token_hex(32)))


def downgrade() -> None:
    """Drop the columns."""
    for column in ("years", "specialty", "consented_at"):
        op.drop_column("study_reviewer", column)
    for column in ("order_secret", "closed_at"):
        op.drop_column("study", column)
