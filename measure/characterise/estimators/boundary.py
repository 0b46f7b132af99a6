"""Which unit a drive works in, told by what misaligned requests cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iojoule.datasets.characteristics import Estimate
from iojoule.measure.characterise.estimators.intervals import Z, between, missing

LEAST_COST = 0.06
"""A smaller loss of throughput is not told from none."""


@dataclass(frozen=True)
class Shifted:
    """The throughput of requests that begin so many bytes behind a multiple of their size.

    Attributes:
        offset_bytes: 0 = aligned.
        rate: Throughput.
        relative_error: Of the rate, standard.
    """

    offset_bytes: int
    rate: float
    relative_error: float


def find_unit(rows: Sequence[Shifted], request_bytes: int, method: str) -> Estimate:
    """The unit U: requests shifted by a multiple of it cost nothing, all others do.

    A request of r bytes, a multiple of U, covers r / U units, shifted by anything else one more. So
    the costs end at U, and with offsets that are powers of two U is the least free one, provided
    that all larger ones are free too. An offset neither clearly costly nor clearly free widens
    the interval. Where even the largest offset costs, U is at least the request.

    Args:
        rows: Of one request size; several of one offset are averaged.
        request_bytes: That size.
        method: For the estimate.
    """
    offsets = sorted({row.offset_bytes for row in rows})
    if not offsets or offsets[0] != 0 or len(offsets) < 3:
        return missing("too few offsets were measured", "bytes", method)
    aligned = _mean([row for row in rows if row.offset_bytes == 0])
    largest_costly, least_free = 0, request_bytes
    for offset in offsets[1:]:
        rate, error = _mean([row for row in rows if row.offset_bytes == offset])
        cost = 1 - rate / aligned[0]
        spread = Z * (rate / aligned[0]) * (error**2 + aligned[1] ** 2) ** 0.5
        if cost - spread > 0 and cost > LEAST_COST:
            largest_costly, least_free = offset, request_bytes
        elif cost + spread < 2 * LEAST_COST and least_free == request_bytes:
            least_free = offset
    if not largest_costly:
        return missing(
            f"no offset costs more than {LEAST_COST:.0%}: the unit is {offsets[1]} bytes or less, "
            f"larger than {request_bytes}, or the drive hides it",
            "bytes",
            method,
        )
    if least_free == request_bytes:
        return missing(
            f"even {largest_costly} bytes behind the boundary costs, so the unit is larger; "
            "measure with larger requests",
            "bytes",
            method,
            low=2 * largest_costly,
        )
    value = 2 * largest_costly
    return between(value, value, least_free, "bytes", method)


def _mean(rows: Sequence[Shifted]) -> tuple[float, float]:
    count = len(rows)
    rate = sum(row.rate for row in rows) / count
    error = sum(row.relative_error**2 for row in rows) ** 0.5 / count
    scatter = max(row.rate for row in rows) - min(row.rate for row in rows)
    # two rows tell little about their scatter, but what they show is not less than half of it
    return rate, max(error, scatter / rate / 2 / count**0.5 if count > 1 else 0.0)
