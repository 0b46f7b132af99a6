"""`--server`: options of commands that a service can answer, and how its jobs are waited for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iojoule.api.cli import console

if TYPE_CHECKING:
    from iojoule.api.client import Client
    from iojoule.api.http.jobs.schemas import JobStatus
    from iojoule.datasets.profile import SourceRecord

ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server", metavar="URL", envvar="IOJOULE_SERVER",
        help="Have this service answer, with the key in $IOJOULE_KEY; '' answers here all the "
        "same.",
    ),
]  # fmt: skip


@contextmanager
def service(server: str | None) -> Iterator[Client]:
    """A client of the service that `--server` names.

    Raises:
        BadParameter: It names none.
    """
    from iojoule.api.client import Client

    if not server:
        raise typer.BadParameter("say --server URL, or set IOJOULE_SERVER: this is what one keeps")
    with Client(server) as client:
        yield client


def refuse(server: str, **given: object) -> None:
    """Refuse options that cannot be sent.

    Args:
        server: The service.
        given: Option, as in `max_memory`, -> what was said; None and False were not.

    Raises:
        BadParameter: One was said; names it.
    """
    for name, value in given.items():
        if value is not None and value is not False:
            raise typer.BadParameter(
                f"--{name.replace('_', '-')} cannot be sent to the service at {server}; leave it "
                "out, or answer here with --server ''"
            )


def refuse_files(server: str, drives: Sequence[str]) -> None:
    """Refuse drives to simulate that are files; raises BadParameter, which names them."""
    from iojoule.sim.presets import preset_names

    for drive in drives:
        if drive not in preset_names():
            raise typer.BadParameter(
                f"--ssd {drive}: only drives that come with iojoule are known to the service at "
                f"{server} ({', '.join(preset_names())}); name one, or answer here with --server ''"
            )


def named(device: str | None) -> str:
    """The drive that a service is asked about; raises BadParameter where none is named."""
    if device is None:
        raise typer.BadParameter("say --device ID: a service answers for drives by name")
    return device


def sources_of(client: Client, device: str) -> list[SourceRecord]:
    """What the profile of a drive, by which a service answers, was fitted on."""
    profile = client.device(device).profile
    return [] if profile is None else profile.sources


def waited_for(client: Client, jobs: Sequence[JobStatus], what: str) -> None:
    """Wait until jobs are done, one after the other, with a bar where somebody sees it.

    Raises:
        IojouleError: One failed, with what it met, or was called off.
    """
    place = 0
    try:
        with bar(what, len(jobs)) as show:
            for place, job in enumerate(jobs):
                client.wait(job, watch=partial(show, place))
    except KeyboardInterrupt:
        for job in jobs[place:]:
            console.note(f"{client.server} goes on: `iojoule jobs follow|cancel {job.id}`")
        raise


@contextmanager
def bar(what: str, jobs: int) -> Iterator[Callable[[int, JobStatus], None]]:
    """Shows how far the jobs are, on standard error; nothing where nobody would see it."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    screen = Console(stderr=True)
    columns: tuple[Any, ...] = (
        TextColumn("{task.description}"), BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"), TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task(what, total=float(jobs))

        def show(place: int, job: JobStatus) -> None:
            stage = job.stage if job.state == "running" and job.stage else job.state
            bar.update(task, completed=place + job.progress, description=f"{what}: {stage}")

        yield show
