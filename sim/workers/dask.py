"""Workers of a Dask cluster, on this machine or on others.

Needs the extra `iojoule[dask]`. Dask itself does again what was lost with a worker; the data that
all items share is a task like any other, so that it can be made again too.
"""

from __future__ import annotations

import logging
import pickle
import queue
import time
import uuid
import warnings
from collections.abc import Callable, Sequence
from socket import create_connection
from typing import Any

from iojoule.datasets.errors import InputError
from iojoule.sim.errors import WorkerDiffersError, WorkersLostError
from iojoule.sim.workers.pool import I, R, S, batches, build, compute, portable

try:
    import distributed
    from distributed.comm.addressing import get_address_host_port
except ImportError:
    raise InputError(
        "--dask needs Dask, which is not installed: pip install 'iojoule[dask]'"
    ) from None

CONNECT_SECONDS = 10.0
NO_WORKERS_SECONDS = 60.0
"""How long a cluster may be without any worker before the work fails."""

GATHER_SECONDS = 10.0
"""Results come within; else they are made again."""

LOOK_SECONDS = 2.0
"""How often is looked whether there are workers while none of them responds."""


class DaskPool:
    """A client of a Dask scheduler.

    Args:
        address: Such as `tcp://host:8786`.

    Raises:
        WorkersLostError: No scheduler answers there, or it has no workers.
        WorkerDiffersError: A worker would compute with another build of iojoule.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        for name in ("distributed", "distributed.client"):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # what happens is said by errors
        try:
            # first, because a client that finds nobody leaves its threads behind
            create_connection(get_address_host_port(address), CONNECT_SECONDS).close()
            self._client = distributed.Client(
                address, timeout=CONNECT_SECONDS, set_as_default=False
            )
            self._client.wait_for_workers(1, timeout=NO_WORKERS_SECONDS)
        except (OSError, ValueError) as error:
            raise WorkersLostError(
                f"{address}: no Dask scheduler with workers answers ({error}); start them with "
                "`dask scheduler` and `dask worker ADDRESS --nthreads 1 --nworkers -1`"
            ) from None
        self._refuse_other_builds()

    remote = True

    @property
    def slots(self) -> int:
        """See `Pool.slots`: threads of all workers, as many as there are now."""
        threads: dict[str, int] = self._client.nthreads()
        return max(1, sum(threads.values()))

    def _refuse_other_builds(self) -> None:
        found = self._client.run(build, on_error="return")
        for worker, theirs in found.items():
            if isinstance(theirs, BaseException):
                raise WorkerDiffersError(
                    f"{worker}: cannot compute for iojoule ({type(theirs).__name__}: {theirs}); "
                    "install the same iojoule there"
                )
            compare(build(), theirs, worker)

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
        cut = batches(len(items), seconds, self.slots)
        # Dask expects of tasks what others of the same prefix took, so that each map has its own
        name = f"iojoule_{uuid.uuid4().hex}"
        heard: queue.SimpleQueue[Any] = queue.SimpleQueue()
        with warnings.catch_warnings():
            # large data are sent on purpose, and once
            warnings.filterwarnings("ignore", message="Sending large graph")
            common = self._client.submit(pickle.loads, pickle.dumps(shared), key=f"{name}_shared")
            made = self._client.map(
                _batch,
                [[items[index] for index in batch] for batch in cut],
                # equal in all else, tasks begin in the order of their keys
                key=[f"{name}-{place:06}" for place in range(len(cut))],
                ours=build(),
                function=function,
                shared=common,
                retries=0,
            )
        futures: dict[Any, list[int]] = dict(zip(made, cut, strict=True))
        for future in made:
            future.add_done_callback(heard.put)
        results: dict[int, R] = {}
        try:
            while futures:
                future = self._next(heard, len(results), len(items))
                told = self._told(future, len(results), len(items))
                if told is None:
                    future.add_done_callback(heard.put)
                    continue
                for index, result in zip(futures.pop(future), told, strict=True):
                    results[index] = result
                    if done is not None:
                        done(index, result)
        finally:
            if futures and self._client.status == "running":
                self._client.cancel([*futures, common], force=True)
        return [results[index] for index in range(len(items))]

    def _next(self, heard: queue.SimpleQueue[Any], known: int, of: int) -> Any:
        """The next future that is done in one way or another."""
        alone_since = time.monotonic()
        while True:
            try:
                return heard.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                if self._client.status != "running":
                    raise self._lost(known, of) from None
                if self._client.scheduler_info()["workers"]:
                    alone_since = time.monotonic()
                if time.monotonic() - alone_since > NO_WORKERS_SECONDS:
                    raise WorkersLostError(
                        f"{self.address}: the scheduler has had no worker for "
                        f"{NO_WORKERS_SECONDS:g} s, with {known} of {of} items done; start some"
                    ) from None

    def _told(self, future: Any, known: int, of: int) -> list[Any] | None:
        """The results of a batch; None where they were lost with a worker before they came here."""
        try:
            told = future.result(timeout=GATHER_SECONDS)
        except distributed.KilledWorker as error:
            raise WorkersLostError(
                f"{self.address}: {error.allowed_failures + 1} workers were lost with the same "
                f"work, with {known} of {of} items done; they may be short of memory"
            ) from None
        except TimeoutError:
            return None
        except (OSError, distributed.CancelledError):
            raise self._lost(known, of) from None
        if isinstance(told, BaseException):
            raise told
        return list(told)

    def _lost(self, known: int, of: int) -> WorkersLostError:
        return WorkersLostError(
            f"{self.address}: the connection to the Dask scheduler is lost, with {known} of {of} "
            "items done; start it and its workers again"
        )

    def close(self) -> None:
        """See `Pool.close`."""
        self._client.close(timeout=CONNECT_SECONDS)


def compare(ours: dict[str, str], theirs: dict[str, str], where: str) -> None:
    """Refuse a build that is not the same.

    Raises:
        WorkerDiffersError: It names what differs.
    """
    differing = [
        f"{name} {theirs.get(name, 'unknown')} there and {ours.get(name, 'unknown')} here"
        for name in {**ours, **theirs}
        if ours.get(name) != theirs.get(name)
    ]
    if differing:
        raise WorkerDiffersError(
            f"{where}: runs another build of iojoule, whose results may differ: "
            f"{'; '.join(differing)}. Install the same on both"
        )


def _batch(
    items: list[I], ours: dict[str, str], function: Callable[[S, I], R], shared: S
) -> list[R] | Exception:
    """What a worker does: an error is an answer, since Dask takes care of lost work only."""
    try:
        # a worker may have joined after the client looked
        compare(ours, build(), distributed.get_worker().address)
        return compute(function, shared, items)
    except Exception as error:  # noqa: BLE001 - the caller raises it
        return portable(error)
