"""Gaps between requests: how far the drive falls in them, and what waking it costs.

When the last request is done the drive stays awake for its settle time, then draws the idle power
of its state, and with autonomous transitions (APST) that of a sleep state after a while. The energy
of a gap g,

    E(g) = P_awake min(g, t) + P_idle (min(g, a) - t)+ + P_sleep (g - a)+,

is continuous in g and grows with it; t is the settle and a the APST time. Background work that
earlier writes left behind delays the fall. Whoever comes after the fall waits for the wake-up;
requests of the same burst that come behind it do not. The 980 PRO does not rest in gaps of 5 and
30 ms and does in 100 ms, where its first requests take 80 to 100 us longer (000 5.9 F13).

A SATA drive whose host lets the link sleep (`link_power_policy`) idles at fewer watts. A disk with
a standby timer stops its platters when it runs out, and whoever comes next waits for the spin-up,

    E_spin-up = P_spin-up t_spin-up,

which is beside the energy of the gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DeviceProfile, IdleBehaviour
from iojoule.datasets.schema import YEAR_SECONDS
from iojoule.model.evaluate import device_power, sata_link
from iojoule.model.evaluate.bands import Floats
from iojoule.model.evaluate.columns import LINK, STANDBY
from iojoule.model.evaluate.device_state import DeviceState
from iojoule.model.evaluate.frame import Frame
from iojoule.model.evaluate.quantities import NORMAL_90

Number = TypeVar("Number", float, NDArray[np.float64])

REST_SECONDS = 0.1
"""Settle time where a profile has none: 100 ms let the 980 PRO rest, 30 ms do not (000 5.9 F13)."""

DECLARED_EXIT_LOG_SD = 1.0
"""How far a declared exit latency is from the wait: the tables bound it (NVMe Base, 8.15)."""

SHARE_SD = 0.2
"""How far the share of requests that wait may be off: who comes while the drive wakes waits for
the rest of it, and a path may keep fewer in flight than its depth. An assumption."""

P99_SHARE = 0.01
"""So many requests must wait for the wait to be in the 99th percentile."""


@dataclass(frozen=True)
class Wake:
    """What waking costs the requests of n questions; each array has shape (n,).

    Attributes:
        seconds: Wait of a request that finds the drive at rest.
        seconds_sd: Its standard deviation.
        rests: Probability that a gap lets the drive rest.
        share: Share of all requests that come first after a gap.
    """

    seconds: Floats
    seconds_sd: Floats
    rests: Floats
    share: Floats

    def mean_seconds(self) -> Floats:
        """What it adds to the mean latency."""
        return np.asarray(self.seconds * self.rests * self.share)


def wake(idle: IdleBehaviour, frame: Frame) -> Wake:
    """Who waits, and for how long; zero where no gap is stated."""
    gap = np.nan_to_num(frame.gap_seconds, nan=0.0)
    rests = _longer(gap, frame.gap_log_sd, idle.settle_seconds.value, idle.settle_seconds.sd)
    first = idle.wake_seconds
    seconds = np.full(len(frame), first.value)
    sd = np.full(len(frame), first.value * first.sd)
    exit_seconds = _apst_exit(idle)
    if frame.apst.any() and idle.apst_idle_seconds is not None and exit_seconds is not None:
        asleep = frame.apst * _longer(gap, frame.gap_log_sd, idle.apst_idle_seconds.value, 0.05)
        deeper = np.maximum(exit_seconds - first.value, 0.0)
        seconds = seconds + asleep * deeper
        sd = np.hypot(sd, asleep * deeper * DECLARED_EXIT_LOG_SD)
    seconds, sd, rests = _sata_waits(idle, frame, gap, seconds, sd, rests)
    in_flight = frame.queue_depth * frame.jobs
    # without a burst every slot pauses after each of its requests
    requests = np.where(
        np.isfinite(frame.burst_bytes),
        np.maximum(np.nan_to_num(frame.burst_bytes, nan=1.0) / frame.request_bytes, 1.0),
        in_flight,
    )
    return Wake(seconds, sd, rests, np.minimum(in_flight / requests, 1.0))


def _sata_waits(
    idle: IdleBehaviour, frame: Frame, gap: Floats, seconds: Floats, sd: Floats, rests: Floats
) -> tuple[Floats, Floats, Floats]:
    """Wait, its sd, and probability of a rest with a sleeping link and with stopped platters.

    A link sleeps at once: every gap lets it. Who wakes platters does not notice the link.
    """
    depth = _link_depth(idle, frame)
    if depth is not None and idle.link is not None:
        waits = np.array(sata_link.WAITS)[np.nan_to_num(frame.host[:, LINK]).astype(np.intp)]
        asleep = waits * (depth > 0) * (gap > 0)
        leave = idle.link.exit_seconds
        seconds = seconds * rests + asleep * leave.value
        sd = np.hypot(sd * rests, asleep * leave.value * leave.sd)
        rests = np.maximum(rests, asleep)
        seconds = seconds / np.where(rests > 0, rests, 1.0)
        sd = sd / np.where(rests > 0, rests, 1.0)
    stops = standby_share(idle, frame, gap)
    if stops is None or idle.standby is None:
        return seconds, sd, rests
    leave = idle.standby.exit_seconds
    still = stops > 0
    whole = (seconds * rests * (1.0 - stops) + leave.value * stops) / np.maximum(rests, stops)
    spread = np.hypot(sd * (1.0 - stops), leave.value * leave.sd * stops)
    return (
        np.where(still, np.nan_to_num(whole), seconds),
        np.where(still, spread, sd),
        np.maximum(rests, stops),
    )


def _link_depth(idle: IdleBehaviour, frame: Frame) -> Floats | None:
    """Share of Slumber's saving in a stated gap; None where no row lets its link sleep."""
    policy = frame.host[:, LINK]
    if idle.link is None or not (policy > 0).any():
        return None
    depth = np.array(sata_link.DEPTH)[np.nan_to_num(policy).astype(np.intp)]
    return np.where(np.isfinite(frame.gap_seconds), depth, 0.0)


