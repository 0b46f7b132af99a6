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
from numpy.typing import NDArray

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
            "waiting": 1,
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
    # the law was fitted at full speed: between requests it may err for all rows alike
    common[:, layout.at["waiting"].start] = (
        device_power.WAITING_SD * (1.0 - work.busy) * (1.0 - resting) * gap
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
        served_common: Gradients of the logarithm of that.
        served_speed: By the own part of the log speed.
        idle: Idle power that is taken off, W.
        idle_common: Gradients of that, shape (layout.size,).
    """

    joules_per_byte: Floats
    common: Floats
    speed: Floats
    fit: Floats
    served: Floats
    served_common: Floats
    served_speed: Floats
    idle: float
    idle_common: Floats


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
    served_common = np.zeros_like(power.common)
    served_common[:, layout.at["speed"]] = work.elasticity[:, None] * _shared_log_sd(work, between)
    served_speed = _own_log_sd(work, between) * work.elasticity
    return Energies(
        net,
        (power.common - idle.common[today]) / served[:, None] - net[:, None] * served_common,
        power.own_speed / served - net * served_speed,
        power.own_fit / served,
        served,
        served_common,
        served_speed,
        floor,
        idle.common[today],
    )


@dataclass(frozen=True)
class Saved:
    """What is saved for equal work; shape (m,) each, values with their sds.

    Equal work is that of the slower of two configurations: the other one can do it too.

    Attributes:
        joules_per_byte: Energy for a useful byte.
        watts: The same at the rate of the slower one.
        percent: The same as a share of `most_watts`.
        rate: That rate, useful bytes a second.
        most_watts: What today's configuration draws at that rate, idle power included, W.
    """

    joules_per_byte: tuple[Floats, Floats]
    watts: tuple[Floats, Floats]
    percent: tuple[Floats, Floats]
    rate: Floats
    most_watts: Floats


def contrast(
    layout: Layout,
    energies_of_rows: Energies,
    today: int,
    others: Sequence[int],
    widening: float = 1.0,
) -> Saved:
    """Compare row `today` with others.

    Args:
        layout: The common parameters.
        energies_of_rows: Energies of the rows.
        today: The one.
        others: The others.
        widening: Factor on what the others err by themselves (`recommender.rows.WIDENING`).
    """
    rows = np.column_stack([np.full(len(others), today), np.asarray(others, dtype=np.intp)])
    weights, factors = np.array([[1.0, -1.0]]), np.array([[1.0, widening]])
    first, second = np.zeros(len(rows), dtype=np.intp), np.ones(len(rows), dtype=np.intp)
    return _saved(layout, energies_of_rows, rows, weights, (first, second), factors)


def sums(
    layout: Layout,
    energies_of_rows: Energies,
    weights: Floats,
    today: int,
    others: Sequence[int],
    widening: Floats | float = 1.0,
) -> Saved:
    """Sum the rows' energies per useful byte; what rows err in common cancels as it should.

    Args:
        layout: The common parameters.
        energies_of_rows: Energies of the rows.
        weights: Shape (m, n); each row adds up to zero.
        today: The row of whose power the sums are shares.
        others: The row that it is compared with, by sum; shape (m,).
        widening: Factor on what each row errs by itself, shape (n,).
    """
    rows = np.broadcast_to(np.arange(weights.shape[1]), weights.shape)
    compared = np.full(len(weights), today), np.asarray(others, dtype=np.intp)
    return _saved(layout, energies_of_rows, rows, weights, compared, np.asarray(widening))


def _saved(
    layout: Layout,
    every: Energies,
    rows: NDArray[np.intp],
    weights: Floats,
    compared: tuple[NDArray[np.intp], NDArray[np.intp]],
    widening: Floats,
) -> Saved:
    """Weighted sums of energies for equal work.

    Args:
        layout: The common parameters.
        every: Energies of rows.
        rows: The k rows of each sum, all different; shape (m, k).
        weights: Of these, broadcast to the same shape.
        compared: Places among the k of today's row, and of the one it is compared with; (m,).
        widening: Factors on what the rows err by themselves, broadcast to (m, k).
    """
    each, (at_today, at_other) = np.arange(len(rows)), compared
    today = rows[each, at_today]
    faster = every.served[today] > every.served[rows[each, at_other]]
    at_slower = np.where(faster, at_other, at_today)
    slower = rows[each, at_slower]
    rate = every.served[slower]

    def sd(common: Floats, speed: Floats, fit: Floats) -> Floats:
        """From the common parameters, and what each row errs by itself."""
        own = ((speed**2 + fit**2) * np.square(widening)).sum(axis=1)
        return np.asarray(np.sqrt(np.maximum(layout.variances(common), 0.0) + own))

    value = (weights * every.joules_per_byte[rows]).sum(axis=1)
    common = (weights[..., None] * every.common[rows]).sum(axis=1)
    speed, fit = weights * every.speed[rows], weights * every.fit[rows]
    value_sd = sd(common, speed, fit)

    # the rate errs too, as the speed of the slower one does
    watts = rate * value
    common = rate[:, None] * common + watts[:, None] * every.served_common[slower]
    speed, fit = rate[:, None] * speed, rate[:, None] * fit
    speed[each, at_slower] += watts * every.served_speed[slower]
    watts_sd = sd(common, speed, fit)

    # and so does what the percentage is a share of
    above_idle = rate * every.joules_per_byte[today]
    most = every.idle + above_idle
    share = watts / most
    common -= share[:, None] * (
        every.idle_common
        + rate[:, None] * every.common[today]
        + above_idle[:, None] * every.served_common[slower]
    )
    speed[each, at_today] -= share * rate * every.speed[today]
    speed[each, at_slower] -= share * above_idle * every.served_speed[slower]
    fit[each, at_today] -= share * rate * every.fit[today]
    share_sd = sd(common, speed, fit) / most
    return Saved(
        (value, value_sd),
        (watts, watts_sd),
        (100.0 * share, 100.0 * share_sd),
        rate,
        most,
    )


def _relative(layout: Layout, power: Gradients, work: Work) -> tuple[Floats, Floats, Floats]:
    """Relative gradients of the energy per byte, P / served."""
    between = layout.profile.between_drives_relative_sd.value
    common = power.common / power.watts[:, None]
    common[:, layout.at["speed"]] -= work.elasticity[:, None] * _shared_log_sd(work, between)
    speed = power.own_speed / power.watts - _own_log_sd(work, between) * work.elasticity
    return common, speed, power.own_fit / power.watts


def relative_errors(
    layout: Layout, every: Energies, rows: Sequence[int], widening: Floats | float = 1.0
) -> Floats:
    """Covariance of what the powers of some rows for equal work err, relative, shape (k, k).

    Args:
        layout: The common parameters.
        every: Energies of all rows.
        rows: The k rows; equal work is that of the slower one of the first two.
        widening: Factor on what each of them errs by itself, shape (k,).
    """
    indices = np.asarray(rows, dtype=np.intp)
    at_slower = int(every.served[indices[0]] > every.served[indices[1]])
    slower = indices[at_slower]
    rate = every.served[slower]
    above_idle = rate * every.joules_per_byte[indices]
    common = every.idle_common + rate * every.common[indices]
    common = common + above_idle[:, None] * every.served_common[slower]
    speed = np.diag(rate * every.speed[indices])
    speed[:, at_slower] += above_idle * every.served_speed[slower]
    fit = np.diag(rate * every.fit[indices])
    watts = every.idle + above_idle
    common, speed, fit = (part / watts[:, None] for part in (common, speed, fit))
    own = np.hstack([speed * widening, fit * widening])
    return np.asarray(common @ layout.covariance @ common.T + own @ own.T)


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
