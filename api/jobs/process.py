"""A process that is a worker."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

from iojoule.api import logs
from iojoule.api.jobs.worker import Worker
from iojoule.api.logs import LogForm
from iojoule.api.state.place import Place, State


def work(
    folder: Path | None,
    database: str | None,
    name: str | None = None,
    started: Callable[[Worker], None] | None = None,
    log: LogForm | None = None,
) -> None:
    """Run jobs until a signal asks to stop; what is under way is given back to the queue.

    Args:
        folder: The state's folder, as `Place.of` takes it.
        database: Its database, likewise.
        name: Unlike that of any other worker; None makes one.
        started: Told of the worker before it takes a job.
        log: Form of its log, as `logs.set_up` takes it.

    Raises:
        UnavailableError: The state cannot be opened.
    """
    logs.set_up(log)
    state = State(Place.of(folder, database))
    state.open()
    worker = Worker(state, name)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.stopping.set())
    if started is not None:
        started(worker)
    worker.run()
    state.close()
