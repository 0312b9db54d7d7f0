"""What alembic runs: the migrations on the connection it was handed."""

from __future__ import annotations

from alembic import context

from cogstage.study.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
