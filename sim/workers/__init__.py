"""Where many independent computations run: processes of this machine, or Dask's workers elsewhere.

What is computed does not depend on where: every kind of pool gives the same results to the bit, and
does again what was lost with a worker. Importing this package imports none of the kinds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from iojoule.sim.workers.pool import Pool as Pool

_KINDS = {
    "dask": ("iojoule.sim.workers.dask", "DaskPool"),
    "local": ("iojoule.sim.workers.local", "LocalPool"),
}


@contextmanager
def open_pool(processes: int = 1, *, dask: str | None = None) -> Iterator[Pool]:
    """A pool that lives as long as the context.

    Args:
        processes: On this machine; with one, everything runs in this very process.
        dask: Address of the scheduler whose workers compute instead.

    Raises:
        WorkersLostError: No scheduler with workers answers at that address.
        WorkerDiffersError: One of them has another build of iojoule.
    """
    pool = _make("local", processes) if dask is None else _make("dask", dask)
    try:
        yield pool
    finally:
        pool.close()


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def _make(kind: str, where: int | str) -> Pool:
    module, name = _KINDS[kind]
    made: Pool = getattr(import_module(module), name)(where)
    return made
