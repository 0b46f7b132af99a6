"""Which state a demand leads to: the balance of inflow, folding and garbage collection.

What the host writes fills the cache; background work clears it while the drive is left alone. It
begins a while after its last request (`delay_seconds`, s below: the drive's own, else its settle
time), and takes `DeviceState.seconds_per_byte` (k) for a written byte, by the power state that the
drive is in meanwhile. With v written bytes a second:

* Requests that arrive one by one by chance (Poisson, r a second) leave the drive alone for more
  than s for the share

      q = (1 - u) exp(-r s)

  of the time: gaps longer than s take (1 + r s) exp(-r s) of the idle time, of which the first s of
  each, r s exp(-r s), is lost to settling; u is the busy share. For thousands of requests a second
  that is next to none. The cache gains v - q / k bytes a second, never below empty.
* Bursts of b written bytes with gaps g between them: after each burst (g - s) / k bytes are
  cleared, at most b. The cache holds b and what was left by all bursts before.

From what the cache holds at the end of the horizon follows the share of collecting, as from bytes
written (`DeviceState.collecting`): 0 up to `cached_bytes`, 1 from `transition_bytes` on, which is
the steady state. Garbage collection beside a host's writes sets the rate of that state and frees
no cache for as long as inflow exceeds what is cleared. So a demand that gains on the cache, however
slowly, is steady after a long enough horizon.

Bands of what a workload costs beside its requests: gaps, wake-ups and work after writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DeviceProfile, Parameter
from iojoule.model.evaluate import device_power, idle_gaps
from iojoule.model.evaluate.bands import EVIDENCE, Band, Floats, linear_band, log_band
from iojoule.model.evaluate.device_state import DeviceState
from iojoule.model.evaluate.frame import Frame
from iojoule.model.evaluate.idle_gaps import settle_seconds
from iojoule.model.evaluate.quantities import NORMAL_90

NEWTON_STEPS = 6
"""Steps to the root of x exp(x); four reach the last digit from 1e-9 to 1e9."""


@dataclass(frozen=True)
class Inflow:
    """What is written to the drive and how it arrives; single values or arrays of shape (n,).

    Attributes:
        bytes_per_second: Written by the host, on average; infinite for as fast as can be.
        requests_per_second: Requests of both directions that arrive one by one; infinite where the
            host never pauses. Not used for bursts.
        burst_bytes: Written between two gaps; 0 where requests arrive one by one.
        gap_seconds: Length of the gaps between bursts.
        busy: Busy share of the drive. Not used for bursts.
    """

    bytes_per_second: Floats | float
    requests_per_second: Floats | float = np.inf
    burst_bytes: Floats | float = 0.0
    gap_seconds: Floats | float = 0.0
    busy: Floats | float = 0.0


@dataclass(frozen=True)
class Balance:
    """Where a demand leads to; every array of shape (n,).

    Attributes:
        collecting: Share of collecting at the end of the horizon, 0 to 1; 1 is the steady state.
        cleared_bytes_per_second: What background work clears, on average, while there is any.
        reached_bytes: What the cache would hold at the end of the horizon without collecting.
        full_seconds: When the cache is full; infinite where it never is.
    """

    collecting: Floats
    cleared_bytes_per_second: Floats
    reached_bytes: Floats
    full_seconds: Floats


def delay_seconds(profile: DeviceProfile) -> float:
    """How long a drive waits after its last request before it works on its own behalf."""
    known = profile.write_state.background_delay_seconds if profile.write_state else None
    return known.value if known is not None else settle_seconds(profile.idle)


def balance(
    profile: DeviceProfile, frame: Frame, inflow: Inflow, horizon_seconds: float
) -> Balance:
    """Follow inflow and clearing over the horizon, from an empty cache.

    Args:
        profile: The drive. One that knows nothing of writes over time has no cache to fill.
        frame: The configurations, of which pattern, fill and the power state of background work
            count.
        inflow: What is written.
        horizon_seconds: How long the demand lasts, above 0.
    """
    rows, state = len(frame), DeviceState(profile)
    written = np.broadcast_to(np.asarray(inflow.bytes_per_second, dtype=float), (rows,))
    if state.known is None:
        nothing = np.zeros(rows)
        return Balance(nothing, nothing, nothing, np.full(rows, np.inf))
    size = state.cache_share(frame.fill_fraction)
    full = state.known.cached_bytes.value * size
    over = state.known.transition_bytes.value * size
    pace = _pace(state, frame)
    settle = delay_seconds(profile)
    burst = np.broadcast_to(np.asarray(inflow.burst_bytes, dtype=float), (rows,))
    requests = np.asarray(inflow.requests_per_second, dtype=float)
    alone = np.where(np.isinf(requests), 0.0, np.exp(-settle * np.minimum(requests, 1e300)))
    cleared = pace * (1.0 - np.asarray(inflow.busy)) * alone
    with np.errstate(divide="ignore", invalid="ignore"):
        gained = np.maximum(written - cleared, 0.0)
        reached = gained * horizon_seconds
        seconds = np.where(gained > 0, over / gained, np.inf)
        if (burst > 0).any():
            period = np.where(written > 0, burst / written, np.inf)
            by_gap = pace * np.maximum(np.asarray(inflow.gap_seconds) - settle, 0.0)
            left_bytes = np.maximum(burst - by_gap, 0.0)
            # what the last burst brings stands beside what all earlier ones left
            bursts = np.maximum(horizon_seconds / period - 1.0, 0.0)
            in_bursts = (burst > 0) & (written > 0)
            left = np.where(left_bytes > 0, left_bytes * bursts, 0.0)
            reached = np.where(in_bursts, burst + left, reached)
            cleared = np.where(in_bursts, by_gap / period, cleared)
            until = np.where(left_bytes > 0, period * (1.0 + (over - burst) / left_bytes), np.inf)
            seconds = np.where(in_bursts, np.where(burst >= over, 0.0, until), seconds)
        collecting = np.clip((reached - full) / (over - full), 0.0, 1.0)
    return Balance(collecting, cleared, reached, seconds)


def cleared_most(profile: DeviceProfile, frame: Frame) -> Floats:
    """Written bytes a second that gaps let background work keep up with at the most, shape (n,).

    Of requests that come one by one by chance: where the inflow v of the drive that is hardly busy
    is what is cleared of it, v = exp(-s r) / k with r = v / w requests a second, w written bytes
    each. So x = s v / w solves x exp(x) = s / (k w).
    """
    if (frame.read_fraction == 1.0).all():
        return np.full(len(frame), np.inf)
    state = DeviceState(profile)
    if state.known is None:
        return np.full(len(frame), np.inf)
    pace = _pace(state, frame)
    with np.errstate(divide="ignore", invalid="ignore"):
        waits = delay_seconds(profile) / (frame.request_bytes * (1.0 - frame.read_fraction))
        most = np.log(pace * waits)
    known = np.isfinite(most)  # reads write nothing, and a drive may settle at once
    wanted = np.where(known, most, 0.0)
    log_x = np.minimum(wanted, np.log(np.maximum(wanted, 1.0)))
    for _ in range(NEWTON_STEPS):
        x = np.exp(log_x)
        log_x -= (x + log_x - wanted) / (x + 1.0)
    return np.where(known, np.exp(log_x) / np.where(known, waits, 1.0), pace)


def _pace(state: DeviceState, frame: Frame) -> Floats:
    """Bytes a second that background work clears while the drive is left alone.

    Where the profile does not know it, the rate at which the drive takes writes past its cache:
    folding a byte programs what writing it there would. An assumption.
    """
    seconds, _ = state.seconds_per_byte(frame)
    rate, _ = state.collecting_rate(frame)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.isnan(seconds), rate, 1.0 / seconds)


def bands(
    profile: DeviceProfile,
    state: DeviceState,
    frame: Frame,
    known: Mapping[str, Band],
    waits: idle_gaps.Wake | None,
    awake_factor: Floats | float = 1.0,
) -> dict[str, Band]:
    """The quantities of gaps and aftermath, NaN where the profile or the question cannot tell.

    `wake_latency_ns` is the mean wait of the first requests after the stated gap,
    `cycle_power_watts` the drive's mean power over burst and gap, background work included,
    `idle_power_watts` what it draws at rest. `background_seconds` and `background_energy_joules`
    follow one burst (`burst_bytes`), or else everything that was written since the purge.

    Args:
        profile: The drive.
        state: Its device state.
        frame: The questions.
        known: Bands of IOPS and of the drive's power.
        waits: Who waits for a wake-up; None where no gap is stated.
        awake_factor: On the drive's power law, from runs (`Activity.awake_factor`).
    """
    return {
        "wake_latency_ns": _wake(profile, frame, waits),
        "cycle_power_watts": _cycle(profile, state, frame, known, awake_factor),
        "idle_power_watts": _idle(profile, frame),
        **_background(state, frame),
    }


def _unknown(rows: int) -> Band:
    nothing = np.full(rows, np.nan)
    return Band(nothing, nothing, nothing, np.full(rows, len(EVIDENCE) - 1, dtype=np.intp))


def _code(parameter: Parameter, rows: int) -> NDArray[np.intp]:
    return np.full(rows, EVIDENCE.index(parameter.evidence.value), dtype=np.intp)


def _wake(profile: DeviceProfile, frame: Frame, waits: idle_gaps.Wake | None) -> Band:
    if profile.idle is None or waits is None:
        return _unknown(len(frame))
    stated = np.where(np.isfinite(frame.gap_seconds), 1.0, np.nan)
    value = 1e9 * waits.seconds * waits.rests * stated
    doubt = waits.seconds * np.sqrt(waits.rests * (1.0 - waits.rests))
    sd = 1e9 * np.hypot(waits.seconds_sd * waits.rests, doubt)
    return linear_band(value, sd, _code(profile.idle.wake_seconds, len(frame)))


def _cycle(
    profile: DeviceProfile,
    state: DeviceState,
    frame: Frame,
    known: Mapping[str, Band],
    factor: Floats | float,
) -> Band:
    active = known["device_power_watts"]
    sd = (active.high - active.value) / NORMAL_90
    cycle = idle_gaps.cycle(profile, state, frame, known["iops"].value, (active.value, sd), factor)
    if cycle is None:
        return _unknown(len(frame))
    return linear_band(cycle.watts, cycle.watts_sd, active.evidence)


def _idle(profile: DeviceProfile, frame: Frame) -> Band:
    power = profile.device_power
    if power is None:
        return _unknown(len(frame))
    value, sd = device_power.idle_watts(power, frame.power_state)
    words = [EVIDENCE.index(watts.evidence.value) for watts in power.idle_watts]
    return linear_band(value, sd, np.array(words, dtype=np.intp)[frame.power_state])


def _background(state: DeviceState, frame: Frame) -> dict[str, Band]:
    if state.known is not None:
        parameter = state.known.background_joules_per_byte
    elif state.seen_work is not None:
        parameter = state.seen_work.joules_per_byte
    else:
        unknown = _unknown(len(frame))
        return {"background_seconds": unknown, "background_energy_joules": unknown}
    written = np.where(np.isnan(frame.burst_bytes), frame.bytes_written, frame.burst_bytes)
    written = written * (1.0 - frame.read_fraction)
    code = _code(parameter, len(frame))
    seconds, log_sd = state.background_seconds(frame, written)
    joules, joules_sd = state.joules_per_byte(frame)
    more = np.where(state.ran_full(written), state.full_work, 1.0)
    owed = more * written
    return {
        "background_seconds": log_band(more * seconds, log_sd, code),
        "background_energy_joules": linear_band(joules * owed, joules_sd * owed, code),
    }
