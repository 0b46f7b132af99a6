"""Simulating what is compared, at one choice of parameters.

A point runs for some thousand requests, a series on a drive with fewer, shorter blocks: capacity,
cache and spare flash shrink together, and so does time; rates, write amplification and watts stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from iojoule.model.evaluate.bands import Floats
from iojoule.sim.against import flow_of
from iojoule.sim.calibration.observations import Point, Series
from iojoule.sim.calibration.parameters import ParameterSpace
from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines import Engine, RunOptions
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.engines.fast import FastEngine
from iojoule.sim.physical_options import EnergyOptions, HostOptions, InitialState, PowerOptions
from iojoule.sim.result import Mode, ScenarioResult
from iojoule.sim.workload import FlowConfig, Scenario

POINT_REQUESTS = 1500
"""Requests of one point, beyond those that fill the queues."""

POINT_LATENCIES = 6
"""So many mean latencies at least are simulated, after two that warm up."""

BRIEF_LATENCIES = 3
BRIEF_REQUESTS = 400
BRIEF_ALONE = 60
"""What a search needs of a point: of requests that run alone, one is much like another."""

POINT_STEPS = 40
"""Steps in which a point's requests are counted."""

LONGEST_POINT_NS = 500_000_000

LEAST_PAGES = 24
"""Pages of a block of a series' drive: what collection can work with is a page a block less."""

LEAST_BLOCKS = 600
"""Its blocks a plane: enough for collection to choose from."""

SERIES_STEPS = 60

BLOCKS_OF_A_POINT = 64
"""Blocks a plane of the drive that points are simulated on: reads need no more."""

LANE_GIGABYTES_PER_SECOND = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
"""Payload rate of a PCIe lane by generation (PCI Express Base Specification 6.0, table 1-1)."""


@dataclass(frozen=True)
class Outcome:
    """What one simulated run did.

    Attributes:
        log_iops: log of requests a second.
        log_tails: log of p50, p99 and p99.9 over the mean latency.
        watts: Of the drive.
    """

    log_iops: float
    log_tails: tuple[float, float, float]
    watts: float


@dataclass(frozen=True)
class Course:
    """A simulated series, in steps: host bytes written before each, bytes a second, watts."""

    written: Floats
    bytes_per_second: Floats
    watts: Floats


def point_flow(point: Point, cost: float, *, brief: bool = False) -> tuple[FlowConfig, int]:
    """The flow of a point with its host's costs times `cost`, and its warm-up in ns."""
    latency_ns = point.concurrency / point.iops * 1e9
    warmup_ns = round(2 * latency_ns) if point.concurrency > 1 else 0
    latencies, requests = POINT_LATENCIES, POINT_REQUESTS
    if brief:
        latencies = BRIEF_LATENCIES
        requests = BRIEF_REQUESTS if point.concurrency > 1 else BRIEF_ALONE
    run_ns = max(latencies * latency_ns, requests / point.iops * 1e9)
    run_ns = min(max(run_ns, 0.0 if brief else 2e6), LONGEST_POINT_NS)
    flow = flow_of(point.measurement, "calibration", warmup_ns + round(run_ns))
    return with_cost(flow, cost), warmup_ns


def with_cost(flow: FlowConfig, cost: float) -> FlowConfig:
    """The flow with its host's time for a request scaled."""
    host = flow.host
    scaled = {
        name: round(getattr(host, name) * cost)
        for name in ("submit_cpu_ns", "complete_cpu_ns", "wake_ns")
    }
    return flow.model_copy(update={"host": host.model_copy(update=scaled)})


def on_link(device: DeviceConfig, generation: int | None, lanes: int | None) -> DeviceConfig:
    """The drive on the link of a run, where its conditions name one."""
    known: dict[str, object] = {}
    if generation in LANE_GIGABYTES_PER_SECOND:
        known["link_lane_gigabytes_per_second"] = LANE_GIGABYTES_PER_SECOND[generation]
    if lanes:
        known["link_lanes"] = lanes
    return device.model_copy(update=known) if known else device


def drive_of(
    space: ParameterSpace, cube: Floats, measured: Point | Series
) -> tuple[DeviceConfig, float]:
    """The drive at a point of the cube on the link of a run, and its host's cost as a factor."""
    device, cost = space.drive(cube, measured.host)
    about = measured.measurement.conditions
    return on_link(device, about.pcie_generation, about.pcie_lanes), cost


