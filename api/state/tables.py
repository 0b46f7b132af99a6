"""The tables. Times are seconds since 1970 by the clock of the database."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    text,
    true,
)

REVISION = "0004"
"""The newest migration; all of them together make exactly these tables."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

OWNER_CHARACTERS = 100


def _owned() -> tuple[Column[str], Column[bool]]:
    """Whose a row is, and whether others may read it; what has no owner is always shared."""
    return (
        Column("owner", String(OWNER_CHARACTERS)),
        Column("shared", Boolean, nullable=False, server_default=true()),
    )


identity = Table("identity", metadata, Column("id", String(32), primary_key=True))
"""One row, made with the tables: the files of a folder belong to the database of this id."""

jobs = Table(
    "jobs",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("kind", String(40), nullable=False),
    # Of jobs with the same word here one runs at a time, such as calibrations of one drive.
    Column("exclusive", String(200)),
    Column("request", JSON, nullable=False),
    Column("state", String(10), nullable=False),
    Column("progress", Float, nullable=False),
    Column("stage", String(200)),
    # Counts how often the job was taken: the fencing token of whoever has it now.
    Column("attempt", Integer, nullable=False),
    Column("worker", String(200)),
    Column("lease_until", Float),
    Column("cancel_requested", Boolean, nullable=False),
    Column("result_sha256", String(64)),
    Column("error", JSON(none_as_null=True)),
    Column("created_at", Float, nullable=False),
    Column("started_at", Float),
    Column("finished_at", Float),
    # Counts the changes that anybody can see: the entity tag, and the id of an event.
    Column("revision", Integer, nullable=False),
    *_owned(),
    # Compute seconds a day of the key that asked for it: the job waits while they are used up.
    Column("compute_seconds_max", Float),
    # Until when the time of this attempt has been added to `compute_use`.
    Column("charged_at", Float),
    Column("result_bytes", BigInteger),
    CheckConstraint("state IN ('queued','running','done','failed','cancelled')", name="state"),
    CheckConstraint("(state = 'running') = (lease_until IS NOT NULL)", name="lease"),
    CheckConstraint("(state = 'done') = (result_sha256 IS NOT NULL)", name="result"),
    CheckConstraint("(state = 'failed') = (error IS NOT NULL)", name="error"),
    Index("ix_jobs_state", "state", "id"),
    Index("ix_jobs_owner", "owner", "state"),
    Index(
        "uq_jobs_exclusive",
        "exclusive",
        unique=True,
        sqlite_where=text("state = 'running'"),
        postgresql_where=text("state = 'running'"),
    ),
)

datasets = Table(
    "datasets",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("format", String(20), nullable=False),
    Column("device", String(200)),
    Column("rows", Integer, nullable=False),
    Column("fields", JSON, nullable=False),
    Column("warnings", Integer, nullable=False),
    Column("upload_sha256", String(64), nullable=False),
    # A dataset is a pair of files: its measurements as Parquet, and their metadata as JSON.
    Column("data_sha256", String(64), nullable=False),
    Column("sidecar_sha256", String(64), nullable=False),
    Column("created_at", Float, nullable=False),
    *_owned(),
    # Of both files; 0 where it was uploaded before bytes were counted.
    Column("bytes", BigInteger, nullable=False, server_default="0"),
    Index("ix_datasets_owner", "owner"),
)

profile_versions = Table(
    "profile_versions",
    metadata,
    Column("device", String(200), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("profile_version", String(200), nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("job_id", String(32), ForeignKey("jobs.id")),
    Column("created_at", Float, nullable=False),
    CheckConstraint("number > 0", name="number"),
)

current_profiles = Table(
    "current_profiles",
    metadata,
    Column("device", String(200), primary_key=True),
    # None: the profile that iojoule itself brings.
    Column("number", Integer),
    Column("revision", Integer, nullable=False),
    ForeignKeyConstraint(
        ["device", "number"], ["profile_versions.device", "profile_versions.number"]
    ),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    # Id of the API key that was shown; empty where the service asks for none.
    Column("owner", String(12), primary_key=True),
    Column("operation", String(200), primary_key=True),
    Column("key", String(200), primary_key=True),
    Column("request_sha256", String(64), nullable=False),
    Column("resource", String(200), nullable=False),
    Column("created_at", Float, nullable=False),
    Index("ix_idempotency_keys_created_at", "created_at"),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", String(12), primary_key=True),
    Column("name", String(100), nullable=False),
    Column("scope", String(10), nullable=False),
    Column("secret_sha256", String(64), nullable=False),
    Column("created_at", Float, nullable=False),
    Column("revoked_at", Float),
    # Who answers for it. What is made with the key belongs to this name, and outlives the key.
    Column("owner", String(OWNER_CHARACTERS), nullable=False, server_default=""),
    Column("expires_at", Float),
    Column("last_used_at", Float),
    # Limits; none: there is none.
    Column("requests_per_second", Float),
    Column("burst", Integer),
    Column("jobs_waiting_max", Integer),
    Column("stored_bytes_max", BigInteger),
    Column("compute_seconds_max", Float),
    CheckConstraint("scope IN ('read','write','admin')", name="scope"),
)

compute_use = Table(
    "compute_use",
    metadata,
    Column("owner", String(OWNER_CHARACTERS), primary_key=True),
    # Whole days since 1970, UTC.
    Column("day", Integer, primary_key=True, autoincrement=False),
    Column("seconds", Float, nullable=False),
)
"""How long workers have run the jobs of an owner, by day."""

audit = Table(
    "audit",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("at", Float, nullable=False),
    # key: with an API key; open: of a service that asks for none; local: at the command line;
    # service: the service by itself.
    Column("origin", String(10), nullable=False),
    Column("key_id", String(12)),
    Column("owner", String(OWNER_CHARACTERS)),
    Column("os_user", String(100)),
    Column("action", String(40), nullable=False),
    Column("object", String(300), nullable=False),
    Column("outcome", String(20), nullable=False),
    Column("details", JSON, nullable=False),
    Column("request_id", String(128)),
    Column("remote_address", String(64)),
    Index("ix_audit_at", "at"),
)
"""Who changed what and when: rows are added in the transaction of the change, never changed."""
