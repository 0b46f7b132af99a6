"""Equal useful work: what a configuration draws while it does the demanded work.

At full speed every answer would favour the slowest drive (watts) or the fastest (joules per
byte). So the work is held equal: with u the busy share,

    P = u P_active + (1 - u) P_gap,    P_gap = r P_idle + (1 - r) P_awake,

plus the energy of the background work that written bytes cause later. r is the share of the
gaps that is long enough to rest. Requests that arrive evenly or by chance leave
r = exp(-t x requests a second), t the time that the drive stays awake after a request (0.1 s where
its profile has none: it does not come to rest within 30 ms and does within 100 ms, 000, 5.9 F13).
So do those of slots that think, at the rate that they come to. In bursts, and as fast as possible,
r is 1. The CPU works at the rate that is served (`model.evaluate.host_work`).

Where bursts are stated (`burst_bytes`, or a demand and `idle_gap_seconds_p50`) the drive's gap is
one of `model.evaluate.idle_gaps`: awake until it settles, kept from settling by the background work
of the burst's own writes, asleep where autonomous transitions are on. The same work could be paced,
its requests spread over burst and gap, so that the drive never rests but also never has to wake:

    racing saves (P_awake - P_idle) (gap - settle - background)+ - wake-up energy

a cycle over pacing, which is negative where gaps are shorter than transition and background work
together. A demand with gaps is answered by the better of the two (`race_or_pace`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DeviceProfile
from iojoule.model.evaluate import device_power, host_power, host_work, idle_gaps, system_power
from iojoule.model.evaluate.bands import Floats
from iojoule.model.evaluate.device_state import DeviceState
from iojoule.model.evaluate.frame import Frame
from iojoule.model.evaluate.host_power import Drawn
from iojoule.model.evaluate.latency import (
    POISSON_ARRIVALS,
    Arrivals,
    Flush,
    ServedLatency,
    arrivals_named,
)
from iojoule.model.evaluate.operating_point import Load
from iojoule.model.evaluate.prediction import Prediction
from iojoule.model.evaluate.quantities import NORMAL_90

SPEED_STEP = 0.02
"""Step of the log capacity in derivatives of the CPU's power."""


@dataclass(frozen=True)
class Demand:
    """The work to be done, in useful bytes.

    Attributes:
        bytes_per_second: Demanded useful bytes a second, None for as fast as possible.
        useful_bytes: Useful bytes of one operation of the application.
        useful_limit: Most useful bytes of one request.
        think_ns: Pause between a completion and the next request of the same slot.
        rest: Share of the gaps that is long enough to rest, 0 to 1.
        arrivals: How requests come.
        arrivals_assumed: Whether nothing was said about that.
        burst_bytes: Useful bytes between two gaps, where stated.
        gap_seconds: Length of a gap, where stated.
        flush: What flushes cost; None where the work has none.
    """

    bytes_per_second: float | None
    useful_bytes: float
    useful_limit: float
    think_ns: float = 0.0
    rest: float = 1.0
    arrivals: Arrivals = Arrivals.CLOSED
    arrivals_assumed: bool = False
    burst_bytes: float | None = None
    gap_seconds: float | None = None
    flush: Flush | None = None

    @classmethod
    def stated(
        cls,
        bytes_per_second: float | None,
        useful_bytes: float,
        useful_limit: float,
        *,
        process: str | None = None,
        think_ns: float = 0.0,
        burst_bytes: float | None = None,
        gap_seconds: float | None = None,
    ) -> Demand:
        """The demand of a workload; what is 0 counts as not stated.

        As fast as possible each completion lets the next request in. Requests of a demand come in
        bursts where gaps or bursts are stated, else by the process, by chance where it is unknown.
        Pauses for thinking change the rate and not how requests come: each slot pauses by itself.

        Args:
            bytes_per_second: Demanded useful bytes a second, None for as fast as possible.
            useful_bytes: Of one operation of the application.
            useful_limit: Most useful bytes of one request.
            process: Name of the arrival process.
            think_ns: Pause between a completion and the next request of the same slot.
            burst_bytes: Useful bytes between two gaps.
            gap_seconds: Length of a gap.
        """
        word = (process or "").lower()
        arrivals = Arrivals.CLOSED
        if bytes_per_second is not None:
            arrivals = Arrivals.BURSTS if gap_seconds or burst_bytes else arrivals_named(word)
        requests = None if bytes_per_second is None else bytes_per_second / useful_bytes
        return cls(
            bytes_per_second,
            useful_bytes,
            useful_limit,
            think_ns,
            _rest_share(arrivals, requests, gap_seconds or None),
            arrivals,
            arrivals is Arrivals.POISSON and word not in POISSON_ARRIVALS,
            burst_bytes or None,
            gap_seconds or None,
        )


