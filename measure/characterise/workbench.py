"""Makes an experiment's observations on a real drive: fio jobs within one recording."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iojoule.datasets.characteristics import Evidence, Row
from iojoule.datasets.importers.fio_file import Stats, direction_stats, find_files, load
from iojoule.datasets.littles_law import FAIL_ABOVE
from iojoule.datasets.schema import Configuration, Measurement, Workload, from_row
from iojoule.datasets.vocabulary import Completion, Engine, Operation
from iojoule.measure.campaign import idle, settings
from iojoule.measure.campaign.rig import Rig, conditions
from iojoule.measure.characterise.experiment import Extent, Job
from iojoule.measure.drive.nvme import POWER_STATE_MASK
from iojoule.measure.errors import DriveError, HostStateError, SensorError
from iojoule.measure.fio import (
    JOB_FILE,
    RESULT_FILE,
    FioResult,
    JobHost,
    JobTarget,
    JobTiming,
    fio_job,
    read_fio_result,
    run_fio,
)
from iojoule.measure.point import Point
from iojoule.measure.recording import Recording
from iojoule.measure.recording.recorder import Recorder
from iojoule.measure.sensors.diskstats import MOVED_BYTES
from iojoule.measure.sensors.protocol import POWER_FIELDS, Scope

ORDER_FILE = "order.log"
SLOWEST_BYTES_PER_SECOND = 1e5
"""A run that ends by bytes may be so slow before it counts as hanging (002, 5.9: 876 KB/s)."""


def point_of(job: Job, area_bytes: int) -> Point:
    """What the job measures, in the words of the schema."""
    window = job.window_bytes or area_bytes - job.offset_bytes
    return Point(
        Workload(
            operation=job.operation,
            pattern=job.pattern,
            working_set_bytes=window,
            demand_operations_per_second=job.operations_per_second,
        ),
        Configuration(
            request_bytes=job.request_bytes,
            queue_depth=job.queue_depth,
            engine=Engine.LIBAIO,
            completion=Completion.INTERRUPT,
        ),
    )


def expected_seconds(job: Job, extent: Extent) -> float:
    """How long it may take at the most before it hangs."""
    if job.bytes_total is None and job.order is None:
        return job.seconds + extent.ramp_seconds
    size = len(job.order) * job.request_bytes if job.order is not None else job.bytes_total or 0
    return size / SLOWEST_BYTES_PER_SECOND


def job_text(job: Job, device: Path, extent: Extent, seed: int) -> str:
    """The text of the job file."""
    window = job.window_bytes or extent.area_bytes - job.offset_bytes
    size = window // job.request_bytes * job.request_bytes
    timed = job.bytes_total is None and job.order is None
    # what matters is power over rate, not latency; fio's offloaded submission may hang
    timing = (
        JobTiming(job.seconds, extent.ramp_seconds, offload=False)
        if timed
        else JobTiming(0, 0, job.bytes_total, time_based=False)
    )
    text = fio_job(
        point_of(job, extent.area_bytes).workload,
        point_of(job, extent.area_bytes).configuration,
        JobTarget(str(device), job.offset_bytes, size),
        timing,
        JobHost(seed=seed),
    )
    if job.order is not None:
        text += f"read_iolog={ORDER_FILE}\nreplay_no_stall=1\n"
    return text


def order_text(job: Job, device: Path) -> str:
    """The requests one by one, as fio replays them (iolog version 2)."""
    assert job.order is not None
    verb = "read" if job.operation is Operation.READ else "write"
    lines = [
        f"{device} {verb} {job.offset_bytes + place * job.request_bytes} {job.request_bytes}"
        for place in job.order
    ]
    return "\n".join(
        ["fio version 2 iolog", f"{device} add", f"{device} open", *lines, f"{device} close", ""]
    )


def write_job(job: Job, device: Path, extent: Extent, seed: int, folder: Path) -> None:
    """Put the job's files into a folder."""
    folder.mkdir(parents=True)
    (folder / JOB_FILE).write_text(job_text(job, device, extent, seed))
    if job.order is not None:
        (folder / ORDER_FILE).write_text(order_text(job, device))


