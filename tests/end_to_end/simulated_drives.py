"""Drives drawn at random, questions about them, and what every candidate truly does there.

Truth is what the simulator says in physical mode, without noise. A drive is one of the presets
with its flash, channels, firmware, energies and power states drawn anew; the host's power is
drawn too. The same number always gives the same drive and question.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.schema import Configuration, Workload
from iojoule.measure.campaign.plan import Plan, parse_plan
from iojoule.measure.campaign.runs import Abilities, expand
from iojoule.measure.point import Point
from iojoule.recommender.request import Scope, WorkloadProfile, parse_workload
from iojoule.sim import _core
from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.formats.files import read_drive
from iojoule.sim.presets import preset_path
from iojoule.sim.workload import FlowConfig, Scenario
from tests.sim.physical.drives import merged

Floats = NDArray[np.float64]

PRESETS = ("samsung-980-pro-1tb", "samsung-pm9a3-960gb")
STATES = (0, 1, 2)
USEFUL_BYTES = 4096
REQUESTS = 1500
"""A simulated run has at least so many; percentiles of fewer would be rough."""
FEASIBLE_LEAST = 10
"""A question that so few candidates can answer is asked more mildly."""
OBSERVED = (
    "throughput_bytes_per_second",
    "iops",
    "latency_mean_ns",
    "latency_p99_ns",
    "device_power_watts",
    "cpu_power_watts",
)
SMALL: dict[str, Any] = {
    "blocks_per_plane": 48,
    "pages_per_block": 96,
    "gc_threshold": 0.1,
    "cache_bytes": 2 << 20,
    "physical": {
        "slc": {"static_blocks_per_plane": 0, "dynamic_blocks_per_plane": 0},
        "finish_background": False,
    },
}
"""The flash of a drive that is filled in milliseconds, and a cache that is soon full."""


@dataclass(frozen=True)
class Host:
    """Power of the host's CPU: what is drawn anyway, and what a busy core adds."""

    base_watts: float
    core_watts: float


@dataclass(frozen=True)
class Case:
    """A drive, a question about it, the plan that measures it, and the truth.

    Attributes:
        number: What it was drawn from.
        drives: The drive in each of its power states.
        truth: Observation -> its value for each of `points`.
    """

    number: int
    question: WorkloadProfile
    plan: Plan
    plan_text: str
    points: tuple[Point, ...]
    drives: tuple[DeviceConfig, ...]
    host: Host
    truth: Mapping[str, Floats]


def plan_text(number: int, operation: str, fraction: float | None, demand: float | None) -> str:
    """Everything that the host may set, as one sweep."""
    kind = f'operation = "{operation}"\n'
    if fraction is not None:
        kind += f"read_fraction = {fraction}\n"
    first = 1
    if demand is not None:  # a simulated queue of an open loop holds two at the least
        first = 2
    writes = operation != "read"
    return f"""
schema_version = 1
name = "adaptive-{number}"
seed = {number + 1}
repeats = 1
[run]
seconds = 30
ramp_seconds = 5
[precondition]
purge = "{"trim" if writes else "none"}"
fill_passes = {2 if writes else 1}
until_steady = {"true" if writes else "false"}
[[sweep]]
name = "all"
{kind}pattern = "random"
request_bytes = ["4KiB", "8KiB", "16KiB", "32KiB", "64KiB", "128KiB"]
queue_depth = {{ from = {first}, to = 64, factor = 2 }}
jobs = [1, 2, 4]
engine = "io_uring"
completion = ["interrupt", "polled"]
power_state = "operational"
"""


@cache
def case(number: int) -> Case:
    """The drive and question of this number."""
    source = np.random.default_rng([2026, number])
    drives = _drives(source)
    host = Host(float(source.uniform(2, 12)), float(source.uniform(1.5, 6)))
    operation = ("read", "write", "mixed")[number % 3]
    fraction = float(source.choice([0.3, 0.5, 0.7])) if operation == "mixed" else None
    coalescible = int(source.choice([16384, 65536, 131072]))
    workload: dict[str, Any] = {
        "operation": operation,
        "pattern": "random",
        "useful_request_bytes": USEFUL_BYTES,
        "request_bytes_coalescible": coalescible,
    }
    if fraction is not None:
        workload["read_fraction"] = fraction
    demand = None
    if number % 4 == 3:
        demand = float(source.uniform(0.25, 0.6)) * _most(drives[0], operation, fraction)
        workload["demand_bytes_per_second"] = demand
    text = plan_text(number, operation, fraction, demand)
    plan = parse_plan(text, "plan")
    points = tuple(run.point for run in expand(plan, Abilities(STATES, True)).runs)
    points = tuple(sorted(points, key=_order))
    if demand is not None:
        points = tuple(_with_demand(point, demand, coalescible) for point in points)
    truth = _truth(points, drives, host)
    metric = "latency_p99_ns" if source.random() < 0.6 else "latency_mean_ns"
    quantile = float(source.uniform(0.25, 0.55))
    able = np.ones(len(points), dtype=bool)
    if demand is not None:
        able = _served(points, truth) >= 0.98 * demand
    # an application's bound knows nothing of the candidates: a quantile alone would be one of them
    bound = float(np.quantile(truth[metric][able], quantile) * np.exp(source.uniform(-0.1, 0.1)))
    while np.sum(able & (truth[metric] <= bound)) < FEASIBLE_LEAST:
        bound *= 1.1
    asked = {
        "name": f"case {number}",
        "workload": workload,
        "sla": {f"{metric}_max": bound, "confidence": 0.9},
        "scope": "device_cpu",
    }
    return Case(number, parse_workload(asked), plan, text, points, drives, host, truth)