def _rest_share(
    arrivals: Arrivals, requests_per_second: float | None, gap_seconds: float | None
) -> float:
    """Share of the gaps that is long enough to rest, 0 to 1; see above.

    Args:
        arrivals: How requests come.
        requests_per_second: Of the demand; None for as fast as possible.
        gap_seconds: Length of a gap, where stated.
    """
    if gap_seconds is not None:
        return float(gap_seconds >= idle_gaps.REST_SECONDS)
    if requests_per_second is None or arrivals not in (Arrivals.POISSON, Arrivals.EVEN):
        return 1.0
    return float(idle_gaps.rests_between(requests_per_second))


@dataclass(frozen=True)
class Work:
    """What n configurations do; every array has shape (n,).

    Attributes:
        capacity_bytes: Useful bytes a second at full speed.
        log_capacity_half: From the full speed down to the end of its 90 % interval, log units.
        log_capacity_up: From the full speed up to the end, less where the link sets a limit.
        capacity_elasticity: d log(capacity) / d log(full speed): 1 without think time.
        busy: Busy share u, at most 1.
        elasticity: d log(served) / d log(full speed): 0 where the demand sets the rate, 1 where
            the drive does.
        served_bytes: Useful bytes a second served.
        requests: Requests a second served.
        host_writes: Host bytes written a second.
        background: Written bytes a second that cause background work later.
        surface_sd: Log sd of the full speed that every configuration of the workload shares.
        saturation: How far the full speed follows the drive's ceiling instead of its unloaded
            latency, 0 to 1.
        gap_seconds: Gap after each burst, NaN where the work does not come in stated bursts.
        burst_requests: Requests of a burst, NaN likewise.
        flushing: Share of the time in which jobs stand still for flushes, which is no rest.
        resting: Share of the gaps that thinking leaves long enough to rest, beside what the demand
            leaves (`Demand.rest`); 1 where nobody thinks or the demand sets the rate.
        latencies: At the rate that is demanded.
    """

    capacity_bytes: Floats
    log_capacity_half: Floats
    log_capacity_up: Floats
    capacity_elasticity: Floats
    busy: Floats
    elasticity: Floats
    served_bytes: Floats
    requests: Floats
    host_writes: Floats
    background: Floats
    surface_sd: Floats
    saturation: Floats
    gap_seconds: Floats
    burst_requests: Floats
    flushing: Floats
    resting: Floats
    latencies: ServedLatency

    @property
    def at_full_speed(self) -> NDArray[np.bool_]:
        """Which run at full speed, but for the last digits; shape (n,)."""
        return np.asarray(self.busy >= 1.0 - 1e-9)


def work_of(
    frame: Frame, prediction: Prediction, demand: Demand, alone: Prediction | None = None
) -> Work:
    """How busy each configuration is with the demanded work, and how late it answers.

    Args:
        frame: The configurations.
        prediction: At full speed.
        demand: The work.
        alone: The same configurations with a single request in flight; needed where requests
            arrive in an open loop or in bursts of a known size.
    """
    iops = prediction["iops"]
    useful = np.minimum(frame.request_bytes, demand.useful_limit)
    full = iops.value * useful
    capacity, elastic = full, np.ones(len(full))
    slower = np.log(iops.value / iops.low)
    latency = prediction["latency_mean_ns"].value
    # every slot of a job stands still while the job waits for a flush
    flush, flush_log_sd = np.zeros(len(full)), 0.0
    if demand.flush is not None:
        flush = np.asarray(demand.flush.mean_ns * frame.queue_depth)
        flush_log_sd = demand.flush.log_sd
    if demand.think_ns > 0 or flush.any():  # interactive response-time law: X = N / (R + Z)
        elastic = latency / (latency + demand.think_ns + flush)
        capacity = full * elastic
        slower = np.hypot(slower, NORMAL_90 * flush_log_sd * flush / latency)
    burst, gap = demand.burst_bytes, demand.gap_seconds
    if burst is not None and gap is not None and demand.bytes_per_second is None:
        # a burst at full speed, then the gap: its share of the cycle follows the speed
        share = 1.0 / (1.0 + gap * full / burst)
        capacity, elastic = capacity * share, elastic * share
    served, carried = capacity, elastic
    demanded, up = demand.bytes_per_second, np.log(iops.high / iops.value)
    if demanded is not None:
        served = np.minimum(capacity, demanded)
        elastic = np.where(served < capacity, 0.0, elastic)
    requests = served / useful
    writes = requests * (1.0 - frame.read_fraction) * frame.request_bytes
    gaps, bursts = _bursts(demand, served, full, useful)
    resting = np.ones(len(full))
    if demand.think_ns > 0 and demanded is None and gap is None and burst is None:
        resting = idle_gaps.rests_between(requests)
    return Work(
        capacity_bytes=capacity,
        log_capacity_half=slower,
        log_capacity_up=up,
        capacity_elasticity=carried,
        busy=served / full,
        elasticity=elastic,
        served_bytes=served,
        requests=requests,
        host_writes=writes,
        background=_background(prediction, writes, served / full),
        surface_sd=np.zeros(len(full)),
        saturation=np.zeros(len(full)),
        gap_seconds=gaps,
        burst_requests=bursts,
        flushing=flush / latency * served / full,
        resting=resting,
        latencies=ServedLatency(
            full=prediction,
            alone=alone,
            arrivals=demand.arrivals,
            rate=(served if demanded is None else demanded) / useful,
            capacity=capacity / useful,
            log_down=carried * slower,
            log_up=carried * up,
            in_flight=frame.queue_depth * frame.jobs,
            # without gaps bursts never end
            burst_requests=np.where(served < full, bursts, np.inf),
            write_share=1.0 - frame.read_fraction,
            sharpness=prediction.activity.sharpness,
            buffer_requests=prediction.activity.buffer_requests,
            flush=demand.flush,
        ),
    )