TRACE_STEP_SECONDS = 0.1
TRACE_BINS_MAX = 400
_FOREIGN_SHARE = 0.08


@dataclass(frozen=True)
class Observation:
    """A row and, of a run, where it came from."""

    row: Row
    job: Job | None = None
    point: Point | None = None
    result: FioResult | None = None


def with_sensor_data(
    observed: Sequence[Observation], recording: Recording, rig: Rig, idle: Row | None
) -> tuple[Evidence, list[Measurement]]:
    """The evidence with watts, and the rows that fit the schema of measurements.

    Raises:
        SensorError: The power meter did not deliver.
        DriveError: Another process used the drive meanwhile.
    """
    for observation in observed:
        observation.row.values.update(_power(observation.row, recording))
        if observation.job is not None:
            _require_alone(observation, recording, rig)
    rows = [observation.row for observation in observed]
    series: dict[str, tuple[float, ...]] = {}
    for place, observation in enumerate(observed):
        if observation.job is not None and observation.job.trace:
            after = rows[place + 1] if place + 1 < len(rows) else observation.row
            series |= _trace(observation, after, recording)
    measurements = [
        _measurement(observation, recording, rig, idle)
        for observation in observed
        if _fits_the_schema(observation)
    ]
    first = (idle.model_copy(update={"label": "idle"}),) if idle is not None else ()
    return Evidence(rows=(*first, *rows), series=series), measurements


def _power(row: Row, recording: Recording) -> dict[str, float]:
    power = recording.power(Scope.DEVICE, int(row["begin_ns"]), int(row["end_ns"]))
    if power is None:
        return {}
    if power.samples == 0:
        raise SensorError(
            f"{row.label}: the drive's power meter delivered nothing; see the raw series"
        )
    fields: dict[str, float] = {}
    if power.mean_watts is not None:
        fields["power_watts"] = power.mean_watts
        fields["power_error_watts"] = power.standard_error_watts or 0.0
        if power.calibration_uncertainty_watts is not None:
            fields["power_calibration_watts"] = power.calibration_uncertainty_watts
    span = int(row["span_begin_ns"]), int(row["span_end_ns"])
    whole = recording.power(Scope.DEVICE, *span)
    if whole is not None and whole.energy_joules is not None:
        fields["span_joules"] = whole.energy_joules
        fields["span_seconds"] = (span[1] - span[0]) * 1e-9
    return fields


def _require_alone(observation: Observation, recording: Recording, rig: Rig) -> None:
    """Fail where more went through the drive than fio moved, as a campaign's runs do."""
    row, job = observation.row, observation.job
    assert job is not None
    begin, end = int(row["begin_ns"]), int(row["end_ns"])
    moved = recording.rate(MOVED_BYTES, begin, end) or 0.0
    own = row["throughput_bytes_per_second"]
    # at 10 Hz the counters lag by up to a reading at either end
    edge = 2 * job.request_bytes * job.queue_depth / ((end - begin) * 1e-9)
    lag = 2 * 0.1 * own / ((end - begin) * 1e-9)
    if moved > own * (1 + _FOREIGN_SHARE) + edge + lag:
        raise DriveError(
            f"{rig.drive.device.path}: during {row.label} {moved / 1e6:.2f} MB/s went through the "
            f"drive, of which {own / 1e6:.2f} MB/s were fio's; find out who uses it and stop it"
        )


def _trace(
    observation: Observation, after: Row, recording: Recording
) -> dict[str, tuple[float, ...]]:
    """Bytes and watts over time, from the begin of a run to the end of the row after it."""
    assert observation.job is not None
    begin, end = int(observation.row["span_begin_ns"]), int(after["span_end_ns"])
    step = int(max(TRACE_STEP_SECONDS, (end - begin) * 1e-9 / TRACE_BINS_MAX) * 1e9)
    verb = "write" if observation.job.operation is Operation.WRITE else "read"
    times: list[float] = []
    moved: list[float] = []
    watts: list[float] = []
    for left in range(begin, end - step + 1, step):
        power = recording.power(Scope.DEVICE, left, left + step)
        counted = recording.counter(f"disk-{verb}-bytes", left, left + step)
        times.append((left + step - begin) * 1e-9)
        moved.append(counted.delta if counted is not None else 0.0)
        if power is not None and power.mean_watts is not None:
            watts.append(power.mean_watts)
    name = observation.row.label
    series = {f"{name} seconds": tuple(times), f"{name} bytes": tuple(moved)}
    if len(watts) == len(times):  # a slow meter has no series
        series[f"{name} watts"] = tuple(watts)
    return series


