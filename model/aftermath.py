"""What a workload costs beside its requests: gaps, waking up, and work after writes, as bands."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DeviceProfile, Parameter
from iojoule.model import device_power, idle_gaps
from iojoule.model.band import NORMAL_90, Band, linear_band, log_band
from iojoule.model.device_state import DeviceState
from iojoule.model.evidence import EVIDENCE
from iojoule.model.frame import Frame

Floats = NDArray[np.float64]


def bands(
    profile: DeviceProfile, state: DeviceState, frame: Frame, known: Mapping[str, Band],
    waits: idle_gaps.Wake | None, awake_factor: Floats | float = 1.0,
) -> dict[str, Band]:  # fmt: skip
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
    profile: DeviceProfile, state: DeviceState, frame: Frame, known: Mapping[str, Band],
    factor: Floats | float,
) -> Band:  # fmt: skip
    active = known["device_power_watts"]
    sd = (active.high - active.value) / NORMAL_90
    found = idle_gaps.cycle(profile, state, frame, known["iops"].value, (active.value, sd), factor)
    if found is None:
        return _unknown(len(frame))
    return linear_band(found.watts, found.watts_sd, active.evidence)


def _idle(profile: DeviceProfile, frame: Frame) -> Band:
    power = profile.device_power
    if power is None:
        return _unknown(len(frame))
    value, sd = device_power.idle_watts(power, frame.power_state)
    words = [EVIDENCE.index(one.evidence.value) for one in power.idle_watts]
    return linear_band(value, sd, np.array(words, dtype=np.intp)[frame.power_state])


def _background(state: DeviceState, frame: Frame) -> dict[str, Band]:
    if state.known is None:
        unknown = _unknown(len(frame))
        return {"background_seconds": unknown, "background_energy_joules": unknown}
    written = np.where(np.isnan(frame.burst_bytes), frame.bytes_written, frame.burst_bytes)
    written = written * (1.0 - frame.read_fraction)
    code = _code(state.known.background_joules_per_byte, len(frame))
    seconds, log_sd = state.background_seconds(frame, written)
    joules, joules_sd = state.joules_per_byte(frame)
    return {
        "background_seconds": log_band(seconds, log_sd, code),
        "background_energy_joules": linear_band(joules * written, joules_sd * written, code),
    }
