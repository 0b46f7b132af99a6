"""What the host's settings do to core time, latency and power.

With f the frequency, f0 that of the reference, and V the voltage over its value at f0,

    core time   = reference x (m + (1 - m) f0 / f)
    busy core   = reference x (s V + (1 - s) (f / f0) V^2)
    package     = reference x (1 - u + u x what a busy core does)

m is the share that waits for memory, s the share that leaks, u the share of an awake package that
follows the cores' clock; V falls in a line from 1 at f0 to a
floor at the lowest frequency. Switching power goes as f V^2 (Chandrakasan, Sheng and Brodersen,
IEEE JSSC 27(4), 1992), leakage current is taken as constant.

A sleeping core draws what its sleep state does, and sleeps as deep as the time until it is woken
and the limit allow. A job on another NUMA node than the drive pays core time and latency for every
request, and keeps a second package awake.

`HostPaths` holds what each engine, completion, polling and scheduler costs a request.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import (
    Clock,
    DeviceProfile,
    HostOperation,
    HostPath,
    IdleState,
    NumaCost,
    Parameter,
    path_key,
)
from iojoule.datasets.vocabulary import BYPASSING_ENGINES, Engine, Evidence
from iojoule.model.evaluate.bands import Codes, Floats
from iojoule.model.evaluate.columns import (
    CSTATE,
    DEVICE_NODE,
    FREQUENCY,
    GOVERNOR,
    GOVERNORS,
    JOB_NODE,
    REST,
    TURBO,
)
from iojoule.model.evaluate.frame import COMPLETIONS, ENGINES, SCHEDULERS, Frame
from iojoule.model.evaluate.quantities import NORMAL_90

DYNAMIC = frozenset({"ondemand", "conservative", "schedutil"})
"""Governors that follow the load; `powersave` is one of them with intel_pstate and amd_pstate."""

TARGET_BUSY = 0.8
"""Such a governor settles where a core is busy for this share: schedutil asks for 1.25 x load
(Documentation/scheduler/schedutil.rst), ondemand raises from 80 % on."""

MOST_OF_LATENCY = 0.7
"""Lighter sleep takes away no more than this share of what the host adds to a request."""

GAP_SHAPE = 4
"""Idle gaps of a core are gamma distributed with this shape: their sd is half their mean, between
the regular gaps of a closed loop and those of arrivals at random. Of 1 to 8, the CPU power of
sequential writes (000, 5.4 a) is fitted better the larger it is, from 2 on by little."""

_CODE = {evidence: code for code, evidence in enumerate(Evidence)}
_INTERPOLATED = _CODE[Evidence.INTERPOLATED]


@dataclass(frozen=True)
class OperatingPoint:
    """Effect of the host's settings on n questions; every array has shape (n,).

    Attributes:
        settings: As asked, shape (n, 8).
        hertz: Frequency of a busy core; NaN without a clock.
        core_factor: On the core time of a request.
        core_sd: Log sd of that.
        remote: Share of the requests that cross to the drive's NUMA node: 0, 1, or 0.5 where it
            is not known.
        remote_core_ns: Core time added to a request.
        remote_latency_ns: Added to an unloaded request.
        exit_latency_ns: Of the sleep states, against the reference: at most 0.
        busy_watts_factor: On the power of a busy core.
        busy_watts_sd: Relative sd of that.
        evidence: Code of what the effects rest on; 0 where nothing was said.
    """

    operation: HostOperation
    settings: Floats
    hertz: Floats
    core_factor: Floats
    core_sd: Floats
    remote: Floats
    remote_core_ns: Floats
    remote_latency_ns: Floats
    exit_latency_ns: Floats
    busy_watts_factor: Floats
    busy_watts_sd: Floats
    evidence: Codes

    @property
    def follows_load(self) -> bool:
        """Whether the load must be known first: a governor follows it, or sleep depends on it."""
        return bool(
            _dynamic(self.operation, self.settings).any()
            or np.isfinite(self.settings[:, CSTATE]).any()
        )

    def at_load(self, load: Load) -> OperatingPoint:
        """The point once the load is known."""
        point = self
        clock = self.operation.clock
        dynamic = _dynamic(self.operation, self.settings)
        if clock is not None and dynamic.any():
            share = np.clip(load.busy_cores / np.maximum(load.serving_cores, 1e-9), 0.0, 1.0)
            least = np.minimum(clock.minimum_hertz.value, self.hertz)
            settled = np.clip(share / TARGET_BUSY * self.hertz, least, self.hertz)
            # waiting for I/O may count as load or not: anything between is possible
            spread = np.where(dynamic, np.log(self.hertz / settled), 0.0)
            hertz = self.hertz * np.exp(-0.5 * spread)
            point = _at_frequency(point, clock, hertz, 0.5 * spread / NORMAL_90)
        if self.operation.idle_states:
            point = replace(point, exit_latency_ns=_exit_change(point, load))
        return point

    def core_ns(self, reference_ns: Floats) -> Floats:
        """Core time of a request."""
        return reference_ns * self.core_factor + self.remote_core_ns

    def added_latency_ns(self, reference_ns: Floats) -> Floats:
        """What the host adds to an unloaded request."""
        slept = np.maximum(self.exit_latency_ns, -MOST_OF_LATENCY * reference_ns)
        return reference_ns * self.core_factor + slept + self.remote_latency_ns

    def log_sd(self, core_ns: Floats) -> Floats:
        """Log sd of the host's part of a request."""
        guess = np.where(self.remote == 0.5, 0.5, 0.0) * 2.0 * self.remote_core_ns
        numa = self.operation.numa
        cost_sd = numa.core_time_ns.sd * self.remote if numa is not None else 0.0
        return np.asarray(
            np.hypot(self.core_sd, np.hypot(guess, cost_sd) / np.maximum(core_ns, 1.0))
        )

    def uncore_factor(self) -> tuple[Floats, Floats]:
        """On the power of an awake package, and its relative sd."""
        clock = self.operation.clock
        if clock is None:
            return self.busy_watts_factor, self.busy_watts_sd
        share = clock.uncore_share
        value = 1.0 - share.value + share.value * self.busy_watts_factor
        own = share.sd * np.abs(1.0 - self.busy_watts_factor)
        led = share.value * self.busy_watts_factor * self.busy_watts_sd
        return value, np.hypot(own, led) / value

    def floor_watts(self, load: Load, cores: float) -> tuple[Floats, Floats]:
        """Watts beyond the law's, whatever its parameters, and their sd."""
        states = self.operation.idle_states
        value, variance = np.zeros(len(self.remote)), np.zeros(len(self.remote))
        if states and np.isfinite(self.settings[:, CSTATE]).any():
            watts = np.array([state.core_watts.value for state in states])
            sds = np.array([state.core_watts.sd for state in states])
            deepest = _limit(self, len(states))
            idle = np.maximum(cores - load.serving_cores, 0.0)
            longer = _held_back(states, load, deepest)
            value += idle * watts[deepest] + longer @ watts
            moved = np.where(deepest < len(states) - 1, idle, 0.0)
            variance += (moved * sds[deepest]) ** 2 + longer**2 @ sds**2
        numa = self.operation.numa
        if numa is not None and self.remote.any():
            awake = load.package_awake * self.remote
            value += numa.awake_watts.value * awake
            guess = np.where(self.remote == 0.5, numa.awake_watts.value * awake, 0.0)
            variance += (numa.awake_watts.sd * awake) ** 2 + guess**2
        return value, np.sqrt(variance)


