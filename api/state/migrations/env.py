"""Run by Alembic: migrates within the transaction that the caller has opened."""

from __future__ import annotations

from alembic import context

from iojoule.api.state.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
