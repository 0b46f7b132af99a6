"""What a kind of job gets and gives. A new kind is one new file and one line in `KINDS`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from sqlalchemy import Connection

from iojoule.api.state.place import State
from iojoule.sim.errors import CancelledError

KINDS: dict[str, str] = {
    "simulation": "iojoule.api.jobs.simulation:run",
    "calibration": "iojoule.api.jobs.calibration:run",
    "what-if": "iojoule.api.jobs.what_if:run",
}
"""Name of a kind -> module:function; the module is loaded when it is used."""


class Watched:
    """How far a job is and whether it should go on; used by its threads and its worker's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._progress, self._stage = 0.0, None  # type: float, str | None
        self.stop = threading.Event()

    def say(self, progress: float, stage: str | None = None) -> None:
        """Tell the share that is done, 0 to 1, and what is being done."""
        with self._lock:
            self._progress = min(max(progress, 0.0), 1.0)
            self._stage = stage

    def go_on(self) -> None:
        """Return where the job should go on.

        Raises:
            CancelledError: It should not.
        """
        if self.stop.is_set():
            raise CancelledError("the job was called off")

    def said(self) -> tuple[float, str | None]:
        """The last that was told."""
        with self._lock:
            return self._progress, self._stage


@dataclass(frozen=True)
class Running:
    """A job under way.

    Attributes:
        id: Its id.
        request: What is asked for, as it was submitted.
        state: Where what it needs is kept.
        folder: Keeps what it has computed so far, so that an interrupted job goes on there.
        watched: To be told of progress.
    """

    id: str
    request: dict[str, Any]
    state: State
    folder: Path
    watched: Watched


@dataclass(frozen=True)
class Outcome:
    """What a job ends with.

    Attributes:
        document: Its result, JSON.
        publish: Keeps and writes what it brings about, in the transaction that ends the job.
    """

    document: bytes
    publish: Callable[[Connection, State], None] | None = None


class Kind(Protocol):
    """Runs a job; raises IojouleError where the request cannot be met."""

    def __call__(self, running: Running) -> Outcome:
        """Run it, telling progress and asking whether to go on every few seconds."""


def kind_of(name: str) -> Kind:
    """What runs the jobs of a kind."""
    module, function = KINDS[name].split(":")
    return cast(Kind, getattr(import_module(module), function))
