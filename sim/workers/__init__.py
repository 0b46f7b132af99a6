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
    "local": ("iojoule.sim.workers.local", "LocalPool"),
}


@contextmanager
def open_pool(processes: int = 1) -> Iterator[Pool]:
    """A pool that lives as long as the context.

    Args:
        processes: On this machine; with one, everything runs in this very process.
    """
    pool = _make("local", processes)
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
