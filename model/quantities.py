"""Which quantities are predicted; light to import."""

from __future__ import annotations

from collections.abc import Iterable

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
`model.aftermath`)."""


def with_ends(quantities: Iterable[str]) -> tuple[str, ...]:
    """Predicted columns: each quantity followed by the ends of its 90 % interval."""
    return tuple(name + ending for name in quantities for ending in ("", "_low", "_high"))


ANSWERED = with_ends(QUANTITIES)
"""Columns of every answer; where gaps are asked for, those of `GAP_QUANTITIES` follow."""
