"""Administrators by name with two-step sign-in, the end of idle sessions, and the log of activities."""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

KEY = sa.String(64)


def upgrade() -> None:
    """Add the tables; the password of a study becomes that of its first administrator, who signs in again."""
    op.create_table(
        "study_administrator",
        sa.Column("id", KEY, nullable=False),
        sa.Column("study_id", KEY, nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("password_hash", sa.Text, nullable=False),
        sa.Column("time_secret", KEY),
        sa.Column("time_step", sa.BigInteger),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_study_administrator"),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name="fk_study_administrator_study_id"),
        sa.UniqueConstraint("study_id", "name", name="uq_study_administrator_study_id_name"),
    )
    op.create_table(
        "study_activity",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), autoincrement=True, nullable=False),
        sa.Column("study_id", KEY, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("who", sa.String(200), nullable=False),
        sa.Column("what", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_study_activity"),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name="fk_study_activity_study_id"),
    )
    connection = op.get_bind()
    study = sa.table("study", sa.column("id"), sa.column("password_hash"), sa.column("created_at"))
    account = sa.table(
        "study_administrator",
        *(sa.column(name) for name in ("id", "study_id", "name", "password_hash", "created_at")),
    )
    for row in connection.execute(sa.select(study).where(study.c.password_hash.is_not(None))).fetchall():
        values = {"id": secrets.token_hex(8), "study_id": row.id, "name": "administrator"}
        values |= {"password_hash": row.password_hash, "created_at": row.created_at}
        connection.execute(sa.insert(account).values(values))
    connection.execute(sa.text("DELETE FROM study_session WHERE reviewer_id IS NULL"))
    with op.batch_alter_table("study_session") as table:  # SQLite has no other way to add a reference
        table.add_column(sa.Column("administrator_id", KEY))
        table.add_column(sa.Column("used_at", sa.Double))
        table.create_foreign_key(
            "fk_study_session_administrator_id", "study_administrator", ["administrator_id"], ["id"]
        )
    op.drop_column("study", "password_hash")


def downgrade() -> None:
    """Drop the tables; the study keeps the password of its first administrator."""
    op.add_column("study", sa.Column("password_hash", sa.Text))
    op.execute(
        "UPDATE study SET password_hash = (SELECT password_hash FROM study_administrator"
        " WHERE study_id = study.id ORDER BY created_at LIMIT 1)"
    )
    op.execute("DELETE FROM study_session WHERE reviewer_id IS NULL")
    with op.batch_alter_table("study_session") as table:
        table.drop_constraint("fk_study_session_administrator_id", type_="foreignkey")
        table.drop_column("administrator_id")
        table.drop_column("used_at")
    op.drop_table("study_activity")
    op.drop_table("study_administrator")
