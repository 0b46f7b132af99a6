"""How sure watts and savings are: gradients by the profile's parameters.

Two configurations of one drive share its parameters, so the error of their difference is not
the sum of their errors: with gradients g1, g2 by the common parameters (covariance C),

    var(P1 - P2) = (g1 - g2)' C (g1 - g2) + what each has of its own.

Common are the parameters of the power laws, idle power and the behaviour under a cap by power
state, what this specimen of the drive does differently, a performance surface that rests on one
published figure, and the supply's losses.
A configuration's own are the error of its throughput and the lack of fit of the power law; they
cancel only against the same configuration.

How much of a throughput's error all configurations of a workload share.

Where a surface was learned from many measurements, its errors are local: two configurations err
each by itself. Where it rests on one figure, or on another pattern's surface, it is off as a
whole: by its ceiling where the drive is saturated, by its unloaded latency where it is not. What a
configuration errs beyond the first one (today's), because it is extrapolated further, stays its
own. How far a configuration is saturated is the elasticity of latency by the requests in flight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from iojoule.datasets.profile import DeviceProfile
from iojoule.model.evaluate import device_power, host_power, linear_law, system_power
from iojoule.model.evaluate.bands import Floats
from iojoule.model.evaluate.device_state import DeviceState
from iojoule.model.evaluate.equal_work import (
    Watts,
    Work,
    cpu_by_speed,
    gap_levels,
    host_load,
    unlimited_watts,
    watts_of,
)
from iojoule.model.evaluate.frame import PATTERNS, Frame
from iojoule.model.evaluate.loaded_surface import BORROWED_SD
from iojoule.model.evaluate.operating_point import code_of
from iojoule.model.evaluate.prediction import Prediction
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.quantities import NORMAL_90

FEW_ROWS = 128


class Layout:
    """Positions of the common parameters and their covariance, built once from a profile."""

    def __init__(self, profile: DeviceProfile) -> None:
        self.profile = profile
        self.state = DeviceState(profile)
        device, host, system = profile.device_power, profile.host_power, profile.system_power
        self.states = len(device.idle_watts) if device else 0
        sizes = {
            "device": 6,
            "idle": self.states,
            "cap": self.states,
            "specimen": 1,
            "background": 1,
            "speed": 3,
            "cpu": len(host_power.PARAMETERS),
            "system": 4,
        }
        ends = np.cumsum(list(sizes.values()))
        self.at = {
            name: slice(int(end) - size, int(end))
            for (name, size), end in zip(sizes.items(), ends, strict=True)
        }
        self.size = int(ends[-1])
        self.covariance = np.eye(self.size)
        if device is not None:
            self._set("device", np.array(device.covariance))
            self._set("idle", np.diag([p.sd**2 for p in device.idle_watts]))
        if host is not None:
            self._set("cpu", host_power.covariance(host))
        if system is not None:
            block = np.eye(4)
            block[:3, :3] = system_power.covariance(system)
            self._set("system", block)

    def block(self, name: str) -> Floats:
        """Covariance of one group of parameters."""
        return self.covariance[self.at[name], self.at[name]]

    def variances(self, common: Floats) -> Floats:
        """Variance from the common parameters, shape (n,), of gradients of shape (n, size)."""
        if len(common) > FEW_ROWS:  # then skipping the zeros of the covariance pays
            return linear_law.variances(common, self.covariance)
        return np.asarray(((common @ self.covariance) * common).sum(axis=1))

    def _set(self, name: str, block: Floats) -> None:
        self.covariance[self.at[name], self.at[name]] = block


@dataclass(frozen=True)
class Gradients:
    """Gradients of one power (drive, CPU, their sum, whole system) of n configurations.

    Attributes:
        watts: The power itself, W.
        common: By the common parameters, shape (n, layout.size).
        own_speed: By the log capacity, own part only, times its sd; W.
        own_fit: Lack of fit of the power law; W.
    """

    watts: Floats
    common: Floats
    own_speed: Floats
    own_fit: Floats

    def plus(self, other: Gradients) -> Gradients:
        """The sum of two powers of the same configurations."""
        return Gradients(
            self.watts + other.watts,
            self.common + other.common,
            self.own_speed + other.own_speed,
            np.hypot(self.own_fit, other.own_fit),
        )

    def times(self, count: int) -> Gradients:
        """The power of so many that serve alike."""
        return Gradients(
            count * self.watts, count * self.common, count * self.own_speed, count * self.own_fit
        )

    def sd(self, layout: Layout, widening: Floats | float = 1.0) -> Floats:
        """Standard deviation of each power, W; `widening` is a factor on its own part."""
        spread = layout.variances(self.common)
        own = (self.own_speed**2 + self.own_fit**2) * np.square(widening)
        total = np.sqrt(np.maximum(spread, 0.0) + own)
        return np.asarray(np.minimum(total, device_power.MOST_RELATIVE_SD * self.watts))


def device_gradients(
    layout: Layout,
    frame: Frame,
    prediction: Prediction,
    work: Work,
    watts: Floats | None,
    rest: float,
) -> Gradients | None:
    """Gradients of the drive's mean power."""
    power = layout.profile.device_power
    levels = gap_levels(layout.profile, frame, prediction, work, rest)
    if power is None or levels is None or watts is None:
        return None
    gap, resting = levels
    rows = np.arange(len(frame))
    x = prediction.activity.device_x
    active, most = unlimited_watts(layout.profile, frame, prediction)
    limited = work.busy * active + (1.0 - work.busy) * gap >= most
    factor, factor_sd = prediction.activity.watts_factor, prediction.activity.watts_factor_sd
    # where runs nearby showed the power, the law's parameters no longer make it unsure
    seen = np.isfinite(factor_sd)
    common = np.zeros((len(frame), layout.size))
    common[:, layout.at["device"]] = np.where(seen, 0.0, work.busy)[:, None] * x
    awake_factor = prediction.activity.awake_factor
    common[:, layout.at["device"].start] += awake_factor * (1.0 - work.busy) * (1.0 - resting)
    common[rows, layout.at["idle"].start + frame.power_state] = (1.0 - work.busy) * resting
    low = (frame.power_state > 0) & ~seen
    active = np.where(limited, most, active)
    # how far a lower state's watts are from the law, while it serves and between requests
    serving = device_power.state_sd_watts(power, frame.power_state, x[:, 5], active)
    waiting = device_power.state_sd_watts(power, frame.power_state, np.zeros(len(frame)), gap)
    common[rows, layout.at["cap"].start + frame.power_state] = (
        low * work.busy * serving + (1.0 - work.busy) * (1.0 - resting) * waiting
    )
    between = layout.profile.between_drives_relative_sd.value
    common[:, layout.at["specimen"].start] = between * work.busy * active
    later, later_sd = layout.state.joules_per_byte(frame)
    common[:, layout.at["background"].start] = work.background * later_sd
    # served work is held, so only the part of active power that does not follow it counts
    fixed = factor * device_power.fixed_watts(power, x, frame.power_state)
    u, s = work.busy, work.elasticity
    by_speed = u * (s - 1.0) * (fixed - gap) + s * u * (active - fixed)
    by_speed = np.where(limited, 0.0, by_speed) + s * later * work.background
    common[:, layout.at["speed"]] = by_speed[:, None] * _shared_log_sd(work, between)
    lack = np.where(seen, factor_sd, power.relative_sd) * u * active
    return Gradients(watts, common, by_speed * _own_log_sd(work, between), lack)


