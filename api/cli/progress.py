"""Bars on standard error; nothing is drawn, nor loaded for it, where it is no terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from iojoule.api.application.local import shares
from iojoule.api.cli import console

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from iojoule.api.application.backend import Watch
    from iojoule.measure.campaign.folder import RunRecord
    from iojoule.measure.campaign.runs import Run


@contextmanager
def progress() -> Iterator[Watch | None]:
    """A bar for each stage that the watch is told of."""
    if not (sys.stderr.isatty() or os.environ.get("FORCE_COLOR")):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    screen = Console(stderr=True, soft_wrap=True)  # notes beside the bar are not wrapped
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=screen, transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def watch(stage: str, done: float, of: float) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=of)
            bar.update(tasks[stage], completed=done, total=of)

        yield watch


@contextmanager
def run_progress(stage: str, runs: int) -> Iterator[Callable[[int, float], None] | None]:
    """One bar for runs that each tell which share of them is done."""
    with progress() as watch:
        yield None if watch is None else shares(watch, stage, runs)


class CampaignProgress:
    """An `Observer` that draws on standard error: a bar on a terminal, else one line a run."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[left]} left"),
                console=Console(stderr=True),
            )
            self._bar.start()
            self._task = self._bar.add_task("starting", total=None, left="?")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def say(self, text: str) -> None:
        """Say what is going on."""
        if self._bar is not None:
            self._bar.console.print(f"note: {text}", highlight=False, markup=False)
        else:
            console.note(text)

    def begin(self, run: Run, done: int, total: int, seconds_left: float) -> None:
        """A run begins."""
        left = f"{seconds_left / 60:.0f} min" if seconds_left >= 90 else f"{seconds_left:.0f} s"
        if self._bar is not None and self._task is not None:
            self._bar.update(
                self._task, description=run.name, completed=done, total=total, left=left
            )
        else:
            console.note(f"run {run.number} of {total} ({run.sweep}), about {left} left")

    def end(self, run: Run, record: RunRecord) -> None:
        """A run is over."""
        if record.reason is not None:
            self.say(f"run {run.name} failed: {record.reason}")
        elif record.verdict is not None and not record.is_good:
            self.say(f"run {run.name} is {record.verdict.verdict}: {record.verdict.text}")
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task)
