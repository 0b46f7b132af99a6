"""Follows a job: by its events, again after every break, and by asking where there are none."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from math import inf
from time import sleep
from typing import Any

import httpx
from httpx_sse import EventSource, SSEError
from pydantic import ValidationError

from iojoule.api.client.connection import Connection, backoff
from iojoule.api.client.errors import ServiceError, UnreachableError, error_of
from iojoule.api.http.jobs.schemas import JobStatus
from iojoule.api.state.errors import ConflictError, TooManyError, UnavailableError

EVENTS, JOB = "/jobs/{id}/events", "/jobs/{id}"

SILENCE_SECONDS = 45.0
"""The service sends a comment every 15 s; what is silent for longer is a broken connection."""

OUTAGE_SECONDS = 120.0
"""Jobs survive the service; so long a follower waits for it to come back."""

FRUITLESS = 3
"""So many streams without an event in turn, and something on the way does not let them pass."""

POLL_SECONDS, POLL_MAX_SECONDS = 0.25, 2.0


class _NoStreamError(Exception):
    """Events do not get here; the job can be asked for all the same."""


def follow(connection: Connection, job: str, until: float | None = None) -> Iterator[JobStatus]:
    """A job now and at each change, until it has ended.

    Args:
        connection: The service.
        job: Its id.
        until: Monotonic time at which to stop all the same, s; None: never.

    Raises:
        NotFoundError: There is no such job.
        UnreachableError: The service is away for longer than OUTAGE_SECONDS.
    """
    known = None
    told = _told(connection, job) if until is None else _polled(connection, job, until)
    for status in told:
        if status != known:
            yield status
        known = status


def _told(connection: Connection, job: str) -> Iterator[JobStatus]:
    try:
        yield from _events(connection, job)
    except _NoStreamError:
        yield from _polled(connection, job)


def wait(
    connection: Connection,
    job: str,
    *,
    timeout_seconds: float | None = None,
    watch: Callable[[JobStatus], object] | None = None,
) -> JobStatus:
    """Wait until a job is done; arguments and errors as `Client.wait`."""
    end = None if timeout_seconds is None else time.monotonic() + timeout_seconds
    for status in follow(connection, job, end):
        if watch is not None:
            watch(status)
        if status.state == "done":
            return status
        if status.error is not None:
            raise error_of(status.error.model_dump(), f"job {status.id}")
        if status.state == "cancelled":
            raise ConflictError(f"job {status.id} was called off")
    raise TimeoutError(f"job {job} is not done after {timeout_seconds} s")


def has_ended(job: JobStatus) -> bool:
    """Whether it will not change any more."""
    return job.state in ("done", "failed", "cancelled")


class _Outage:
    """Waits for a service that is away, longer each time, and not for ever."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._attempt = 0

    def over(self) -> None:
        self._since, self._attempt = None, 0

    def wait(self, error: UnreachableError) -> None:
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if now - self._since > OUTAGE_SECONDS:
            raise error
        sleep(backoff(self._attempt))
        self._attempt += 1


def _events(connection: Connection, job: str) -> Iterator[JobStatus]:
    last, fruitless, outage = "", 0, _Outage()
    while fruitless < FRUITLESS:
        told = False
        try:
            for event, status in _stream(connection, job, last):
                told, last = True, event
                yield status
                if has_ended(status):
                    return
            outage.over()
        except httpx.TransportError as error:
            if not told and not isinstance(error, httpx.ReadTimeout | httpx.RemoteProtocolError):
                outage.wait(connection.unreachable(error))
                continue
            outage.over()
        except UnavailableError as error:
            outage.wait(UnreachableError(error.message))
            continue
        except (TooManyError, ServiceError):
            break
        fruitless = 0 if told else fruitless + 1
    raise _NoStreamError


def _stream(connection: Connection, job: str, last: str) -> Iterator[tuple[str, JobStatus]]:
    """One connection's worth of events, each with its id; those up to `last` are not told again."""
    headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
    if last:
        headers["Last-Event-ID"] = last
    with connection.stream(EVENTS, job, headers=headers, silence_seconds=SILENCE_SECONDS) as answer:
        connection.passed(answer, f"GET {EVENTS}")
        try:
            for event in EventSource(answer).iter_sse():
                if event.data:
                    yield event.id, JobStatus.model_validate_json(event.data)
        except (SSEError, ValidationError, UnicodeDecodeError) as error:
            raise _NoStreamError from error


def _polled(connection: Connection, job: str, until: float = inf) -> Iterator[JobStatus]:
    headers: dict[str, Any] = {}
    outage, pause = _Outage(), POLL_SECONDS
    while True:
        try:
            answer = connection.ask("GET", JOB, job, headers=headers)
            outage.over()
        except (UnreachableError, UnavailableError) as error:
            outage.wait(UnreachableError(error.message))
            continue
        if answer.status_code != httpx.codes.NOT_MODIFIED:
            status = connection.read(answer, JobStatus)
            headers = {"If-None-Match": answer.headers.get("etag", '""')}
            yield status
            if has_ended(status):
                return
            pause = POLL_SECONDS
        left = until - time.monotonic()
        if left <= 0:
            return
        sleep(min(pause, left))
        pause = min(pause * 1.5, POLL_MAX_SECONDS)