def useful_of(points: tuple[Point, ...], coalescible: int) -> Floats:
    """Useful bytes of one request of each point."""
    return np.array([min(one.configuration.request_bytes, coalescible) for one in points], float)


def true_costs(one: Case) -> tuple[Floats, NDArray[np.bool_]]:
    """What every candidate truly costs (W, or J per useful byte), and whether it keeps the SLA."""
    truth, asked = one.truth, one.question.workload
    coalescible = asked.request_bytes_coalescible or USEFUL_BYTES
    watts = truth["device_power_watts"]
    if one.question.scope is not Scope.DEVICE:
        watts = watts + truth["cpu_power_watts"]
    served = truth["iops"] * useful_of(one.points, coalescible)
    feasible = np.ones(len(watts), dtype=bool)
    for name, bound in one.question.sla.bounds().items():
        feasible &= truth[name.removesuffix("_max")] <= bound
    demand = asked.demand_bytes_per_second
    if demand is None:
        return watts / served, feasible
    return watts, feasible & (served >= 0.98 * demand)


def regret_of(one: Case, row: int | None) -> tuple[float, bool]:
    """How much more a recommended candidate truly costs than the best, and whether it is feasible.

    None, and what breaks the SLA, count as costing twice as much: a regret of 1.
    """
    costs, feasible = true_costs(one)
    if row is None or not feasible[row]:
        return 1.0, False
    return float(costs[row] / costs[feasible].min() - 1), True


def _order(point: Point) -> tuple[object, ...]:
    one = point.configuration
    return (
        one.power_state,
        str(one.completion),
        one.jobs,
        one.queue_depth,
        one.request_bytes,
    )


def _with_demand(point: Point, demand: float, coalescible: int) -> Point:
    size = point.configuration.request_bytes
    rate = demand * size / min(size, coalescible)
    return Point(
        point.workload.model_copy(update={"demand_bytes_per_second": rate}), point.configuration
    )


def _served(points: tuple[Point, ...], truth: Mapping[str, Floats]) -> Floats:
    """Useful bytes a second, from the demand that each point carries."""
    asked = np.array([one.workload.demand_bytes_per_second or np.nan for one in points])
    size = np.array([one.configuration.request_bytes for one in points], float)
    return truth["iops"] * size / asked * asked.min()


def _drives(source: np.random.Generator) -> tuple[DeviceConfig, ...]:
    """One drive in each of its power states: a lower one is slower and draws less."""
    preset = read_drive(preset_path(PRESETS[source.integers(2)])).device.model_dump()
    base = merged(preset, SMALL)

    def times(low: float, high: float) -> float:
        return float(np.exp(source.uniform(np.log(low), np.log(high))))

    base["channels"] = int(source.choice([4, 8]))
    base["chips_per_channel"] = int(source.choice([2, 4]))
    read, program, rate = times(0.6, 1.8), times(0.6, 1.8), times(0.7, 1.5)
    base["page_read_ns"] = [int(each * read) for each in base["page_read_ns"]]
    base["page_program_ns"] = [int(each * program) for each in base["page_program_ns"]]
    base["channel_megatransfers_per_second"] = int(base["channel_megatransfers_per_second"] * rate)
    controller = base["physical"]["controller"]
    controller["command_latency_ns"] = int(controller["command_latency_ns"] * times(0.6, 2.0))
    controller["command_occupancy_ns"] = int(controller["command_occupancy_ns"] * times(0.7, 2.0))
    energy = base["physical"]["energy"]
    for name, value in energy.items():
        of_page = name.startswith("page_")
        if name.endswith(("_watts", "_joules", "_joules_per_byte")) and not of_page:
            by = times(0.6, 1.6)
            energy[name] = None if value is None else value * by
    energy["controller_idle_watts"] = min(
        energy["controller_idle_watts"], energy["controller_active_watts"]
    )
    headroom = float(source.uniform(0.8, 4.0))
    slower = float(source.uniform(0.7, 0.9))
    drives = []
    for state in STATES:
        factor = slower**state
        floor = energy["controller_active_watts"] * factor + sum(
            energy[name] or 0.0
            for name in ("controller_busy_watts", "dram_refresh_watts", "link_active_watts")
        )
        change = {
            "channel_megatransfers_per_second": int(
                base["channel_megatransfers_per_second"] * factor
            ),
            "physical": {
                "controller": {
                    "command_latency_ns": int(controller["command_latency_ns"] / factor),
                    "command_occupancy_ns": int(controller["command_occupancy_ns"] / factor),
                },
                "energy": {
                    name: energy[name] * factor
                    for name in ("controller_idle_watts", "controller_active_watts")
                },
                # windows of seconds would not act on runs of milliseconds
                "power": {
                    "states": [{"max_power_watts": (floor + headroom * factor) / 0.8}],
                    "initial_state": 0,
                    "autonomous_transitions": [],
                    "commands": [],
                    "cap_window_ns": 2_000_000,
                    "cap_burst_ns": 200_000,
                    "cap_reopen_ns": 0,
                },
            },
        }
        drives.append(DeviceConfig.model_validate(merged(base, change)))
    return tuple(drives)