@dataclass(frozen=True)
class Load:
    """What the requests make of the cores; every array has shape (n,).

    Attributes:
        busy_cores: Cores' worth of time spent on I/O, spinning included.
        serving_cores: Cores that serve jobs, and those of the kernel's polling threads.
        awake_cores: Cores out of their deep sleep state, in the mean.
        wakeups_per_second: How often a sleeping core is woken.
        package_awake: Share of the time in which at least one core is out of deep sleep.
        package_active: Share of the time in which some core is not even in shallow sleep.
        awake_cores_slope: Derivative of `awake_cores` by the log of the gap that deep sleep needs.
        package_awake_slope: Of `package_awake`, likewise.
        package_active_slope: Of `package_active`, by the log of the gap of shallow sleep.
    """

    busy_cores: Floats
    serving_cores: Floats
    awake_cores: Floats
    wakeups_per_second: Floats
    package_awake: Floats
    package_active: Floats
    awake_cores_slope: Floats
    package_awake_slope: Floats
    package_active_slope: Floats

    @property
    def gap_ns(self) -> Floats:
        """Time that a serving core sleeps at a stretch."""
        asleep = np.maximum(self.serving_cores - self.busy_cores, 0.0)
        return np.asarray(asleep * 1e9 / np.maximum(self.wakeups_per_second, 1e-3))


