"""Idle power: measured in every power state, and waited for after work."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from iojoule.measure.campaign.folder import IdleBaseline
from iojoule.measure.campaign.plan import Settle
from iojoule.measure.errors import SensorError
from iojoule.measure.recording import Recording
from iojoule.measure.recording.recorder import Recorder
from iojoule.measure.sensors.protocol import Scope

_LOOK_SECONDS = 0.1
_ARRIVE_SECONDS = 2.0
"""Samples are known so much later at the most."""


@dataclass(frozen=True)
class WaitResult:
    """How a wait for idle power ended."""

    seconds: float
    is_back: bool


class RecorderOf(Protocol):
    """Makes a recorder of the campaign's sensors that writes into a folder."""

    def __call__(self, folder: Path) -> Recorder:
        """The recorder, not started."""


def wait_until_back(
    recorder: Recorder, baseline: IdleBaseline | None, settle: Settle, seconds_max: float
) -> WaitResult:
    """Wait until the drive draws idle power, `seconds_max` at most.

    Without a baseline: until two consecutive windows agree. Raises SensorError if the meter fails.
    """
    began = time.monotonic()
    previous: float | None = None
    while time.monotonic() - began < seconds_max:
        pause(recorder, settle.window_seconds)
        recent = recorder.recent_power(Scope.DEVICE, settle.window_seconds)
        if recent is None:
            if time.monotonic() - began > settle.window_seconds + _ARRIVE_SECONDS:
                break  # no sensor measures the drive's power
            continue
        level = baseline.mean_watts if baseline is not None else previous
        previous = recent.mean_watts
        if level is None:
            continue
        margin = settle.tolerance * level
        # noise widens the margin, but not work that begins inside the window and scatters it
        margin += min(3 * recent.standard_error_watts, margin)
        low_enough = recent.mean_watts <= level + margin
        if low_enough and (baseline is not None or recent.mean_watts >= level - margin):
            return WaitResult(time.monotonic() - began, True)
    return WaitResult(time.monotonic() - began, False)


def measure_baseline(recorder_of: RecorderOf, settle: Settle) -> IdleBaseline | None:
    """Measure idle power; None without a sensor of the drive.

    Raises SensorError if a sensor failed.
    """
    with TemporaryDirectory(prefix="iojoule-idle-") as folder:
        recorder = recorder_of(Path(folder))
        recorder.start()
        try:
            wait_until_back(recorder, None, settle, settle.after_writes_seconds_max)
            begin = time.monotonic_ns()
            pause(recorder, settle.baseline_seconds)
            end = time.monotonic_ns()
            recent = recorder.recent_power(Scope.DEVICE, settle.baseline_seconds)
        finally:
            recording = recorder.stop()
        scatter = recent.sd_of_second_watts if recent is not None else None
        return _baseline(recording, begin, end, scatter or 0.0)


def _baseline(recording: Recording, begin: int, end: int, sd_watts: float) -> IdleBaseline | None:
    power = recording.power(Scope.DEVICE, begin, end)
    if power is None or power.mean_watts is None:
        return None
    return IdleBaseline(
        mean_watts=power.mean_watts,
        standard_error_watts=power.standard_error_watts or 0.0,
        sd_watts=sd_watts,
        seconds=(end - begin) / 1e9,
        when_utc=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def pause(recorder: Recorder, seconds: float) -> None:
    """Sleep, but raise SensorError as soon as a sensor fails."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(_LOOK_SECONDS, left))
        reason = recorder.failed()
        if reason is not None:
            raise SensorError(reason)
