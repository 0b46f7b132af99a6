"""Where long computations run and where their results are kept: options that commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from pydantic import BaseModel

if TYPE_CHECKING:
    from iojoule.sim.workers import Pool
    from iojoule.sim.workers.kept import Kept

M = TypeVar("M", bound=BaseModel)

DaskOption = Annotated[
    str | None,
    typer.Option(
        "--dask", metavar="ADDRESS",
        help="Run on the workers of this Dask scheduler, such as tcp://host:8786, and not here.",
    ),
]  # fmt: skip
StateOption = Annotated[
    Path | None,
    typer.Option(
        "--state", metavar="DIR",
        help="Keeps each result as it comes: the same command goes on where it was cut short. "
        "With --dask there is a folder by default, until all is done.",
    ),
]  # fmt: skip


def workers(jobs: int | None, dask: str | None, default: int) -> AbstractContextManager[Pool]:
    """The pool that the options ask for.

    Args:
        jobs: Processes on this machine, where said.
        dask: Address of a scheduler, where said.
        default: Processes where neither is said.
    """
    from iojoule.sim.workers import open_pool

    if jobs is not None and dask is not None:
        raise typer.BadParameter("--jobs counts processes here; with --dask its workers count")
    return open_pool(jobs or default, dask=dask)


def results_folder(state: Path | None, dask: str | None, *asked: Any) -> Path | None:
    """Where results are kept: what is said, with --dask by default one that `asked` names."""
    from iojoule.api.state.place import state_folder
    from iojoule.sim.workers.kept import key_of

    if state is None and dask is not None:
        return state_folder() / "results" / key_of(*asked)
    return state


@contextmanager
def kept_results(
    state: Path | None, dask: str | None, kind: type[M], keys: Sequence[str]
) -> Iterator[Kept[M] | None]:
    """What keeps results of these keys; a folder that nobody named goes when all are there."""
    from iojoule.sim.workers.kept import Kept

    folder = results_folder(state, dask, *keys)
    if folder is None:
        yield None
        return
    kept = Kept(folder, kind)
    complete = False
    try:
        yield kept
        complete = True
    finally:
        kept.close(delete=complete and state is None)


@contextmanager
def count_bar(what: str, items: int) -> Iterator[Callable[[int, object], None] | None]:
    """A bar on standard error that counts what is done; nothing where nobody would see it."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    screen = Console(stderr=True)
    if not screen.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task(what, total=items)
        yield lambda index, result: bar.advance(task)
