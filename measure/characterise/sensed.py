"""Puts what the instruments recorded beside what fio said, once a question's recording is over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from iojoule.datasets.characteristics import Evidence, Row
from iojoule.datasets.littles_law import FAIL_ABOVE
from iojoule.datasets.schema import Measurement, from_row
from iojoule.datasets.vocabulary import Operation
from iojoule.measure.campaign.rig import Rig, conditions
from iojoule.measure.characterise.question import Job
from iojoule.measure.errors import DriveError, SensorError
from iojoule.measure.fio import Outcome
from iojoule.measure.point import Point
from iojoule.measure.recording import Recording
from iojoule.measure.sensors.protocol import POWER_FIELDS
from iojoule.measure.sensors.protocol import Scope as PowerScope

TRACE_STEP_SECONDS = 0.1
TRACE_BINS_MAX = 400
_FOREIGN_SHARE = 0.08


@dataclass(frozen=True)
class Observed:
    """A row and, of a run, where it came from."""

    row: Row
    job: Job | None = None
    point: Point | None = None
    outcome: Outcome | None = None


def sensed(
    observed: Sequence[Observed], recording: Recording, rig: Rig, idle: Row | None
) -> tuple[Evidence, list[Measurement]]:
    """The evidence with watts, and what of it fits the schema of measurements.

    Raises:
        SensorError: The power meter did not deliver.
        DriveError: Somebody else used the drive meanwhile.
    """
    for one in observed:
        one.row.values.update(_power(one.row, recording))
        if one.job is not None:
            _require_alone(one, recording, rig)
    rows = [one.row for one in observed]
    series: dict[str, tuple[float, ...]] = {}
    for place, one in enumerate(observed):
        if one.job is not None and one.job.trace:
            after = rows[place + 1] if place + 1 < len(rows) else one.row
            series |= _trace(one, after, recording)
    measurements = [
        _measurement(one, recording, rig, idle) for one in observed if _fits_the_schema(one)
    ]
    first = (idle.model_copy(update={"label": "idle"}),) if idle is not None else ()
    return Evidence(rows=(*first, *rows), series=series), measurements


def _power(row: Row, recording: Recording) -> dict[str, float]:
    """Watts over the measured part, joules over the whole span."""
    power = recording.power(PowerScope.DEVICE, int(row["begin_ns"]), int(row["end_ns"]))
    if power is None:
        return {}
    if power.samples == 0:
        raise SensorError(
            f"{row.label}: the drive's power meter delivered nothing; see the raw series"
        )
    found: dict[str, float] = {}
    if power.mean_watts is not None:
        found["power_watts"] = power.mean_watts
        found["power_error_watts"] = power.standard_error_watts or 0.0
        if power.calibration_uncertainty_watts is not None:
            found["power_calibration_watts"] = power.calibration_uncertainty_watts
    span = int(row["span_begin_ns"]), int(row["span_end_ns"])
    whole = recording.power(PowerScope.DEVICE, *span)
    if whole is not None and whole.energy_joules is not None:
        found["span_joules"] = whole.energy_joules
        found["span_seconds"] = (span[1] - span[0]) * 1e-9
    return found


def _require_alone(one: Observed, recording: Recording, rig: Rig) -> None:
    """Fail where more went through the drive than fio moved, as a campaign's runs do."""
    row, job = one.row, one.job
    assert job is not None
    begin, end = int(row["begin_ns"]), int(row["end_ns"])
    moved = 0.0
    for rail in ("disk-read-bytes", "disk-write-bytes"):
        counted = recording.counter(rail, begin, end)
        moved += counted.per_second if counted is not None else 0.0
    own = row["throughput_bytes_per_second"]
    # at 10 Hz the counters lag by up to a reading at either end
    edge = 2 * job.request_bytes * job.queue_depth / ((end - begin) * 1e-9)
    lag = 2 * 0.1 * own / ((end - begin) * 1e-9)
    if moved > own * (1 + _FOREIGN_SHARE) + edge + lag:
        raise DriveError(
            f"{rig.drive.device.path}: during {row.label} {moved / 1e6:.2f} MB/s went through the "
            f"drive, of which {own / 1e6:.2f} MB/s were fio's; find out who uses it and stop it"
        )


def _trace(one: Observed, after: Row, recording: Recording) -> dict[str, tuple[float, ...]]:
    """Bytes and watts over time, from the begin of a run to the end of the row after it."""
    assert one.job is not None
    begin, end = int(one.row["span_begin_ns"]), int(after["span_end_ns"])
    step = int(max(TRACE_STEP_SECONDS, (end - begin) * 1e-9 / TRACE_BINS_MAX) * 1e9)
    verb = "write" if one.job.operation is Operation.WRITE else "read"
    times: list[float] = []
    moved: list[float] = []
    watts: list[float] = []
    for left in range(begin, end - step + 1, step):
        power = recording.power(PowerScope.DEVICE, left, left + step)
        counted = recording.counter(f"disk-{verb}-bytes", left, left + step)
        times.append((left + step - begin) * 1e-9)
        moved.append(counted.delta if counted is not None else 0.0)
        if power is not None and power.mean_watts is not None:
            watts.append(power.mean_watts)
    name = one.row.label
    found = {f"{name} seconds": tuple(times), f"{name} bytes": tuple(moved)}
    if len(watts) == len(times):  # a slow meter has no series
        found[f"{name} watts"] = tuple(watts)
    return found


def _fits_the_schema(one: Observed) -> bool:
    """Whether a reader of the dataset would see all that mattered in the run's fields."""
    if one.job is None or one.outcome is None or one.job.effects or one.job.order is not None:
        return False
    if one.job.offset_bytes or one.job.window_bytes is not None:
        return False
    ratio = one.outcome.littles_ratio
    return ratio is None or abs(ratio - 1) <= FAIL_ABOVE


def _measurement(one: Observed, recording: Recording, rig: Rig, idle: Row | None) -> Measurement:
    assert one.point is not None
    assert one.outcome is not None
    begin, end = int(one.row["begin_ns"]), int(one.row["end_ns"])
    power: dict[str, Any] = {}
    for scope, name in POWER_FIELDS.items():
        told = recording.power(scope, begin, end)
        if told is not None and told.mean_watts is not None:
            power[name] = max(0.0, told.mean_watts)
    if idle is not None and "power_watts" in idle.values:
        power["idle_power_watts"] = idle["power_watts"]
    workload = one.point.workload.model_dump(mode="json", exclude_none=True)
    return from_row(
        {
            **workload,
            **one.point.configuration.model_dump(mode="json", exclude_none=True),
            **conditions(rig.drive, rig.host, None, None),
            "series_id": f"characterise/{one.row.label}",
            **one.outcome.observations,
            **power,
        },
        where=one.row.label,
    )
