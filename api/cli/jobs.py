"""`iojoule jobs`: what a service computes, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iojoule.api.application.remote import RemoteBackend
from iojoule.api.cli import console
from iojoule.api.cli.console import Format, FormatOption
from iojoule.api.cli.options import ServerOption, service
from iojoule.api.cli.progress import progress

if TYPE_CHECKING:
    from iojoule.api.http.schemas import JobStatus

app = typer.Typer(
    add_completion=False, help="What a service computes, and what came of it.", no_args_is_help=True
)

JobId = Annotated[str, typer.Argument(metavar="ID", help="As `iojoule jobs list` shows it.")]
MostOption = Annotated[int, typer.Option("--most", min=1, metavar="N", help="Rows at most.")]


BackOption = Annotated[bool, typer.Option("--back", help="Take that back: its owner alone.")]


class StateName(StrEnum):
    """How a job stands."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


_TITLES = {
    "id": "id",
    "kind": "kind",
    "state": "state",
    "progress": "progress",
    "stage": "stage",
    "created_at": "asked at",
    "owner": "owner",
    "shared": "shared",
    "error": "problem",
}


@app.command("list")
def list_(
    server: ServerOption = None,
    kind: Annotated[str | None, typer.Option(help="simulation, calibration or what-if.")] = None,
    state: Annotated[StateName | None, typer.Option(help="Only these.")] = None,
    most: MostOption = 20,
    output: FormatOption = Format.TABLE,
) -> None:
    """List jobs, the newest first."""
    with service(server) as client:
        found = client.jobs(kind=kind, state=None if state is None else state.value)
        _emit(islice(found, most), output)


@app.command()
def show(job: JobId, server: ServerOption = None, output: FormatOption = Format.TABLE) -> None:
    """Show how far a job is, or what it met."""
    with service(server) as client:
        _emit_one(client.job(job), output)


@app.command()
def follow(job: JobId, server: ServerOption = None, output: FormatOption = Format.TABLE) -> None:
    """Wait until a job is done; leaves with the exit code of what it met where it fails."""
    with service(server) as client, progress() as watch:
        found = client.job(job)
        RemoteBackend(client, note=console.note).wait([found], found.kind, watch)
        _emit_one(client.job(job), output)


@app.command()
def cancel(job: JobId, server: ServerOption = None, output: FormatOption = Format.TABLE) -> None:
    """Call a job off."""
    with service(server) as client:
        _emit_one(client.cancel(job), output)


@app.command()
def share(
    job: JobId,
    server: ServerOption = None,
    back: BackOption = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Let everybody with a key read a job and its result."""
    with service(server) as client:
        _emit_one(client.share_job(job, not back), output)


@app.command()
def delete(job: JobId, server: ServerOption = None) -> None:
    """Delete a job that has ended, with its result."""
    with service(server) as client:
        client.delete_job(job)
    console.note(f"deleted job {job}")


@app.command()
def result(job: JobId, server: ServerOption = None) -> None:
    """Write what a job gave, as JSON."""
    with service(server) as client:
        console.emit_json(client.result(job))


def _emit_one(job: JobStatus, output: Format) -> None:
    if output is Format.JSON:
        console.emit_json(job.model_dump(mode="json"))
    else:
        _emit([job], output)


def _emit(jobs: Iterable[JobStatus], output: Format) -> None:
    if output is Format.JSON:
        console.emit_json([job.model_dump(mode="json") for job in jobs])
    else:
        console.emit_records([_record(job) for job in jobs], output, _TITLES)


def _record(job: JobStatus) -> dict[str, Any]:
    return {
        "id": job.id,
        "kind": job.kind,
        "state": job.state,
        "progress": f"{job.progress:.0%}",
        "stage": job.stage,
        "created_at": job.created_at.isoformat(timespec="seconds"),
        "owner": job.owner,
        "shared": job.shared,
        "error": None if job.error is None else job.error.detail,
    }
