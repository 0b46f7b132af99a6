"""What really happened in the lab between two times: the truth that measurements are judged by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.measure.lab.disk_control import DiskControl
from iojoule.measure.lab.host_power import HostPower

KINDS = ("read", "write", "trim", "flush")
_PERCENTILES = {"latency_p50_ns": 50, "latency_p99_ns": 99, "latency_p999_ns": 99.9}
SECTOR_BYTES = 512


def record(
    control: DiskControl, begin_ns: int, end_ns: int, host: HostPower | None = None
) -> dict[str, Any]:
    """What the drive completed and drew in [begin_ns, end_ns), CLOCK_MONOTONIC.

    Latencies run from a command's arrival at the drive to the moment its reply had been sent.
    `iops` and throughput are over the whole time between the two. Of the host there are joules of
    the package, of its core part and of the memory, where `host` tells how they come about.

    Raises:
        LabError: The daemon does not answer, or no longer knows that time.
    """
    found = control.completions(begin_ns, end_ns)
    seconds = (end_ns - begin_ns) / 1e9
    packed = found["packed"]
    failed = (packed & 1).astype(bool)
    kinds = (packed >> 1) & 7
    joules = control.joules(begin_ns, end_ns)
    told: dict[str, Any] = {
        "begin_ns": begin_ns,
        "end_ns": end_ns,
        "device_energy_joules": joules,
        "device_power_watts": joules / seconds if seconds > 0 else None,
        "failed": int(failed.sum()),
    }
    for number, name in enumerate(KINDS):
        told[name] = _one_kind(packed[(kinds == number) & ~failed], seconds)
    if host is not None:
        commands = sum(told[name]["completions"] for name in KINDS)
        moved = told["read"]["bytes"] + told["write"]["bytes"]
        told["host_energy_joules"] = host.joules(seconds, commands, moved)
    return told


def _one_kind(packed: NDArray[np.uint64], seconds: float) -> dict[str, Any]:
    latencies = (packed >> 24).astype(np.float64)
    moved = int(((packed >> 4) & 0xFFFFF).sum()) * SECTOR_BYTES
    count = len(packed)
    said: dict[str, Any] = {"completions": count, "bytes": moved}
    if count == 0:
        return said
    said["latency_mean_ns"] = float(latencies.mean())
    said["latency_min_ns"], said["latency_max_ns"] = float(latencies.min()), float(latencies.max())
    values = np.percentile(latencies, list(_PERCENTILES.values()))
    said |= dict(zip(_PERCENTILES, map(float, values), strict=True))
    # bins of a factor of 2 ** (1/8), by their lower edge
    octaves = np.floor(np.log2(np.maximum(latencies, 1)) * 8).astype(int)
    bins, counts = np.unique(octaves, return_counts=True)
    edges = np.exp2(bins / 8)
    said["latency_histogram_ns"] = {
        f"{edge:.0f}": int(each) for edge, each in zip(edges, counts, strict=True)
    }
    if seconds > 0:
        said["iops"] = count / seconds
        said["throughput_bytes_per_second"] = moved / seconds
    return said
