"""Small drives and short runs for the tests of physical mode."""

from __future__ import annotations

from typing import Any

from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines import Limits, RunOptions
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.result import ScenarioResult
from iojoule.sim.workload import FlowConfig, Scenario

SECOND = 1_000_000_000
US = 1_000
MS = 1_000_000

SMALL: dict[str, Any] = {
    "mode": "physical",
    "link_lane_gigabytes_per_second": 1.0,
    "link_lanes": 4,
    "preconditioning": False,
    "cache_bytes": 1 << 20,
    "mapping_ideal": True,
    "overprovisioning_ratio": 0.25,
    "gc_policy": "greedy",
    "suspension": "none",
    "channels": 2,
    "channel_megatransfers_per_second": 800,
    "chips_per_channel": 2,
    "flash_technology": "slc",
    "dies_per_chip": 1,
    "planes_per_die": 1,
    "blocks_per_plane": 64,
    "pages_per_block": 64,
    "page_bytes": 8192,
}
"""Four dies on two channels, 8 KiB pages; what is not said here is the default."""

READS: dict[str, Any] = {"size_mean_sectors": 16, "alignment_sectors": 16, "stop_ns": 200 * MS}
WRITES: dict[str, Any] = {**READS, "read_percent": 0}


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`base` with `changes`, nested tables merged."""
    result = dict(base)
    for name, value in changes.items():
        nested = isinstance(value, dict) and isinstance(result.get(name), dict)
        result[name] = merged(result[name], value) if nested else value
    return result


def drive(**changes: Any) -> DeviceConfig:
    """The small drive with some fields changed; `physical` is merged group by group."""
    return DeviceConfig.model_validate(merged(SMALL, changes))


def run(
    device: DeviceConfig, *flows: dict[str, Any], series_step_ns: int | None = None
) -> ScenarioResult:
    """What the flows do on the drive; each must be serviced whole."""
    scenario = Scenario(flows=tuple(FlowConfig.model_validate(flow) for flow in flows))
    # a drive that never comes to rest is an error, not a test that hangs
    options = RunOptions(limits=Limits(events=30_000_000), series_step_ns=series_step_ns)
    result = EmbeddedEngine().run(device, scenario, options)
    assert list(result.lost()) == []
    return result


def latency_ns(*parts: float) -> float:
    """Sum of the parts of a request's way."""
    return sum(parts)
