"""Worker processes that compute responses, so that every core is used.

Python runs one thread of a process at a time, and most of the work is Python. The process that
serves connections hands requests over, one to each idle worker, oldest first.
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

from iojoule.api.http import metrics
from iojoule.api.http.metrics import Counts
from iojoule.api.http.served_profiles import ServedProfiles
from iojoule.api.state.errors import TooLongError, UnavailableError
from iojoule.api.state.place import Place, State
from iojoule.api.state.profiles import ProfileVersion
from iojoule.datasets.programs import safe_import_path

PROCESSES = 2
"""Requests computed at the same time; each holds the arrays of all its candidates."""

REQUEST_SECONDS = 20.0
"""Time limit of one request in a worker process; threads of the service have none."""

TRIM_SECONDS = 10.0
"""Shortest interval between two calls of malloc_trim, each of which takes a millisecond."""

ATTEMPTS = 2
"""A request during which a worker was killed may be what killed it."""

PR_SET_PDEATHSIG = 1
"""prctl(2): the signal that this process receives once its parent has ended."""

_Args = TypeVarTuple("_Args")

_log = logging.getLogger(__name__)


class WorkerPool:
    """Calls functions in worker processes or, where there are none, in threads of this process.

    Create it before this process has threads, as the workers are forked from it; they end with
    the block.

    Args:
        place: Location of the state, where published profiles are read.
        processes: Number of workers.
        inherited: Sockets that the workers close.

    Attributes:
        profiles: The profiles in use in this process.
    """

    def __init__(
        self, place: Place, processes: int = 0, inherited: Sequence[socket.socket] = ()
    ) -> None:
        self.profiles = ServedProfiles()
        self._place, self._processes = place, processes
        self._pool: ProcessPoolExecutor | None = None
        if processes:
            self._pool = self._start("fork", inherited)

    def _start(
        self, how: Literal["fork", "spawn"], inherited: Sequence[socket.socket] = ()
    ) -> ProcessPoolExecutor:
        with safe_import_path():
            pool = ProcessPoolExecutor(
                self._processes,
                multiprocessing.get_context(how),
                initializer=_begin,
                initargs=(self._place, os.getpid(), inherited),
            )
            pool.submit(_no_operation)  # forks all of them, now; spawns one
        return pool

    async def __call__(
        self, function: Callable[[ServedProfiles, *_Args], bytes], *args: *_Args
    ) -> bytes:
        """What the function returns; raises what it raises.

        Args:
            function: Of a module; its first argument is the profiles.
            args: The other arguments: plain values or models.

        Raises:
            UnavailableError: The workers were killed during this request.
        """
        for _ in range(ATTEMPTS if self._pool else 0):
            pool = self._pool
            assert pool is not None
            try:
                versions = self.profiles.published_versions()
                with safe_import_path():  # may spawn a worker
                    future = pool.submit(_call, function, versions, args)
                content, counts = await asyncio.wrap_future(future)
            except BrokenProcessPool:
                self._replace(pool)
                continue
            metrics.add(counts)
            return content
        if self._pool:
            raise UnavailableError("the worker was killed twice, probably for lack of memory")
        return await run_in_threadpool(function, self.profiles, *args)

    def _replace(self, broken: ProcessPoolExecutor) -> None:
        """Restart the workers, unless that was done; by spawning, as there are threads by now."""
        if self._pool is broken:
            _log.error("a worker process was killed; starting others")
            self._pool = self._start("spawn")

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        """Terminate the workers."""
        if self._pool:
            for process in multiprocessing.active_children():
                process.terminate()
            # waits, as the thread of the pool must end before the interpreter does
            self._pool.shutdown(wait=True, cancel_futures=True)


_own_profiles = ServedProfiles()
_own_state: State
_trimmed = 0.0


def _begin(place: Place, parent: int, inherited: Sequence[socket.socket]) -> None:
    """Prepare a worker process."""
    global _own_state
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)  # the parent died before prctl
    for listener in inherited:
        listener.close()
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C is for the service, which then ends its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, _raise_time_limit)
    _own_state = State(place)
    _own_profiles.load_all()
    gc.freeze()
    gc.enable()


def _no_operation() -> None:
    pass


def _call(
    function: Callable[..., bytes], versions: tuple[ProfileVersion, ...], args: tuple[Any, ...]
) -> tuple[bytes, Counts]:
    global _late
    _own_profiles.publish(_own_state, versions)
    _late = False
    before = metrics.counted()
    try:
        try:
            # repeats each second, as an exception in a destructor is lost
            signal.setitimer(signal.ITIMER_REAL, REQUEST_SECONDS, 1.0)
            content = function(_own_profiles, *args)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
    except BaseException:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        if not _late:  # else whatever the code that was interrupted made of it
            raise
        raise TooLongError(
            f"the request exceeds {REQUEST_SECONDS:.0f} s of computing; ask for less at a time"
        ) from None
    _trim()
    return content, metrics.counted() - before


def _trim() -> None:
    """Return freed memory of the allocator to the system, every `TRIM_SECONDS` at most.

    Without it the heap of a worker grows by a quarter in an hour of mixed load.
    """
    global _trimmed
    now = time.monotonic()
    if now - _trimmed >= TRIM_SECONDS:
        _trimmed = now
        if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:  # glibc only
            trim(0)


class _TimeLimitExceeded(BaseException):
    """The time limit of a request; a BaseException, so that no handler of errors catches it."""


_late = False


def _raise_time_limit(*_: object) -> None:
    global _late
    _late = True
    raise _TimeLimitExceeded


async def _workers_of(request: Request) -> WorkerPool:
    workers: WorkerPool = request.app.state.workers
    return workers


Workers = Annotated[WorkerPool, Depends(_workers_of)]
