"""Keys have owners and limits, what is kept belongs to owners, and changes are recorded."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Keys belong to whom they were made for; what is there already is nobody's, so shared."""
    op.add_column(
        "api_keys",
        sa.Column("owner", sa.String(length=100), nullable=False, server_default=""),
    )
    op.execute("UPDATE api_keys SET owner = name")
    for name, kind in (
        ("expires_at", sa.Float()),
        ("last_used_at", sa.Float()),
        ("requests_per_second", sa.Float()),
        ("burst", sa.Integer()),
        ("jobs_waiting_max", sa.Integer()),
        ("stored_bytes_max", sa.BigInteger()),
        ("compute_seconds_max", sa.Float()),
    ):
        op.add_column("api_keys", sa.Column(name, kind, nullable=True))
    for table in ("jobs", "datasets"):
        op.add_column(table, sa.Column("owner", sa.String(length=100), nullable=True))
        op.add_column(
            table, sa.Column("shared", sa.Boolean(), nullable=False, server_default=sa.true())
        )
    op.add_column("jobs", sa.Column("compute_seconds_max", sa.Float(), nullable=True))
    op.add_column("jobs", sa.Column("charged_at", sa.Float(), nullable=True))
    op.add_column("jobs", sa.Column("result_bytes", sa.BigInteger(), nullable=True))
    op.add_column(
        "datasets", sa.Column("bytes", sa.BigInteger(), nullable=False, server_default="0")
    )
    op.create_index("ix_jobs_owner", "jobs", ["owner", "state"], unique=False)
    op.create_index("ix_datasets_owner", "datasets", ["owner"], unique=False)
    op.create_table(
        "compute_use",
        sa.Column("owner", sa.String(length=100), nullable=False),
        sa.Column("day", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "day", name="pk_compute_use"),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("origin", sa.String(length=10), nullable=False),
        sa.Column("key_id", sa.String(length=12), nullable=True),
        sa.Column("owner", sa.String(length=100), nullable=True),
        sa.Column("os_user", sa.String(length=100), nullable=True),
        sa.Column("action", sa.String(length=40), nullable=False),
        sa.Column("object", sa.String(length=300), nullable=False),
        sa.Column("outcome", sa.String(length=20), nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.Column("request_id", sa.String(length=128), nullable=True),
        sa.Column("remote_address", sa.String(length=64), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
    )
    op.create_index("ix_audit_at", "audit", ["at"], unique=False)
