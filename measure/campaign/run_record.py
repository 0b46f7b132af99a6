"""The record of a run: what fio, the sensors and the drive said, put together and doubted."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from iojoule.datasets.schema import from_row
from iojoule.datasets.vocabulary import BYPASSING_ENGINES, Engine
from iojoule.measure.campaign import believable
from iojoule.measure.campaign.conditions import conditions
from iojoule.measure.campaign.folder import IdleBaseline
from iojoule.measure.campaign.record import (
    PowerRecord,
    RunRecord,
    SensorRecord,
    Status,
    WindowRecord,
)
from iojoule.measure.campaign.watched_run import Watched
from iojoule.measure.errors import DriveError, SensorError
from iojoule.measure.fio.outcome import Outcome, read_outcome
from iojoule.measure.recording import IdlePower, PowerStatistics, WindowPower
from iojoule.measure.sensors.protocol import POWER_FIELDS, Kind, Scope

_FOREIGN_SHARE = 0.05
_DISAGREE_SHARE = 0.1
_COUNTED_BY_BLOCK_LAYER = {
    "device_commands_per_second": ("disk-reads", "disk-writes"),
    "merged_requests_per_second": ("disk-reads-merged", "disk-writes-merged"),
}
_COUNTED_BY_CPU = {"interrupts_per_second": ("cpu-interrupts",)}


def finished_record(watched: Watched) -> RunRecord:
    """The record of a run that came to its end.

    Raises:
        FioError: fio's result says that the run does not count.
        SensorError: The power meter does not cover the measured part, or was out of its range.
    """
    run = watched.run
    outcome = read_outcome(
        watched.folder, run.point, verify_littles_law=watched.plan.run.verify_littles_law
    )
    believable.require_clocks(watched.clock_before_ns, watched.clock_after_ns)
    begin, end = (
        unix - watched.clock_after_ns for unix in (outcome.begin_unix_ns, outcome.end_unix_ns)
    )
    believable.require_inside(begin, end, watched.fio_began_ns, watched.fio_ended_ns)
    _require_alone(watched, outcome, begin, end)
    power = _power(watched, begin, end)
    row = {
        **run.point.workload.model_dump(mode="json", exclude_none=True),
        **run.point.configuration.model_dump(mode="json", exclude_none=True),
        **_drive_state(watched),
        **_conditions(watched),
        **outcome.observations,
        **_counted(watched, begin, end),
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
    )


def failed_record(watched: Watched, reason: str) -> RunRecord:
    """The record of a run that failed."""
    return RunRecord(**_common(watched), status=Status.FAILED, reason=reason, notes=watched.notes)


def _common(watched: Watched) -> dict[str, Any]:
    run = watched.run
    recording = watched.recording
    deliveries = {name: recording.delivery(name) for name in recording.sensors} if recording else {}
    return {
        "number": run.number,
        "sweep": run.sweep,
        "repeat": run.repeat,
        "point": run.point.key,
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
    for power in known.values():
        believable.require_seen(power)
    device = known.get(Scope.DEVICE)
    if device is not None:
        believable.require_in_range(recording, device, begin, end)
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


def _counted(watched: Watched, begin: int, end: int) -> dict[str, float]:
    """What the block layer and the CPU counted in the measured part."""
    found: dict[str, float] = {}
    counted = _COUNTED_BY_CPU | (_COUNTED_BY_BLOCK_LAYER if _own_are_counted(watched) else {})
    for name, rails in counted.items():
        rate = _rate(watched, rails, begin, end)
        if rate is not None:
            found[name] = rate
    return found


def _own_are_counted(watched: Watched) -> bool:
    """Whether the block layer counts the run's own requests.

    Those that bypass it are counted only where Linux is told to (`iostats_passthrough`,
    Documentation/ABI/stable/sysfs-block).
    """
    if watched.run.point.configuration.engine not in BYPASSING_ENGINES:
        return True
    return watched.rig.drive.device.queue_attribute("iostats_passthrough") == "1"


def _rate(watched: Watched, rails: Sequence[str], begin: int, end: int) -> float | None:
    """Sum of some counters' rates; None where one of them was not recorded."""
    recording = watched.recording
    if recording is None:
        return None
    recorded = {rail.name for sensor in recording.sensors for rail in recording.rails(sensor)}
    deltas = [recording.counter(rail, begin, end) for rail in rails if rail in recorded]
    known = [one.per_second for one in deltas if one is not None and one.per_second is not None]
    return sum(known) if len(known) == len(rails) else None


def _require_alone(watched: Watched, outcome: Outcome, begin: int, end: int) -> None:
    """Fail a run during which somebody else used the drive too.

    The block layer's counters are read ten times a second, so what is in flight at the ends of the
    measured part may be counted on either side; that much is no proof of anybody else.
    """
    moved = _rate(watched, ("disk-read-bytes", "disk-write-bytes"), begin, end)
    if moved is None:
        return
    fio = outcome.observations["throughput_bytes_per_second"]
    own = fio if _own_are_counted(watched) else 0.0
    configuration = watched.run.point.configuration
    edge = configuration.request_bytes * configuration.queue_depth * configuration.jobs
    margin = _FOREIGN_SHARE * fio + 2 * edge / ((end - begin) / 1e9)
    if moved > own + margin:
        raise DriveError(
            f"{watched.rig.drive.device.path}: somebody else moved {(moved - own) / 1e6:.2f} MB/s "
            f"through the drive beside fio's {fio / 1e6:.2f} MB/s; find out who (`lsof`, "
            "`fatrace`, a scrub) and stop it"
        )


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
