"""Values with 90 % intervals and evidence; evidence is a number, the weaker the greater."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.vocabulary import Evidence
from iojoule.model.evaluate.quantities import NORMAL_90, NOT_BELOW

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


@dataclass(frozen=True)
class Band:
    """A predicted quantity: value and 90 % interval, NaN where unknown; evidence codes."""

    value: Floats
    low: Floats
    high: Floats
    evidence: Codes


def linear_band(value: Floats, sd: Floats, evidence: Codes) -> Band:
    """A non-negative quantity whose error is of its own unit."""
    half = NORMAL_90 * sd
    return Band(value, np.maximum(value - half, 0.0), value + half, evidence)


def log_band(value: Floats, log_sd: Floats, evidence: Codes) -> Band:
    """A positive quantity whose error is a factor."""
    factor = np.exp(NORMAL_90 * log_sd)
    return Band(value, value / factor, value * factor, evidence)


EVIDENCE = tuple(evidence.value for evidence in Evidence)
"""Evidence by code; a higher code is weaker."""

(MEASURED, INTERPOLATED, SIMULATED, PUBLISHED, EXTRAPOLATED, DATASHEET, ASSUMED) = range(
    len(EVIDENCE)
)


@dataclass(frozen=True)
class Interval:
    """A number with its 90 % interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, value: float, draws: NDArray[np.float64]) -> Interval:
        """The value of the undisturbed run within the 5 to 95 % quantiles of the draws."""
        low, high = (float(q) for q in np.quantile(draws, (0.05, 0.95)))
        return cls(float(value), min(low, value), max(high, value))


@dataclass(frozen=True)
class Direction:
    """One direction's prediction, every array of shape (n,).

    Attributes:
        log_value: Log of each quantity, ns.
        half_width: Log half width of 90 % of each.
        evidence: Codes.
        sharpness: k of the curve over the requests in flight (`model.evaluate.surface`), that of
            the host's ceiling where it binds.
        log_drive: Log of the share of the mean latency that would be left if nothing waited for
            the host's cores; None where nobody asks.
        write_share: Share of a mix's time that its writes take; None where nothing is mixed.
    """

    log_value: dict[str, Floats]
    half_width: dict[str, Floats]
    evidence: Codes
    sharpness: Floats
    log_drive: Floats | None = None
    write_share: Floats | None = None

    def put_in_order(self, rows: NDArray[np.bool_] | bool = True) -> None:
        """Raise percentiles in place to a lower one, and p99 to the mean, where `rows` is true."""
        for lower, upper in (("latency", "p99"), ("p50", "p99"), ("p99", "p999")):
            if upper in self.log_value and lower in self.log_value:
                value = self.log_value[upper]
                np.fmax(value, self.log_value[lower], out=value, where=rows)


def with_lower(names: Iterable[str]) -> frozenset[str]:
    """Quantities and those that put their percentiles in order."""
    given = frozenset(names)
    needed = given.union(*(NOT_BELOW.get(name, ()) for name in given))
    return given if needed == given else with_lower(needed)


def longer_of(first: Floats, second: Floats) -> Floats:
    """The longer latency of each row; the first where one of them is unknown (NaN)."""
    return np.where(second > first, second, first)


def put_percentiles_in_order(bands: dict[str, Band]) -> None:
    """Raise percentiles and the ends of their intervals to those of lower ones, in place."""
    for name, others in NOT_BELOW.items():
        for lower in (bands[other] for other in others if name in bands and other in bands):
            upper = bands[name]
            bands[name] = Band(
                longer_of(upper.value, lower.value),
                longer_of(upper.low, lower.low),
                longer_of(upper.high, lower.high),
                upper.evidence,
            )


def merge(parts: list[tuple[Codes, Direction]], rows: int) -> Direction:
    """Rows of one prediction from several, each with the places of its rows."""
    names = tuple(parts[0][1].log_value)
    value = {name: np.empty(rows) for name in names}
    half = {name: np.empty(rows) for name in names}
    evidence = np.empty(rows, dtype=np.intp)
    sharpness, drive = np.empty(rows), np.zeros(rows)
    mixed = any(part.write_share is not None for _, part in parts)
    writes = np.zeros(rows) if mixed else None
    for indices, part in parts:
        for name in names:
            value[name][indices] = part.log_value[name]
            half[name][indices] = part.half_width[name]
        evidence[indices] = part.evidence
        sharpness[indices] = part.sharpness
        drive[indices] = 0.0 if part.log_drive is None else part.log_drive
        if writes is not None and part.write_share is not None:
            writes[indices] = part.write_share
    return Direction(value, half, evidence, sharpness, drive, writes)
