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
    """The unit U: requests shifted by a multiple of it cost nothing, all others cost the same.

    A request of r bytes, a multiple of U, covers r / U units, shifted by anything else one more. So
    with offsets that are powers of two the costs end at U. The least offset says what
    straddling costs; any other is costly where it costs more than half of that, and told
    neither way where half lies within its interval, which widens that of the unit. Where even the
    largest offset costs, U is at least the request.

    Args:
        rows: Of one request size; several of one offset are averaged.
        request_bytes: That size.
        method: For the estimate.

    Returns:
        The least offset that is free; the interval begins behind the largest that is not.
    """
    offsets = sorted({row.offset_bytes for row in rows})
    if not offsets or offsets[0] != 0 or len(offsets) < 3:
        return missing("too few offsets were measured", "bytes", method)
    aligned = _mean([row for row in rows if row.offset_bytes == 0])
    costs = {
        offset: _cost(_mean([row for row in rows if row.offset_bytes == offset]), aligned)
        for offset in offsets[1:]
    }
    straddling, spread = costs[offsets[1]]
    if straddling < LEAST_COST or straddling - spread < 0:
        return missing(
            f"a shift by {offsets[1]} bytes costs no more than {LEAST_COST:.0%} or chance: the "
            f"unit is no larger than that, or larger than {request_bytes}, or the drive hides it",
            "bytes",
            method,
        )
    half = straddling / 2
    costly = max(offset for offset, (cost, wide) in costs.items() if cost - wide > half or
                 offset == offsets[1])  # fmt: skip
    free = [
        offset for offset, (cost, wide) in costs.items() if offset > costly and cost + wide < half
    ]
    if not free:
        return missing(
            f"no offset beyond {costly} bytes is free for certain, so the unit is larger; measure "
            "with larger requests, or longer",
            "bytes",
            method,
            low=2 * costly,
        )
    return between(min(free), 2 * costly, min(free), "bytes", method)


def _cost(shifted: tuple[float, float], aligned: tuple[float, float]) -> tuple[float, float]:
    """Lost share of the throughput, and the half width of its interval."""
    left = shifted[0] / aligned[0]
    return 1 - left, Z * left * (shifted[1] ** 2 + aligned[1] ** 2) ** 0.5


def _mean(rows: Sequence[Shifted]) -> tuple[float, float]:
    count = len(rows)
    rate = sum(row.rate for row in rows) / count
    error = sum(row.relative_error**2 for row in rows) ** 0.5 / count
    scatter = max(row.rate for row in rows) - min(row.rate for row in rows)
    # two rows tell little about their scatter, but what they show is not less than half of it
    return rate, max(error, scatter / rate / 2 / count**0.5 if count > 1 else 0.0)