def operating_point(operation: HostOperation | None, settings: Floats) -> OperatingPoint | None:
    """Effect of the settings; None where nothing is said, or nothing that costs anything.

    Settings must have passed `host_settings.check`.
    """
    if operation is None or not np.isfinite(settings[:, : REST[0]]).any():
        return None
    rows = len(settings)
    zero, ones = np.zeros(rows), np.ones(rows)
    point = OperatingPoint(
        operation=operation,
        settings=settings,
        hertz=np.full(rows, np.nan),
        core_factor=ones,
        core_sd=zero,
        remote=zero,
        remote_core_ns=zero,
        remote_latency_ns=zero,
        exit_latency_ns=zero,
        busy_watts_factor=ones,
        busy_watts_sd=zero,
        evidence=np.zeros(rows, dtype=np.intp),
    )
    clock = operation.clock
    used = np.asarray(np.isfinite(settings[:, [GOVERNOR, FREQUENCY, TURBO]]).any(axis=1))
    if clock is not None and used.any():
        point = _at_frequency(point, clock, _highest(clock, settings), zero)
        point = _resting_on(point, used, (clock.reference_hertz, clock.static_share))
    if operation.idle_states and np.isfinite(settings[:, CSTATE]).any():
        core_watts = tuple(state.core_watts for state in operation.idle_states)
        point = _resting_on(point, np.isfinite(settings[:, CSTATE]), core_watts)
    if operation.numa is not None:
        point = _across_nodes(point, operation.numa)
    return point


def _highest(clock: Clock, settings: Floats) -> Floats:
    """Frequency of a busy core that nothing but the settings hold back."""
    reference = clock.reference_hertz.value
    top = np.where(settings[:, TURBO] == 0, min(clock.base_hertz.value, reference), reference)
    top = np.fmin(top, settings[:, FREQUENCY])
    slow = (settings[:, GOVERNOR] == GOVERNORS.index("powersave")) & (
        clock.powersave_is_dynamic is False
    )
    return np.where(slow, np.minimum(clock.minimum_hertz.value, top), top)


def _dynamic(operation: HostOperation, settings: Floats) -> NDArray[np.bool_]:
    clock = operation.clock
    names = set(DYNAMIC)
    if clock is not None and clock.powersave_is_dynamic is not False:
        names.add("powersave")
    return np.isin(settings[:, GOVERNOR], [GOVERNORS.index(name) for name in sorted(names)])


def _at_frequency(
    point: OperatingPoint, clock: Clock, hertz: Floats, log_sd: Floats
) -> OperatingPoint:
    ratio = hertz / clock.reference_hertz.value
    away = np.abs(np.log(ratio)) > 1e-9
    # how fast the reference was matters only to those who leave it
    unsure = np.hypot(log_sd, away * clock.reference_hertz.sd / clock.reference_hertz.value)
    memory = clock.memory_share
    factor = memory.value + (1.0 - memory.value) / ratio
    waiting = memory.sd * np.abs(1.0 - 1.0 / ratio)
    power, power_sd = busy_watts_factor(clock, ratio)
    steeper, _ = busy_watts_factor(clock, ratio * 1.01)
    elasticity = np.log(steeper / power) / np.log(1.01)
    return replace(
        point,
        hertz=hertz,
        core_factor=factor,
        core_sd=np.hypot(waiting / factor, unsure * (1.0 - memory.value) / ratio / factor),
        busy_watts_factor=power,
        busy_watts_sd=np.hypot(power_sd / power, unsure * elasticity),
    )