def _background(prediction: Prediction, writes: Floats, busy: Floats) -> Floats:
    """Written bytes a second that cause background work in gaps, shape (n,).

    All that goes into the cache. Beside collecting the drive still clears its cache in what gaps
    there are: all its own work draws no less than where gaps just let it keep up.
    """
    activity = prediction.activity
    gaps = np.maximum(np.minimum(writes, activity.cleared_most) - busy * activity.own_work, 0.0)
    return np.asarray(writes + activity.collecting * (gaps - writes))


def _bursts(demand: Demand, served: Floats, full: Floats, useful: Floats) -> tuple[Floats, Floats]:
    """Gap and requests of a burst: what is stated, and the other one from the busy share."""
    nothing = np.full(len(full), np.nan)
    idle = 1.0 - served / full
    if demand.burst_bytes is not None:
        requests = np.maximum(demand.burst_bytes / useful, 1.0)
        return demand.burst_bytes * idle / served, requests
    if demand.gap_seconds is not None and demand.bytes_per_second is not None:
        gap = np.where(idle > 0, demand.gap_seconds, 0.0)
        period = gap / np.maximum(idle, 1e-12)
        return gap, np.maximum(served * period / useful, 1.0)
    return nothing, nothing


@dataclass(frozen=True)
class Watts:
    """Mean power at equal work, W; None where the profile does not know it."""

    device: Floats | None
    cpu: Floats | None
    system: Floats | None


def watts_of(
    profile: DeviceProfile, frame: Frame, prediction: Prediction, work: Work, rest: float
) -> Watts:
    """Mean power of drive, CPU and whole system while they do the work."""
    device = device_watts(profile, frame, prediction, work, rest)
    cpu = cpu_watts(profile, frame, prediction, work)
    return Watts(device, cpu, wall_watts(profile, frame, work, device, cpu))


def wall_watts(
    profile: DeviceProfile, frame: Frame, work: Work, device: Floats | None, cpu: Floats | None
) -> Floats | None:
    """Mean power at the wall behind what drives, CPU and memory draw; None where unknown."""
    if profile.system_power is None or device is None or cpu is None:
        return None
    parts = device + cpu + dram_watts(profile, frame, work)
    return system_power.watts(profile.system_power, parts, np.zeros(len(frame)))[0]


def dram_watts(profile: DeviceProfile, frame: Frame, work: Work) -> Floats | float:
    """Mean power of a memory that is no part of the CPU's figure; 0 where it is, or unknown."""
    if profile.host_power is None:
        return 0.0
    known = host_power.dram_watts(profile.host_power, work.requests * frame.request_bytes)
    return 0.0 if known is None else known[0]


