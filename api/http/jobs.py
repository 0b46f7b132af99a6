"""GET /jobs and /jobs/{id}, its events and its result; cancel, share and delete a job."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Annotated

import anyio
from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel

from iojoule.api.application.what_if_response import WhatIfAnswer
from iojoule.api.http.access import CurrentCaller, StillAllowed
from iojoule.api.http.negotiation import (
    JSON_OR_HTML,
    VARY,
    html_file,
    prefers_html,
    request_of_report,
)
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.requests import (
    Cursor,
    IdempotencyKey,
    IfNoneMatch,
    Limit,
    SharingBody,
    Store,
    StrictRoute,
    etag_of,
    off_loop,
    read_store,
    unchanged,
    write_store,
)
from iojoule.api.http.schemas import JobList, JobState, JobStatus
from iojoule.api.http.served_profiles import ServedProfiles
from iojoule.api.http.workers import Workers
from iojoule.api.jobs.running import KINDS
from iojoule.api.reports import what_if
from iojoule.api.reports.document import to_html
from iojoule.api.state import jobs, ownership
from iojoule.api.state.callers import Caller
from iojoule.api.state.errors import ConflictError, NotFoundError, UnavailableError
from iojoule.api.state.jobs import Job
from iojoule.api.state.place import State
from iojoule.datasets.errors import InputError

WHAT_IF = "what-if"
"""Kind of the jobs whose result has a report."""

FOLLOW_SECONDS = 0.25
"""Interval at which a followed job is read again."""

router = APIRouter(prefix="/jobs", tags=["jobs"], responses=RESPONSES, route_class=StrictRoute)

JobId = Annotated[
    str,
    Path(
        description="Id in the response to the request that made the job.",
        max_length=32,
        examples=["019c1d2e3f405a6b7c8d9e0f1a2b"],
    ),
]


@router.get("", summary="Which jobs are there?")
async def list_jobs(
    store: Store,
    caller: CurrentCaller,
    limit: Limit = 50,
    cursor: Cursor = None,
    kind: Annotated[
        str | None,
        Query(max_length=40, examples=["simulation"], json_schema_extra={"enum": [*KINDS]}),
    ] = None,
    state: Annotated[JobState | None, Query(examples=["done"])] = None,
) -> JobList:
    """List your jobs and those that are shared, the newest first."""
    if kind is not None and kind not in KINDS:
        raise InputError(f"kind: no {kind!r}; there are {', '.join(KINDS)}", field="kind")
    page = await read_store(store, jobs.listed, limit, cursor, caller, kind=kind, state=state)
    return JobList.of(page)


@router.get("/{id}", summary="How far is a job?")
async def show_job(
    store: Store,
    caller: CurrentCaller,
    id: JobId,  # noqa: A002 - the name in the path
    response: Response,
    known: IfNoneMatch = None,
) -> JobStatus:
    """Show state, progress and, once it has ended, where the result is or what failed."""
    job = await read_store(store, jobs.find, id, caller)
    etag = etag_of(job.revision)
    if (not_modified := unchanged(known, etag)) is not None:
        return not_modified  # type: ignore[return-value] # FastAPI sends a response as it is
    response.headers["ETag"] = etag
    return JobStatus.of(job)


@router.get("/{id}/result", summary="What did a job give?", responses=JSON_OR_HTML)
async def show_result(
    store: Store,
    caller: CurrentCaller,
    workers: Workers,
    id: JobId,  # noqa: A002
    http: Request,
) -> dict[str, object]:
    """Give the result of a job that is done; 409 before. That of a what-if has a report too."""
    job = await read_store(store, jobs.find, id, caller)
    if job.result_sha256 is None:
        raise ConflictError(f"job {id} is {job.state}; there is a result once it is done")
    digest = job.result_sha256
    content = await off_loop(store.files.read, digest, f"the result of job {id}")
    if prefers_html(http) and job.kind == WHAT_IF:
        page = await workers(what_if_report, job, content)
        return html_file(page, f"what-if-{id}")  # type: ignore[return-value]
    headers = {"ETag": etag_of(digest), **VARY}
    return Response(content, media_type="application/json", headers=headers)  # type: ignore[return-value]


@router.post("/{id}/cancel", summary="Call a job off", status_code=202)
async def cancel_job(store: Store, caller: CurrentCaller, id: JobId) -> JobStatus:  # noqa: A002
    """Cancel a job: at once where it waits, within seconds where it runs; 409 when it is over."""
    return JobStatus.of(await write_store(store, jobs.cancel, id, caller))


@router.patch("/{id}", summary="Share a job, or take that back")
async def share_job(
    store: Store,
    caller: CurrentCaller,
    id: JobId,  # noqa: A002
    wanted: SharingBody,
) -> JobStatus:
    """Let everybody with a key read a job and its result, or its owner alone."""
    return JobStatus.of(await write_store(store, ownership.share_job, id, wanted.shared, caller))


@router.delete("/{id}", summary="Delete a job", status_code=204)
async def delete_job(store: Store, caller: CurrentCaller, id: JobId) -> None:  # noqa: A002
    """Delete a job that has ended, with its result; 409 where a profile rests on it."""
    await write_store(store, ownership.delete_job, id, caller)


async def _existing(store: Store, caller: CurrentCaller, id: JobId) -> Job:  # noqa: A002
    # a dependency, so that an unknown job is a problem and not a stream that breaks off
    return await read_store(store, jobs.find, id, caller)


@router.get("/{id}/events", summary="Follow a job", response_class=EventSourceResponse)
async def follow_job(
    store: Store,
    caller: CurrentCaller,
    allowed: StillAllowed,
    job: Annotated[Job, Depends(_existing)],
    last: Annotated[
        int | None, Header(alias="Last-Event-ID", ge=0, description="Id of the last event seen.")
    ] = None,
) -> AsyncIterator[ServerSentEvent]:
    """Send the job (as `/jobs/{id}`) whenever it changes, until it has ended: server-sent events.

    The event is named after the job's state; its id is the revision, so that a client that
    reconnects does not receive an event twice.
    """
    async for revision in revisions(store, caller, allowed, job, last or 0):
        yield ServerSentEvent(
            event=revision.state,
            id=str(revision.revision),
            raw_data=JobStatus.of(revision).model_dump_json(),
        )


async def revisions(
    store: State, caller: Caller, allowed: Callable[[], bool], job: Job, known: int
) -> AsyncIterator[Job]:
    """A job each time it has changed, until it has ended or the caller may not read it any more.

    Args:
        store: The state of the service.
        caller: Who follows it.
        allowed: Whether the key is still valid.
        job: As it is now.
        known: The last revision that the caller has; it is not sent again.
    """
    while allowed():
        if job.revision > known:
            known = job.revision
            yield job
        if job.ended:
            return
        await anyio.sleep(FOLLOW_SECONDS)
        try:
            job = await read_store(store, jobs.find, job.id, caller)
        except NotFoundError:
            return
        except UnavailableError:
            await anyio.sleep(1.0)  # the database may come back


def what_if_report(profiles: ServedProfiles, job: Job, content: bytes) -> bytes:
    """The report of a simulated what-if, from the JSON of its result."""
    created, device = datetime.fromtimestamp(job.created_at, UTC), job.request["device"]
    request = request_of_report(created, profiles, "/what-if", job.request, device)
    return to_html(what_if.report(WhatIfAnswer.model_validate_json(content), request)).encode()


async def submit_job(
    store: State, caller: Caller, kind: str, request: BaseModel, idempotency: IdempotencyKey
) -> Job:
    """Put a request that was checked into the queue; raises as `jobs.submit`."""
    document = request.model_dump(mode="json", exclude_unset=True)
    key = idempotency.of(document)
    return await write_store(store, jobs.submit, kind, document, key=key, caller=caller)


def accepted(job: Job, response: Response) -> JobStatus:
    """The body of a 202 response, whose Location header is set to the job."""
    response.headers["Location"] = f"/jobs/{job.id}"
    return JobStatus.of(job)