def _fits_the_schema(observation: Observation) -> bool:
    """Whether a reader of the dataset would see all that mattered in the run's fields."""
    if (
        observation.job is None
        or observation.result is None
        or observation.job.effects
        or observation.job.order is not None
    ):
        return False
    if observation.job.offset_bytes or observation.job.window_bytes is not None:
        return False
    ratio = observation.result.littles_ratio
    return ratio is None or abs(ratio - 1) <= FAIL_ABOVE


def _measurement(
    observation: Observation, recording: Recording, rig: Rig, idle: Row | None
) -> Measurement:
    assert observation.point is not None
    assert observation.result is not None
    begin, end = int(observation.row["begin_ns"]), int(observation.row["end_ns"])
    power: dict[str, Any] = {}
    for scope, name in POWER_FIELDS.items():
        statistics = recording.power(scope, begin, end)
        if statistics is not None and statistics.mean_watts is not None:
            power[name] = max(0.0, statistics.mean_watts)
    if idle is not None and "power_watts" in idle.values:
        power["idle_power_watts"] = idle["power_watts"]
    workload = observation.point.workload.model_dump(mode="json", exclude_none=True)
    return from_row(
        {
            **workload,
            **observation.point.configuration.model_dump(mode="json", exclude_none=True),
            **conditions(rig.drive, rig.host, None, None),
            "series_id": f"characterise/{observation.row.label}",
            **observation.result.observations,
            **power,
        },
        where=observation.row.label,
    )


_LOOK_SECONDS = 0.1
_MARGIN = 0.03
"""Quiet is who draws at most so much more than idle, and three of its standard errors."""
LEAST_RELATIVE_ERROR = 0.005
_RAGGED_ENDS = 0.3  # of a uniform distribution over one in-flight window: 1 / sqrt(12)


