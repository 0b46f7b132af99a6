"""The `Pool` protocol, how work is split into batches, and the build that a worker must match."""

from __future__ import annotations

import hashlib
import math
import pickle
import platform
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Protocol, TypeVar

from threadpoolctl import threadpool_limits

import iojoule
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


LIBRARIES = ("numpy", "scipy", "scikit-learn")
"""Whose results go into ours."""

PACKAGES = ("datasets", "model", "sim", "recommender")
"""What computes; the rest asks and answers."""


@cache
def build() -> dict[str, str]:
    """What must be the same wherever parts of one answer are computed, by what it is called.

    The sources and the compiled core go in by their content, since a version names many states of
    a checkout; processors go in by what they make of a few thousand numbers, since libraries take
    other instructions on other processors.
    """
    return {
        "iojoule": iojoule.__version__,
        "sources": _hash(".py"),
        "compiled core": _hash(".so"),
        "Python": platform.python_version(),
        **{name: version(name) for name in LIBRARIES},
        "arithmetic": _arithmetic(),
    }


def _hash(suffix: str) -> str:
    told = hashlib.sha256()
    root = Path(iojoule.__file__).parent
    for package in PACKAGES:
        base = (root / package).resolve()
        for path in sorted(base.rglob(f"*{suffix}")):
            told.update(f"{package}/{path.relative_to(base)}\n".encode())
            told.update(path.read_bytes())
    return told.hexdigest()[:12]


def _arithmetic() -> str:
    import numpy as np  # here, because a simulation starts sooner without it

    x = np.geomspace(1e-3, 1e3, 4096)
    told = hashlib.sha256()
    for made in (np.exp(-x), np.log(x), x**0.3, np.sin(x), np.array(x.sum()), np.outer(x, x) @ x):
        told.update(made.tobytes())
    told.update(np.array([f(-v) for v in x for f in (math.exp, math.expm1, math.cos)]).tobytes())
    return told.hexdigest()[:12]
