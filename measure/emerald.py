"""SNIA Emerald metrics of a campaign with the plan `emerald`.

docs/characterise.md lists sources, and assumptions made without the device specification.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from iojoule.datasets import measured_drive
from iojoule.datasets.verdict import usable
from iojoule.measure.campaign.folder import CampaignFolder, RunRecord, Status
from iojoule.measure.campaign.plan import parse_plan
from iojoule.measure.errors import CampaignError
from iojoule.measure.recording import Recording, read_recording
from iojoule.measure.recording.statistics import batch_standard_error
from iojoule.measure.sensors.diskstats import MOVED_BYTES
from iojoule.measure.sensors.protocol import Scope

SMOOTHING = 0.25
DEVIATION_MAX = 0.05
FEWEST_PERIODS = 5


@dataclass(frozen=True)
class Stability:
    """The stability assessment.

    Attributes:
        stable: Whether the smoothed metric stays within the bound; None = too few periods.
        deviation: Its largest distance from the mean, as a fraction of the mean.
    """

    stable: bool | None
    deviation: float | None
    periods: int


def stability(values: Sequence[float]) -> Stability:
    """Assess the metric of consecutive periods.

    Smoothed is s_i = 0.25 x_i + 0.75 s_(i-1), started at the mean, so that the first period weighs
    no more than any other.
    """
    if len(values) < FEWEST_PERIODS or np.mean(values) == 0:
        return Stability(None, None, len(values))
    mean = smoothed = float(np.mean(values))
    worst = 0.0
    for value in values:
        smoothed = SMOOTHING * value + (1 - SMOOTHING) * smoothed
        worst = max(worst, abs(smoothed / mean - 1))
    return Stability(worst <= DEVIATION_MAX, worst, len(values))


SCHEMA_VERSION = 1
RESPONSE_TIME_SECONDS_MAX = 0.020
INTERVAL_SECONDS = 1800.0
IDLE_SECONDS = 7200.0
PERIODS = 30
LEAST_PERIOD_SECONDS = 0.3
Z = 1.959964
MEBIBYTE = 1 << 20

METRICS = {
    "random-read": ("EP_RR", "IO/s/W"),
    "random-write": ("EP_RW", "IO/s/W"),
    "sequential-read": ("EP_SR", "MiB/s/W"),
    "sequential-write": ("EP_SW", "MiB/s/W"),
    "mixed": ("mixed", "IO/s/W"),
}
"""Sweep of the plan -> name and unit; `mixed` stands in for a workload of several sizes with
hot and cold data, and bears no name of SNIA's."""


@dataclass(frozen=True)
class Metric:
    """One metric, work over watts; without a value, `notes` hold the reason.

    Attributes:
        name: SNIA's where there is one.
        low: Lower end of the 95 % interval.
        stable: Whether the stability assessment was met; None = it could not be made.
        deviation: Largest distance of the smoothed metric from its mean, as a fraction.
    """

    name: str
    unit: str
    value: float | None
    low: float | None
    high: float | None
    stable: bool | None
    deviation: float | None
    periods: int
    queue_depth: int | None
    response_time_seconds: float | None
    watts: float | None
    interval_seconds: float | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class EmeraldReport:
    """All metrics of one campaign."""

    drive: str
    plan: str
    metrics: tuple[Metric, ...]
    notes: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """As a JSON document."""
        return {"schema_version": SCHEMA_VERSION, "report": "emerald", **asdict(self)}


def emerald(
    folder: CampaignFolder,
    response_time_seconds_max: float = RESPONSE_TIME_SECONDS_MAX,
    *,
    with_doubtful: bool = False,
) -> EmeraldReport:
    """The metrics of a campaign.

    The depth with the most work within the bound on the mean response time counts; where none keeps
    it, the fastest, with a note. Failed runs are left out, and doubtful ones unless
    `with_doubtful`; a metric whose runs are all left out has no value. Raises CampaignError if the
    folder holds no run of this plan.
    """
    folder.options()
    plan = parse_plan(folder.plan_text(), str(folder.path / "plan.toml"))
    records = [record for record in folder.records() if record.status is Status.DONE]
    if not any(record.sweep in METRICS for record in records):
        raise CampaignError(
            f"{folder.path}: holds no finished run of {', '.join(METRICS)}; measure with `--plan "
            "emerald`, or name your sweeps so"
        )
    metrics = [_ready_idle(folder)]
    for sweep in METRICS:
        own = [
            record for record in records if record.sweep == sweep and record.measurement is not None
        ]
        if own:
            metrics.append(
                _active(folder, sweep, own, response_time_seconds_max, with_doubtful=with_doubtful)
            )
    notes = []
    if not plan.precondition.until_steady:
        notes.append("the drive was not preconditioned until it was steady")
    if not all(folder.state().steady.values()):
        notes.append("the drive did not become steady within the plan's rounds")
    drive = measured_drive.read_measured_drive(folder.path)
    return EmeraldReport(
        drive=drive.model if drive is not None else "unknown",
        plan=plan.name,
        metrics=tuple(metrics),
        notes=tuple(notes),
    )


