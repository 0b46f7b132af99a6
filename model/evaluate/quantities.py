"""Which quantities are predicted; light to import.

The normal distribution, quantile and widest half width of 90 % intervals; light to import.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

QUANTITIES = (
    "throughput_bytes_per_second",
    "iops",
    "latency_mean_ns",
    "latency_p50_ns",
    "latency_p99_ns",
    "latency_p999_ns",
    "device_power_watts",
    "cpu_power_watts",
    "dram_power_watts",
    "system_power_watts",
    "cpu_utilisation",
    "context_switches_per_second",
    "cpu_joules_per_operation",
    "iops_per_core_max",
)
"""Predicted quantities in the order of `iojoule predict`."""

GAP_QUANTITIES = (
    "wake_latency_ns",
    "cycle_power_watts",
    "idle_power_watts",
    "background_seconds",
    "background_energy_joules",
)
"""Predicted where they are asked for by name: what gaps and writes leave behind cost (see
`model.evaluate.background_work`)."""


def with_ends(quantities: Iterable[str]) -> tuple[str, ...]:
    """Predicted columns: each quantity followed by the ends of its 90 % interval."""
    return tuple(name + ending for name in quantities for ending in ("", "_low", "_high"))


ANSWERED = with_ends(QUANTITIES)
"""Columns of every answer; where gaps are asked for, those of `GAP_QUANTITIES` follow."""


NOT_BELOW: Mapping[str, tuple[str, ...]] = {
    "latency_p99_ns": ("latency_p50_ns",),
    "latency_p999_ns": ("latency_mean_ns", "latency_p99_ns"),
}
"""Quantities that each percentile is at least as long as, and so are the ends of its interval."""

NORMAL_90 = 1.6448536269514722
"""Standard deviations on each side of a 90 % interval."""

MOST_HALF_WIDTH = math.log(300.0)
"""No latency or percentile is known to less than a factor of 300 to each side (assumption): few
rows left out of a series that jumps, or a demand next to capacity, would else make it hours."""


def share_below(z: float) -> float:
    """Share of a standard normal distribution below z, 0 to 1."""
    return 0.5 * math.erfc(-z / math.sqrt(2.0))
