"""How long a drive stays awake after a read: what reads far apart cost beyond those in a row.

In a row the drive is awake all the time, and a read takes a power (above idle) times its latency.
A read that comes alone takes that too, and keeps the drive awake for the settle time t: A t joules
more, with A the watts of an awake drive above idle. `fit` knows A and divides. Mean watts are all
that it needs, so that a slow meter will do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from iojoule.datasets.characteristics import Estimate, Evidence, Row
from iojoule.datasets.vocabulary import Operation
from iojoule.measure.characterise.experiment import Bench, Estimates, Extent, Job, Plot
from iojoule.measure.characterise.intervals import Z, differs, estimated, missing

PACES = (20.0, 4.0, 1.0)
"""Reads a second, evenly spaced: gaps of 50, 250 and 1000 ms. The 980 PRO settles in 30 to 100 ms
(000 5.9 F13)."""
RUNS_LONG = 8
_METHOD = "joules of a random read of 4 KiB that comes alone, less those of one in a row"


class SettleTime:
    """What a read that comes alone costs more than one in a row."""

    name = "settle"
    title = "How long the drive stays awake after a read"
    purpose = "what the first read of a pause costs, and who pays for keeping the drive awake"
    sources = ("000 5.9 F13",)
    writes = False
    needs_power = True
    needs_controller = False

    def measure(self, bench: Bench, extent: Extent) -> list[Row]:
        """Make the observations."""
        return [
            bench.run(_job(label, extent, pace, repeat))
            for repeat in range(extent.repeats)
            for label, pace in (("row", None), *((f"pace {pace:g}", pace) for pace in PACES))
        ]

    def estimate(self, evidence: Evidence) -> Estimates:
        """Estimate from the evidence."""
        extra = _more_joules(evidence)
        if extra is None:
            return {"settle_joules": missing("idle power or a rate is not known", "J", _METHOD)}
        rest = extra[-1]
        for sooner, later in pairwise(extra):
            if not differs(sooner.joules, sooner.error, later.joules, later.error):
                rest = sooner  # longer gaps cost no more: it is at rest within this one
                break
        else:
            before = extra[-2]
            longer = rest.gap_seconds / before.gap_seconds
            if not differs(rest.joules, rest.error, before.joules * longer, before.error * longer):
                reason = f"it is not at rest within {rest.gap_seconds:g} s"
                return {"settle_joules": missing(reason, "J", _METHOD, low=rest.joules)}
        if rest.joules - Z * rest.error <= 0:
            reason = "a read that comes alone costs no more than one in a row"
            high = max(rest.joules + Z * rest.error, 0.0)
            return {"settle_joules": missing(reason, "J", _METHOD, low=0.0, high=high)}
        return {"settle_joules": estimated(rest.joules, rest.error, "J", _METHOD, least=0.0)}

    def draw(self, axes: Plot, evidence: Evidence, estimates: Mapping[str, Estimate]) -> None:
        """Draw evidence and estimates."""
        extra = _more_joules(evidence) or []
        axes.errorbar(
            [point.gap_seconds for point in extra],
            [1e3 * point.joules for point in extra],
            yerr=[1e3 * Z * point.error for point in extra],
            fmt="o-",
            color="#0072B2",
        )
        axes.set_xscale("log")
        axes.set_xlabel("pause before a read (s)")
        axes.set_ylabel("more than in a row (mJ per read)")


def _job(label: str, extent: Extent, pace: float | None, repeat: int) -> Job:
    return Job(
        f"{label} {repeat}",
        Operation.READ,
        4096,
        seconds=RUNS_LONG * extent.run_seconds,
        operations_per_second=pace,
        effects=pace is not None,
    )


@dataclass(frozen=True)
class _Alone:
    """Joules, with their standard error, of a read after a gap beyond those of one in a row."""

    gap_seconds: float
    joules: float
    error: float


def _more_joules(evidence: Evidence) -> list[_Alone] | None:
    """By pace; None where idle power or a rate is missing."""
    idle = evidence.row("idle")
    if idle is None or "power_watts" not in idle.values:
        return None
    in_a_row = _per_read(evidence.named("row "), idle)
    if in_a_row is None:
        return None
    extra = []
    for pace in PACES:
        alone = _per_read(evidence.named(f"pace {pace:g} "), idle)
        if alone is None:
            return None
        error = math.hypot(alone.error, in_a_row.error)
        gap = alone.gap_seconds - in_a_row.gap_seconds
        extra.append(_Alone(gap, alone.joules - in_a_row.joules, error))
    return extra


def _per_read(rows: list[Row], idle: Row) -> _Alone | None:
    """Joules above idle of a read, and the time from one to the next."""
    rows = [row for row in rows if "power_watts" in row.values and row["iops"] > 0]
    if not rows:
        return None
    seconds = sum(1.0 / row["iops"] for row in rows) / len(rows)
    watts = sum(row["power_watts"] for row in rows) / len(rows) - idle["power_watts"]
    error = math.hypot(*(row["power_error_watts"] for row in rows)) / len(rows)
    return _Alone(seconds, watts * seconds, math.hypot(error, idle["power_error_watts"]) * seconds)
