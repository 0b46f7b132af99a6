"""Keys of requests that may come twice belong to the API key that was shown with them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the owner to what names a row; nobody knows whose the rows so far are."""
    with op.batch_alter_table("idempotency_keys") as table:
        table.add_column(
            sa.Column("owner", sa.String(length=12), nullable=False, server_default="")
        )
        table.drop_constraint("pk_idempotency_keys", type_="primary")
        table.create_primary_key("pk_idempotency_keys", ["owner", "operation", "key"])
    with op.batch_alter_table("idempotency_keys") as table:
        table.alter_column("owner", server_default=None)
