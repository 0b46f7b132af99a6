"""Saturation depth by request size, and the depth of most operations per joule."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from iojoule.datasets.characteristics import Estimate, Evidence, Row
from iojoule.datasets.vocabulary import Operation
from iojoule.measure.characterise.experiment import Bench, Estimates, Extent, Job, Plot
from iojoule.measure.characterise.intervals import Z, between, missing

Floats = NDArray[np.float64]

MODEL_ERROR = 0.03
"""What the law misses of a drive, relative; 0.8 to 1.6 % on simulated drives, up to 10 % where the
host is the bottleneck."""
SHARE = 0.95
_SHARPNESS = (0.4, 20.0)


@dataclass(frozen=True)
class Saturation:
    """X(N) = ((R0 / N)^k + (1 / Xmax)^k)^(-1/k), a smooth minimum of N / R0 and Xmax.

    Attributes:
        unloaded_seconds: R0.
        rate_max: Xmax, per second.
        knee: R0 Xmax, the depth at which the two bounds meet (Little's law).
        sharpness: k.
    """

    unloaded_seconds: float
    unloaded_log_error: float
    rate_max: float
    rate_log_error: float
    knee: float
    knee_log_error: float
    sharpness: float

    def rate(self, depth: Floats) -> Floats:
        """The law."""
        return _law(depth, self.unloaded_seconds, self.rate_max, self.sharpness)

    def saturation_depth(self) -> float:
        """The depth at which `SHARE` of the largest rate is reached."""
        # in logarithms: share^-k - 1 underflows for a sharp knee
        inner = math.expm1(-self.sharpness * math.log(SHARE))
        return self.knee * math.exp(-math.log(inner) / self.sharpness)


def _law(depth: Floats, unloaded: float, rate_max: float, sharpness: float) -> Floats:
    slow = np.log(depth) - math.log(unloaded)
    least = np.minimum(slow, math.log(rate_max))
    gap = np.abs(slow - math.log(rate_max))
    return np.asarray(np.exp(least - np.log1p(np.exp(-sharpness * gap)) / sharpness))


def fit_saturation(
    depths: Sequence[float], rates: Sequence[float], relative_errors: Sequence[float]
) -> Saturation | None:
    """Fit the law to rates over depth; None with fewer than three depths.

    Least squares in logarithms, each rate weighted by its own error and `MODEL_ERROR`; a weak prior
    keeps k between 1 and 5. The covariance is that of the linearised problem, widened where the
    residuals exceed these errors.
    """
    depth, rate = np.asarray(depths, float), np.asarray(rates, float)
    if len(np.unique(depth)) < 3 or (rate <= 0).any():
        return None
    sigma = np.hypot(np.asarray(relative_errors, float), MODEL_ERROR)

    def misfit(parameters: Floats) -> Floats:
        unloaded, most, sharp = np.exp(parameters)
        log_rate = np.log(_law(depth, float(unloaded), float(most), float(sharp)))
        prior = (parameters[2] - math.log(2.2)) / 0.8
        return np.append((log_rate - np.log(rate)) / sigma, prior)

    lower = [math.log(1e-9), math.log(rate.max() * 0.5), math.log(_SHARPNESS[0])]
    upper = [math.log(1e4), math.log(rate.max() * 1e3), math.log(_SHARPNESS[1])]
    start = np.array(
        [math.log(float((depth / rate).min())), math.log(rate.max() * 1.05), math.log(2.2)]
    )
    fit = least_squares(misfit, np.clip(start, lower, upper), bounds=(lower, upper))
    jacobian = np.asarray(fit.jac)
    covariance = np.linalg.pinv(jacobian.T @ jacobian)
    freedom = max(len(depth) - 2, 1)
    covariance *= max(1.0, float(np.sum(fit.fun[:-1] ** 2)) / freedom)
    unloaded, most, sharp = (float(parameter) for parameter in np.exp(fit.x))
    both = covariance[0, 0] + covariance[1, 1] + 2 * covariance[0, 1]
    return Saturation(
        unloaded_seconds=unloaded,
        unloaded_log_error=math.sqrt(covariance[0, 0]),
        rate_max=most,
        rate_log_error=math.sqrt(covariance[1, 1]),
        knee=unloaded * most,
        knee_log_error=math.sqrt(max(both, 0.0)),
        sharpness=sharp,
    )


_KNEE = "R0 Xmax of the closed-loop law fitted to random reads over depth"
_GREEN = "the depth of most operations per joule among those measured; the interval holds all that "
_GREEN_REST = "are not worse beyond chance"


class SaturationDepth:
    """Saturation depth per request size."""

    name = "saturation"
    title = "Saturation depth per request size"
    purpose = "the depth beyond which more requests in flight only wait, and cost power for nothing"
    sources = ("002 sections 3.3.1 and 5.1", "003 Observations 6 and 7")
    writes = False
    needs_power = False
    needs_controller = False

    def measure(self, bench: Bench, extent: Extent) -> list[Row]:
        """Make the observations."""
        return [
            bench.run(
                Job(
                    f"read {size} depth {depth} {repeat}",
                    Operation.READ,
                    size,
                    queue_depth=depth,
                    seconds=extent.run_seconds,
                )
            )
            for repeat in range(extent.repeats)
            for size in extent.request_sizes
            for depth in extent.depths
        ]

    def estimate(self, evidence: Evidence) -> Estimates:
        """Estimate from the evidence."""
        estimates: Estimates = {}
        for size in _sizes(evidence):
            rows = evidence.named(f"read {size} ")
            estimates |= _of_size(size, rows)
        return estimates

    def draw(self, axes: Plot, evidence: Evidence, estimates: Mapping[str, Estimate]) -> None:
        """Draw evidence and estimates."""
        for place, size in enumerate(_sizes(evidence)):
            rows = evidence.named(f"read {size} ")
            colour = f"C{place}"
            axes.errorbar(
                [row["queue_depth"] for row in rows],
                [row["iops"] for row in rows],
                yerr=[Z * row["relative_error"] * row["iops"] for row in rows],
                fmt="o",
                color=colour,
                label=f"{size // 1024} KiB",
            )
            knee = estimates.get(f"saturation_depth_{size}")
            if knee is not None and knee.value is not None:
                axes.axvline(knee.value, color=colour, linestyle="--", alpha=0.6)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("requests in flight")
        axes.set_ylabel("operations per second")
        axes.legend(title="random reads of")


def _sizes(evidence: Evidence) -> list[int]:
    return sorted({int(row["request_bytes"]) for row in evidence.named("read ")})


def _of_size(size: int, rows: list[Row]) -> Estimates:
    deepest = max(row["queue_depth"] for row in rows)
    law = fit_saturation(
        [row["queue_depth"] for row in rows],
        [row["iops"] for row in rows],
        [row["relative_error"] for row in rows],
    )
    return {
        f"saturation_depth_{size}": _knee(law, deepest),
        f"depth_of_95_percent_{size}": _nearly(law, deepest),
        f"iops_max_{size}": _most(law, deepest),
        f"unloaded_latency_seconds_{size}": _unloaded(law),
        f"green_depth_{size}": _green(rows),
    }


def _knee(law: Saturation | None, deepest: float) -> Estimate:
    if law is None:
        return missing("fewer than three depths were measured", "1", _KNEE)
    if law.knee > deepest:
        return missing(f"not saturated at {deepest:g} requests in flight", "1", _KNEE, low=deepest)
    spread = math.exp(Z * law.knee_log_error)
    return between(law.knee, law.knee / spread, law.knee * spread, "1", _KNEE)


def _nearly(law: Saturation | None, deepest: float) -> Estimate:
    method = f"depth at which the law reaches {SHARE:.0%} of its maximum"
    if law is None or law.saturation_depth() > deepest:
        return missing(f"beyond {deepest:g} requests in flight", "1", method, low=deepest)
    depth = law.saturation_depth()
    spread = math.exp(Z * (law.knee_log_error + law.rate_log_error))
    return between(depth, depth / spread, depth * spread, "1", method)


def _most(law: Saturation | None, deepest: float) -> Estimate:
    method = "Xmax of the closed-loop law"
    if law is None or law.knee > deepest:
        return missing(f"not saturated at {deepest:g} requests in flight", "1/s", method)
    spread = math.exp(Z * law.rate_log_error)
    return between(law.rate_max, law.rate_max / spread, law.rate_max * spread, "1/s", method)


def _unloaded(law: Saturation | None) -> Estimate:
    method = "R0 of the closed-loop law"
    if law is None:
        return missing("fewer than three depths were measured", "s", method)
    spread = math.exp(Z * law.unloaded_log_error)
    value = law.unloaded_seconds
    return between(value, value / spread, value * spread, "s", method)


def _green(rows: list[Row]) -> Estimate:
    """The depth of most operations per joule (003, Observation 7)."""
    method = _GREEN + _GREEN_REST
    known = [row for row in rows if row.get("power_watts")]
    if not known:
        return missing("no power meter", "1", method)
    efficiencies = [
        (
            row["iops"] / row["power_watts"],
            math.hypot(row["relative_error"], row["power_error_watts"] / row["power_watts"]),
            row["queue_depth"],
        )
        for row in known
    ]
    best, error, depth = max(efficiencies)
    near = [
        efficiency[2]
        for efficiency in efficiencies
        if efficiency[0] > best * (1 - 3 * math.hypot(error, efficiency[1]))
    ]
    return between(depth, min(near), max(near), "1", method)
