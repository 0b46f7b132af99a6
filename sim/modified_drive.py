"""Predicts a modified drive: simulated ratios between two builds, applied to its profile.

The simulated drive stands for the measured one as it is; with some of its fields changed it stands
for the other. Both serve the same closed loops with a host that costs nothing, and what differs
goes into a copy of the profile (`model.evaluate.performance`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DeviceProfile, RatioError, RatioTable, Rebuilt, ResidualTable
from iojoule.datasets.vocabulary import Operation, Pattern
from iojoule.sim.calibration.runs import LANE_GIGABYTES_PER_SECOND, Outcome, on_link, run_warm
from iojoule.sim.device import SECTOR_BYTES, DeviceConfig, FlashTechnology
from iojoule.sim.engines.bounded import BoundedEngine
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.formats.files import read_drive
from iojoule.sim.presets import drive_path, preset_names, preset_path
from iojoule.sim.result import Mode
from iojoule.sim.sweep import with_values
from iojoule.sim.workload import AddressDistribution, FlowConfig, Scenario

EMBEDDED = EmbeddedEngine()

IN_FLIGHT = (1, 4, 16, 64, 256)
"""Requests in flight at which ratios are simulated; between them they are interpolated."""

REQUESTS = 1500
LATENCIES = 6
LONGEST_NS = 500_000_000
WARM_LATENCIES = 2
"""As points of a calibration: so many requests, mean latencies and ns, after some that warm up."""

CAP_BURST_NS = 100_000
"""A capped drive spends its allowance within the few milliseconds that are simulated."""

ERRORS = (
    RatioError(quantity="latency", floor=0.05, share=0.8, most=0.3),
    RatioError(quantity="p50", floor=0.06, share=0.8, most=0.4),
    RatioError(quantity="p99", floor=0.12, share=1.0, most=0.45),
    RatioError(quantity="p999", floor=0.15, share=1.0, most=0.5),
    RatioError(quantity="watts", floor=0.06, share=0.5, most=1.0),
)
"""What ratios err on drives with hidden physics (tests/sim/test_hidden_builds.py): as wide as 90 %
of them need in each range of the ratio, and not below the floor, for a real drive also differs from
every simulated one."""

ERRORS_SOURCE = (
    "ratios of 16 simulated drives, times, rates and energies drawn anew from two presets, each "
    "built otherwise in 8 ways, against the ratios that the presets say"
)


def _lanes(device: DeviceConfig, value: Any) -> dict[str, Any]:
    if value not in LANE_GIGABYTES_PER_SECOND:
        raise InputError(
            f"geometry.link_generation: {value!r} is none of PCIe's generations, "
            f"{', '.join(map(str, LANE_GIGABYTES_PER_SECOND))}",
            field="geometry.link_generation",
        )
    return {"link_lane_gigabytes_per_second": LANE_GIGABYTES_PER_SECOND[value]}


def _dies(device: DeviceConfig, value: Any) -> dict[str, Any]:
    if isinstance(value, bool) or not isinstance(value, int) or value % device.dies_per_chip:
        raise InputError(
            f"geometry.dies: {value!r} dies on a channel cannot be chips of {device.dies_per_chip}",
            field="geometry.dies",
        )
    return {"chips_per_channel": value // device.dies_per_chip}


def _flash(device: DeviceConfig, value: Any) -> dict[str, Any]:
    """One bit in every cell, with the drive's own times of such pages."""
    slc = device.physical.slc
    if value != FlashTechnology.SLC:
        raise InputError(
            f"geometry.flash: {value!r}: only slc follows from the drive's own numbers; of another "
            "type state the times: geometry.page_read_ns=[...] and geometry.page_program_ns=[...]",
            field="geometry.flash",
        )
    return {
        "flash_technology": "slc",
        "page_read_ns": (slc.page_read_ns,) * 3,
        "page_program_ns": (slc.page_program_ns,) * 3,
        "block_erase_ns": slc.block_erase_ns,
        "pages_per_block": max(1, device.pages_per_block // 3)
        if device.flash_technology is FlashTechnology.TLC
        else max(1, device.pages_per_block // 2)
        if device.flash_technology is FlashTechnology.MLC
        else device.pages_per_block,
        "physical.slc.static_blocks_per_plane": 0,
        "physical.slc.dynamic_blocks_per_plane": 0,
    }


FRIENDLY: Mapping[str, Callable[[DeviceConfig, Any], dict[str, Any]]] = {
    "dies": _dies,
    "flash": _flash,
    "link_generation": _lanes,
}
"""Names beside the fields of the simulated drive: what they set of a drive."""

SHORT = (
    "channels, dies, flash, cache_bytes, link_generation, link_lanes, any field of the simulator"
)


def changed_drive(device: DeviceConfig, geometry: Sequence[tuple[str, Any]]) -> DeviceConfig:
    """The simulated drive with fields set otherwise.

    Raises:
        IojouleError: There is no such field, or it cannot have the value.
    """
    values: dict[str, Any] = {}
    for name, value in geometry:
        values |= FRIENDLY[name](device, value) if name in FRIENDLY else {name: value}
    nothing_asked = Scenario(flows=(FlowConfig(stop_ns=1),))
    return with_values(device, nothing_asked, values)[0]


def base_drive(profile: DeviceProfile, preset: str | None) -> DeviceConfig:
    """The simulated drive that stands for a profile's, on the link that the profile was fitted on.

    Raises:
        InputError: There is none; says how to name one.
    """
    if preset is None and profile.device not in preset_names():
        raise InputError(
            f"geometry: no simulated drive stands for {profile.device}; name the nearest one with "
            f"preset=NAME or preset=FILE.toml (presets are {', '.join(preset_names())})",
            field="preset",
        )
    wanted = preset or profile.device
    # a file that happens to have the name of a preset is not meant by it
    path = preset_path(wanted) if wanted in preset_names() else drive_path(wanted)
    device = read_drive(path).in_mode(Mode.PHYSICAL).device
    generations = profile.valid_for.pcie_generation
    return on_link(device, generations[0] if len(generations) == 1 else None, None)


@dataclass(frozen=True)
class Asked:
    """What ratios are needed: operations and patterns, and request sizes."""

    kinds: tuple[tuple[Operation, Pattern], ...]
    request_bytes: tuple[int, ...]


@dataclass(frozen=True)
class Simulating:
    """How ratios are simulated.

    Attributes:
        engine: Runs what is simulated.
        watch: Told now and then the share that is done, 0 to 1; what it raises ends all.
    """

    engine: EmbeddedEngine | BoundedEngine = EMBEDDED
    watch: Callable[[float], object] = float


UNBOUNDED = Simulating()


def rebuilt(
    profile: DeviceProfile,
    preset: str | None,
    geometry: Sequence[tuple[str, Any]],
    asked: Asked,
    by: Simulating = UNBOUNDED,
) -> DeviceProfile:
    """The profile of the drive built otherwise; the same profile where nothing is changed.

    Raises:
        IojouleError: No simulated drive stands for it, or it cannot be built so.
    """
    base = base_drive(profile, preset)
    other = changed_drive(base, geometry)
    if other == base:
        return profile
    tables = []
    for place, kind in enumerate(asked.kinds):
        share = (place / len(asked.kinds), 1 / len(asked.kinds))
        tables.append(_table(base, other, *kind, asked.request_bytes, by, share))
    section = Rebuilt(
        drive=preset or profile.device,
        changes=[f"{name} = {value}" for name, value in geometry],
        tables=tables,
        errors=list(ERRORS),
        source=ERRORS_SOURCE,
    )
    larger = other.capacity_bytes / base.capacity_bytes
    update: dict[str, Any] = {"rebuilt": section}
    if profile.capacity_bytes is not None:
        update["capacity_bytes"] = round(profile.capacity_bytes * larger)
    for name, factor in (
        ("endurance_bytes_written", larger),
        ("link_bytes_per_second", _link(other) / _link(base)),
    ):
        known = getattr(profile, name)
        if known is not None and factor != 1.0:
            scaled = {"value": known.value * factor, "sd": known.sd * factor}
            update[name] = known.model_copy(update=scaled)
    return profile.model_copy(update=update)


def _link(device: DeviceConfig) -> float:
    return device.link_lane_gigabytes_per_second * device.link_lanes


def _table(
    base: DeviceConfig,
    other: DeviceConfig,
    operation: Operation,
    pattern: Pattern,
    sizes: Sequence[int],
    by: Simulating,
    share: tuple[float, float],
) -> RatioTable:
    """One operation and pattern; `share` is where its part of the work begins, and the part."""
    states = [0] + [
        number
        for number, state in enumerate(base.physical.power.states)
        if state.operational and number
    ]
    places = list(product(states, IN_FLIGHT, sizes))
    cells = []
    for done, (state, in_flight, size) in enumerate(places):
        by.watch(share[0] + share[1] * done / len(places))
        cells.append(_ratios(base, other, operation, pattern, state, in_flight, size, by.engine))
    return RatioTable(
        operation=operation,  # type: ignore[arg-type]
        pattern=pattern,
        table=ResidualTable(
            log2_queue_depth=[float(np.log2(one)) for one in IN_FLIGHT],
            log2_jobs=[0.0],
            log2_request_bytes=[float(np.log2(one)) for one in sizes],
            paths=[f"ps{state}" for state in states],
            values={name: [cell[name] for cell in cells] for name in cells[0]},
        ),
    )


def _ratios(
    base: DeviceConfig,
    other: DeviceConfig,
    operation: Operation,
    pattern: Pattern,
    state: int,
    in_flight: int,
    size: int,
    engine: EmbeddedEngine | BoundedEngine,
) -> dict[str, float]:
    """Logs of changed over base in one cell; Little's law makes latency of the rate."""
    was, now = (
        simulated(one, operation, pattern, state, in_flight, size, engine) for one in (base, other)
    )
    latency = was.log_iops - now.log_iops
    found = {"latency": latency}
    for name, before, after in zip(
        ("p50", "p99", "p999"), was.log_tails, now.log_tails, strict=True
    ):
        found[name] = latency + after - before
    if np.isfinite(was.watts) and np.isfinite(now.watts) and was.watts > 0:
        least = min(base.physical.energy.active_watts, was.watts)
        expected = least + (was.watts - least) * np.exp(now.log_iops - was.log_iops)
        found["watts"] = float(np.log(now.watts / expected))
    return found


@lru_cache(maxsize=8192)
def simulated(
    device: DeviceConfig,
    operation: Operation,
    pattern: Pattern,
    state: int,
    in_flight: int,
    size: int,
    engine: EmbeddedEngine | BoundedEngine = EMBEDDED,
) -> Outcome:
    """One closed loop on a drive; the same is simulated once by engines that are equal."""
    # how long to simulate: a request takes about so long alone, and a drive moves some GB/s
    iops = min(in_flight / 80e-6, 8e5, 3e9 / size)
    latency_ns = in_flight / iops * 1e9
    warmup_ns = round(WARM_LATENCIES * latency_ns) if in_flight > 1 else 0
    run_ns = min(max(LATENCIES * latency_ns, REQUESTS / iops * 1e9, 2e6), LONGEST_NS)
    flow = FlowConfig(
        read_percent=100 if operation is Operation.READ else 0,
        address_distribution=AddressDistribution.STREAMING
        if pattern is Pattern.SEQUENTIAL
        else AddressDistribution.RANDOM_UNIFORM,
        size_mean_sectors=size // SECTOR_BYTES,
        alignment_sectors=size // SECTOR_BYTES,
        queue_depth=in_flight,
        stop_ns=warmup_ns + round(run_ns),
    )
    known = {
        "initial_state": state,
        "cap_burst_ns": CAP_BURST_NS,
        "cap_reopen_ns": 0,
        "autonomous_transitions": (),
    }
    power = device.physical.power.model_copy(update=known)
    physical = device.physical.model_copy(update={"power": power})
    set_so = device.model_copy(update={"physical": physical})
    return run_warm(set_so, flow, warmup_ns, engine)
