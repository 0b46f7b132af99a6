"""Open loops on simulated drives beside what the model makes of the same drives' closed loops.

Drives are the presets in physical mode, with few blocks, 2 MiB of write cache, no pseudo-SLC cache
and all of the mapping in memory, so that a run of some 100,000 requests reaches the cache's limit,
never collects garbage, and does not grow faster while a mapping cache fills.
The constants of `iojoule.model.evaluate.latency` were fitted on the presets as they are with 4, 16
and 64 KiB; the altered drives and the sizes between were held out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.model.evaluate.latency import ArrivalProcess, ClosedLoop, error_log_sd, sojourn
from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines import RunOptions
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.formats.files import read_drive
from iojoule.sim.presets import preset_names, preset_path
from iojoule.sim.workload import FlowConfig, Scenario
from tests.sim.physical.drives import merged

Floats = NDArray[np.float64]

NAMES = ("latency", "p50", "p99", "p999")
LOADS = (0.1, 0.3, 0.6, 0.8, 0.9, 0.95)
SLOTS = (4, 16, 64, 256)
READS = (100, 70, 0)
CURVE = (1, 2, 4, 8, 16, 32, 64, 128, 256)
CACHE_BYTES = 2 << 20
STEPS = 100
SMALL: dict[str, Any] = {
    "blocks_per_plane": 64,
    "cache_bytes": CACHE_BYTES,
    "preconditioning": False,
    "mapping_ideal": True,
    "physical": {
        "slc": {"static_blocks_per_plane": 0, "dynamic_blocks_per_plane": 0},
        "finish_background": False,
    },
}
SATURATED = 0.85
"""One request in flight that reaches this share of the capacity fills the drive alone."""


@dataclass(frozen=True)
class Case:
    """A drive, an operation mix and a size."""

    drive: DeviceConfig
    name: str
    reads: int
    request_bytes: int


@dataclass(frozen=True)
class Study:
    """What was simulated and predicted, one entry a point, shape (n,).

    Attributes:
        reads: Percentage of reads.
        slots: Requests that may be in flight.
        nominal: The load that was asked for.
        load: The load that came, from the requests that were counted.
        true: ns by quantity, from the simulator.
        told: ns by quantity, from the model.
        half_width: Log half width of 90 %, by quantity.
    """

    reads: NDArray[np.int_]
    slots: NDArray[np.int_]
    nominal: Floats
    load: Floats
    true: dict[str, Floats]
    told: dict[str, Floats]
    half_width: dict[str, Floats]

    def log_error(self, name: str) -> Floats:
        """Log of told over true, shape (n,)."""
        return np.log(self.told[name] / self.true[name])


def fitted_cases() -> list[Case]:
    """What the constants were fitted on."""
    return [
        Case(_drive(preset), preset, reads, size)
        for preset in preset_names()
        for reads in READS
        for size in (4096, 16384, 65536)
    ]


def held_out_cases() -> list[Case]:
    """Slower flash, fewer channels, other sizes."""
    changes: dict[str, dict[str, Any]] = {
        "samsung-980-pro-1tb": {"page_read_ns": (70_000,) * 3, "channels": 4},
        "samsung-pm9a3-960gb": {
            "page_program_ns": (700_000,) * 3,
            "channel_megatransfers_per_second": 800,
        },
        "intel-optane-dc-p4800x-375gb": {"page_read_ns": (8_000,) * 3, "chips_per_channel": 2},
    }
    return [
        Case(_drive(preset, change), f"{preset}, altered", reads, size)
        for preset, change in changes.items()
        for reads in READS
        for size in (8192, 32768)
    ]


def study(cases: Iterable[Case], requests: int, *, buffer_known: bool = True) -> Study:
    """Simulate and predict the cases; open loops of high load have four times the requests."""
    with ThreadPoolExecutor(2) as pool:
        parts = list(pool.map(lambda case: list(_points(case, requests, buffer_known)), cases))
    rows = [row for part in parts for row in part]

    def column(key: str) -> Any:
        return np.array([row[key] for row in rows])

    load = column("load")
    buffered = column("buffered")
    return Study(
        column("reads"),
        column("slots"),
        column("nominal"),
        load,
        {name: column(f"true {name}") for name in NAMES},
        {name: column(f"told {name}") for name in NAMES},
        {name: NORMAL_90 * error_log_sd(load, name, buffered) for name in NAMES},
    )


def table(told: Study, name: str) -> list[str]:
    """Median error and coverage by load, for each operation mix and all."""
    error = np.abs(told.log_error(name))
    lines = []
    for label, rows in (
        ("reads", told.reads == 100),
        ("70/30", told.reads == 70),
        ("writes", told.reads == 0),
        ("all", told.reads >= 0),
    ):
        cells = []
        for nominal in LOADS:
            at = rows & (told.nominal == nominal)
            covered = np.mean(error[at] <= told.half_width[name][at])
            cells.append(f"{np.expm1(np.median(error[at])):6.1%} {covered:4.0%}")
        lines.append(f"{name:8}{label:8}" + "  ".join(cells))
    return lines


def _drive(preset: str, change: dict[str, Any] | None = None) -> DeviceConfig:
    known = read_drive(preset_path(preset)).device.model_dump()
    return DeviceConfig.model_validate(merged(merged(known, SMALL), change or {}))


def _run(
    case: Case, warmup_ns: float, stop_ns: float, depth: int, **host: float
) -> dict[str, float]:
    """One flow; a rate among `host` makes it an open loop of so many slots."""
    device = case.drive.model_copy(
        update={
            "io_queue_depth": depth if "arrivals_per_second" in host else 1024,
            "physical": case.drive.physical.model_copy(update={"warmup_ns": int(warmup_ns)}),
        }
    )
    sectors = case.request_bytes // 512
    flow = FlowConfig.model_validate(
        {
            "read_percent": case.reads,
            "size_mean_sectors": sectors,
            "alignment_sectors": sectors,
            "queue_depth": depth,
            "stop_ns": int(stop_ns),
            "seed": 7,
            "host": host,
        }
    )
    step = max(1, int(stop_ns) // STEPS)
    result = (
        EmbeddedEngine()
        .run(device, Scenario(flows=(flow,)), RunOptions(series_step_ns=step))
        .flows[0]
    )
    latency, series = result.end_to_end_latency.all, result.series
    assert series is not None
    first = -(-int(warmup_ns) // step)
    served = sum(series.serviced_read[first:STEPS]) + sum(series.serviced_write[first:STEPS])
    return {
        "rate": served / ((STEPS - first) * step * 1e-9),
        "latency": latency.mean_ns,
        "p50": float(latency.p50_ns),
        "p99": float(latency.p99_ns),
        "p999": float(latency.p999_ns),
    }


def _warmup(case: Case) -> float:
    """Requests that fill the write cache."""
    return 2 * CACHE_BYTES / case.request_bytes if case.reads < 100 else 0.0


def _closed(case: Case, depth: int, requests: int) -> dict[str, float]:
    rough = max(_run(case, 0, 2e7, depth)["rate"], 100.0)
    warmup_ns = max(4 * depth, _warmup(case)) / rough * 1e9
    return _run(case, warmup_ns, warmup_ns + requests / rough * 1e9, depth)


def _sharpness(curve: dict[int, dict[str, float]]) -> float:
    """k of R(N)^k = R0^k + (N / Xmax)^k, by least squares over a grid, the ends held."""
    depth = np.array(list(curve))
    latency = np.log(depth / np.array([one["rate"] for one in curve.values()]))
    capacity = latency[-1] - np.log(depth[-1])
    grid = np.geomspace(0.8, 8.0, 40)
    fits = [
        np.sum((np.logaddexp(k * latency[0], k * (capacity + np.log(depth))) / k - latency) ** 2)
        for k in grid
    ]
    return float(grid[int(np.argmin(fits))])


def _points(case: Case, requests: int, buffer_known: bool) -> Iterator[dict[str, Any]]:
    curve = {depth: _closed(case, depth, requests if depth in SLOTS else 8000) for depth in CURVE}
    alone = curve[1]
    if alone["rate"] > SATURATED * curve[CURVE[-1]]["rate"]:
        pause_ns = round(19 * alone["latency"])
        alone = _run(case, 0, 40_000 * alone["latency"], 1, think_time_ns=pause_ns)
    sharpness = _sharpness(curve)
    writes = 1 - case.reads / 100
    buffer = 0.0
    if writes and buffer_known:
        buffer = case.drive.cache_bytes / case.request_bytes / writes
    for slots in SLOTS:
        full = curve[slots]
        loop = ClosedLoop(
            np.array([full["rate"]]),
            np.array([float(slots)]),
            {name: np.array([alone[name]]) for name in NAMES},
            {name: np.array([full[name]]) for name in NAMES},
            sharpness,
            buffer,
            writes,
        )
        for nominal in LOADS:
            rate = nominal * full["rate"]
            many = requests * (4 if nominal > 0.7 else 1)
            warmup_ns = max(4000, 20 * slots, _warmup(case)) / rate * 1e9
            true = _run(
                case, warmup_ns, warmup_ns + many / rate * 1e9, slots, arrivals_per_second=rate
            )
            told = sojourn(loop, ArrivalProcess(true["rate"]), NAMES)
            yield {
                "reads": case.reads,
                "slots": slots,
                "nominal": nominal,
                "load": true["rate"] / full["rate"],
                "buffered": buffer > 0,
                **{f"true {name}": true[name] for name in NAMES},
                **{f"told {name}": float(told[name][0]) for name in NAMES},
            }
