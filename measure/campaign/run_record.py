"""The record of a run: what fio, the sensors and the drive said, put together and judged."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from iojoule.datasets.errors import IojouleError
from iojoule.datasets.schema import from_row
from iojoule.datasets.verdict import (
    Reason,
    ReasonCode,
    RunVerdict,
    iojoule_slept,
    judge,
    verdict_of,
)
from iojoule.datasets.vocabulary import Engine, Verdict
from iojoule.measure.campaign.conditions import conditions
from iojoule.measure.campaign.evidence import (
    clock_evidence,
    counted_rates,
    sampled_evidence,
    unread_seconds,
)
from iojoule.measure.campaign.folder import IdleBaseline
from iojoule.measure.campaign.record import (
    PowerRecord,
    RunRecord,
    SensorRecord,
    Status,
    WindowRecord,
)
from iojoule.measure.campaign.watched_run import Watched
from iojoule.measure.errors import SensorError
from iojoule.measure.fio import read_outcome
from iojoule.measure.recording import IdlePower, PowerStatistics, WindowPower
from iojoule.measure.sensors.protocol import POWER_FIELDS, Kind, Scope

_DISAGREE_SHARE = 0.1


def finished_record(watched: Watched) -> RunRecord:
    """The record of a run that came to its end, with the verdict on it.

    Raises:
        FioError: fio's result says that the run failed.
        SensorError: The power meter delivered nothing.
    """
    run = watched.run
    outcome = read_outcome(watched.folder, run.point)
    begin, end = (
        unix - watched.clocks_after.wall_ns for unix in (outcome.begin_unix_ns, outcome.end_unix_ns)
    )
    clocks = clock_evidence(watched, outcome, begin, end)
    verdict = judge(clocks)
    if verdict.verdict is Verdict.FAILED:
        return _judged_failed(watched, verdict)
    power = _power(watched, begin, end)
    verdict = judge(sampled_evidence(clocks, watched, outcome, power, begin, end))
    if verdict.verdict is Verdict.FAILED:
        return _judged_failed(watched, verdict)
    row = {
        **run.point.workload.model_dump(mode="json", exclude_none=True),
        **run.point.configuration.model_dump(mode="json", exclude_none=True),
        **_drive_state(watched),
        **_conditions(watched),
        **outcome.observations,
        **counted_rates(watched, begin, end),
        **_observed_power(watched, power),
    }
    return RunRecord(
        **_common(watched),
        status=Status.DONE,
        begin_monotonic_ns=begin,
        end_monotonic_ns=end,
        littles_ratio=outcome.littles_ratio,
        measurement=from_row(row, where=f"run {run.number}"),
        power={scope.value: _power_record(one) for scope, one in power.items()},
        notes=[*outcome.notes, *watched.notes, *_disagreements(watched, power, begin, end)],
    ).judged(verdict)


def failed_record(watched: Watched, error: IojouleError) -> RunRecord:
    """The record of a run that an error ended; a sensor may have stalled because iojoule did."""
    slept = iojoule_slept(unread_seconds(watched, watched.fio_began_ns, watched.fio_ended_ns))
    reason = Reason(
        code=ReasonCode.RUN_ERROR,
        verdict=Verdict.FAILED,
        said=error.message,
        remedy="mend the cause, then `iojoule measure resume`",
    )
    failed = _judged_failed(watched, verdict_of([reason, slept] if slept else [reason]))
    why = f"{error.message}; {slept.said}" if slept else error.message
    return failed.model_copy(update={"reason": why})


def _judged_failed(watched: Watched, verdict: RunVerdict) -> RunRecord:
    return RunRecord(
        **_common(watched),
        status=Status.FAILED,
        reason=verdict.text,
        verdict=verdict,
        notes=watched.notes,
    )


def _common(watched: Watched) -> dict[str, Any]:
    run = watched.run
    recording = watched.recording
    deliveries = {name: recording.delivery(name) for name in recording.sensors} if recording else {}
    return {
        "number": run.number,
        "sweep": run.sweep,
        "repeat": run.repeat,
        "point": run.point.key,
        "idle_bracket": len(watched.baselines),
        "started_utc": watched.started_utc,
        "wall_seconds": time.monotonic() - watched.started,
        "fio_seconds": watched.fio_seconds,
        "waited_seconds": watched.waited_seconds,
        "sensors": {
            name: SensorRecord(samples=one.samples, lost=one.lost, errors=list(one.errors))
            for name, one in deliveries.items()
        },
    }


def _power(watched: Watched, begin: int, end: int) -> dict[Scope, PowerStatistics]:
    recording = watched.recording
    if recording is None:
        return {}
    found = {scope: recording.power(scope, begin, end) for scope in POWER_FIELDS}
    known = {scope: one for scope, one in found.items() if one is not None}
    device = known.get(Scope.DEVICE)
    if device is not None and device.mean_watts is None and device.samples == 0:
        raise SensorError(
            "the drive's power meter delivered nothing in the measured part of the run; see the "
            "run's raw series"
        )
    return known


def _disagreements(
    watched: Watched, power: Mapping[Scope, PowerStatistics], begin: int, end: int
) -> Iterator[str]:
    """Other sensors of the drive's power that say something else than the one that counts."""
    first, recording = power.get(Scope.DEVICE), watched.recording
    if recording is None or first is None or first.mean_watts is None:
        return
    for name in recording.sensors:
        if name == first.sensor or not any(
            rail.scope is Scope.DEVICE and rail.kind in (Kind.POWER, Kind.ENERGY)
            for rail in recording.rails(name)
        ):
            continue
        other = recording.power(Scope.DEVICE, begin, end, sensor=name)
        if other is None or other.mean_watts is None:
            continue
        if abs(other.mean_watts / first.mean_watts - 1) > _DISAGREE_SHARE:
            yield (
                f"{name} says {other.mean_watts:.2f} W where {first.sensor} says "
                f"{first.mean_watts:.2f} W; one of them does not see the whole drive"
            )