def standby_share(idle: IdleBehaviour, frame: Frame, gap: Floats) -> Floats | None:
    """Probability that a gap outlasts the standby timer; None where no row has one."""
    timer = frame.host[:, STANDBY]
    if idle.standby is None or not (timer > 0).any():
        return None
    known = np.where(timer > 0, timer, 1.0)
    return np.where(timer > 0, _longer(gap, frame.gap_log_sd, known, TIMER_LOG_SD), 0.0)


TIMER_LOG_SD = 0.02
"""Of a standby timer: disks look at it about once a second in a minute (assumption)."""


def spin_up_joules(
    idle: IdleBehaviour | None, frame: Frame, gap: Floats, active_watts: Floats
) -> Floats | float:
    """What spinning up after a gap takes beyond the watts of serving, J; negative where less.

    The requests of the burst wait for it, and their time is charged with the watts of serving.
    """
    stops = None if idle is None else standby_share(idle, frame, gap)
    if stops is None or idle is None or idle.standby is None:
        return 0.0
    standby = idle.standby
    return stops * standby.exit_seconds.value * (standby.spin_up_watts.value - active_watts)


RATED_YEARS = 5.0
"""Years over which a disk may use up its rated starts and stops: the warranty of data-centre
disks."""


def spin_ups_a_year(gap_seconds: Number) -> Number:
    """At most so many, where every gap ends in one."""
    return YEAR_SECONDS / gap_seconds


def spin_ups_allowed(cycles_rated: float) -> float:
    """Spin-ups a year that use up a rating in `RATED_YEARS`."""
    return cycles_rated / RATED_YEARS


def rests_between(requests_per_second: Floats | float) -> Floats:
    """Share of the gaps between single requests that is long enough to rest."""
    return np.asarray(np.exp(-REST_SECONDS * requests_per_second))


def delay(waits: Wake, log_value: dict[str, Floats], half_width: dict[str, Floats]) -> None:
    """Add the wait to log latencies in place, and its uncertainty to their half widths of 90 %.

    The mean grows by the wait of those who wait; a percentile by the whole wait where more
    requests than lie above it wait.
    """
    waiting = waits.rests * waits.share
    above = {"p50": 0.5, "p99": P99_SHARE, "p999": 0.1 * P99_SHARE}
    # a gap near the settle time rests or does not
    unsure = np.hypot(
        waits.seconds_sd * waits.rests, waits.seconds * np.sqrt(waits.rests * (1.0 - waits.rests))
    )
    for name, value in list(log_value.items()):
        mean = name == "latency"
        part = waiting if mean else waits.rests * (waiting > above[name])
        before = np.exp(value)
        after = before + 1e9 * waits.seconds * part
        log_value[name] = np.log(after)
        affected = waits.share if mean else waits.share > above[name]
        off = SHARE_SD * waits.seconds * waiting * mean
        doubt = NORMAL_90 * 1e9 * np.hypot(unsure * affected, off)
        # the wait errs by seconds and not by a factor: the upper end is the value and that much
        half_width[name] = np.hypot(half_width[name] * before / after, np.log1p(doubt / after))