def cpu_gradients(
    layout: Layout, frame: Frame, prediction: Prediction, work: Work, watts: Floats | None
) -> Gradients | None:
    """Gradients of mean CPU power."""
    power = layout.profile.host_power
    if power is None or watts is None:
        return None
    load, drawn = host_load(layout.profile, frame, prediction, work)
    common = np.zeros((len(frame), layout.size))
    slopes = host_power.gradients(power, load, drawn)
    common[:, layout.at["cpu"]] = slopes
    between = layout.profile.between_drives_relative_sd.value
    by_speed = cpu_by_speed(layout.profile, frame, prediction, work)
    common[:, layout.at["speed"]] = by_speed[:, None] * _shared_log_sd(work, between)
    unsure = prediction.activity.costs.busy_log_sd
    lack = host_power.own_sd(power, slopes, watts, drawn, unsure)
    return Gradients(watts, common, by_speed * _own_log_sd(work, between), lack)


def system_gradients(layout: Layout, parts: Gradients, wall: Floats | None) -> Gradients | None:
    """Gradients of the power at the wall from those of drive and CPU together."""
    power = layout.profile.system_power
    if power is None or wall is None:
        return None
    slope = system_power.slope(power, parts.watts)
    common = slope[:, None] * parts.common
    common[:, layout.at["system"]] = np.column_stack(
        [system_power.regressors(parts.watts), power.relative_sd * wall]
    )
    return Gradients(wall, common, slope * parts.own_speed, slope * parts.own_fit)