class Workbench:
    """A `Bench` on a real drive; without `idle_row`, idle power is being measured."""

    def __init__(self, rig: Rig, folder: Path, extent: Extent, idle_row: Row | None) -> None:
        self._rig = rig
        self._folder = folder
        self._extent = extent
        self._idle = idle_row
        self._observed: list[Observation] = []
        self._recorder = Recorder(rig.sensors, folder / "series")
        self._ended_ns = 0
        self._state: int | None = None

    @property
    def power_states(self) -> tuple[int, ...]:
        """Of the controller."""
        controller = self._rig.drive.controller
        return (
            tuple(state.index for state in controller.power_states)
            if controller is not None
            else ()
        )

    @property
    def bytes_written(self) -> int:
        """By the runs so far."""
        return sum(
            observation.job.bytes_written
            for observation in self._observed
            if observation.job is not None
        )

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
        """Add watts to the observations; raises as `sensed`."""
        return with_sensor_data(self._observed, recording, self._rig, self._idle)

    def run(self, job: Job) -> Row:
        """Run fio."""
        rig = self._rig
        number = len(self._observed) + 1
        folder = self._folder / "runs" / f"{number:02d}-{job.label.replace(' ', '-')}"
        write_job(job, rig.drive.device.path, self._extent, number, folder)
        begin = time.monotonic_ns()
        run_fio(rig.fio, folder, expected_seconds(job, self._extent), self._recorder.failed)
        self._ended_ns = time.monotonic_ns()
        point = point_of(job, self._extent.area_bytes)
        result = read_fio_result(folder, point)
        to_monotonic = time.monotonic_ns() - time.time_ns()
        values = {
            **_setting(job),
            **_performance(result, folder, job),
            "begin_ns": float(result.begin_unix_ns + to_monotonic),
            "end_ns": float(result.end_unix_ns + to_monotonic),
            "span_begin_ns": float(begin),
            "span_end_ns": float(self._ended_ns),
        }
        return self._keep(Observation(Row(label=job.label, values=values), job, point, result))

    def rest(self, label: str, seconds: float) -> Row:
        """Do nothing for so long."""
        begin = time.monotonic_ns()
        idle.pause(self._recorder, seconds)
        held = self._state_held()
        return self._keep(_window(label, begin, {} if held is None else {"state_held": held}))

    def quiet(self, label: str) -> Row:
        """Wait until idle power was drawn for `quiet_seconds`; without a meter wait so long."""
        begin, needed = time.monotonic_ns(), self._extent.quiet_seconds
        since = self._ended_ns or begin
        is_quiet = 0.0
        while time.monotonic_ns() - begin < self._extent.quiet_seconds_max * 1e9:
            idle.pause(self._recorder, _LOOK_SECONDS)
            if (time.monotonic_ns() - since) * 1e-9 < needed + _LOOK_SECONDS:
                continue
            recent = self._recorder.recent_power(Scope.DEVICE, needed)
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
        idle.pause(self._recorder, self._extent.settle_seconds)

    def wake(self, label: str) -> Row:
        """Read one block and take the time."""
        begin = time.monotonic_ns()
        settings.wake(self._rig.drive.device)
        taken = time.monotonic_ns() - begin
        return self._keep(_window(label, begin, {"latency_ns": float(taken)}))

    def _state_held(self) -> float | None:
        if self._state is None or self._rig.controller is None:
            return None
        now = int(settings.power_state(self._rig.controller).get()) & POWER_STATE_MASK
        return float(now == self._state)

    def _keep(self, observed: Observation) -> Row:
        reason = self._recorder.failed()
        if reason is not None:
            raise SensorError(reason)
        self._observed.append(observed)
        return observed.row


def _window(label: str, begin_ns: int, values: dict[str, float]) -> Observation:
    end = float(time.monotonic_ns())
    times = {"begin_ns": float(begin_ns), "end_ns": end}
    spans = {"span_begin_ns": float(begin_ns), "span_end_ns": end}
    return Observation(Row(label=label, values={**values, **times, **spans}))


def _setting(job: Job) -> dict[str, float]:
    fields = {
        "request_bytes": float(job.request_bytes),
        "queue_depth": float(job.queue_depth),
        "offset_bytes": float(job.offset_bytes),
        "bytes_written": float(job.bytes_written),
    }
    if job.window_bytes is not None:
        fields["window_bytes"] = float(job.window_bytes)
    if job.operations_per_second is not None:
        fields["asked_operations_per_second"] = job.operations_per_second
    return fields


def _performance(result: FioResult, folder: Path, job: Job) -> dict[str, float]:
    """Performance by fio, and the standard error of a rate in a closed loop.

    With X = N / R the rate errs as the mean latency does: its scatter over the root of the number
    of requests. The requests in flight at the ends, N of all, add a part.
    """
    names = (
        "throughput_bytes_per_second",
        "iops",
        "latency_mean_ns",
        "latency_p50_ns",
        "latency_p99_ns",
        "cpu_utilisation",
    )
    values = {name: result.observations[name] for name in names if name in result.observations}
    values["requests"] = float(result.requests)
    stats = _stats(folder)
    error = math.hypot(
        LEAST_RELATIVE_ERROR, _RAGGED_ENDS * job.queue_depth / max(result.requests, 1)
    )
    if stats is not None and stats.bins and stats.mean_ns:
        total = sum(stats.bins.values())
        spread = sum(count * (ns - stats.mean_ns) ** 2 for ns, count in stats.bins.items()) / total
        error = math.hypot(error, math.sqrt(spread) / stats.mean_ns / math.sqrt(total))
    values["relative_error"] = error
    return values


def _stats(folder: Path) -> Stats | None:
    run = load(find_files([folder / RESULT_FILE])[0]).run
    parts = [
        direction_stats(part)
        for job in run.jobs
        for part in (job.read, job.write)
        if part.total_ios
    ]
    return parts[0] if len(parts) == 1 else None
