"""Jobs, datasets, versions of profiles, and keys of requests that may come twice."""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    identity = op.create_table(
        "identity",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_identity"),
    )
    op.bulk_insert(identity, [{"id": secrets.token_hex(16)}])
    op.create_table(
        "datasets",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("format", sa.String(length=20), nullable=False),
        sa.Column("device", sa.String(length=200), nullable=True),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("fields", sa.JSON(), nullable=False),
        sa.Column("warnings", sa.Integer(), nullable=False),
        sa.Column("upload_sha256", sa.String(length=64), nullable=False),
        sa.Column("data_sha256", sa.String(length=64), nullable=False),
        sa.Column("sidecar_sha256", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_datasets"),
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("operation", sa.String(length=200), nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("request_sha256", sa.String(length=64), nullable=False),
        sa.Column("resource", sa.String(length=200), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("operation", "key", name="pk_idempotency_keys"),
    )
    op.create_index(
        "ix_idempotency_keys_created_at", "idempotency_keys", ["created_at"], unique=False
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("exclusive", sa.String(length=200), nullable=True),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("progress", sa.Float(), nullable=False),
        sa.Column("stage", sa.String(length=200), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("worker", sa.String(length=200), nullable=True),
        sa.Column("lease_until", sa.Float(), nullable=True),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("result_sha256", sa.String(length=64), nullable=True),
        sa.Column("error", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("started_at", sa.Float(), nullable=True),
        sa.Column("finished_at", sa.Float(), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.CheckConstraint("(state = 'done') = (result_sha256 IS NOT NULL)", name="ck_jobs_result"),
        sa.CheckConstraint("(state = 'failed') = (error IS NOT NULL)", name="ck_jobs_error"),
        sa.CheckConstraint("(state = 'running') = (lease_until IS NOT NULL)", name="ck_jobs_lease"),
        sa.CheckConstraint(
            "state IN ('queued','running','done','failed','cancelled')", name="ck_jobs_state"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
    )
    op.create_index("ix_jobs_state", "jobs", ["state", "id"], unique=False)
    op.create_index(
        "uq_jobs_exclusive",
        "jobs",
        ["exclusive"],
        unique=True,
        sqlite_where=sa.text("state = 'running'"),
        postgresql_where=sa.text("state = 'running'"),
    )
    op.create_table(
        "profile_versions",
        sa.Column("device", sa.String(length=200), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("profile_version", sa.String(length=200), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("job_id", sa.String(length=32), nullable=True),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.CheckConstraint("number > 0", name="ck_profile_versions_number"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_profile_versions_job_id"),
        sa.PrimaryKeyConstraint("device", "number", name="pk_profile_versions"),
    )
    op.create_table(
        "current_profiles",
        sa.Column("device", sa.String(length=200), nullable=False),
        sa.Column("number", sa.Integer(), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["device", "number"],
            ["profile_versions.device", "profile_versions.number"],
            name="fk_current_profiles_device",
        ),
        sa.PrimaryKeyConstraint("device", name="pk_current_profiles"),
    )