def all_gradients(
    layout: Layout, frame: Frame, prediction: Prediction, work: Work, watts: Watts, rest: float
) -> dict[str, Gradients]:
    """Gradients by scope, of the scopes whose power is known."""
    device = device_gradients(layout, frame, prediction, work, watts.device, rest)
    cpu = cpu_gradients(layout, frame, prediction, work, watts.cpu)
    return by_scope(layout, device, cpu, watts.system)


def by_scope(
    layout: Layout, device: Gradients | None, cpu: Gradients | None, wall: Floats | None
) -> dict[str, Gradients]:
    """Gradients of drive, CPU, both together and the whole system, as far as they are known.

    Args:
        layout: The common parameters.
        device: Of the drive.
        cpu: Of the CPU.
        wall: Power at the wall, W.
    """
    gradients: dict[str, Gradients] = {}
    if device is not None:
        gradients["device"] = device
    if cpu is not None:
        gradients["cpu"] = cpu
    if device is not None and cpu is not None:
        gradients["device_cpu"] = device.plus(cpu)
        system = system_gradients(layout, gradients["device_cpu"], wall)
        if system is not None:
            gradients["system"] = system
    return gradients


def idle_gradients(
    layout: Layout, frame: Frame, prediction: Prediction, work: Work, rest: float
) -> dict[str, Gradients]:
    """Gradients by scope of what is drawn without any work; `rest` as in `Demand`.

    Where requests never leave time to rest, time that a faster configuration gains is no rest.
    """
    zero = np.zeros(len(frame))
    nothing = replace(
        work,
        busy=zero,
        elasticity=zero,
        requests=zero,
        host_writes=zero,
        background=zero,
        gap_seconds=zero,
        flushing=zero,
    )
    watts = watts_of(layout.profile, frame, prediction, nothing, rest)
    return all_gradients(layout, frame, prediction, nothing, watts, rest)


@dataclass(frozen=True)
class Energies:
    """Energy of n configurations for a useful byte, above what is drawn without work.

    Of two configurations that do the same work in the same time, the faster one has time left,
    in which it draws idle power that nothing switches off. So energies are compared above today's
    idle power; where the demand sets the rate, that is the difference of the powers.

    Attributes:
        joules_per_byte: (P - P_idle) / served, shape (n,).
        common: Their gradients by the common parameters, shape (n, layout.size).
        speed: By the own part of the log speed, times its sd.
        fit: Lack of fit of the power law.
        served: Useful bytes a second.
        idle: Idle power that is taken off, W.
        gross: P / served, idle power included.
        gross_common: Relative gradients of that; `gross_speed` and `gross_fit` likewise.
        gross_speed: By the own part of the log speed.
        gross_fit: Lack of fit.
    """

    joules_per_byte: Floats
    common: Floats
    speed: Floats
    fit: Floats
    served: Floats
    idle: float
    gross: Floats
    gross_common: Floats
    gross_speed: Floats
    gross_fit: Floats


def energies(layout: Layout, power: Gradients, idle: Gradients, work: Work, today: int) -> Energies:
    """Energies of rows above the idle power of the row `today`.

    Args:
        layout: The common parameters.
        power: Gradients of the scope's power.
        idle: Gradients of what is drawn without work.
        work: What the rows do.
        today: The row whose idle power counts.
    """
    between = layout.profile.between_drives_relative_sd.value
    served, floor = work.served_bytes, float(idle.watts[today])
    net = (power.watts - floor) / served
    shared = work.elasticity[:, None] * _shared_log_sd(work, between)
    common = (power.common - idle.common[today]) / served[:, None]
    common[:, layout.at["speed"]] -= net[:, None] * shared
    speed = power.own_speed / served - net * _own_log_sd(work, between) * work.elasticity
    return Energies(
        net,
        common,
        speed,
        power.own_fit / served,
        served,
        floor,
        power.watts / served,
        *_relative(layout, power, work),
    )


@dataclass(frozen=True)
class Contrast:
    """A configuration against others for equal work; shape (m,) each, values and their sds.

    Attributes:
        joules_per_byte: Energy for a useful byte of the first less that of the others.
        watts: The same at the rate of the first.
        percent: The same as a share of what the first draws, idle power included.
    """

    joules_per_byte: tuple[Floats, Floats]
    watts: tuple[Floats, Floats]
    percent: tuple[Floats, Floats]


