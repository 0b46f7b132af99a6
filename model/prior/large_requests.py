"""Large random reads of a drive that nobody measured: as sequential ones.

A request that covers all channels and dies is a sequential run of its own, so where it lies does
not matter any more. The learned prior does not know that its quantities of both patterns meet.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from iojoule.datasets.profile import Surface
from iojoule.datasets.vocabulary import Operation, Pattern

APART_LOG2_BYTES, JOINED_LOG2_BYTES = 16.0, 19.0
"""From 64 KiB, a page on a few dies, to 512 KiB, a page of 16 KiB on each of 32 dies."""


def join_large_reads(surfaces: Sequence[Surface]) -> list[Surface]:
    """The surfaces with large random reads drawn to the sequential ones, in log units."""
    kinds = {(one.operation, one.pattern): one for one in surfaces}
    sequential = kinds.get((Operation.READ, Pattern.SEQUENTIAL))
    if sequential is None:
        return list(surfaces)
    return [
        _joined(one, sequential)
        if (one.operation, one.pattern) == (Operation.READ, Pattern.RANDOM)
        else one
        for one in surfaces
    ]


def _joined(random: Surface, sequential: Surface) -> Surface:
    size = np.array(random.log2_request_bytes)
    span = JOINED_LOG2_BYTES - APART_LOG2_BYTES
    weight = np.clip((size - APART_LOG2_BYTES) / span, 0.0, 1.0)

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
