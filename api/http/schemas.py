"""Responses about jobs, datasets, profile versions, the audit log and the service itself.

Imports pydantic and little else, as the client imports it too.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field

from iojoule.datasets.schema import number

if TYPE_CHECKING:
    from iojoule.api.state.datasets import StoredDataset
    from iojoule.api.state.jobs import Job
    from iojoule.api.state.pages import Page
    from iojoule.api.state.profiles import ProfileVersion


def utc(seconds: float) -> datetime:
    """A time of the state, seconds since 1970, to the millisecond."""
    return datetime.fromtimestamp(round(seconds, 3), UTC)


JobState = Literal["queued", "running", "done", "failed", "cancelled"]


class JobProblem(BaseModel):
    """Why a job failed, as problem+json has it; `field` points into the job's request."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None


class JobStatus(BaseModel):
    """A job as it is now.

    Attributes:
        progress: Share that is done, 0 to 1.
        stage: What is being done.
        attempt: How often it was begun; an interrupted job is begun again.
        cancel_requested: Somebody called it off; its worker stops soon.
        result_url: Where the result is, once it is done.
        owner: Whose it is; null: nobody's.
        shared: Whether others may read it.
    """

    id: str
    kind: str
    state: JobState
    progress: float = Field(ge=0, le=1)
    stage: str | None
    attempt: int
    cancel_requested: bool
    request: dict[str, Any]
    error: JobProblem | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    url: str
    events_url: str
    result_url: str | None
    owner: str | None
    shared: bool

    @classmethod
    def of(cls, job: Job) -> Self:
        """From a row of the state."""
        url = f"/jobs/{job.id}"
        return cls(
            id=job.id,
            kind=job.kind,
            state=cast(JobState, job.state),
            progress=job.progress,
            stage=job.stage,
            attempt=job.attempt,
            cancel_requested=job.cancel_requested,
            request=job.request,
            error=None if job.error is None else JobProblem.model_validate(job.error),
            created_at=utc(job.created_at),
            started_at=None if job.started_at is None else utc(job.started_at),
            finished_at=None if job.finished_at is None else utc(job.finished_at),
            url=url,
            events_url=f"{url}/events",
            result_url=f"{url}/result" if job.result_sha256 else None,
            owner=job.owner,
            shared=job.shared,
        )


class JobList(BaseModel):
    """Jobs, the newest first.

    Attributes:
        next_cursor: What to ask for next; null: this is the end.
    """

    jobs: list[JobStatus]
    next_cursor: str | None

    @classmethod
    def of(cls, page: Page[Job]) -> Self:
        """From a page of rows."""
        return cls(jobs=[JobStatus.of(job) for job in page.items], next_cursor=page.next_cursor)


FORMATS = {
    "application/vnd.apache.parquet": "parquet",
    "text/csv": "csv",
    "application/json": "fio",
    "application/zip": "zip",
}
"""Content type of an upload -> its form; zip is a folder of fio's results."""


class DatasetSummary(BaseModel):
    """Measurements that were uploaded.

    Attributes:
        device: The one drive that they name, if they do.
        rows: How many measurements.
        fields: Known in at least one of them.
        warnings: How many there were; the metadata file at `sidecar_url` lists them.
        upload_sha256: Hash of the file as it was sent.
        data_sha256: Hash of the dataset's Parquet file.
        owner: Whose it is; null: nobody's.
        shared: Whether others may read it.
    """

    id: str
    format: str
    device: str | None
    rows: int
    fields: list[str]
    warnings: int
    upload_sha256: str
    data_sha256: str
    created_at: datetime
    url: str
    data_url: str
    sidecar_url: str
    owner: str | None
    shared: bool

    @classmethod
    def of(cls, dataset: StoredDataset) -> Self:
        """From a row of the state."""
        url = f"/datasets/{dataset.id}"
        return cls(
            id=dataset.id,
            format=dataset.format,
            device=dataset.device,
            rows=dataset.rows,
            fields=dataset.fields,
            warnings=dataset.warnings,
            upload_sha256=dataset.upload_sha256,
            data_sha256=dataset.data_sha256,
            created_at=utc(dataset.created_at),
            url=url,
            data_url=f"{url}/data",
            sidecar_url=f"{url}/sidecar",
            owner=dataset.owner,
            shared=dataset.shared,
        )


