"""A drive for the lab that behaves as a fitted profile says, slowed down by a factor.

What the profile does not say is refused or listed as a stand-in, which `lab.json` and `iojoule lab
status` show.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.catalogue import Drive, catalogued
from iojoule.datasets.profile import (
    DevicePower,
    DeviceProfile,
    load_shipped_profile,
    read_profile,
    shipped_profiles,
)
from iojoule.datasets.vocabulary import Operation, Pattern
from iojoule.measure.drive.block_device import SECTOR_BYTES
from iojoule.measure.errors import LabError
from iojoule.measure.lab import drives
from iojoule.model.evaluate.device_power import active_value
from iojoule.model.evaluate.frame import make_frame, operational_states
from iojoule.model.evaluate.mixes import extent
from iojoule.model.evaluate.prediction import DEVICE_VALUE
from iojoule.model.evaluate.predictor import Predictor
from iojoule.sim import _core
from iojoule.sim.engines.embedded import native
from iojoule.sim.physical_options import PowerOptions, PowerState

Floats = NDArray[np.float64]

FIRST_LINE = "iojoule-lab-profile 1"
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
    """A profile over sizes and requests in flight, in real time.

    Attributes:
        request_bytes: Shape (sizes,).
        latency_ns: By (operation, pattern, state): shape (sizes, IN_FLIGHT); watts likewise.
        spread: Shape (sizes, SPREAD_IN_FLIGHT, QUANTILES), over the mean latency.
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
    """Evaluate a profile with device power at its own defaults (engine, completion, one job).

    Of operational `states`, one without known effect is as PS0 below the state's cap. The host
    splits requests above `largest_bytes`.
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
    prediction = predictor.predict(frame, only=(DEVICE_VALUE, *tails))
    shape = (len(sizes), len(depths))
    values = {name: prediction[name].value.reshape(shape) for name in ("latency_mean_ns", *tails)}
    power = predictor.profile.device_power
    assert power is not None
    states = np.full(len(frame), state, dtype=np.intp)
    values[DEVICE_VALUE] = active_value(power, prediction.activity.device_x, states).reshape(shape)
    return values


def spread_of(p50: Floats, p99: Floats, p999: Floats) -> Floats:
    """Latency over its mean at QUANTILES, of mean 1, from three percentiles over the mean.

    Above the median, the logarithm is linear in that of the slower share. Below it, latency is
    linear such that the mean is right; where it would have to rise again or fall below zero, all is
    scaled instead. Without percentiles (NaN) it is uniform over 1 +- NARROW. Adds the axis
    (QUANTILES,).
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
    spread = np.array(upper)
    spread[..., below] = low + (p50 - low) * way
    spread = np.where(np.isfinite(spread), spread, 1 + NARROW * (2 * QUANTILES - 1))
    return np.asarray(spread / (spread * weights).sum(-1, keepdims=True))


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
        term.pattern: term.latency_factor.value
        ** float(extent(0.5, _MIXED_IN_FLIGHT, term.pattern is Pattern.RANDOM))
        for term in profile.mixed
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


@dataclass(frozen=True)
class ServedDrive:
    """A drive of the lab; no limit of `max_transfer_bytes` = 0, `facts` go to `lab.json`."""

    text: str
    power: PowerOptions
    model: str
    max_transfer_bytes: int
    facts: Mapping[str, Any] = field(default_factory=dict)


def simulated(name: str) -> ServedDrive:
    """A drive of the simulator; see `drives.find` for names and errors."""
    drive_file = drives.find(name)
    physical = drive_file.device.physical
    return ServedDrive(
        text=_core.drive_text(native(drive_file.device)),
        power=physical.power,
        model=drive_file.drive.title or name,
        max_transfer_bytes=physical.controller.max_transfer_bytes,
        facts={"preset": name},
    )


LEAST_LATENCY_NS = 4e6
"""What a small machine keeps to a few per cent, although its kernel and the daemon add some 0.1 ms
to every request."""
SLOW_DOWN_MAX = 1e5
UNLIMITED_BYTES = 1 << 20
"""Largest command where the profile knows no limit: that of FUSE."""
STAND_IN_CAPACITY_BYTES = 1 << 30
KEPT_SHARE = 1 / 8
"""Of the machine's memory, for what is written."""
_SUFFIX = " (rehearsal)"
_MODEL_CHARACTERS = 40  # of an NVMe model number


def find_profile(name: str) -> DeviceProfile:
    """A profile by file or shipped drive id. Raises InputError if it cannot be read."""
    if name in shipped_profiles() and not Path(name).exists():
        return load_shipped_profile(name)
    return read_profile(Path(name))