def _ready_idle(folder: CampaignFolder) -> Metric:
    """Formatted capacity over idle watts, GB/W, from the baselines before and after the runs."""
    known = folder.state().idle.get("0", [])
    drive = measured_drive.read_measured_drive(folder.path)
    if not known or drive is None:
        return _absent("EP_RI", "GB/W", "idle power was not measured")
    seconds = sum(window.seconds for window in known)
    watts = sum(window.mean_watts * window.seconds for window in known) / seconds
    error = (
        math.hypot(*(window.standard_error_watts * window.seconds for window in known)) / seconds
    )
    drift = max(window.mean_watts for window in known) - min(window.mean_watts for window in known)
    error = max(error, drift / 2 / math.sqrt(len(known)))
    value = drive.capacity_bytes / 1e9 / watts
    spread = Z * error / watts * value
    deviation = max(abs(window.mean_watts / watts - 1) for window in known)
    deviation = max(deviation, *(window.sd_watts / watts for window in known))
    notes = []
    if min(window.seconds for window in known) < 0.99 * IDLE_SECONDS:
        notes.append(f"shorter than the {IDLE_SECONDS / 3600:g} h of Emerald")
    stable = deviation <= DEVIATION_MAX if len(known) > 1 else None
    return Metric(
        name="EP_RI",
        unit="GB/W",
        value=value,
        low=value - spread,
        high=value + spread,
        stable=stable,
        deviation=deviation,
        periods=len(known),
        queue_depth=None,
        response_time_seconds=None,
        watts=watts,
        interval_seconds=seconds,
        notes=tuple(notes),
    )


def _active(
    folder: CampaignFolder,
    sweep: str,
    records: Sequence[RunRecord],
    bound: float,
    *,
    with_doubtful: bool,
) -> Metric:
    name, unit = METRICS[sweep]
    known, notes = _usable(records, with_doubtful=with_doubtful)
    if not known:
        return _absent(name, unit, *notes)
    allowed = [record for record in known if _response(record) <= bound]
    if allowed:
        chosen = max(allowed, key=_rate)
    else:
        chosen = min(known, key=_response)
        notes.append(f"no depth kept the mean response time below {bound * 1e3:g} ms")
    assert chosen.measurement is not None
    begin, end = chosen.begin_monotonic_ns, chosen.end_monotonic_ns
    power = chosen.power.get(Scope.DEVICE.value)
    if begin is None or end is None or power is None or power.mean_watts is None:
        return _absent(name, unit, *notes, "the drive's power was not measured")
    seconds = (end - begin) * 1e-9
    scale = 1.0
    if unit.startswith("MiB"):
        scale = chosen.measurement.configuration.request_bytes / MEBIBYTE
    value = _rate(chosen) * scale / power.mean_watts
    series = read_recording(folder.path / "runs" / chosen.name)
    request = chosen.measurement.configuration.request_bytes
    periods = _periods(series, begin, end, request, scale)
    judged = stability(periods) if periods else Stability(None, None, 0)
    error = batch_standard_error(np.array(periods)) if len(periods) > 1 else math.nan
    if seconds < 0.99 * INTERVAL_SECONDS:
        notes.append(f"shorter than the {INTERVAL_SECONDS / 60:g} min of Emerald")
    if name == "mixed":
        notes.append("stands in for Emerald's mixed workload; no metric of SNIA's")
    calibration = power.calibration_uncertainty_watts
    if calibration is None:
        notes.append("the meter's calibration is not stated: the interval holds chance alone")
    whole = math.hypot(error / value, (calibration or 0.0) / power.mean_watts)
    spread = Z * whole * value
    bounded = math.isfinite(spread)
    return Metric(
        name=name,
        unit=unit,
        value=value,
        low=value - spread if bounded else None,
        high=value + spread if bounded else None,
        stable=judged.stable,
        deviation=judged.deviation,
        periods=judged.periods,
        queue_depth=chosen.measurement.configuration.queue_depth,
        response_time_seconds=_response(chosen),
        watts=power.mean_watts,
        interval_seconds=seconds,
        notes=tuple(notes),
    )


def _usable(
    records: Sequence[RunRecord], *, with_doubtful: bool
) -> tuple[list[RunRecord], list[str]]:
    """Runs whose verdict allows their use, by the rule of a fit, and notes on what is left out."""
    measured = [record.measurement for record in records if record.measurement is not None]
    selection = usable(measured, with_doubtful=with_doubtful)
    identities = {id(measurement) for measurement in selection.measurements}
    return [record for record in records if id(record.measurement) in identities], selection.notes


def _periods(
    series: Recording, begin_ns: int, end_ns: int, request_bytes: int, scale: float
) -> list[float]:
    """The metric of every period: operations counted by the block layer over measured joules."""
    count = min(PERIODS, int((end_ns - begin_ns) * 1e-9 / LEAST_PERIOD_SECONDS))
    if count < 1:
        return []
    edges = np.linspace(begin_ns, end_ns, count + 1).astype(np.int64).tolist()
    periods = []
    for left, right in pairwise(edges):
        power = series.power(Scope.DEVICE, left, right)
        moved = series.rate(MOVED_BYTES, left, right)
        if moved is None or power is None or power.mean_watts is None or power.mean_watts <= 0:
            return []
        periods.append(moved / request_bytes * scale / power.mean_watts)
    return periods


def _rate(record: RunRecord) -> float:
    assert record.measurement is not None
    return record.measurement.observations.iops or 0.0


def _response(record: RunRecord) -> float:
    assert record.measurement is not None
    return (record.measurement.observations.latency_mean_ns or math.inf) * 1e-9


def _absent(name: str, unit: str, *reasons: str) -> Metric:
    return Metric(name, unit, None, None, None, None, None, 0, None, None, None, None, reasons)
