"""Records several sensors at once: one thread each, one writer, complete files only.

A failed sensor ends alone; the others go on, and `Recorder.failed` holds the reason.
"""

from __future__ import annotations

import contextlib
import math
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from iojoule.measure.errors import SensorError
from iojoule.measure.recording import Recording, read_recording
from iojoule.measure.recording.series import Spool
from iojoule.measure.recording.statistics import batch_standard_error
from iojoule.measure.sensors.protocol import Chunk, Delivery, Flag, Kind, Probe, Scope, Sensor

BIN_NS = 10_000_000
KEPT_SECONDS = 120.0
FEWEST_BINS = 5


@dataclass(frozen=True)
class RecentPower:
    """Mean power of the last seconds.

    Attributes:
        standard_error_watts: Of that mean, autocorrelation allowed for.
        sd_of_second_watts: Standard deviation of the means of single seconds; None with < 3.
    """

    mean_watts: float
    standard_error_watts: float
    sd_of_second_watts: float | None
    seconds: float


class Recent:
    """Means over 10 ms of the rails of one scope, for the last two minutes."""

    def __init__(self, probe: Probe, scope: Scope) -> None:
        rails = [
            (place, rail)
            for place, rail in enumerate(probe.rails)
            if rail.scope is scope and rail.counts and rail.kind in (Kind.POWER, Kind.ENERGY)
        ]
        self._columns = [place for place, _ in rails]
        self._energy = any(rail.kind is Kind.ENERGY for _, rail in rails)
        self._bins: deque[tuple[int, float, float]] = deque()  # end, seconds, joules
        self._before: tuple[int, float] | None = None
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._columns)

    def add(self, chunk: Chunk) -> None:
        """Take in samples; stale ones are left out."""
        values = chunk.values[:, self._columns].sum(axis=1)
        use = ((chunk.flags & Flag.STALE) == 0) & np.isfinite(values)
        times, values = chunk.monotonic_ns[use], values[use]
        if not len(times):
            return
        if self._before is None:
            self._before = (int(times[0]), float(values[0]))
        ends, seconds, joules = self._binned(times, values)
        with self._lock:
            self._bins.extend(zip(ends, seconds, joules, strict=True))
            oldest = self._bins[-1][0] - KEPT_SECONDS * 1e9 if self._bins else 0
            while self._bins and self._bins[0][0] < oldest:
                self._bins.popleft()
        self._before = (int(times[-1]), float(values[-1]))

    def power(self, seconds: float, period_seconds: float = 0.0) -> RecentPower | None:
        """Over the last seconds; None when fewer were recorded, or none of them is that recent.

        An instrument that is read only once in `period_seconds` may have as few as one reading in
        them: these are then its last ones, and its scatter is that of the readings before.
        """
        with self._lock:
            bins = np.array(self._bins)
        slow = FEWEST_BINS * period_seconds > seconds
        fewest = 2 if slow else FEWEST_BINS
        patience = (seconds + period_seconds) * 1e9
        if len(bins) < fewest or time.monotonic_ns() - bins[-1, 0] > patience:
            return None
        before = bins[-FEWEST_BINS:, 2] / bins[-FEWEST_BINS:, 1]
        if slow:
            bins = bins[-max(round(seconds / period_seconds), 1) :]
        else:
            bins = bins[bins[:, 0] > bins[-1, 0] - seconds * 1e9]
        covered = float(bins[:, 1].sum())
        if (not slow and len(bins) < FEWEST_BINS) or covered < 0.8 * seconds:
            return None
        watts = bins[:, 2] / bins[:, 1]
        seconds_ago = ((bins[-1, 0] - bins[:, 0]) // 1e9).astype(np.int64)
        per_second = np.bincount(seconds_ago, bins[:, 2]) / np.maximum(
            np.bincount(seconds_ago, bins[:, 1]), 1e-9
        )
        of_few = float(before.std(ddof=1)) / math.sqrt(len(bins))
        return RecentPower(
            mean_watts=float(bins[:, 2].sum()) / covered,
            standard_error_watts=of_few if slow else batch_standard_error(watts),
            sd_of_second_watts=float(per_second.std(ddof=1)) if len(per_second) > 2 else None,
            seconds=covered,
        )

    def _binned(
        self, times: NDArray[np.int64], values: NDArray[np.float64]
    ) -> tuple[list[int], list[float], list[float]]:
        assert self._before is not None
        steps = np.diff(times, prepend=self._before[0]) * 1e-9
        energy = np.diff(values, prepend=self._before[1]) if self._energy else values * steps
        bins = times // BIN_NS
        firsts = np.flatnonzero(np.diff(bins, prepend=bins[0] - 1))
        seconds = np.add.reduceat(steps, firsts)
        joules = np.add.reduceat(energy, firsts)
        ends = times[np.append(firsts[1:], len(times)) - 1]
        use = seconds > 0
        return ends[use].tolist(), seconds[use].tolist(), joules[use].tolist()


_NICE = -10
READ_SECONDS = 0.2
START_SECONDS = 30.0
STOP_SECONDS = 30.0
CLOSING_INTERVALS, CLOSING_SECONDS = 1.5, 5.0
"""How long a sensor may take for its last sample, which is awaited: without it, the end of what was
recorded would lie beyond the last reading of an instrument that is read once a second."""
WAITING_CHUNKS = 2000
"""Chunks on their way to the disk; at 25 a second and sensor that is over a minute."""


class Recorder:
    """Records sensors into a folder.

    Where two sensors measure the same scope, the first one counts. Raises SensorError if there are
    none, two of one name, or the folder already holds a recording.
    """

    def __init__(self, sensors: Sequence[Sensor], folder: Path) -> None:
        names = [sensor.name for sensor in sensors]
        if not names or len(set(names)) != len(names):
            raise SensorError(f"sensors to record must be named once each, not {names}")
        if any(folder.glob("*.parquet")):
            raise SensorError(f"{folder} already holds a recording: choose another folder")
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._queue: queue.Queue[tuple[_Track, Chunk] | None] = queue.Queue(WAITING_CHUNKS)
        self._tracks = [
            _Track(number, sensor, folder, self) for number, sensor in enumerate(sensors)
        ]
        self._writer = threading.Thread(target=self._write, name="recorder-writer", daemon=True)
        self._failures: list[str] = []
        self._ending = threading.Event()
        self.end_ns = 0
        self._recording: Recording | None = None

    def __enter__(self) -> Recorder:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._recording is None:
            self.stop()

    def start(self) -> None:
        """Start all sensors; returns when every one delivers.

        Raises SensorError if one does not start; the others are stopped and nothing is kept.
        """
        for track in self._tracks:
            track.thread.start()
        for track in self._tracks:
            if not track.started.wait(START_SECONDS):
                self.report(f"{track.sensor.name} did not start within {START_SECONDS:g} s")
        if self._failures:
            self._end_threads()
            for track in self._tracks:
                track.discard()
            raise SensorError(self._failures[0])
        self._writer.start()

    def stop(self) -> Recording:
        """Stop all sensors and complete the files; failed sensors have data up to their failure.

        Raises SensorError if samples cannot be written (disk full); no partial file stays.
        """
        if self._recording is not None:
            return self._recording
        self._end_threads()
        self._queue.put(None)
        self._writer.join()
        for track in self._tracks:
            track.finish()
        unwritten = [track.unwritten for track in self._tracks if track.unwritten]
        if unwritten:
            raise SensorError(unwritten[0])
        self._recording = read_recording(self._folder)
        return self._recording

    def failed(self) -> str | None:
        """Why the first sensor that failed did so; None while all is well."""
        return self._failures[0] if self._failures else None

    def mark(self) -> None:
        """Let every sensor that can put a mark into its stream."""
        for track in self._tracks:
            mark = getattr(track.sensor, "mark", None)
            if mark is not None and track.thread.is_alive():
                try:
                    mark()
                except SensorError as error:
                    self.report(error.message)

    def recent_power(self, scope: Scope, seconds: float) -> RecentPower | None:
        """Mean power of a scope over the last seconds (at most 120).

        None where no sensor measures it, the sensor failed, or less was recorded.
        """
        for track in self._tracks:
            recent = track.recent.get(scope)
            if recent is not None:
                return recent.power(seconds) if track.thread.is_alive() else None
        return None

    def report(self, failure: str) -> None:
        """Note that something failed."""
        self._failures.append(failure)

    def ending(self) -> bool:
        """Whether sensors are to stop."""
        return self._ending.is_set()

    def hand_over(self, track: _Track, chunk: Chunk) -> None:
        """Give samples to the writer, without waiting.

        Raises SensorError if the disk is too slow.
        """
        try:
            self._queue.put_nowait((track, chunk))
        except queue.Full as error:
            raise SensorError(
                f"{self._folder} does not take samples as fast as {track.sensor.name} delivers "
                "them: record to a faster disk"
            ) from error

    def _end_threads(self) -> None:
        self.end_ns = time.monotonic_ns()
        self._ending.set()
        for track in self._tracks:
            track.thread.join(STOP_SECONDS)
            if track.thread.is_alive():
                self.report(f"{track.sensor.name} did not stop within {STOP_SECONDS:g} s")

    def _write(self) -> None:
        while (item := self._queue.get()) is not None:
            track, chunk = item
            track.write(chunk)


class _Track:
    """One sensor with its thread and its file."""

    def __init__(self, number: int, sensor: Sensor, folder: Path, recorder: Recorder) -> None:
        self.sensor = sensor
        self.recent: dict[Scope, Recent] = {}
        self.started = threading.Event()
        self.unwritten: str | None = None
        self.thread = threading.Thread(target=self._run, name=f"sensor-{number}", daemon=True)
        self._number = number
        self._folder = folder
        self._recorder = recorder
        self._spool: Spool | None = None
        self._failure: str | None = None
        self._delivery = Delivery(0, 0, (), None, None)

    def write(self, chunk: Chunk) -> None:
        """Called by the writer only."""
        if self._spool is None:
            return
        try:
            self._spool.add(chunk)
        except SensorError as error:
            self._give_up(error)

    def finish(self) -> None:
        """Complete the file."""
        if self._spool is None:
            return
        try:
            self._spool.finish(self._delivery, self._failure)
        except SensorError as error:
            self._give_up(error)

    def discard(self) -> None:
        """Leave no file."""
        if self._spool is not None:
            self._spool.discard()

    def _run(self) -> None:
        ended = False
        _go_first()
        try:
            self._record()
            ended = True
        except SensorError as error:
            self._fail(error.message)
            ended = True
        finally:
            if not ended:
                self._fail(f"{self.sensor.name}: an error in iojoule itself; see standard error")
            self._end()
            self.started.set()

    def _record(self) -> None:
        self.sensor.start()
        probe = self.sensor.probe()
        self._prepare(probe)
        self.started.set()
        newest_ns = 0
        while not self._recorder.ending():
            newest_ns = self._pass_on(self.sensor.read(READ_SECONDS)) or newest_ns
        wait = min(CLOSING_INTERVALS / probe.nominal_hertz, CLOSING_SECONDS)
        until = time.monotonic() + wait
        while newest_ns < self._recorder.end_ns and time.monotonic() < until:
            newest_ns = self._pass_on(self.sensor.read(wait)) or newest_ns

    def _prepare(self, probe: Probe) -> None:
        self._spool = Spool(self._folder, self._number, self.sensor.name, probe)
        recents = {scope: Recent(probe, scope) for scope in Scope}
        self.recent = {scope: recent for scope, recent in recents.items() if recent}

    def _pass_on(self, chunk: Chunk) -> int:
        """Hand over; returns the time of the newest sample, 0 where there is none."""
        if not len(chunk):
            return 0
        for recent in self.recent.values():
            recent.add(chunk)
        self._recorder.hand_over(self, chunk)
        return int(chunk.monotonic_ns[-1])

    def _end(self) -> None:
        """Stop the sensor; what it held back still counts."""
        try:
            self._delivery = self.sensor.stop()
            self._pass_on(self.sensor.read(0.0))
        except SensorError as error:
            if self._failure is None:
                self._fail(error.message)

    def _fail(self, reason: str) -> None:
        self._failure = reason
        self._recorder.report(reason)

    def _give_up(self, error: SensorError) -> None:
        self._spool = None
        self.unwritten = error.message
        self._recorder.report(error.message)


def _go_first() -> None:
    """Raise this thread's priority above fio's jobs: with all processors busy, samples are lost.

    Linux gives every thread its own priority, and children of other threads do not inherit it.
    Without CAP_SYS_NICE it stays as it is.
    """
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
