"""A fitted profile as the table that the lab's disk serves requests by.

measure/lab/disk/profile_table.cpp reads the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.vocabulary import Operation, Pattern
from iojoule.model.device_power import active_value
from iojoule.model.frame import make_frame, operational_states
from iojoule.model.mixing import extent
from iojoule.model.predictor import DEVICE_VALUE, Predictor
from iojoule.sim.physical_options import PowerState

Floats = NDArray[np.float64]

FIRST_LINE = "iojoule-lab-profile 1"
SECTOR_BYTES = 512
PATTERNS = (Pattern.RANDOM, Pattern.SEQUENTIAL)
SURFACES = tuple(product((Operation.READ, Operation.WRITE), PATTERNS))
"""Operation and pattern, in the order of the text."""

IN_FLIGHT = np.array(
    sorted({*range(1, 33), *(round(2 ** (place / 16)) for place in range(80, 161))}),
    dtype=np.float64,
)
"""Dense, because where the host is the bottleneck the curve has a corner: between two of these its
line is at most 1 % away."""
SPREAD_IN_FLIGHT = np.exp2(np.arange(11, dtype=np.float64))
_MIXED_IN_FLIGHT = 4
QUANTILES = np.array([0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99, 0.997, 0.999, 1])
NARROW = 0.1
"""Half the width of the spread of latencies where the profile knows no percentiles."""
_TAILS = ("latency_p50_ns", "latency_p99_ns", "latency_p999_ns")


@dataclass(frozen=True)
class Table:
    """What a profile says over sizes and requests in flight, in real time.

    Attributes:
        request_bytes: Shape (sizes,).
        latency_ns: By (operation, pattern, state): shape (sizes, IN_FLIGHT).
        watts: Likewise.
        spread: Likewise: shape (sizes, SPREAD_IN_FLIGHT, QUANTILES), over the mean latency.
    """

    request_bytes: Floats
    latency_ns: Mapping[tuple[str, str, int], Floats]
    watts: Mapping[tuple[str, str, int], Floats]
    spread: Mapping[tuple[str, str, int], Floats]

    @property
    def fastest_latency_ns(self) -> float:
        """The least mean latency of any request."""
        return float(min(values.min() for values in self.latency_ns.values()))


def make_table(profile: DeviceProfile, largest_bytes: int, states: Sequence[int]) -> Table:
    """Evaluate a profile with device power by its own defaults (engine, completion, one job).

    Args:
        profile: The profile.
        largest_bytes: Of one command; the host splits larger requests.
        states: Operational states; one whose effect the profile does not know is as PS0 below the
            state's cap.
    """
    octaves = np.arange(9, np.log2(largest_bytes), 0.5)
    sizes = np.round(2**octaves / SECTOR_BYTES) * SECTOR_BYTES
    sizes = np.unique([*sizes[sizes < largest_bytes], float(largest_bytes)])
    predictor = Predictor(profile)
    latency, watts, spread = {}, {}, {}
    for (operation, pattern), state in product(SURFACES, states):
        key = (operation.value, pattern.value, state)
        fixed = {"operation": operation.value, "pattern": pattern.value}
        mean = _predict(predictor, fixed, state, sizes, IN_FLIGHT)
        latency[key], watts[key] = mean["latency_mean_ns"], mean[DEVICE_VALUE]
        tails = _predict(predictor, fixed, state, sizes, SPREAD_IN_FLIGHT, _TAILS)
        ratios = [tails[name] / tails["latency_mean_ns"] for name in _TAILS]
        spread[key] = spread_of(*ratios)
    return Table(sizes, latency, watts, spread)


def _predict(
    predictor: Predictor,
    fixed: Mapping[str, str],
    state: int,
    sizes: Floats,
    depths: Floats,
    tails: Sequence[str] = (),
) -> dict[str, Floats]:
    """Quantities by name, shape (sizes, depths); DEVICE_VALUE: watts."""
    known = state in operational_states(predictor.profile)
    columns: dict[str, Any] = {
        **fixed,
        "request_bytes": np.repeat(sizes, len(depths)),
        "queue_depth": np.tile(depths, len(sizes)),
        "power_state": state if known else 0,
    }
    frame, _ = make_frame(predictor.profile, columns, len(sizes) * len(depths))
    told = predictor.predict(frame, only=(DEVICE_VALUE, *tails))
    shape = (len(sizes), len(depths))
    found = {name: told[name].value.reshape(shape) for name in ("latency_mean_ns", *tails)}
    power = predictor.profile.device_power
    assert power is not None
    states = np.full(len(frame), state, dtype=np.intp)
    found[DEVICE_VALUE] = active_value(power, told.activity.device_x, states).reshape(shape)
    return found


def spread_of(p50: Floats, p99: Floats, p999: Floats) -> Floats:
    """Latency over its mean at QUANTILES, of mean 1, from three percentiles over the mean.

    Above the median, the logarithm is a line in that of the share that is slower. Below it, latency
    is a line that gives the whole the mean; where it would have to rise again or to fall below
    zero, all is scaled instead. Without percentiles it is even over 1 +- NARROW.

    Args:
        p50: Any shape; NaN: unknown.
        p99: Likewise.
        p999: Likewise.

    Returns:
        That shape and (QUANTILES,).
    """
    p50, p99, p999 = (
        np.asarray(each, dtype=np.float64)[..., np.newaxis] for each in (p50, p99, p999)
    )
    weights = np.convolve(np.diff(QUANTILES), [0.5, 0.5])  # of the trapezoids
    slower = np.log(np.maximum(1 - QUANTILES, 1e-3))
    knots = np.log([1e-3, 1e-2, 0.5])
    first = np.clip((slower - knots[2]) / (knots[1] - knots[2]), 0, 1)
    second = np.clip((slower - knots[1]) / (knots[0] - knots[1]), 0, 1)
    upper = p50 * (p99 / p50) ** first * (p999 / p99) ** second
    below = QUANTILES < 0.5
    way = 2 * QUANTILES[below]
    left = 1 - (upper * weights)[..., ~below].sum(-1, keepdims=True)
    low = (left - p50 * (weights[below] * way).sum()) / (weights[below] * (1 - way)).sum()
    low = np.clip(low, 0.05 * p50, p50)
    found = np.array(upper)
    found[..., below] = low + (p50 - low) * way
    found = np.where(np.isfinite(found), found, 1 + NARROW * (2 * QUANTILES - 1))
    return np.asarray(found / (found * weights).sum(-1, keepdims=True))


def table_text(
    table: Table,
    profile: DeviceProfile,
    states: Sequence[PowerState],
    *,
    slow_down: float,
    capacity_bytes: int,
    kept_bytes: int,
) -> str:
    """The drive's file: `table`, so many times slower."""
    power = profile.device_power
    assert power is not None
    # the lab's drive knows no share of reads: that of an even mix at a few requests in flight
    factors = {
        each.pattern: each.latency_factor.value
        ** float(extent(0.5, _MIXED_IN_FLIGHT, each.pattern is Pattern.RANDOM))
        for each in profile.mixed
    }
    other_ns = slow_down * min(
        values.min() for (operation, *_), values in table.latency_ns.items() if operation == "write"
    )
    lines = [
        FIRST_LINE,
        f"sectors {capacity_bytes // SECTOR_BYTES}",
        f"kept_bytes {kept_bytes}",
        f"other_ns {other_ns:.0f}",
        f"busy_base_watts {power.parameters[0].value:.9g}",
        f"mixed_factors {_words([factors.get(pattern, 1.0) for pattern in PATTERNS])}",
        f"states {len(states)}",
    ]
    for state in states:
        latencies = f"{state.entry_latency_ns} {state.exit_latency_ns}"
        lines.append(f"state {int(state.operational)} {latencies} {state.idle_power_watts:.9g}")
    for name, values in (
        ("in_flight", IN_FLIGHT),
        ("bytes", table.request_bytes),
        ("spread_in_flight", SPREAD_IN_FLIGHT),
        ("quantiles", QUANTILES),
    ):
        lines.append(f"{name} {len(values)} {_words(values)}")
    for number, state in enumerate(states):
        for surface in SURFACES if state.operational else ():
            key = (surface[0].value, surface[1].value, number)
            lines += [
                f"latency_ns {_words(table.latency_ns[key] * slow_down)}",
                f"watts {_words(table.watts[key])}",
                f"spread {_words(table.spread[key])}",
            ]
    return "\n".join(lines) + "\n"


def _words(values: Any) -> str:
    return " ".join(f"{value:.9g}" for value in np.ravel(values))
