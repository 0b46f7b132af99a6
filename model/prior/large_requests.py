"""Large requests of a drive that nobody measured.

Random ones go as sequential ones: a request that covers all channels and dies is a run of its own,
so where it lies does not matter any more. Writes get there at smaller sizes, for a drive gathers
them in its buffer and programs them one after the other wherever they belong; once it is not the
number of requests that limits, random writes reach the sequential rate (PC Perspective, review of
the MyDigitalSSD SBX, 2018, on all drives there). The learned prior does not know that its
quantities of both patterns meet.

Large writes lose a little of their rate to small ones on SATA drives: a write of 4 MiB reaches the
drive as a burst of commands, and the next burst waits for the last of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import Surface
from iojoule.datasets.profile.evidence import CurveDoubt
from iojoule.datasets.vocabulary import Operation, Pattern

JOINING_LOG2_BYTES = {Operation.READ: (16.0, 19.0), Operation.WRITE: (14.0, 17.0)}
"""Between which sizes the patterns meet. Reads: from 64 KiB, a page on a few dies, to 512 KiB, a
page of 16 KiB on each of 32 dies. Writes: from 16 KiB, one page, to 128 KiB, about what is
programmed at once (three pages of TLC on two to four planes)."""

PATTERN_SD = 0.1
"""Log sd by which large random requests differ from sequential ones on one drive. Random writes
against sequential ones: 8 % at 4 MiB on a SATA drive (001-043), 1 % at 256 KiB on a PM9A3 against
its data sheet (004-067), nothing at 128 KiB on the ZN540 (other_nvme_fio)."""

SMALL_OVER_LARGE: Sequence[tuple[frozenset[str], float]] = (
    (frozenset({"001-041", "001-166"}), 1.12),
    (frozenset({"001-042"}), 1.13),
    (frozenset({"001-043"}), 1.08),
    (frozenset({"001-047"}), 1.0 / 1.02),
    (frozenset(), 1.0),
    (frozenset(), 1.0),
)
"""Throughput of writes of 32 KiB over that of 4 MiB on two SATA drives in a desktop, and the
findings that state it: sequential with and without the page cache on one of them, random through
the cache on both, and no difference for sequential writes of the other, with and without (001,
section 4). Random direct writes are left out: they differ by what one request at a time costs."""


def large_write_loss(without: Collection[str] = ()) -> tuple[float, float]:
    """Log of what a SATA drive loses on writes of several commands, and the log sd of one setting.

    Mean and predictive deviation of the published settings; those that rest on the findings named
    are left out.
    """
    kept = [np.log(ratio) for facts, ratio in SMALL_OVER_LARGE if not facts & set(without)]
    sd = float(np.std(kept, ddof=1) * np.sqrt(1.0 + 1.0 / len(kept)))
    return float(np.mean(kept)), sd


def join_large_requests(surfaces: Sequence[Surface]) -> list[Surface]:
    """The surfaces with large random requests drawn to the sequential ones, in log units."""
    sequential = {one.operation: one for one in surfaces if one.pattern is Pattern.SEQUENTIAL}
    return [
        _joined(one, sequential[one.operation])
        if one.pattern is Pattern.RANDOM and one.operation in sequential
        else one
        for one in surfaces
    ]


def apart_share(operation: Operation, log2_request_bytes: float) -> float:
    """What is left of the difference between the patterns at a size: from 1 down to 0."""
    apart, joined = JOINING_LOG2_BYTES[operation]
    return float(np.clip((joined - log2_request_bytes) / (joined - apart), 0.0, 1.0))


def _joined(random: Surface, sequential: Surface) -> Surface:
    share = np.array([apart_share(random.operation, one) for one in random.log2_request_bytes])

    def between(name: str) -> list[float]:
        logs = [np.log(np.array(getattr(one, name))) for one in (random, sequential)]
        values = np.exp(share * logs[0] + (1.0 - share) * logs[1])
        return [float(f"{value:.6g}") for value in values]

    return random.model_copy(
        update={
            "unloaded_latency_ns": between("unloaded_latency_ns"),
            "capacity_operations_per_second": between("capacity_operations_per_second"),
            "sharpness": between("sharpness"),
            "doubt": _joined_doubt(random.doubt, sequential.doubt, share),
        }
    )


def _joined_doubt(
    random: CurveDoubt | None, sequential: CurveDoubt | None, share: NDArray[np.float64]
) -> CurveDoubt | None:
    """The doubt of each knot's parameters is that of the pattern that they are taken from."""
    if random is None or sequential is None:
        return random

    def between(name: str, apart: float) -> list[float]:
        ends = [np.array(getattr(one, name)) for one in (random, sequential)]
        taken = np.hypot(ends[1], apart) if apart else ends[1]
        return [float(f"{value:.6g}") for value in share * ends[0] + (1.0 - share) * taken]

    return random.model_copy(
        update={
            "unloaded_sd": between("unloaded_sd", PATTERN_SD),
            "capacity_sd": between("capacity_sd", PATTERN_SD),
            "correlation": between("correlation", 0.0),
        }
    )