def gap_levels(
    profile: DeviceProfile, frame: Frame, prediction: Prediction, work: Work, rest: float
) -> tuple[Floats, Floats] | None:
    """Power of the drive between requests, W, and the share of that time at rest; shape (n,).

    Where the work comes in stated bursts it races or is paced, whichever costs the drive less;
    else the share is `rest`, less what thinking and flushes take.
    """
    factor = prediction.activity.awake_factor
    at = idle_gaps.levels(profile, frame, prediction["device_power_watts"].value, factor)
    if at is None:
        return None
    waiting = np.minimum(work.flushing / np.maximum(1.0 - work.busy, 1e-12), 1.0)
    share = rest * work.resting * (1.0 - waiting)
    watts = share * at.idle + (1.0 - share) * at.awake
    bursts = work.gap_seconds > 0
    if bursts.any():
        choice = race_or_pace(profile, frame, prediction, work)
        better = np.where(choice.races, choice.race_gap_watts, choice.pace_gap_watts)
        watts = np.where(bursts, better, watts)
        span = at.awake - np.minimum(at.idle, at.asleep)
        falls = (at.awake - watts) / np.where(span > 0, span, 1.0)
        share = np.where(bursts, np.clip(falls, 0.0, 1.0), share)
    return watts, share


def gap_watts(
    profile: DeviceProfile, frame: Frame, prediction: Prediction, work: Work, rest: float
) -> Floats | None:
    """Power of the drive between requests, rest and wakefulness weighted, shape (n,)."""
    levels = gap_levels(profile, frame, prediction, work, rest)
    return None if levels is None else levels[0]


@dataclass(frozen=True)
class Choice:
    """Racing to idle against pacing, for n configurations; every array has shape (n,).

    Attributes:
        races: Whether racing draws no more than pacing.
        race_gap_watts: Mean power of a gap when racing, wake-up included; what background work
            draws above idle power is not, for it is charged to the writes.
        pace_gap_watts: Likewise of the same time when pacing.
        saved_joules: What racing saves a cycle; negative where pacing is better.
        break_even_seconds: Gap from which racing saves.
    """

    races: NDArray[np.bool_]
    race_gap_watts: Floats
    pace_gap_watts: Floats
    saved_joules: Floats
    break_even_seconds: Floats


def race_or_pace(
    profile: DeviceProfile, frame: Frame, prediction: Prediction, work: Work
) -> Choice:
    """Compare both ways of serving bursts; the energy of the requests themselves is the same.

    The law of power is linear, so a request costs the same joules at any pace: what differs is
    the gap. Racing, the drive is awake for its settle time and for the background work of the
    burst's writes, then rests, and wakes at active power for the next burst. Paced, it stays awake.

    Raises:
        ValueError: The profile has no power of the drive.
    """
    active = prediction["device_power_watts"].value
    at = idle_gaps.levels(profile, frame, active, prediction.activity.awake_factor)
    if at is None:
        raise ValueError(f"{profile.device}: no power of the drive")
    gap = np.nan_to_num(work.gap_seconds, nan=0.0)
    settle = idle_gaps.settle_seconds(profile.idle)
    busy = settle + _background_seconds(profile, frame, work)
    wake = profile.idle.wake_seconds.value if profile.idle is not None else 0.0
    rise = wake * np.maximum(active - at.idle, 0.0)
    # platters that stopped take more than the watts of serving, which rise counts
    rise = rise + idle_gaps.spin_up_joules(profile.idle, frame, gap, active)
    waking = rise * (gap > busy)
    saved = at.awake * gap - idle_gaps.gap_joules(at, gap, busy) - waking
    # the energy of background work is charged to the writes, on top of idle power
    race = idle_gaps.gap_joules(at, gap, settle) + rise * (gap > settle)
    worth = at.awake - at.idle
    # platters that stop pay for their start from the timer on
    deeper = (at.asleep < at.idle) & (worth <= 0)
    worth = np.where(deeper, at.awake - at.asleep, worth)
    busy = np.where(deeper, np.maximum(busy, np.nan_to_num(at.sleeps_after, posinf=0.0)), busy)
    with np.errstate(divide="ignore", invalid="ignore"):
        payback = np.where(worth > 0, rise / worth, np.inf)
        race_watts = np.where(gap > 0, race / gap, at.awake)
        pace_watts = np.where(gap > 0, (race + saved) / gap, at.awake)
    return Choice(saved >= 0, race_watts, pace_watts, saved, busy + payback)


def _background_seconds(profile: DeviceProfile, frame: Frame, work: Work) -> Floats:
    """Background work after one burst, seconds."""
    requests = np.nan_to_num(work.burst_requests, nan=0.0)
    written = requests * frame.request_bytes * (1.0 - frame.read_fraction)
    seconds, _ = DeviceState(profile).background_seconds(frame, written)
    return np.nan_to_num(seconds, nan=0.0)