def busy_watts_factor(clock: Clock, ratio: Floats) -> tuple[Floats, Floats]:
    """Power of a busy core at `ratio` times the reference frequency, relative, and its sd."""
    lowest = min(clock.minimum_hertz.value / clock.reference_hertz.value, 0.999)
    climb = np.maximum((ratio - lowest) / (1.0 - lowest), 0.0)
    static, floor = clock.static_share, clock.voltage_floor
    voltage = floor.value + (1.0 - floor.value) * climb
    value = static.value * voltage + (1.0 - static.value) * ratio * voltage**2
    by_static = voltage - ratio * voltage**2
    by_voltage = static.value + 2.0 * (1.0 - static.value) * ratio * voltage
    sd = np.hypot(static.sd * by_static, floor.sd * (1.0 - climb) * by_voltage)
    return value, sd


def _across_nodes(point: OperatingPoint, numa: NumaCost) -> OperatingPoint:
    job, drive = point.settings[:, JOB_NODE], point.settings[:, DEVICE_NODE]
    pinned = np.isfinite(job)
    if not pinned.any():
        return point
    remote = np.where(pinned, np.where(np.isfinite(drive), job != drive, 0.5), 0.0)
    moved = replace(
        point,
        remote=remote,
        remote_core_ns=remote * numa.core_time_ns.value,
        remote_latency_ns=remote * numa.added_latency_ns.value,
    )
    return _resting_on(moved, remote > 0, (numa.core_time_ns, numa.added_latency_ns))


def _resting_on(
    point: OperatingPoint, used: NDArray[np.bool_], on: tuple[Parameter, ...]
) -> OperatingPoint:
    """Lower the evidence of the rows that use these parameters; nobody measured those rows."""
    code = max([_INTERPOLATED, *(_CODE[parameter.evidence] for parameter in on)])
    return replace(point, evidence=np.where(used, np.maximum(point.evidence, code), point.evidence))


def _limit(point: OperatingPoint, states: int) -> Codes:
    """Deepest state that each row allows."""
    stated = np.nan_to_num(point.settings[:, CSTATE], nan=states - 1)
    return np.minimum(stated, states - 1).astype(np.intp)


def in_gaps_beyond(ratio: Floats) -> tuple[Floats, Floats]:
    """Share of the idle time in gaps longer than `ratio` mean gaps, and its fall by log(ratio)."""
    scaled = np.minimum(GAP_SHAPE * ratio, 700.0)
    term = np.exp(-scaled)
    total = term.copy()
    for order in range(1, GAP_SHAPE + 1):
        term = term * scaled / order
        total += term
    return total, scaled * term


def _held_back(states: list[IdleState], load: Load, deepest: Codes) -> Floats:
    """Cores' worth of time more in each idle state because of a limit, shape (n, states).

    Less in the states that the limit forbids. How long serving cores are in the deepest one says
    the law of CPU power, which counts them as asleep; the rest of their idle time is in the deepest
    that pays for a gap, and the gaps of a load differ.
    """
    waiting = np.maximum(load.serving_cores - load.busy_cores, 0.0)
    asleep = np.clip(load.serving_cores - load.awake_cores, 0.0, waiting)
    residency = np.array([state.residency_ns.value for state in states])
    share, _ = in_gaps_beyond(residency / np.maximum(load.gap_ns, 1e-9)[:, np.newaxis])
    beyond = np.maximum(waiting[:, np.newaxis] * share, asleep[:, np.newaxis])
    beyond[:, -1] = asleep
    longer = np.where(np.arange(len(states)) > deepest[:, np.newaxis], -beyond, 0.0)
    longer[:, :-1] -= longer[:, 1:]
    return longer


