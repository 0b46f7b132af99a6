"""Large random requests of a drive that nobody measured: as sequential ones.

A request that covers all channels and dies is a sequential run of its own, so where it lies does
not matter any more: reads sense every die once, and writes of a drive with free blocks are
programmed one after the other wherever their addresses lie, whole units of the mapping at a time.
The learned prior does not know that its quantities of both patterns meet.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from iojoule.datasets.profile import Surface
from iojoule.datasets.vocabulary import Operation, Pattern

SPANS_LOG2_BYTES = {Operation.READ: (16.0, 19.0), Operation.WRITE: (14.0, 16.0)}
"""log2 of the
size up to which patterns differ, and from which on they are the same. Reads find their pages
where they lie: from 64 KiB, a page on a few dies, to 512 KiB, a page of 16 KiB on each of 32
dies. Writes go to whichever die is next: from 16 KiB, a page, to 64 KiB, a page on each of four
planes, the unit that is programmed at once and of which the mapping changes in one place."""


def join_large_requests(surfaces: Sequence[Surface]) -> list[Surface]:
    """The surfaces with large random requests drawn to the sequential ones, in log units."""
    sequential = {one.operation: one for one in surfaces if one.pattern is Pattern.SEQUENTIAL}
    return [
        _joined(one, sequential[one.operation])
        if one.pattern is Pattern.RANDOM and one.operation in sequential
        else one
        for one in surfaces
    ]


def _joined(random: Surface, sequential: Surface) -> Surface:
    size = np.array(random.log2_request_bytes)
    apart, same = SPANS_LOG2_BYTES[random.operation]
    weight = np.clip((size - apart) / (same - apart), 0.0, 1.0)

    def between(name: str) -> list[float]:
        logs = [np.log(np.array(getattr(one, name))) for one in (random, sequential)]
        values = np.exp((1.0 - weight) * logs[0] + weight * logs[1])
        return [float(f"{value:.6g}") for value in values]

    return random.model_copy(
        update={
            "unloaded_latency_ns": between("unloaded_latency_ns"),
            "capacity_operations_per_second": between("capacity_operations_per_second"),
            "sharpness": between("sharpness"),
        }
    )