def rehearsal(profile: DeviceProfile, name: str, slow_down: float | None = None) -> ServedDrive:
    """The drive of a profile; `name` goes to `lab.json`.

    `slow_down` multiplies latencies; None: until the fastest lasts LEAST_LATENCY_NS. Raises
    LabError if the profile lacks what cannot be stood in for.
    """
    power = _power_of(profile)
    _check(slow_down)
    known = catalogued(profile.device)
    stand_ins = _stand_ins(profile)
    limit = profile.max_transfer_bytes
    limited = limit <= 1 << 27  # what measures nothing writes down a terabyte
    if not limited:
        stand_ins.append(f"largest command: not known; {UNLIMITED_BYTES} bytes")
    capacity = _capacity(profile, known, stand_ins)
    operational = _operational(profile, power, known, stand_ins)
    table = make_table(
        profile,
        limit if limited else UNLIMITED_BYTES,
        [state for state, works in enumerate(operational) if works],
    )
    factor = slow_down or _enough(table.fastest_latency_ns)
    states = _states(power, known, operational, factor)
    kept_bytes = int(KEPT_SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    if kept_bytes < capacity:
        stand_ins.append(f"data: {kept_bytes >> 20} MiB of them are kept, the rest reads as zeros")
    model = profile.model_name[: _MODEL_CHARACTERS - len(_SUFFIX)] + _SUFFIX
    return ServedDrive(
        text=table_text(
            table, profile, states, slow_down=factor, capacity_bytes=capacity, kept_bytes=kept_bytes
        ),
        power=PowerOptions(states=states),
        model=model,
        max_transfer_bytes=limit if limited else 0,
        facts={
            "rehearsal": {
                "profile": name,
                "device": profile.device,
                "slow_down": factor,
                "fastest_latency_ns": table.fastest_latency_ns * factor,
                "evaluated_for": {
                    field: profile.defaults[field]
                    for field in ("engine", "completion", "scheduler", "jobs")
                    if field in profile.defaults
                },
                "stand_ins": stand_ins,
            }
        },
    )


def _power_of(profile: DeviceProfile) -> DevicePower:
    missing = []
    if profile.device_power is None:
        missing.append("watts of the drive (device_power)")
    if not any(profile.surface(*surface) for surface in SURFACES):
        missing.append("performance (surfaces)")
    if missing or profile.device_power is None:
        raise LabError(
            f"{profile.device}: the profile has no {' and no '.join(missing)}, without which there "
            "is nothing to rehearse; measure the drive with a power sensor and fit again"
        )
    return profile.device_power


def _check(slow_down: float | None) -> None:
    if slow_down is not None and not 1 <= slow_down <= SLOW_DOWN_MAX:
        raise LabError(f"a slow-down of {slow_down:g} lies outside 1 to {SLOW_DOWN_MAX:g}")


def _enough(fastest_ns: float) -> float:
    """How many times slower, rounded up to two digits."""
    exact = max(LEAST_LATENCY_NS / fastest_ns, 1.0)
    unit = 10.0 ** max(math.floor(math.log10(exact)) - 1, -1)
    return round(math.ceil(exact / unit - 1e-9) * unit, 1)


def _stand_ins(profile: DeviceProfile) -> list[str]:
    """Where something else is taken for what the profile does not say."""
    stand_ins = []
    for operation, pattern in SURFACES:
        if profile.surface(operation, pattern) is not None:
            continue
        other = Pattern.RANDOM if pattern is Pattern.SEQUENTIAL else Pattern.SEQUENTIAL
        reverse = Operation.READ if operation is Operation.WRITE else Operation.WRITE
        for measured, way in ((operation, other), (reverse, pattern), (reverse, other)):
            if profile.surface(measured, way) is not None:
                stand_ins.append(f"{pattern} {operation}s: not measured; as {way} {measured}s")
                break
    known = {(effect.power_state, effect.operation) for effect in profile.power_state_effects}
    for state in operational_states(profile)[1:]:
        stand_ins += [
            f"{operation}s in PS{state}: not measured; as in PS0 below the state's cap"
            for operation in (Operation.READ, Operation.WRITE)
            if (state, operation) not in known
        ]
    stand_ins.append("flush and trim: not measured; as long as the fastest write")
    if profile.write_state is not None:
        stand_ins.append(
            "writes: as the purged drive takes them; no collecting, no work afterwards"
        )
    return stand_ins


def _capacity(profile: DeviceProfile, known: Drive | None, stand_ins: list[str]) -> int:
    capacity = profile.capacity_bytes
    for fact in known.facts if known is not None and capacity is None else ():
        if fact.metric == "capacity" and fact.unit == "bytes":
            capacity = int(fact.value)
    if capacity is None:
        capacity = STAND_IN_CAPACITY_BYTES
        stand_ins.append(f"capacity: not known; {capacity} bytes")
    return capacity // (8 * SECTOR_BYTES) * (8 * SECTOR_BYTES)


def _operational(
    profile: DeviceProfile, power: DevicePower, known: Drive | None, stand_ins: list[str]
) -> list[bool]:
    """Which of the power states serve requests."""
    count = min(len(power.cap_watts), len(power.idle_watts))
    declared = {state.index: state.operational for state in known.power_states} if known else {}
    fitted = operational_states(profile)
    operational = []
    for state in range(count):
        works = state in fitted or declared.get(state, False)
        if works and state not in fitted:
            stand_ins.append(f"PS{state}: not measured; as PS0 below the state's cap")
        operational.append(works)
    return operational


def _states(
    power: DevicePower, known: Drive | None, operational: list[bool], slow_down: float
) -> tuple[PowerState, ...]:
    """The table that the controller shows; entering and leaving are slowed down too."""
    declared = {state.index: state for state in known.power_states} if known else {}
    made = []
    for number, works in enumerate(operational):
        state = declared.get(number)
        entry_us = (state.entry_latency_us or 0) if state else 0
        exit_us = (state.exit_latency_us or 0) if state else 0
        made.append(
            PowerState(
                max_power_watts=power.cap_watts[number],
                operational=works,
                entry_latency_ns=round(entry_us * 1000 * slow_down),
                exit_latency_ns=round(exit_us * 1000 * slow_down),
                idle_power_watts=power.idle_watts[number].value,
            )
        )
    return tuple(made)