def point_drive(device: DeviceConfig, warmup_ns: int = 0) -> DeviceConfig:
    """The drive for points: with few blocks, and statistics that begin after the warm-up."""
    physical, slc = device.physical, device.physical.slc
    blocks = min(device.blocks_per_plane, BLOCKS_OF_A_POINT)
    share = blocks / device.blocks_per_plane
    smaller = slc.model_copy(
        update={
            name: round(getattr(slc, name) * share)
            for name in ("static_blocks_per_plane", "dynamic_blocks_per_plane")
        }
    )
    options = physical.model_copy(
        update={
            "slc": smaller,
            "warmup_ns": warmup_ns,
            "finish_background": False,
        }
    )
    return device.model_copy(update={"blocks_per_plane": blocks, "physical": options})


def run_point(
    space: ParameterSpace, cube: Floats, point: Point, engine: Engine, *, brief: bool = False
) -> Outcome:
    """Simulate one point at a point of the cube."""
    return run_flow(*drive_of(space, cube, point), point, engine, brief=brief)


def run_flow(
    device: DeviceConfig, cost: float, point: Point, engine: Engine, *, brief: bool = False
) -> Outcome:
    """Simulate one point on a drive, with its host's costs times `cost`."""
    return run_warm(device, *point_flow(point, cost, brief=brief), engine, brief=brief)


