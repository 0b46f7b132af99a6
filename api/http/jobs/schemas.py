"""What the service says of jobs."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from pydantic import BaseModel, Field

from iojoule.api.http.moments import moment

if TYPE_CHECKING:
    from iojoule.api.state.jobs import Job
    from iojoule.api.state.pages import Page

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
        """What is said of a job."""
        url = f"/jobs/{job.id}"
        return cls(
            id=job.id, kind=job.kind, state=cast(JobState, job.state),
            progress=job.progress, stage=job.stage, attempt=job.attempt,
            cancel_requested=job.cancel_requested, request=job.request,
            error=None if job.error is None else JobProblem.model_validate(job.error),
            created_at=moment(job.created_at),
            started_at=None if job.started_at is None else moment(job.started_at),
            finished_at=None if job.finished_at is None else moment(job.finished_at),
            url=url, events_url=f"{url}/events",
            result_url=f"{url}/result" if job.result_sha256 else None,
            owner=job.owner, shared=job.shared,
        )  # fmt: skip


class JobList(BaseModel):
    """Jobs, the newest first.

    Attributes:
        next_cursor: What to ask for next; null: this is the end.
    """

    jobs: list[JobStatus]
    next_cursor: str | None

    @classmethod
    def of(cls, page: Page[Job]) -> Self:
        """What is said of a page of jobs."""
        return cls(jobs=[JobStatus.of(job) for job in page.items], next_cursor=page.next_cursor)
