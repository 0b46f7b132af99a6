"""GET /jobs, /jobs/{id}, its events and its result; POST /jobs/{id}/cancel."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from iojoule.api.http import reports
from iojoule.api.http.computing import Computed
from iojoule.api.http.gate import Asking, GoingOn
from iojoule.api.http.jobs import service
from iojoule.api.http.jobs.schemas import JobList, JobState, JobStatus
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.stored import (
    Cursor,
    IfNoneMatch,
    Limit,
    SharingBody,
    Store,
    off_loop,
    tag,
    unchanged,
)
from iojoule.api.http.strict_json import StrictRoute
from iojoule.api.jobs.running import KINDS
from iojoule.api.state.jobs import Job

WHAT_IF = "what-if"
"""Kind of the jobs whose result has a report."""

router = APIRouter(prefix="/jobs", tags=["jobs"], responses=RESPONSES, route_class=StrictRoute)

JobId = Annotated[
    str,
    Path(
        description="Id that the request for the job was answered with.", max_length=32,
        examples=["019c1d2e3f405a6b7c8d9e0f1a2b"],
    ),
]  # fmt: skip


@router.get("", summary="Which jobs are there?")
async def list_jobs(
    store: Store,
    asking: Asking,
    limit: Limit = 50,
    cursor: Cursor = None,
    kind: Annotated[
        str | None,
        Query(max_length=40, examples=["simulation"], json_schema_extra={"enum": [*KINDS]}),
    ] = None,
    state: Annotated[JobState | None, Query(examples=["done"])] = None,
) -> JobList:
    """List your jobs and those that are shared, the newest first."""
    return JobList.of(await off_loop(service.page, store, asking, limit, cursor, kind, state))


@router.get("/{id}", summary="How far is a job?")
async def show_job(
    store: Store,
    asking: Asking,
    id: JobId,  # noqa: A002 - the name in the path
    response: Response,
    known: IfNoneMatch = None,
) -> JobStatus:
    """Show state, progress and, once it has ended, where the result is or what failed."""
    job = await off_loop(service.job, store, asking, id)
    etag = tag(job.revision)
    if (same := unchanged(known, etag)) is not None:
        return same  # type: ignore[return-value] # FastAPI answers with a response as it is
    response.headers["ETag"] = etag
    return JobStatus.of(job)


@router.get("/{id}/result", summary="What did a job give?", responses=reports.EITHER)
async def show_result(
    store: Store,
    asking: Asking,
    computed: Computed,
    id: JobId,  # noqa: A002
    http: Request,
) -> dict[str, object]:
    """Give the result of a job that is done; 409 before. That of a what-if has a report too."""
    job, digest, content = await off_loop(service.result, store, asking, id)
    if reports.wanted(http) and job.kind == WHAT_IF:
        page = await computed(service.report, job, content)
        return reports.page(page, f"what-if-{id}")  # type: ignore[return-value]
    headers = {"ETag": tag(digest), **reports.VARY}
    return Response(content, media_type="application/json", headers=headers)  # type: ignore[return-value]


@router.post("/{id}/cancel", summary="Call a job off", status_code=202)
async def cancel_job(store: Store, asking: Asking, id: JobId) -> JobStatus:  # noqa: A002
    """Call a job off: at once where it waits, within seconds where it runs; 409 when it is over."""
    return JobStatus.of(await off_loop(service.cancel, store, asking, id))


@router.patch("/{id}", summary="Share a job, or take that back")
async def share_job(
    store: Store,
    asking: Asking,
    id: JobId,  # noqa: A002
    wanted: SharingBody,
) -> JobStatus:
    """Let everybody with a key read a job and its result, or its owner alone."""
    return JobStatus.of(await off_loop(service.share, store, asking, id, wanted.shared))


@router.delete("/{id}", summary="Delete a job", status_code=204)
async def delete_job(store: Store, asking: Asking, id: JobId) -> None:  # noqa: A002
    """Delete a job that has ended, with its result; 409 where a profile rests on it."""
    await off_loop(service.delete, store, asking, id)


async def _found(store: Store, asking: Asking, id: JobId) -> Job:  # noqa: A002
    # as a dependency, so that a job that is not there is a problem and not half a stream
    return await off_loop(service.job, store, asking, id)


@router.get("/{id}/events", summary="Follow a job", response_class=EventSourceResponse)
async def follow_job(
    store: Store,
    asking: Asking,
    going_on: GoingOn,
    job: Annotated[Job, Depends(_found)],
    last: Annotated[
        int | None, Header(alias="Last-Event-ID", ge=0, description="Id of the last event seen.")
    ] = None,
) -> AsyncIterator[ServerSentEvent]:
    """Send the job (as `/jobs/{id}`) whenever it changes, until it has ended: server-sent events.

    The event is named after the job's state; its id is the revision, so that a client that
    reconnects is not told again what it knows.
    """
    async for now in service.follow(store, asking, going_on, job, last or 0):
        yield ServerSentEvent(
            event=now.state,
            id=str(now.revision),
            raw_data=JobStatus.of(now).model_dump_json(),
        )