def _depth(states: list[IdleState], gap_ns: Floats, deepest: Codes) -> Codes:
    """The state that a core chooses for a gap: the deepest that pays and is allowed."""
    residency = np.array([state.residency_ns.value for state in states])
    paying = np.searchsorted(residency, gap_ns, side="right") - 1
    return np.minimum(np.maximum(paying, 0), deepest)


def _exit_change(point: OperatingPoint, load: Load) -> Floats:
    """Wake-up latency of a request, against a host without a limit; ns, at most 0."""
    states = point.operation.idle_states
    exits = np.array([state.exit_latency_ns.value for state in states])
    deepest = np.full(len(point.remote), len(states) - 1)
    free = _depth(states, load.gap_ns, deepest)
    held = _depth(states, load.gap_ns, _limit(point, len(states)))
    # whoever polls is never woken
    return np.where(load.wakeups_per_second > 0, exits[held] - exits[free], 0.0)


@dataclass(frozen=True)
class HostPaths:
    """Costs by path code (see `code_of`); NaN where the combination is impossible.

    Attributes:
        added_latency_ns: Added to an unloaded request.
        core_ns: Core time a request at depth.
        wakeup_ns: Further core time at depth 1.
        serial_ns: Part of a request under one lock of the scheduler; at least a picosecond.
        relative_sd: Uncertainty of these, log units.
        measured: Whether this drive was measured on this path.
        keys: Name of the path (`path_key`), empty where impossible.
    """

    added_latency_ns: Floats
    core_ns: Floats
    wakeup_ns: Floats
    serial_ns: Floats
    relative_sd: Floats
    measured: NDArray[np.bool_]
    keys: list[str]


def code_of(frame: Frame) -> Codes:
    """Path code of each row."""
    return (
        (frame.engine * 2 + frame.completion) * 2 + frame.submission_polling.astype(np.intp)
    ) * len(SCHEDULERS) + frame.scheduler


def host_paths(profile: DeviceProfile) -> HostPaths:
    """Lay the profile's host paths out by code."""
    size = len(ENGINES) * 4 * len(SCHEDULERS)
    cost = np.full((5, size), np.nan)
    measured = np.zeros(size, dtype=bool)
    keys = [""] * size
    schedulers = {cost.scheduler.value: cost for cost in profile.host.schedulers}
    for path in profile.host.paths:
        for name in SCHEDULERS:
            extra = schedulers.get(name)
            if name != "none" and (extra is None or Engine(path.engine) in BYPASSING_ENGINES):
                continue
            code = _code(path, name)
            keys[code] = path_key(path.engine, path.completion, path.submission_polling, name)
            serial = 1e-3
            added, core, sd = path.added_latency_ns, path.core_time_ns, path.relative_sd
            measured[code] = path.evidence == Evidence.MEASURED
            if extra is not None and name != "none":
                added += extra.added_latency_ns
                core += extra.added_core_time_ns
                serial = max(extra.serial_ns, serial)
                sd = float(np.hypot(sd, extra.relative_sd))
                measured[code] &= extra.evidence == Evidence.MEASURED
            cost[:, code] = added, core, path.wakeup_ns, serial, sd
    return HostPaths(
        added_latency_ns=cost[0],
        core_ns=cost[1],
        wakeup_ns=cost[2],
        serial_ns=cost[3],
        relative_sd=cost[4],
        measured=measured,
        keys=keys,
    )


def _code(path: HostPath, scheduler: str) -> int:
    engine = ENGINES.index(path.engine)
    completion = COMPLETIONS.index(path.completion)
    return ((engine * 2 + completion) * 2 + int(path.submission_polling)) * len(
        SCHEDULERS
    ) + SCHEDULERS.index(scheduler)