def _power_record(one: PowerStatistics) -> PowerRecord:
    return PowerRecord(
        sensor=one.sensor,
        rails=list(one.rails),
        mean_watts=one.mean_watts,
        standard_error_watts=one.standard_error_watts,
        calibration_uncertainty_watts=one.calibration_uncertainty_watts,
        energy_joules=one.energy_joules,
        over_1_ms=_window_record(one.over_1_ms),
        over_10_ms=_window_record(one.over_10_ms),
        over_10_s=_window_record(one.over_10_s),
        samples=one.samples,
        lost=one.lost,
        coverage=one.coverage,
        gaps=list(one.gaps),
        reason=one.reason,
    )


def _window_record(one: WindowPower | None) -> WindowRecord | None:
    if one is None:
        return None
    return WindowRecord(
        p50_watts=one.p50_watts, p99_watts=one.p99_watts, maximum_watts=one.maximum_watts
    )


def _observed_power(watched: Watched, power: dict[Scope, PowerStatistics]) -> dict[str, float]:
    """Power as observed; the 99th percentile of the drive is that of windows of 1 ms."""
    found = {
        name: power[scope].mean_watts for scope, name in POWER_FIELDS.items() if scope in power
    }
    device = power.get(Scope.DEVICE)
    if device is not None and device.over_1_ms is not None:
        found["device_power_p99_watts"] = device.over_1_ms.p99_watts
    baseline = watched.baseline
    if baseline is not None:
        found["idle_power_watts"] = baseline.mean_watts
        found |= _background(watched, baseline)
    return {name: max(0.0, value) for name, value in found.items() if value is not None}


def _background(watched: Watched, baseline: IdleBaseline) -> dict[str, float | None]:
    """Energy above idle after a run that wrote, and how long it took."""
    if watched.idle_is_back is None or watched.recording is None:
        return {}
    settle = watched.plan.settle
    level = IdlePower(
        mean_watts=baseline.mean_watts,
        sd_watts=max(baseline.sd_watts, settle.tolerance * baseline.mean_watts / 3),
        window_seconds=settle.window_seconds,
    )
    found = watched.recording.background(Scope.DEVICE, watched.fio_ended_ns, level)
    if found is None:
        return {}
    return {
        "background_energy_joules": found.energy_joules,
        "background_seconds": found.seconds,
    }


def _drive_state(watched: Watched) -> dict[str, Any]:
    """What the drive's history says of its state; what is not known is left out."""
    found: dict[str, Any] = {}
    state, run = watched.state, watched.run
    if watched.rig.controller is not None:
        found["fill_fraction"] = _fill(watched)
        if state.bytes_written_at_purge is not None and watched.smart_before is not None:
            found["host_bytes_written_since_purge"] = max(
                0, watched.smart_before.host_bytes_written - state.bytes_written_at_purge
            )
    if watched.last_write is not None:
        found["seconds_since_last_write"] = watched.started - watched.last_write
    if state.steady.get(run.point.workload.pattern.value):
        found["device_state"] = "steady"
    elif state.purged and state.bytes_written == 0:
        found["device_state"] = "fresh"
    return {name: value for name, value in found.items() if value is not None}


def _fill(watched: Watched) -> float | None:
    controller = watched.rig.controller
    known = controller is not None and watched.rig.drive.namespace is not None
    fill = controller.identify_namespace().fill_fraction if controller and known else None
    if fill is None:
        target, device = watched.plan.target, watched.rig.drive.device
        whole = target.offset_bytes == 0 and target.size_bytes in (None, device.size_bytes)
        return 1.0 if watched.state.filled and whole else None
    return min(fill, 1.0)


def _conditions(watched: Watched) -> dict[str, Any]:
    run, rig = watched.run, watched.rig
    found = conditions(rig.drive, rig.host, watched.smart_before, watched.smart_after)
    found |= {
        "series_id": f"{watched.plan.name}/{run.sweep}",
        "session_id": f"{watched.plan.name} {watched.started_utc:%Y-%m-%d}",
        "repeat_index": run.repeat,
    }
    if rig.drive.controller is not None and rig.drive.controller.volatile_write_cache:
        found.pop("volatile_write_cache", None)  # that it has one does not say that it is on
        if watched.write_cache_enabled is not None:
            found["volatile_write_cache"] = watched.write_cache_enabled
    if watched.plan.host.cpus is not None:
        found["cpu_cores_available"] = _count(watched.plan.host.cpus)
    if run.point.configuration.engine is Engine.SPDK:
        # SPDK resets the controller when it attaches, the power state included
        found["power_state_verified"] = watched.plan.host.spdk_verifies_power_state
    elif watched.state_held is not None:
        found["power_state_verified"] = watched.state_held
    return found


def _count(cpus: str) -> int:
    """How many processors a list like 0-3,8 names."""
    total = 0
    for part in cpus.split(","):
        first, _, last = part.partition("-")
        total += int(last or first) - int(first) + 1
    return total
