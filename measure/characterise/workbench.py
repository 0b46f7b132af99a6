"""Makes a question's observations on a real drive: one recording, and fio runs within it."""

from __future__ import annotations

import math
import time
from pathlib import Path

from iojoule.datasets.characteristics import Evidence, Row
from iojoule.datasets.importers.fio_file import find_files, load
from iojoule.datasets.importers.fio_stats import Stats, direction_stats
from iojoule.datasets.schema import Measurement
from iojoule.measure.campaign import idle, settings
from iojoule.measure.campaign.rig import Rig
from iojoule.measure.characterise.jobs import expected_seconds, point_of, write_job
from iojoule.measure.characterise.question import Job
from iojoule.measure.characterise.scope import Scope
from iojoule.measure.characterise.sensed import Observed, sensed
from iojoule.measure.errors import HostStateError, SensorError
from iojoule.measure.fio import RESULT_FILE, Outcome, read_outcome, run_fio
from iojoule.measure.recording import Recorder, Recording
from iojoule.measure.sensors.protocol import Scope as PowerScope

_LOOK_SECONDS = 0.1
_MARGIN = 0.03
"""Quiet is who draws at most so much more than idle, and three of its standard errors."""
LEAST_RELATIVE_ERROR = 0.005
_RAGGED_ENDS = 0.3  # of a uniform distribution over one in-flight window: 1 / sqrt(12)


class Workbench:
    """A `Bench` on a real drive.

    Args:
        rig: What it works with.
        folder: Of the question; raw series and job files go there.
        scope: Times and sizes.
        idle_row: Idle power, measured before; None = it is being measured.
    """

    def __init__(self, rig: Rig, folder: Path, scope: Scope, idle_row: Row | None) -> None:
        self._rig = rig
        self._folder = folder
        self._scope = scope
        self._idle = idle_row
        self._observed: list[Observed] = []
        self._recorder = Recorder(rig.sensors, folder / "series")
        self._ended_ns = 0
        self._state: int | None = None

    @property
    def power_states(self) -> tuple[int, ...]:
        """Of the controller."""
        told = self._rig.drive.controller
        return tuple(one.index for one in told.power_states) if told is not None else ()

    @property
    def bytes_written(self) -> int:
        """By the runs so far."""
        return sum(one.job.bytes_written for one in self._observed if one.job is not None)

    def start(self) -> None:
        """Begin to record."""
        self._recorder.start()

    def stop(self) -> Recording:
        """End the recording."""
        return self._recorder.stop()

    def failed(self) -> str | None:
        """Why a sensor failed."""
        return self._recorder.failed()

    def complete(self, recording: Recording) -> tuple[Evidence, list[Measurement]]:
        """Put watts beside what was observed.

        Raises:
            SensorError: The power meter did not deliver.
            DriveError: Somebody else used the drive meanwhile.
        """
        return sensed(self._observed, recording, self._rig, self._idle)

    def run(self, job: Job) -> Row:
        """Run fio."""
        rig = self._rig
        number = len(self._observed) + 1
        folder = self._folder / "runs" / f"{number:02d}-{job.label.replace(' ', '-')}"
        write_job(job, rig.drive.device.path, self._scope, number, folder)
        begin = time.monotonic_ns()
        run_fio(rig.fio, folder, expected_seconds(job, self._scope), self._recorder.failed)
        self._ended_ns = time.monotonic_ns()
        point = point_of(job, self._scope.area_bytes)
        outcome = read_outcome(folder, point)
        to_monotonic = time.monotonic_ns() - time.time_ns()
        values = {
            **_setting(job),
            **_performance(outcome, folder, job),
            "begin_ns": float(outcome.begin_unix_ns + to_monotonic),
            "end_ns": float(outcome.end_unix_ns + to_monotonic),
            "span_begin_ns": float(begin),
            "span_end_ns": float(self._ended_ns),
        }
        return self._keep(Observed(Row(label=job.label, values=values), job, point, outcome))

    def rest(self, label: str, seconds: float) -> Row:
        """Do nothing for so long."""
        begin = time.monotonic_ns()
        idle.pause(self._recorder, seconds)
        held = self._state_held()
        return self._keep(_window(label, begin, {} if held is None else {"state_held": held}))

    def quiet(self, label: str) -> Row:
        """Wait until idle power was drawn for `quiet_seconds`; without a meter wait so long."""
        begin, needed = time.monotonic_ns(), self._scope.quiet_seconds
        since = self._ended_ns or begin
        is_quiet = 0.0
        while time.monotonic_ns() - begin < self._scope.quiet_seconds_max * 1e9:
            idle.pause(self._recorder, _LOOK_SECONDS)
            if (time.monotonic_ns() - since) * 1e-9 < needed + _LOOK_SECONDS:
                continue
            recent = self._recorder.recent_power(PowerScope.DEVICE, needed)
            if recent is None or self._idle is None or "power_watts" not in self._idle.values:
                break
            # not the error of the recent mean: work that begins within the window makes it large
            margin = _MARGIN * self._idle["power_watts"] + 3 * self._idle["power_error_watts"]
            if recent.mean_watts <= self._idle["power_watts"] + margin:
                is_quiet = 1.0
                break
        row = _window(label, begin, {"quiet": is_quiet})
        if self._ended_ns:
            row.row.values["span_begin_ns"] = float(self._ended_ns)
            self._ended_ns = 0
        return self._keep(row)

    def power_state(self, number: int) -> None:
        """Set a power state, whatever the drive was last told: asleep it may have woken."""
        if self._rig.controller is None:
            raise HostStateError("power states need the controller; name it with --controller")
        change = settings.power_state(self._rig.controller)
        self._rig.state.forget(change)
        self._rig.state.set(change, str(number))
        self._state = number
        idle.pause(self._recorder, self._scope.settle_seconds)

    def wake(self, label: str) -> Row:
        """Read one block and take the time."""
        begin = time.monotonic_ns()
        settings.wake(self._rig.drive.device)
        taken = time.monotonic_ns() - begin
        return self._keep(_window(label, begin, {"latency_ns": float(taken)}))

    def _state_held(self) -> float | None:
        if self._state is None or self._rig.controller is None:
            return None
        now = int(settings.power_state(self._rig.controller).get()) & 0x1F
        return float(now == self._state)

    def _keep(self, observed: Observed) -> Row:
        reason = self._recorder.failed()
        if reason is not None:
            raise SensorError(reason)
        self._observed.append(observed)
        return observed.row


