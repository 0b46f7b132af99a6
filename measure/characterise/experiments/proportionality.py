"""Energy proportionality: power from idle to the peak rate in steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.characteristics import Estimate, Evidence, Row
from iojoule.datasets.vocabulary import Operation
from iojoule.measure.characterise.experiment import Bench, Estimates, Extent, Job, Plot
from iojoule.measure.characterise.intervals import Z, between, missing

Floats = NDArray[np.float64]

_DRAWS = 2000


@dataclass(frozen=True)
class Proportionality:
    """With intervals of 95 % as (value, low, high).

    Attributes:
        dynamic_range: 1 - idle watts / watts at the peak.
        index: 1 - (A - 1/2) / (1/2), A the area below power over the share of the peak rate, both
            normalised to the peak: 1 = proportional, 0 = constant power (Wong and Annavaram, MICRO
            2012, EP).
        curvature: Of the quadratic through the points, watts; negative = the first load costs most.
    """

    dynamic_range: tuple[float, float, float]
    index: tuple[float, float, float]
    curvature: tuple[float, float, float]


def proportionality(shares: Floats, watts: Floats, errors: Floats) -> Proportionality | None:
    """From powers over the share of the peak rate; intervals by drawing from the errors.

    Args:
        shares: From 0 (idle), growing, to the peak, shape (n,).
        watts: Shape (n,).
        errors: Standard errors of the watts, shape (n,).

    Returns:
        None with fewer than three points, or where they do not span idle to peak.
    """
    if len(shares) < 3 or shares[0] != 0 or (np.diff(shares) <= 0).any() or watts[-1] <= 0:
        return None
    share = shares / shares[-1]
    drawn = watts + np.random.default_rng(1).normal(size=(_DRAWS, len(watts))) * errors
    all_watts = np.vstack([watts, drawn])
    peak = all_watts[:, -1:]
    ranges = 1 - all_watts[:, 0] / peak[:, 0]
    areas = np.trapezoid(all_watts / peak, share, axis=1)
    bends = np.polyfit(share, all_watts.T, 2)[0]
    return Proportionality(_interval(ranges), _interval(2 - 2 * areas), _interval(bends))


def _interval(values: Floats) -> tuple[float, float, float]:
    low, high = np.percentile(values[1:], (2.5, 97.5))
    value = float(values[0])
    return value, min(float(low), value), max(float(high), value)


REQUEST_BYTES = 4096
_DEPTH = 64
_RANGE = "1 - idle watts over watts at the peak rate of random reads of 4 KiB, depth 64"
_INDEX = "1 - (area below power over rate - 1/2) / (1/2), both over their peak (EP)"
_BEND = "of the quadratic through power over the share of the peak rate (003, figure 3)"


class EnergyProportionality:
    """Energy proportionality."""

    name = "proportionality"
    title = "Energy proportionality"
    purpose = "what is saved at part load: all of it, or next to nothing"
    sources = ("003 Observation 4", "thesis 3 (dynamic power range)")
    writes = False
    needs_power = True
    needs_controller = False

    def measure(self, bench: Bench, extent: Extent) -> list[Row]:
        """Make the observations."""
        rows = []
        for repeat in range(extent.repeats):
            peak = bench.run(_job(f"share 1.00 {repeat}", extent, None))
            rows.append(peak)
            for share in extent.shares:
                if share < 1.0:
                    demand = max(1.0, share * peak["iops"])
                    rows.append(bench.run(_job(f"share {share:.2f} {repeat}", extent, demand)))
        return rows

    def estimate(self, evidence: Evidence) -> Estimates:
        """Estimate from the evidence."""
        shares, watts, errors = _points(evidence)
        result = proportionality(shares, watts, errors)
        if result is None:
            reason = "no power meter, or fewer than three loads"
            return {
                "dynamic_range": missing(reason, "1", _RANGE),
                "proportionality_index": missing(reason, "1", _INDEX),
                "curvature_watts": missing(reason, "W", _BEND),
            }
        return {
            "dynamic_range": between(*result.dynamic_range, "1", _RANGE),
            "proportionality_index": between(*result.index, "1", _INDEX),
            "curvature_watts": between(*result.curvature, "W", _BEND),
        }

    def draw(self, axes: Plot, evidence: Evidence, estimates: Mapping[str, Estimate]) -> None:
        """Draw evidence and estimates."""
        shares, watts, errors = _points(evidence)
        if not len(shares):
            return
        axes.errorbar(shares, watts, yerr=Z * errors, fmt="o-", color="#0072B2", label="measured")
        axes.plot([0, 1], [0, watts[-1]], "--", color="#7F7F7F", label="proportional")
        axes.set_xlim(0, 1.05)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("share of the peak rate")
        axes.set_ylabel("power (W)")
        axes.legend()


def _job(label: str, extent: Extent, rate: float | None) -> Job:
    return Job(
        label,
        Operation.READ,
        REQUEST_BYTES,
        queue_depth=_DEPTH,
        seconds=2 * extent.run_seconds,
        operations_per_second=rate,
        effects=rate is not None,
    )


def _points(evidence: Evidence) -> tuple[Floats, Floats, Floats]:
    """Share, watts and standard error, idle first; the share is the one that was reached."""
    idle = evidence.row("idle")
    rows = [row for row in evidence.named("share ") if "power_watts" in row.values]
    if idle is None or "power_watts" not in idle.values or not rows:
        return np.empty(0), np.empty(0), np.empty(0)
    peak = max(row["iops"] for row in rows)
    labels = sorted({row.label.split()[1] for row in rows})
    shares, watts, errors = [0.0], [idle["power_watts"]], [idle["power_error_watts"]]
    for label in labels:
        own = [row for row in rows if row.label.split()[1] == label]
        share = float(np.mean([row["iops"] for row in own])) / peak
        if share <= shares[-1]:
            continue  # a rate that was not reached
        shares.append(share)
        watts.append(float(np.mean([row["power_watts"] for row in own])))
        each = np.array([row["power_error_watts"] for row in own])
        errors.append(float(np.sqrt((each**2).sum()) / len(own)))
    return np.array(shares), np.array(watts), np.array(errors)