def _flow(point: Point) -> FlowConfig:
    asked, chosen = point.workload, point.configuration
    sectors = chosen.request_bytes // 512
    reads = {"read": 100, "write": 0}.get(
        str(asked.operation), round(100 * (asked.read_fraction or 0.5))
    )
    host: dict[str, Any] = {
        "engine": str(chosen.engine),
        "completion": str(chosen.completion),
        "jobs": chosen.jobs,
    }
    if asked.demand_bytes_per_second:
        host["arrivals_per_second"] = asked.demand_bytes_per_second / chosen.request_bytes
        host["arrivals"] = "periodic"
    concurrency = chosen.queue_depth * chosen.jobs
    return FlowConfig.model_validate(
        {
            "read_percent": reads,
            "size_mean_sectors": sectors,
            "alignment_sectors": sectors,
            "queue_depth": chosen.queue_depth,
            "total_requests": REQUESTS + 8 * concurrency,
            "initial_occupancy_percent": 60,
            "host": host,
        }
    )


def _simulate(drive: DeviceConfig, host: Host, point: Point) -> tuple[float, ...]:
    chosen = point.configuration
    if point.workload.demand_bytes_per_second:
        drive = drive.model_copy(update={"io_queue_depth": max(2, chosen.queue_depth)})
    result = EmbeddedEngine().run(drive, Scenario(flows=(_flow(point),)))
    flow = result.flows[0]
    latency = flow.end_to_end_latency.all
    seconds = (flow.flow_last_completion_ns - flow.measured_from_ns) * 1e-9
    busy = (flow.host_cpu_seconds or 0.0) / seconds
    if chosen.completion == "polled":
        busy = float(chosen.jobs)
    return (
        flow.bandwidth_bytes_per_second,
        flow.iops,
        latency.mean_ns,
        float(latency.p99_ns),
        result.device.power_watts_mean or 0.0,
        host.base_watts + host.core_watts * busy,
    )


def _most(drive: DeviceConfig, operation: str, fraction: float | None) -> float:
    """Bytes a second of 16 KiB requests at full speed."""
    kind: dict[str, Any] = {"operation": operation, "pattern": "random"}
    if fraction is not None:
        kind["read_fraction"] = fraction
    busy = Point(
        Workload.model_validate(kind),
        Configuration.model_validate(
            {
                "request_bytes": 16384,
                "queue_depth": 64,
                "jobs": 4,
                "engine": "io_uring",
                "completion": "interrupt",
            }
        ),
    )
    return _simulate(drive, Host(0, 0), busy)[0]


def _truth(
    points: tuple[Point, ...], drives: tuple[DeviceConfig, ...], host: Host
) -> dict[str, Floats]:
    """Simulate every candidate; kept in build/, because the same takes seconds again."""
    digest = hashlib.sha256(Path(_core.__file__).read_bytes())
    digest.update(repr((drives, host, points, REQUESTS)).encode())
    kept = Path(__file__).parents[2] / "build" / "truth" / f"{digest.hexdigest()[:24]}.npy"
    if kept.is_file():
        values = np.load(kept, allow_pickle=False)
    else:
        values = np.array(
            [_simulate(drives[one.configuration.power_state or 0], host, one) for one in points]
        )
        kept.parent.mkdir(parents=True, exist_ok=True)
        np.save(kept, values)
    return dict(zip(OBSERVED, values.T, strict=True))