def _longer(gap: Floats, gap_log_sd: Floats, limit: Floats | float, limit_log_sd: float) -> Floats:
    """Probability that a gap exceeds a limit, both log-normal.

    The logistic curve of slope 1.702 stands in for the normal distribution: within 0.01 of it
    (Bowling et al., J. Industrial Eng. and Management 2009), and numpy alone evaluates it.
    """
    apart = np.log(np.maximum(gap, 1e-12) / limit) / np.hypot(gap_log_sd, limit_log_sd)
    return np.asarray((gap > 0) / (1.0 + np.exp(np.clip(-1.702 * apart, -50.0, 50.0))))


def _apst_exit(idle: IdleBehaviour) -> float | None:
    return next(
        (
            transition.exit_seconds
            for transition in idle.transitions
            if transition.power_state == idle.apst_state and transition.exit_seconds is not None
        ),
        None,
    )


@dataclass(frozen=True)
class Levels:
    """Watts of the drive while nothing is asked of it; each array has shape (n,).

    Attributes:
        awake: Until it settles.
        idle: After that, in the operational state.
        asleep: What a gap draws beyond the APST time; equals `idle` without APST.
        sleeps_after: Seconds until then; infinite without APST.
        idle_sd: Standard deviation of `idle` and `asleep`.
    """

    awake: Floats
    idle: Floats
    asleep: Floats
    sleeps_after: Floats
    idle_sd: Floats


def levels(
    profile: DeviceProfile, frame: Frame, active_watts: Floats, factor: Floats | float = 1.0
) -> Levels | None:
    """The levels of a gap; None where the profile knows no power of the drive.

    Awake it draws what its power law leaves at a rate of 0, never more than while it serves and
    never less than at idle.

    Args:
        profile: The drive.
        frame: The configurations.
        active_watts: While it serves.
        factor: By which runs in the power state draw more than the law (`Activity.awake_factor`):
            the law's base is as much of it, whatever the configuration.
    """
    power, behaviour = profile.device_power, profile.idle
    if power is None:
        return None
    idle, sd = device_power.idle_watts(power, frame.power_state)
    base = device_power.base_watts(power, frame.power_state)
    awake = np.maximum(np.minimum(factor * base, active_watts), idle)
    asleep, after = idle, np.full(len(frame), np.inf)
    state = behaviour.apst_state if behaviour is not None else None
    if (
        behaviour is not None
        and frame.apst.any()
        and behaviour.apst_idle_seconds is not None
        and state is not None
        and state < len(power.idle_watts)
    ):
        share, spread = apst_share(behaviour)
        deep = np.minimum(power.idle_watts[state].value, idle)
        asleep = np.where(frame.apst > 0, idle - share * (idle - deep), idle)
        after = np.where(frame.apst > 0, behaviour.apst_idle_seconds.value, np.inf)
        sd = np.hypot(sd, (frame.apst > 0) * spread * (idle - deep))
    if behaviour is not None:
        idle, asleep, after, sd = _sata_levels(behaviour, frame, (idle, asleep, after, sd))
    return Levels(awake, idle, asleep, after, sd)


def apst_share(behaviour: IdleBehaviour) -> tuple[float, float]:
    """Share of a sleep state's saving that a gap brings, and its standard deviation."""
    share = behaviour.apst_share
    return (1.0, 0.3) if share is None else (share.value, share.sd)