def contrast(
    layout: Layout,
    energies_of_rows: Energies,
    today: int,
    others: Sequence[int],
    widening: float = 1.0,
) -> Contrast:
    """Compare row `today` with others.

    Args:
        layout: The common parameters.
        energies_of_rows: Energies of the rows.
        today: The one.
        others: The others.
        widening: Factor on what the others err by themselves (`recommender.rows.WIDENING`).
    """
    rows = np.asarray(others, dtype=np.intp)
    value = energies_of_rows.joules_per_byte[today] - energies_of_rows.joules_per_byte[rows]
    gross = energies_of_rows.gross[today]
    share = value / gross
    common = energies_of_rows.common[today] - energies_of_rows.common[rows]
    relative = common / gross - share[:, None] * energies_of_rows.gross_common[today]

    def sd(common: Floats, first: tuple[Floats, Floats], scale: float) -> Floats:
        """From the common parameters, and what the first and the others err by themselves."""
        spread = np.maximum(layout.variances(common), 0.0)
        own = (energies_of_rows.speed[rows] ** 2 + energies_of_rows.fit[rows] ** 2) * (
            widening * scale
        ) ** 2
        return np.asarray(np.sqrt(spread + own + first[0] ** 2 + first[1] ** 2))

    ones = np.ones(len(rows))
    alone = (energies_of_rows.speed[today] * ones, energies_of_rows.fit[today] * ones)
    # today's energy is also what the percentage is a share of
    beside = (
        energies_of_rows.speed[today] / gross - share * energies_of_rows.gross_speed[today],
        energies_of_rows.fit[today] / gross - share * energies_of_rows.gross_fit[today],
    )
    value_sd, share_sd = sd(common, alone, 1.0), sd(relative, beside, 1.0 / gross)
    # the faster one's time that is left counts as idle on both sides
    left = np.maximum(
        1.0 / energies_of_rows.served[rows] - 1.0 / energies_of_rows.served[today], 0.0
    )
    scale = 100.0 * gross / (gross + energies_of_rows.idle * left)
    rate = energies_of_rows.served[today]
    return Contrast(
        (value, value_sd), (value * rate, value_sd * rate), (share * scale, share_sd * scale)
    )


@dataclass(frozen=True)
class Sums:
    """Weighted sums of the energies of rows, with their standard deviations; shape (m,) each.

    Attributes:
        joules_per_byte: The sums.
        joules_per_byte_sd: What they err.
        percent: As shares of the energy of a row, idle power included, percent.
        percent_sd: What these err.
    """

    joules_per_byte: Floats
    joules_per_byte_sd: Floats
    percent: Floats
    percent_sd: Floats


def sums(
    layout: Layout,
    energies_of_rows: Energies,
    weights: Floats,
    base: int,
    widening: Floats | float = 1.0,
) -> Sums:
    """Sum the rows' energies per useful byte; what rows err in common cancels as it should.

    Args:
        layout: The common parameters.
        energies_of_rows: Energies of the rows.
        weights: Shape (m, n); each row adds up to zero.
        base: The row of whose energy the sums are shares.
        widening: Factor on what each row errs by itself, shape (n,).
    """
    value = weights @ energies_of_rows.joules_per_byte
    share = value / energies_of_rows.gross[base]

    def sd(common: Floats, speed: Floats, fit: Floats) -> Floats:
        spread = np.maximum(layout.variances(common), 0.0)
        own = ((speed**2 + fit**2) * np.square(widening)).sum(axis=1)
        return np.asarray(np.sqrt(spread + own))

    absolute = (
        weights @ energies_of_rows.common,
        weights * energies_of_rows.speed,
        weights * energies_of_rows.fit,
    )
    relative = [part / energies_of_rows.gross[base] for part in absolute]
    # the base errs too
    relative[0] = relative[0] - share[:, None] * energies_of_rows.gross_common[base]
    relative[1][:, base] -= share * energies_of_rows.gross_speed[base]
    relative[2][:, base] -= share * energies_of_rows.gross_fit[base]
    return Sums(value, sd(*absolute), 100.0 * share, 100.0 * sd(*relative))