def device_watts(
    profile: DeviceProfile, frame: Frame, prediction: Prediction, work: Work, rest: float
) -> Floats | None:
    """Mean power of the drive, the background work that its writes cause later included."""
    gap = gap_watts(profile, frame, prediction, work, rest)
    if gap is None:
        return None
    free, most = unlimited_watts(profile, frame, prediction)
    mean = np.minimum(work.busy * free + (1.0 - work.busy) * gap, most)
    return np.asarray(mean + charged_watts(profile, frame, work))


def unlimited_watts(
    profile: DeviceProfile, frame: Frame, prediction: Prediction
) -> tuple[Floats, Floats]:
    """Power while serving at full speed by the law alone, W, and the most that is drawn.

    A limit of the drive holds for what it draws at the rate that is served: a configuration that
    would run into it at full speed spends no fewer joules a request at a lower rate.

    Returns:
        Both of shape (n,); where no limit holds at full speed, the second is infinite.
    """
    active = prediction["device_power_watts"].value
    power, activity = profile.device_power, prediction.activity
    unlimited = np.full(len(frame), np.inf)
    if power is None:
        return active, unlimited
    law = device_power.law_watts(power, activity.device_x, frame.power_state)
    limit = device_power.limit_watts(power, frame.power_state)
    # a power limit holds for what runs nearby showed too; a state's cap is corrected by them
    corrected = np.where(frame.power_limit_watts > 0, 1.0, activity.watts_factor)
    # what a simulator answered in the law's place is not compared with the law's limit
    limited = activity.watts_factor * law > corrected * limit
    limited &= np.abs(active - corrected * limit) <= 1e-9 * active
    return (
        np.where(limited, activity.watts_factor * law, active),
        np.where(limited, active, unlimited),
    )


def charged_watts(profile: DeviceProfile, frame: Frame, work: Work) -> Floats | float:
    """Power of background work that is done later and charged to the writes that cause it."""
    if profile.write_state is None:
        return 0.0
    joules, _ = DeviceState(profile).joules_per_byte(frame)
    return np.asarray(joules * work.background)


def within_cap(
    profile: DeviceProfile, frame: Frame, work: Work, watts: Floats, high: Floats
) -> Floats:
    """The upper end of a drive's mean power, at most its state's cap and what is charged beside.

    A power state's maximum holds while the drive serves (NVMe Base specification, Identify
    Controller, power state descriptor); background work is done after it, with watts of its own.
    """
    if profile.device_power is None:
        return high
    cap = np.array(profile.device_power.cap_watts)[frame.power_state]
    most = cap + charged_watts(profile, frame, work)
    return np.minimum(high, np.maximum(most, watts))


def host_load(
    profile: DeviceProfile, frame: Frame, prediction: Prediction, work: Work, faster: float = 0.0
) -> tuple[Load, Drawn]:
    """What the host does at the served rate.

    Args:
        profile: Whose host.
        frame: The configurations.
        prediction: Of them, at full speed.
        work: What they do.
        faster: Log of how much faster the drive is: it serves more where the drive sets the rate.
    """
    latency, requests = prediction["latency_mean_ns"].value, work.requests
    if prediction.activity.costs.polled.any():
        # who polls spins for as long as the drive has a request, at most that of a full queue:
        # what is more is the wait for a slot, or for a flush, in which nobody polls
        latency = np.minimum(work.latencies.at("latency_mean_ns"), latency)
    if faster != 0.0:
        latency = latency * np.exp(-faster)
        requests = requests * np.exp(faster * work.elasticity)
    bursts = np.where((work.gap_seconds > 0) & (work.busy > 0), work.busy, np.nan)
    costs = prediction.activity.costs
    return host_work.at_rate(profile, frame, costs, requests, latency, bursts)


def cpu_by_speed(
    profile: DeviceProfile, frame: Frame, prediction: Prediction, work: Work
) -> Floats:
    """Derivative of mean CPU power by log capacity, W, shape (n,): a finite difference."""
    assert profile.host_power is not None
    if not prediction.activity.costs.polled.any() and not work.elasticity.any():
        return np.zeros(len(frame))  # the demand sets the rate, and nobody spins meanwhile
    ends = [
        host_power.value(profile.host_power, *host_load(profile, frame, prediction, work, faster))
        for faster in (-SPEED_STEP, SPEED_STEP)
    ]
    return np.asarray((ends[1] - ends[0]) / (2.0 * SPEED_STEP))


def cpu_watts(
    profile: DeviceProfile, frame: Frame, prediction: Prediction, work: Work
) -> Floats | None:
    """Mean power of the CPU packages (and of DRAM where the profile's scope includes it)."""
    if profile.host_power is None:
        return None
    return host_power.value(profile.host_power, *host_load(profile, frame, prediction, work))
