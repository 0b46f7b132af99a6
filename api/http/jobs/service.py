"""Reads jobs, follows them, calls them off."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime

import anyio

from iojoule.api.application.what_if_response import WhatIfAnswer
from iojoule.api.documents.html import to_html
from iojoule.api.http import reports
from iojoule.api.http.predictors import ServedProfiles
from iojoule.api.http.stored import off_loop
from iojoule.api.jobs.running import KINDS
from iojoule.api.reports import what_if
from iojoule.api.state import jobs, ownership
from iojoule.api.state.callers import Caller
from iojoule.api.state.errors import ConflictError, NotFoundError, UnavailableError
from iojoule.api.state.jobs import Job
from iojoule.api.state.pages import Page
from iojoule.api.state.place import State
from iojoule.datasets.errors import InputError

FOLLOW_SECONDS = 0.25
"""How soon a follower hears of a change."""


def page(
    store: State,
    asking: Caller,
    limit: int,
    cursor: str | None,
    kind: str | None,
    state: str | None,
) -> Page[Job]:
    """Jobs that the caller may read, the newest first.

    Raises:
        InputError: There is no such kind.
    """
    if kind is not None and kind not in KINDS:
        raise InputError(f"kind: no {kind!r}; there are {', '.join(KINDS)}", field="kind")
    with store.database.read() as connection:
        return jobs.listed(connection, limit, cursor, asking, kind=kind, state=state)


def job(store: State, asking: Caller, id_: str) -> Job:
    """One job; raises NotFoundError."""
    with store.database.read() as connection:
        return jobs.find(connection, id_, asking)


def cancel(store: State, asking: Caller, id_: str) -> Job:
    """Call a job off; raises NotFoundError, and ConflictError where it has ended."""
    with store.database.write() as connection:
        return jobs.cancel(connection, id_, asking)


def share(store: State, asking: Caller, id_: str, shared: bool) -> Job:
    """Let everybody read a job, or only its owner; raises as `ownership.share_job`."""
    with store.database.write() as connection:
        return ownership.share_job(connection, id_, shared, asking)


def delete(store: State, asking: Caller, id_: str) -> None:
    """Delete a job; raises as `ownership.delete_job`."""
    with store.database.write() as connection:
        ownership.delete_job(connection, id_, asking)


def result(store: State, asking: Caller, id_: str) -> tuple[Job, str, bytes]:
    """A job with the hash and the bytes of what it gave.

    Raises:
        NotFoundError: There is no such job.
        ConflictError: It has not given anything.
        DamagedError: What it gave is not what was kept.
    """
    found = job(store, asking, id_)
    if found.result_sha256 is None:
        raise ConflictError(f"job {id_} is {found.state}; there is a result once it is done")
    content = store.files.read(found.result_sha256, f"the result of job {id_}")
    return found, found.result_sha256, content


def report(profiles: ServedProfiles, found: Job, content: bytes) -> bytes:
    """The page of a what-if that was simulated.

    Args:
        profiles: Those that answer.
        found: The job.
        content: What it gave.
    """
    moment, device = datetime.fromtimestamp(found.created_at, UTC), found.request["device"]
    asked = reports.asked_at(moment, profiles, "/what-if", found.request, device)
    return to_html(what_if.report(WhatIfAnswer.model_validate_json(content), asked)).encode()


async def follow(
    store: State, asking: Caller, going_on: Callable[[], bool], found: Job, known: int
) -> AsyncIterator[Job]:
    """A job each time it has changed, until it has ended or is not the caller's to read any more.

    Args:
        store: Where it is kept.
        asking: Who follows it.
        going_on: Whether they may go on.
        found: As it is now.
        known: The last revision that the follower has seen; it is not told again.
    """
    while going_on():
        if found.revision > known:
            known = found.revision
            yield found
        if found.ended:
            return
        await anyio.sleep(FOLLOW_SECONDS)
        try:
            found = await off_loop(job, store, asking, found.id)
        except NotFoundError:
            return
        except UnavailableError:
            await anyio.sleep(1.0)  # it may come back; the follower need not know