def _relative(layout: Layout, power: Gradients, work: Work) -> tuple[Floats, Floats, Floats]:
    """Relative gradients of the energy per byte, P / served."""
    between = layout.profile.between_drives_relative_sd.value
    common = power.common / power.watts[:, None]
    common[:, layout.at["speed"]] -= work.elasticity[:, None] * _shared_log_sd(work, between)
    speed = power.own_speed / power.watts - _own_log_sd(work, between) * work.elasticity
    return common, speed, power.own_fit / power.watts


def relative_errors(
    layout: Layout,
    power: Gradients,
    work: Work,
    rows: Sequence[int],
    widening: Floats | float = 1.0,
) -> Floats:
    """Covariance of what the energies per useful byte of some rows err, relative, shape (k, k).

    Args:
        layout: The common parameters.
        power: Gradients of the scope's power.
        work: What all rows do.
        rows: The k rows.
        widening: Factor on what each of them errs by itself, shape (k,).
    """
    common, speed, fit = (part[list(rows)] for part in _relative(layout, power, work))
    own = (speed**2 + fit**2) * np.square(widening)
    return np.asarray(common @ layout.covariance @ common.T + np.diag(own))


def energy_sd(
    layout: Layout, power: Gradients, work: Work, widening: Floats | float = 1.0
) -> Floats:
    """Relative sd of the energy for a unit of work, each row by itself.

    Args:
        layout: The common parameters.
        power: Gradients of the scope's power.
        work: What the rows do.
        widening: Factor on what each row errs by itself, shape (n,).
    """
    common, speed, fit = _relative(layout, power, work)
    spread = layout.variances(common)
    own = (speed**2 + fit**2) * np.square(widening)
    total = np.sqrt(np.maximum(spread, 0.0) + own)
    return np.asarray(np.minimum(total, device_power.MOST_RELATIVE_SD * np.sqrt(2.0)))


def _shared_log_sd(work: Work, between: float) -> Floats:
    """Sds of the log speed by what is shared, shape (n, 3).

    The specimen, the surface's ceiling and its unloaded latency: where a whole surface rests on
    a published figure, it is off as a whole, and two configurations at the ceiling are off alike.
    """
    ceiling = work.surface_sd * work.saturation
    unloaded = work.surface_sd * (1.0 - work.saturation)
    return np.stack([np.full_like(ceiling, between), ceiling, -unloaded], axis=1)


def _own_log_sd(work: Work, between: float) -> Floats:
    """Sd of the log speed that is the configuration's own."""
    total = (work.log_capacity_half / NORMAL_90) ** 2
    shared = (_shared_log_sd(work, between) ** 2).sum(axis=1)
    return np.asarray(np.sqrt(np.maximum(total - shared, 0.0)))


STEP = 1.02
"""Factor on the queue depth by which the elasticity is taken."""


def with_shared_surface(
    predictor: Predictor, frame: Frame, prediction: Prediction, work: Work
) -> Work:
    """Fill in what the rows share with the first one; meant for the few rows of an answer."""
    profile, fraction = predictor.profile, float(frame.read_fraction[0])
    pattern = PATTERNS[int(frame.pattern[0])]
    read, write = _log_sd(profile, "read", pattern), _log_sd(profile, "write", pattern)
    variance = fraction * read**2 + (1.0 - fraction) * write**2
    if variance == 0.0:
        return work
    paths = predictor.performance.paths
    own = np.where(paths.measured, 0.0, paths.relative_sd)[code_of(frame)] ** 2
    own += profile.between_drives_relative_sd.value**2
    most = np.maximum((work.log_capacity_half / NORMAL_90) ** 2 - own, 0.0)
    shared = np.minimum(most, most[0])
    if (fraction > 0.0 and read == 0.0) or (fraction < 1.0 and write == 0.0):  # one was learned
        shared = np.minimum(shared, variance)
    deeper = replace(frame, queue_depth=frame.queue_depth * STEP)
    moved = predictor.predict(deeper, only=())["latency_mean_ns"].value
    elasticity = np.log(moved / prediction["latency_mean_ns"].value) / np.log(STEP)
    return replace(work, surface_sd=np.sqrt(shared), saturation=np.clip(elasticity, 0.0, 1.0))


def _log_sd(profile: DeviceProfile, operation: str, pattern: str) -> float:
    surface = profile.surface(operation, pattern)
    if surface is None:
        return BORROWED_SD
    return 0.0 if surface.residuals else surface.relative_sd