class DatasetList(BaseModel):
    """Datasets, the newest first.

    Attributes:
        next_cursor: What to ask for next; null: this is the end.
    """

    datasets: list[DatasetSummary]
    next_cursor: str | None

    @classmethod
    def of(cls, page: Page[StoredDataset]) -> Self:
        """From a page of rows."""
        listed = [DatasetSummary.of(row) for row in page.items]
        return cls(datasets=listed, next_cursor=page.next_cursor)


SHIPPED = 0
"""Number of the profile that iojoule itself brings; those that were calibrated count from 1."""


class KeptProfile(BaseModel):
    """A version of a device's profile.

    Attributes:
        version: Its number; 0 is the profile that iojoule itself brings.
        profile_version: What answers name it.
        sha256: Hash of its file; null for version 0, which changes with iojoule.
        job_id: The calibration that made it; null where it is not yours to read.
        current: Whether it answers.
    """

    version: int
    profile_version: str
    origin: Literal["iojoule", "calibration"]
    sha256: str | None
    job_id: str | None
    created_at: datetime | None
    current: bool
    url: str

    @classmethod
    def of(cls, row: ProfileVersion, current: int, readable: Collection[str]) -> Self:
        """What is said of a version that is row."""
        return cls(
            version=row.number,
            profile_version=row.profile_version,
            origin="calibration",
            sha256=row.sha256,
            created_at=utc(row.created_at),
            job_id=row.job_id if row.job_id in readable else None,
            current=row.number == current,
            url=f"/devices/{row.device}/profiles/{row.number}",
        )

    @classmethod
    def shipped(cls, device: str, profile_version: str, current: int) -> Self:
        """The version that iojoule ships."""
        return cls(
            version=SHIPPED,
            profile_version=profile_version,
            origin="iojoule",
            sha256=None,
            job_id=None,
            created_at=None,
            current=current == SHIPPED,
            url=f"/devices/{device}/profiles/{SHIPPED}",
        )


class ProfileList(BaseModel):
    """Versions of a device's profile, the newest first.

    Attributes:
        current: The version that answers.
        next_cursor: What to ask for next; null: this is the end.
    """

    device: str
    current: int
    profiles: list[KeptProfile]
    next_cursor: str | None


class CurrentProfile(BaseModel):
    """Which version of a device's profile answers."""

    device: str
    version: int


class Rollback(BaseModel):
    """Which version should answer from now on."""

    model_config = ConfigDict(extra="forbid")

    version: Annotated[
        int, Field(ge=0, le=10**9, description="0 is the profile that iojoule brings."), number
    ]


class AuditEntry(BaseModel):
    """A change that was made.

    Attributes:
        origin: key: with an API key; open: of a service that asks for none; local: at the command
            line; service: the service by itself.
        owner: Whose key it was.
        action: What was done, such as `dataset.upload`.
        object: What was changed, such as `dataset/ID`.
        outcome: done; of a job that is called off: cancelled, or requested where it runs.
    """

    id: str
    at: datetime
    origin: Literal["key", "open", "local", "service"]
    key_id: str | None
    owner: str | None
    os_user: str | None
    action: str
    object: str
    outcome: str
    details: dict[str, Any]
    request_id: str | None
    remote_address: str | None


class AuditList(BaseModel):
    """Changes, the newest first.

    Attributes:
        next_cursor: What to ask for next; null: this is the end.
    """

    entries: list[AuditEntry]
    next_cursor: str | None


class Health(BaseModel):
    """The service answers, with these profiles.

    Attributes:
        profiles: Device -> version of its profile.
    """

    status: str
    iojoule_version: str
    profiles: dict[str, str]


class Readiness(BaseModel):
    """What is kept can be read and written.

    Attributes:
        database: sqlite or postgresql.
    """

    status: str
    database: str
    jobs_queued: int
    jobs_running: int


class SimulatedDrives(BaseModel):
    """Drives that come with iojoule, by name."""

    iojoule_version: str
    drives: list[str]
