"""What a pool of workers does, and how work is cut for it."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Sequence
from itertools import count
from typing import Protocol, TypeVar

from threadpoolctl import threadpool_limits

from iojoule.datasets.errors import IojouleError

S = TypeVar("S")
I = TypeVar("I")  # noqa: E741 - an item
R = TypeVar("R")

BATCH_SECONDS = 0.25
"""Items are sent together until they are predicted to take so long: sending costs a millisecond."""

BATCHES_A_SLOT = 16
"""And at most until so many batches are left for each slot, so that all slots end together."""

TRIES = 4
"""An item that so many workers were lost with is taken for the reason, as Dask does by default."""


class Pool(Protocol):
    """Computes a function of many items, some at a time."""

    @property
    def slots(self) -> int:
        """How many items are under way at a time."""
        ...

    @property
    def remote(self) -> bool:
        """Whether workers may be on machines that do not have the files of this one."""
        ...

    def map(
        self,
        function: Callable[[S, I], R],
        items: Sequence[I],
        *,
        shared: S,
        seconds: Sequence[float] | None = None,
        done: Callable[[int, R], None] | None = None,
    ) -> list[R]:
        """`function(shared, item)` of every item, in the order of the items.

        Args:
            function: Of a module, so that it has a name elsewhere. It depends on its arguments
                alone, for an item may be computed twice.
            items: Sent one by one.
            shared: Sent to each worker once.
            seconds: Predicted time of each item: the longest begin first, short ones travel
                together. None sends one at a time, in their order.
            done: Told of each result with its item's index, in the caller's thread, as they come.

        Raises:
            WorkersLostError: The workers are gone, or an item takes each of them along.
            Exception: What the function raised; what is not done by then is called off.
        """
        ...

    def close(self) -> None:
        """End what was begun; the pool is of no use afterwards."""
        ...


def batches(items: int, seconds: Sequence[float] | None, slots: int) -> list[list[int]]:
    """Indices of the items, cut into what is sent together, in the order in which to send it.

    Longest first (Graham, "Bounds on Multiprocessing Timing Anomalies", SIAM J. Appl. Math. 17,
    1969: at most a third longer than the best schedule), so that no long item begins last.
    """
    if seconds is None:
        return [[index] for index in range(items)]
    most = min(BATCH_SECONDS, sum(seconds) / (slots * BATCHES_A_SLOT))
    cut: list[list[int]] = []
    filled = most
    for index in sorted(range(items), key=lambda each: -seconds[each]):
        if filled + seconds[index] > most:
            cut.append([])
            filled = 0.0
        cut[-1].append(index)
        filled += seconds[index]
    return cut


def counter(
    watch: Callable[[int, int], None] | None, items: int
) -> Callable[[int, object], None] | None:
    """For `done`: tells `watch` how many of the items are done, and of how many."""
    if watch is None:
        return None
    told = count(1)
    return lambda index, result: watch(next(told), items)


def compute(function: Callable[[S, I], R], shared: S, items: Sequence[I]) -> list[R]:
    """What a worker does with a batch; numerical libraries keep to the one core it has."""
    with threadpool_limits(1):
        return [function(shared, item) for item in items]


def portable(error: Exception) -> Exception:
    """The error as it can be sent: of a fault also where it was, which does not travel itself."""
    try:
        copy: Exception = pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - whatever a class does when it is put together again
        copy = RuntimeError(f"{type(error).__name__}: {error}")
    if not isinstance(error, IojouleError):
        copy.add_note("".join(traceback.format_exception(error)))
    return copy