def _sata_levels(
    known: IdleBehaviour, frame: Frame, watts_levels: tuple[Floats, Floats, Floats, Floats]
) -> tuple[Floats, Floats, Floats, Floats]:
    """Idle, sleep, time until then and sd with a sleeping link and stopped platters."""
    idle, asleep, after, sd = watts_levels
    depth = _link_depth(known, frame)
    if depth is not None and known.link is not None:
        slumber = known.link.slumber_watts
        idle = idle - depth * np.maximum(idle - slumber.value, 0.0)
        asleep = np.minimum(asleep, idle)
        sd = np.hypot(sd, depth * slumber.sd)
    timer = frame.host[:, STANDBY]
    if known.standby is not None and (timer > 0).any():
        stops = (timer > 0) & np.isfinite(frame.gap_seconds)
        still = known.standby.watts
        asleep = np.where(stops, np.minimum(still.value, idle), asleep)
        after = np.where(stops, timer, after)
        sd = np.hypot(sd, np.where(stops, still.sd, 0.0))
    return idle, asleep, after, sd


def settle_seconds(idle: IdleBehaviour | None) -> float:
    """How long the drive stays awake after its last request."""
    return idle.settle_seconds.value if idle is not None else REST_SECONDS


def gap_joules(at: Levels, gap: Floats, settle: Floats | float) -> Floats:
    """Energy of a gap, J, without that of background work.

    Args:
        at: Watts of the levels.
        gap: Seconds.
        settle: Seconds awake after the last request.
    """
    sleep = np.maximum(at.sleeps_after, settle)
    return descent_joules((at.awake, at.idle, at.asleep), (settle, sleep), gap)


def descent_joules(
    watts: Sequence[Floats | float], after: Sequence[Floats | float], gap: Floats
) -> Floats:
    """Energy of a gap in which the drive falls from level to level, J; arguments broadcast.

    E(g) = sum of P_i (min(g, t_(i+1)) - t_i)+, with t_0 = 0 and an endless last level.

    Args:
        watts: P_i of n levels.
        after: t_i of all levels but the first: seconds from the last request, not falling.
        gap: Seconds.
    """
    joules = watts[0] * np.minimum(gap, after[0]) if after else watts[0] * gap
    for level, begin, end in zip(watts[1:], after, (*after[1:], np.inf), strict=True):
        joules = joules + level * np.maximum(np.minimum(gap, end) - begin, 0.0)
    return np.asarray(joules)


@dataclass(frozen=True)
class Cycle:
    """A burst and the gap after it, over and over; each array has shape (n,).

    Attributes:
        watts: Mean power of the drive.
        watts_sd: Its standard deviation.
        period_seconds: Burst and gap.
        rest_seconds: At idle power or below, a gap.
        background_seconds: Own work that the burst's writes cause, a gap.
    """

    watts: Floats
    watts_sd: Floats
    period_seconds: Floats
    rest_seconds: Floats
    background_seconds: Floats


def cycle(
    profile: DeviceProfile,
    state: DeviceState,
    frame: Frame,
    iops: Floats,
    active: tuple[Floats, Floats],
    factor: Floats | float = 1.0,
) -> Cycle | None:
    """Mean power over a burst-gap cycle; NaN where no gap is stated, None without any power.

    Args:
        profile: The drive.
        state: Its background work.
        frame: The questions.
        iops: Requests a second within a burst, the wake-up included.
        active: Watts within a burst, and their standard deviation.
        factor: As of `levels`.
    """
    at = levels(profile, frame, active[0], factor)
    if at is None:
        return None
    in_flight = frame.queue_depth * frame.jobs
    requests = np.where(
        np.isfinite(frame.burst_bytes), frame.burst_bytes / frame.request_bytes, in_flight
    )
    burst = np.maximum(requests, 1.0) / iops
    gap = frame.gap_seconds
    written = requests * frame.request_bytes * (1.0 - frame.read_fraction)
    background, _ = state.background_seconds(frame, written)
    background = np.nan_to_num(background, nan=0.0)
    joules, joules_sd = state.joules_per_byte(frame)
    settle = settle_seconds(profile.idle)
    quiet = gap_joules(at, gap, settle)
    period = burst + gap
    rest = np.maximum(gap - settle - background, 0.0)
    waking = spin_up_joules(profile.idle, frame, gap, active[0])
    mean = (burst * active[0] + quiet + waking + joules * written) / period
    sd = np.hypot(np.hypot(burst * active[1], joules_sd * written), rest * at.idle_sd) / period
    return Cycle(mean, sd, period, rest, background)