def run_warm(
    device: DeviceConfig, flow: FlowConfig, warmup_ns: int, engine: Engine, *, brief: bool = False
) -> Outcome:
    """Simulate one flow on a drive; brief runs of the event engine on the fast one.

    Requests are counted from the warm-up until no new ones are made, so that the queues are full;
    a few that run alone are counted over the time until the last was done.
    """
    if device.mode is Mode.COMPAT:
        return _outcome(engine.run(device, Scenario(flows=(without_host(flow),))), None)
    step_ns = max(1, flow.stop_ns // POINT_STEPS)
    if brief and isinstance(engine, EmbeddedEngine):
        engine = FastEngine()
    result = engine.run(
        point_drive(device, warmup_ns),
        Scenario(flows=(flow,)),
        RunOptions(series_step_ns=step_ns),
    )
    told = result.flows[0]
    first = -(-warmup_ns // step_ns)
    served = None
    if told.series is not None and not (brief and warmup_ns == 0):
        both = zip(told.series.serviced_read, told.series.serviced_write, strict=True)
        served = sum([reads + writes for reads, writes in both][first:POINT_STEPS])
    seconds = (POINT_STEPS - first) * step_ns * 1e-9
    return _outcome(result, served / seconds if served else None)


def without_host(flow: FlowConfig) -> FlowConfig:
    """The flow of MQSim's kind: its requests cost nothing, and all jobs are one queue."""
    depth = flow.queue_depth * flow.host.jobs
    return flow.model_copy(update={"host": HostOptions(), "queue_depth": depth})


def _outcome(result: ScenarioResult, iops: float | None) -> Outcome:
    told = result.flows[0]
    latency = told.end_to_end_latency.all
    mean = max(latency.mean_ns, 1.0)
    tails = [np.log(max(v, 1) / mean) for v in (latency.p50_ns, latency.p99_ns, latency.p999_ns)]
    watts = result.device.power_watts_mean
    return Outcome(
        float(np.log(iops or told.iops)),
        (float(tails[0]), float(tails[1]), float(tails[2])),
        float("nan") if watts is None else watts,
    )


def series_drive(device: DeviceConfig) -> tuple[DeviceConfig, int]:
    """The drive for a series: full, as a namespace is that was written over, with less flash.

    A full drive has no blocks to lend to a pseudo-SLC cache, so it has none.

    Returns:
        The drive, and the factor by which it and all times are smaller.
    """
    physical = device.physical
    shorter = _divisor(device.pages_per_block, LEAST_PAGES)
    fewer = max(1, device.blocks_per_plane // LEAST_BLOCKS)
    shrink = shorter * fewer
    smallest = device.planes * device.page_bytes * 4
    options = physical.model_copy(
        update={
            "slc": physical.slc.model_copy(
                update={"static_blocks_per_plane": 0, "dynamic_blocks_per_plane": 0}
            ),
            "nand": physical.nand.model_copy(update={"initial_state": InitialState.filled}),
            "finish_background": False,
        }
    )
    smaller = {
        "pages_per_block": device.pages_per_block // shorter,
        "blocks_per_plane": device.blocks_per_plane // fewer,
        "block_erase_ns": max(1, device.block_erase_ns // shorter),
        "cache_bytes": max(device.cache_bytes // shrink, smallest),
        "preconditioning": True,
        "physical": options,
    }
    return DeviceConfig.model_validate({**device.model_dump(), **_dumped(smaller)}), shrink


def _dumped(values: dict[str, object]) -> dict[str, object]:
    return {
        name: value.model_dump() if hasattr(value, "model_dump") else value
        for name, value in values.items()
    }


def _divisor(pages: int, least: int) -> int:
    return max(d for d in range(1, pages + 1) if pages % d == 0 and pages // d >= min(least, pages))


def run_series(space: ParameterSpace, cube: Floats, series: Series, engine: Engine) -> Course:
    """Simulate a series at a point of the cube."""
    return course(*drive_of(space, cube, series), series, engine)


def course(device: DeviceConfig, cost: float, series: Series, engine: Engine) -> Course:
    """Simulate a series on a drive until as many bytes are written as were measured."""
    device, shrink = series_drive(device)
    seconds = float(series.seconds.sum())
    step_ns = max(1, round(seconds / shrink / SERIES_STEPS * 1e9))
    fill = series.measurement.state.fill_fraction
    flow = with_cost(flow_of(series.measurement, "calibration", step_ns * SERIES_STEPS), cost)
    flow = flow.model_copy(
        update={"initial_occupancy_percent": 100 if fill is None else round(100 * fill)}
    )
    energy = device.physical.energy.model_copy(update={"power_step_ns": step_ns})
    device = device.model_copy(
        update={"physical": device.physical.model_copy(update={"energy": energy})}
    )
    result = engine.run(device, Scenario(flows=(flow,)), RunOptions(series_step_ns=step_ns))
    told, extra = result.flows[0].series, result.device.physical
    if told is None:
        raise ValueError("the engine gives no series")
    count = SERIES_STEPS
    moved = np.array(told.bytes_written[:count], dtype=float)
    watts = np.full(len(moved), np.nan)
    if extra is not None and extra.power_watts is not None:
        watts[:] = np.array(extra.power_watts[: len(moved)])
    written = np.concatenate([[0.0], np.cumsum(moved)[:-1]]) * shrink
    return Course(written, moved / (step_ns * 1e-9), watts)


ENERGY_FIELDS = (
    "controller_active_watts",
    "page_read_joules",
    "page_program_joules",
    "block_erase_joules",
    "channel_joules_per_byte",
    "link_joules_per_byte",
    "controller_joules_per_command",
)
"""Watts are linear in these, given what the drive does: base, flash operations, bytes, commands."""


UNITS = {"controller_active_watts": 1.0, "block_erase_joules": 1e-3}
"""What stands for one of a field while its events are counted; the others take a nanojoule."""


def counting(device: DeviceConfig, fields: Sequence[str]) -> tuple[DeviceConfig, dict[str, float]]:
    """The drive that draws one unit for every event of some energy fields and nothing else.

    No power state caps it, and both the idle and the active watts of the controller count as
    active.

    Returns:
        The drive, and the units.
    """
    units = {field: UNITS.get(field, 1e-9) for field in fields}
    energy: dict[str, object] = {}
    for field, unit in units.items():
        energy[field] = (unit,) * 3 if field.startswith("page_") else unit
        if field.startswith("page_"):
            energy[f"slc_{field}"] = unit
    options = device.physical.model_copy(
        update={"energy": EnergyOptions.model_validate(energy), "power": PowerOptions()}
    )
    return device.model_copy(update={"physical": options}), units


def point_rates(space: ParameterSpace, cube: Floats, point: Point, engine: Engine) -> Floats:
    """Events a second of all ENERGY_FIELDS, shape (fields,), from one run that counts them all."""
    device, cost = drive_of(space, cube, point)
    flow, warmup_ns = point_flow(point, cost)
    counted, units = counting(point_drive(device, warmup_ns), ENERGY_FIELDS)
    told = engine.run(counted, Scenario(flows=(flow,))).device
    joules, extra = told.energy_joules or {}, told.physical
    base = (extra.static_joules or {}).get("controller", 0.0) if extra else 0.0
    # the controller is always on: its joules at one watt are the seconds
    found = {
        "controller_active_watts": base,
        "page_read_joules": joules.get("array_read", 0.0),
        "page_program_joules": joules.get("array_program", 0.0),
        "block_erase_joules": joules.get("array_erase", 0.0),
        "channel_joules_per_byte": joules.get("channel", 0.0),
        "link_joules_per_byte": joules.get("link", 0.0),
        "controller_joules_per_command": joules.get("controller", 0.0) - base,
    }
    seconds = base / units["controller_active_watts"]
    return np.array([found[field] / units[field] / seconds for field in ENERGY_FIELDS])


def series_rates(
    space: ParameterSpace, cube: Floats, series: Series, fields: Sequence[str], engine: Engine
) -> tuple[Course, Floats]:
    """A simulated series, and its events a second by energy field, shape (steps, fields)."""
    device, cost = drive_of(space, cube, series)
    rates = []
    for field in fields:
        counted, units = counting(device, [field])
        told = course(counted, cost, series, engine)
        rates.append(told.watts / units[field])
    return told, np.array(rates).T


FALLEN = 0.85
"""The cliff is where the rate, over SMOOTHED_SHARE of the series, falls to so much of its start."""

RISEN = 1.15
"""Watts that never get so much higher than at their start do not rise."""

SMOOTHED_SHARE = 0.03

OBSERVATION_SD = 0.03
"""Log sd of a mark."""


@dataclass(frozen=True)
class Marks:
    """Rates in bytes a second; the cliff and the rise in host bytes, NaN where there is none.

    Attributes:
        before: Median rate before the cliff.
        cliff: Bytes written until the rate falls.
        after: Mean rate from there on, as far as the fit may look.
        rise: Bytes written until the watts rise: the drive begins to collect.
    """

    before: float
    cliff: float
    after: float
    rise: float

    def logs(self) -> list[float]:
        """Logarithms, in this order; without the rise where no watts were measured."""
        return [
            float(np.log(one))
            for one in (self.before, self.cliff, self.after, self.rise)
            if not np.isnan(one)
        ]


def measured_marks(series: Series) -> Marks:
    """The marks of what was measured and not left out."""
    seen = ~series.held_out
    return _marks(series.written[seen], series.bytes_per_second[seen], series.watts[seen], np.inf)


def simulated_marks(course: Course, measured: Marks, series: Series) -> Marks:
    """The marks of a simulation, looking as far beyond its cliff as the measurement did.

    Where it has no cliff, one just beyond its end stands for it.
    """
    seen = series.written[~series.held_out]
    span = float(seen.max()) - measured.cliff
    found = _marks(course.written, course.bytes_per_second, course.watts, span)
    beyond = 1.1 * float(course.written[-1])
    rise = float("nan") if np.isnan(measured.rise) else found.rise
    if not np.isnan(measured.rise) and np.isnan(rise):
        rise = beyond
    if np.isnan(found.cliff):
        return Marks(found.before, beyond, found.before, rise)
    return replace(found, rise=rise)


def _smoothed(values: Floats) -> tuple[Floats, int]:
    width = max(1, round(SMOOTHED_SHARE * len(values)))
    padded = np.concatenate([values, np.full(width - 1, values[-1])])
    return np.convolve(padded, np.full(width, 1 / width), mode="valid"), width


def _rise(written: Floats, watts: Floats) -> float:
    """Where the smoothed watts first pass the middle between their start and their highest."""
    if not np.isfinite(watts).all():
        return float("nan")
    smooth, width = _smoothed(watts)
    start = float(np.median(watts[: max(3, len(watts) // 10)]))
    high = float(np.quantile(smooth, 0.95))
    if high < RISEN * start:
        return float("nan")
    first = int(np.argmax(smooth > 0.5 * (start + high)))
    return float(written[min(first + width // 2, len(written) - 1)])


def _marks(written: Floats, rate: Floats, watts: Floats, span: float) -> Marks:
    smooth, width = _smoothed(rate)
    rise = _rise(written, watts)
    start = float(np.median(rate[: max(3, len(rate) // 10)]))
    fallen = np.flatnonzero(smooth < FALLEN * start)
    if not fallen.size:
        return Marks(start, float("nan"), float("nan"), rise)
    first = min(int(fallen[0]) + width // 2, len(rate) - 1)
    cliff = float(written[first])
    after = (np.arange(len(rate)) >= first) & (written <= cliff + span)
    # mean over bytes, so that a step that is slow counts by what it moved
    return Marks(start, cliff, float(1 / np.mean(1 / np.maximum(rate[after], 1.0))), rise)
