"""Answers are computed in processes of their own, so that every core can be at work on them.

Python runs one thread of a process at a time, and most of an answer is Python. The process that
serves connections only hands questions over, one to each process that is free, oldest first.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Annotated, Any, Literal, TypeVarTuple

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from iojoule.api.http import figures
from iojoule.api.http.figures import Counted
from iojoule.api.http.predictors import ServedProfiles
from iojoule.api.state.errors import TooLongError, UnavailableError
from iojoule.api.state.place import Place, State
from iojoule.api.state.profiles import ProfileVersion
from iojoule.datasets.programs import safe_import_path

PROCESSES = 2
"""Questions computed at the same time; each holds the arrays of all its candidates."""

ANSWER_SECONDS = 20.0
"""How long a process computes for one question; threads of the service cannot be broken off."""

TRIM_SECONDS = 10.0
"""How often memory that the allocator keeps is given back at most; it takes a millisecond."""

ATTEMPTS = 2
"""A question during which a process was killed may be what killed it."""

PR_SET_PDEATHSIG = 1
"""Of prctl(2): the signal that this process gets once its parent is gone."""

_Args = TypeVarTuple("_Args")

_log = logging.getLogger(__name__)


class Computing:
    """Calls what answers questions: in processes, or without them in threads of this one.

    To be made before this process has threads, for the others are forked from it; they end with
    the block.

    Args:
        place: Where profiles are read that were made current.
        processes: How many.
        inherited: What only this process may hold on to.

    Attributes:
        profiles: What answers here.
    """

    def __init__(
        self, place: Place, processes: int = 0, inherited: Sequence[socket.socket] = ()
    ) -> None:
        self.profiles = ServedProfiles()
        self._place, self._processes = place, processes
        self._pool: ProcessPoolExecutor | None = None
        if processes:
            self._pool = self._started("fork", inherited)

    def _started(
        self, how: Literal["fork", "spawn"], inherited: Sequence[socket.socket] = ()
    ) -> ProcessPoolExecutor:
        with safe_import_path():
            pool = ProcessPoolExecutor(
                self._processes, multiprocessing.get_context(how), initializer=_begin,
                initargs=(self._place, os.getpid(), inherited),
            )  # fmt: skip
            pool.submit(_nothing)  # forks all of them, now; spawns one
        return pool

    async def __call__(
        self, answering: Callable[[ServedProfiles, *_Args], bytes], *args: *_Args
    ) -> bytes:
        """The answer; raises what the function raises.

        Args:
            answering: A function of a module; it is given the profiles first.
            args: The question: plain values or models.

        Raises:
            UnavailableError: The processes were killed over this question.
        """
        for _ in range(ATTEMPTS if self._pool else 0):
            pool = self._pool
            assert pool is not None
            try:
                versions = self.profiles.published_versions()
                with safe_import_path():  # it may spawn one more
                    future = pool.submit(_answered, answering, versions, args)
                answer, counted = await asyncio.wrap_future(future)
            except BrokenProcessPool:
                self._replace(pool)
                continue
            figures.add(counted)
            return answer
        if self._pool:
            raise UnavailableError("what computed this was killed, twice; is memory short?")
        return await run_in_threadpool(answering, self.profiles, *args)

    def _replace(self, broken: ProcessPoolExecutor) -> None:
        """Start again where nobody has; not by forking, for by now there are threads."""
        if self._pool is broken:
            _log.error("a process that computes answers was killed; starting others")
            self._pool = self._started("spawn")

    def __enter__(self) -> Computing:
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes, whatever they are computing."""
        if self._pool:
            for process in multiprocessing.active_children():
                process.terminate()
            # waited for: what manages the pool must not end while Python does
            self._pool.shutdown(wait=True, cancel_futures=True)


_own_profiles = ServedProfiles()
_own_state: State
_trimmed = 0.0


def _begin(place: Place, parent: int, inherited: Sequence[socket.socket]) -> None:
    """Prepare a process that computes."""
    global _own_state
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)  # it died before it could be watched
    for one in inherited:
        one.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the service, which then ends these
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, _end)
    _own_state = State(place)
    _own_profiles.load_all()
    gc.freeze()
    gc.enable()


def _nothing() -> None:
    pass


def _answered(
    answering: Callable[..., bytes], versions: tuple[ProfileVersion, ...], args: tuple[Any, ...]
) -> tuple[bytes, Counted]:
    _own_profiles.publish(_own_state, versions)
    before = figures.counted()
    try:
        try:
            # again each second, for what is raised in a destructor is lost
            signal.setitimer(signal.ITIMER_REAL, ANSWER_SECONDS, 1.0)
            answer = answering(_own_profiles, *args)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
    except _Over:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        raise TooLongError(
            f"computing this took longer than {ANSWER_SECONDS:.0f} s; ask for less at a time"
        ) from None
    _trim()
    return answer, figures.counted() - before


def _trim() -> None:
    """Give the system back what the allocator keeps of arrays that are gone, now and then.

    Without it the heap of a process that computes grows by a quarter in an hour of mixed load.
    """
    global _trimmed
    now = time.monotonic()
    if now - _trimmed >= TRIM_SECONDS:
        _trimmed = now
        if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:  # glibc's own
            trim(0)


class _Over(BaseException):
    """The time of a question is over; no error, so that nothing that catches errors keeps it."""


def _end(*_: object) -> None:
    raise _Over


async def _computing(request: Request) -> Computing:
    computing: Computing = request.app.state.computing
    return computing


Computed = Annotated[Computing, Depends(_computing)]