def _window(label: str, begin_ns: int, values: dict[str, float]) -> Observed:
    end = float(time.monotonic_ns())
    times = {"begin_ns": float(begin_ns), "end_ns": end}
    spans = {"span_begin_ns": float(begin_ns), "span_end_ns": end}
    return Observed(Row(label=label, values={**values, **times, **spans}))


def _setting(job: Job) -> dict[str, float]:
    found = {
        "request_bytes": float(job.request_bytes),
        "queue_depth": float(job.queue_depth),
        "offset_bytes": float(job.offset_bytes),
        "bytes_written": float(job.bytes_written),
    }
    if job.window_bytes is not None:
        found["window_bytes"] = float(job.window_bytes)
    if job.operations_per_second is not None:
        found["asked_operations_per_second"] = job.operations_per_second
    return found


def _performance(outcome: Outcome, folder: Path, job: Job) -> dict[str, float]:
    """What fio measured, and the standard error of a rate in a closed loop.

    There X = N / R, so that the rate errs as the mean latency does: its scatter over the root of
    the number of requests. What is in flight at the ends, N of all requests, adds a part of it.
    """
    kept = ("throughput_bytes_per_second", "iops", "latency_mean_ns", "latency_p50_ns",
            "latency_p99_ns", "cpu_utilisation")  # fmt: skip
    values = {name: outcome.observations[name] for name in kept if name in outcome.observations}
    values["requests"] = float(outcome.requests)
    stats = _stats(folder)
    error = math.hypot(
        LEAST_RELATIVE_ERROR, _RAGGED_ENDS * job.queue_depth / max(outcome.requests, 1)
    )
    if stats is not None and stats.bins and stats.mean_ns:
        total = sum(stats.bins.values())
        spread = sum(count * (ns - stats.mean_ns) ** 2 for ns, count in stats.bins.items()) / total
        error = math.hypot(error, math.sqrt(spread) / stats.mean_ns / math.sqrt(total))
    values["relative_error"] = error
    return values


def _stats(folder: Path) -> Stats | None:
    run = load(find_files([folder / RESULT_FILE])[0]).run
    parts = [direction_stats(part) for job in run.jobs for part in (job.read, job.write)
             if part.total_ios]  # fmt: skip
    return parts[0] if len(parts) == 1 else None
