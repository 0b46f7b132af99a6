"""Workers on this machine: processes, one a slot.

`concurrent.futures` fails every item when one process dies and cannot end what is under way, so
each process has a pipe of its own here: who died with what is known, and all can be ended.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from iojoule.datasets.programs import SAFE_PATH, restore_safe_path, safe_import_path
from iojoule.sim.errors import WorkersLostError
from iojoule.sim.workers.pool import TRIES, I, R, S, batches, compute, portable

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

END_SECONDS = 2.0
"""What a process has to end its own children in, once it is told to end."""


class LocalPool:
    """Processes that begin with the first work and stay for the next.

    Args:
        processes: How many; with one, everything runs in the caller's process.
    """

    def __init__(self, processes: int = 1) -> None:
        self._slots = max(1, processes)
        self._workers: list[_Worker] = []

    remote = False

    @property
    def slots(self) -> int:
        """See `Pool.slots`."""
        return self._slots

    def map(
        self,
        function: Callable[[S, I], R],
        items: Sequence[I],
        *,
        shared: S,
        seconds: Sequence[float] | None = None,
        done: Callable[[int, R], None] | None = None,
    ) -> list[R]:
        """See `Pool.map`."""
        if self._slots == 1 or len(items) <= 1:
            results = []
            for index, item in enumerate(items):
                results.append(function(shared, item))
                if done is not None:
                    done(index, results[-1])
            return results
        cut = batches(len(items), seconds, self._slots)
        try:
            return self._map(pickle.dumps((function, shared)), items, cut, done)
        except BaseException:
            self.close()  # Ctrl-C too: nothing goes on that nobody waits for
            raise

    def _map(
        self,
        work: bytes,
        items: Sequence[I],
        cut: list[list[int]],
        done: Callable[[int, R], None] | None,
    ) -> list[R]:
        results: dict[int, R] = {}
        waiting, lost = deque(cut), dict.fromkeys(range(len(items)), 0)
        while len(results) < len(items):
            self._hand_out(work, items, waiting)
            busy = {worker.pipe: worker for worker in self._workers if worker.batch}
            for pipe in wait(list(busy)):
                worker = busy[pipe]  # type: ignore[index]
                batch, worker.batch = worker.batch, []
                try:
                    told = worker.pipe.recv()
                except (EOFError, ConnectionError):
                    self._workers.remove(worker)
                    waiting.extendleft(again(batch, lost, worker.ended()))
                    continue
                if isinstance(told, BaseException):
                    raise told
                for index, result in zip(batch, told, strict=True):
                    results[index] = result
                    if done is not None:
                        done(index, result)
        return [results[index] for index in range(len(items))]

    def _hand_out(self, work: bytes, items: Sequence[Any], waiting: deque[list[int]]) -> None:
        """Give every idle process a batch, and begin those that are missing."""
        while len(self._workers) < min(self._slots, len(waiting)):
            self._workers.append(_Worker())
        for worker in self._workers:
            if waiting and not worker.batch:
                worker.batch = waiting.popleft()
                # one that has died meanwhile is found by who waits for its answer
                with suppress(BrokenPipeError, ConnectionResetError):
                    if worker.work is not work:
                        worker.work = work
                        worker.pipe.send_bytes(work)
                    worker.pipe.send([items[index] for index in worker.batch])

    def close(self) -> None:
        """See `Pool.close`."""
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            worker.ended()
        self._workers.clear()


HERE = LocalPool(1)
"""This process."""


def again(batch: Sequence[int], lost: dict[int, int], how: str) -> list[list[int]]:
    """The items of a batch that was lost with its worker, one by one.

    Raises:
        WorkersLostError: One of them was lost TRIES times.
    """
    for index in batch:
        lost[index] += 1
        if lost[index] >= TRIES:
            raise WorkersLostError(
                f"the computation of item {index} ended {TRIES} worker processes ({how}); run it "
                "with fewer at a time (--jobs) if memory is short"
            )
    return [[index] for index in batch]


@dataclass(eq=False)
class _Worker:
    """One process: the caller's end of its pipe, what it was told to do and what it does."""

    process: BaseProcess = field(init=False)
    pipe: Connection = field(init=False)
    work: bytes = b""
    batch: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        # forked from a process without threads: a fork of this one could inherit a locked lock
        context = multiprocessing.get_context("forkserver")
        self.pipe, theirs = context.Pipe()
        arguments = (theirs, os.environ.get(SAFE_PATH))
        self.process = context.Process(target=_serve, args=arguments, daemon=True)
        with safe_import_path():  # the server and its tracker are started with the first
            self.process.start()
        theirs.close()

    def ended(self) -> str:
        """Wait until the process is gone; how it ended."""
        self.process.join(END_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.pipe.close()
        code = self.process.exitcode or 0
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _serve(pipe: Connection, safe_path: str | None) -> None:
    """Compute batches until the pipe is closed, as it also is when the caller is killed."""
    restore_safe_path(safe_path)  # the user's MQSim may be a script that imports its neighbours
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller hears it, and ends this process
    signal.signal(signal.SIGTERM, _leave)
    os.environ.update(dict.fromkeys(THREADS, "1"))  # for libraries that are not loaded yet
    function: Any = None
    shared: Any = None
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            told = pipe.recv()
            if isinstance(told, tuple):
                function, shared = told
                continue
            pipe.send_bytes(_answer(function, shared, told))


def _answer(function: Any, shared: Any, items: list[Any]) -> bytes:
    try:
        return pickle.dumps(compute(function, shared, items))
    except Exception as error:  # noqa: BLE001 - the caller raises it
        return pickle.dumps(portable(error))


def _leave(*_: object) -> None:
    """End like an error does, so that programs that were begun are ended as well."""
    sys.exit(128 + signal.SIGTERM)
