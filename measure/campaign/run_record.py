"""The record of a run: observations, evidence from sensors and counters, and the verdict."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from iojoule.datasets.errors import IojouleError
from iojoule.datasets.schema import from_row
from iojoule.datasets.verdict import (
    DeviceEvidence,
    PowerEvidence,
    Reason,
    ReasonCode,
    RunEvidence,
    RunVerdict,
    iojoule_slept,
    judge,
    verdict_of,
)
from iojoule.datasets.vocabulary import BYPASSING_ENGINES, Engine, Verdict
from iojoule.measure.campaign import idle
from iojoule.measure.campaign.folder import (
    CampaignState,
    IdleBaseline,
    PowerRecord,
    RunRecord,
    SensorRecord,
    Status,
)
from iojoule.measure.campaign.plan import Plan
from iojoule.measure.campaign.rig import Rig, conditions
from iojoule.measure.campaign.runs import Run
from iojoule.measure.campaign.settings import power_limit, power_state
from iojoule.measure.drive.block_device import SECTOR_BYTES
from iojoule.measure.drive.nvme import (
    POWER_STATE_MASK,
    VOLATILE_WRITE_CACHE,
    WATTS_BY_SCALE,
    NvmeController,
    Smart,
)
from iojoule.measure.drive.power_measurement import limit_watts
from iojoule.measure.errors import DriveError, SensorError
from iojoule.measure.fio import FioResult, read_fio_result
from iojoule.measure.recording import Recording
from iojoule.measure.recording.recorder import Recorder
from iojoule.measure.recording.statistics import IdlePower, PowerStatistics
from iojoule.measure.sensors.diskstats import INTERVAL_SECONDS, MOVED_BYTES
from iojoule.measure.sensors.protocol import POWER_FIELDS, Scope
from iojoule.measure.tracing.block_trace import BlockTrace, TraceSummary

_LOOK_AT_TEMPERATURE_SECONDS = 5.0


@dataclass(frozen=True)
class Clocks:
    """Offsets of the wall clock (settable) and the boot-time clock (runs while suspended), ns."""

    wall_ns: int
    boot_ns: int

    @classmethod
    def now(cls) -> Clocks:
        """Read all three."""
        monotonic = time.monotonic_ns()
        return cls(
            time.time_ns() - monotonic, time.clock_gettime_ns(time.CLOCK_BOOTTIME) - monotonic
        )


@dataclass
class RunObservation:
    """Gathers everything about one run; `last_write`: this process's, monotonic seconds."""

    run: Run
    folder: Path
    rig: Rig
    plan: Plan
    state: CampaignState
    last_write: float | None
    recording: Recording | None = None
    trace: BlockTrace | None = None
    notes: list[str] = field(default_factory=list)
    started_utc: datetime = field(default_factory=lambda: datetime.now(UTC))
    started: float = field(default_factory=time.monotonic)
    fio_seconds: float = 0.0
    waited_seconds: float = 0.0
    fio_began_ns: int = 0
    fio_ended_ns: int = 0
    clocks_before: Clocks = Clocks(0, 0)
    clocks_after: Clocks = Clocks(0, 0)
    idle_is_back: bool | None = None
    smart_before: Smart | None = None
    smart_after: Smart | None = None
    state_held: bool | None = None
    write_cache_enabled: bool | None = None
    bytes_written: int = 0
    _sectors_before: int = 0

    @property
    def baselines(self) -> list[IdleBaseline]:
        """Idle power in the run's power state and limit, in order of time."""
        chosen = self.run.point.configuration
        return self.state.idle_in(chosen.power_state, chosen.power_limit_watts)

    @property
    def baseline(self) -> IdleBaseline | None:
        """The latest of them."""
        return self.baselines[-1] if self.baselines else None

    def cool_down(self) -> None:
        """Wait for the plan's start temperature. Raises DriveError if the drive stays too hot."""
        limit = self.plan.settle.temperature_celsius_max
        if limit is None or self.rig.controller is None:
            return
        began = time.monotonic()
        while True:
            health = self._smart()
            now = health.temperature_celsius if health is not None else None
            if now is None or now <= limit:
                break
            if time.monotonic() - began > self.plan.settle.temperature_seconds_max:
                raise DriveError(
                    f"{self.rig.drive.device.path}: stays at {now:g} degrees Celsius, above the "
                    f"plan's {limit:g}; improve the cooling or raise temperature_celsius_max"
                )
            time.sleep(_LOOK_AT_TEMPERATURE_SECONDS)
        self.waited_seconds += time.monotonic() - began

    def look_before(self) -> None:
        """Look at the drive's health and counters before the run."""
        self.smart_before = self._smart()
        if self.rig.controller is not None:
            self.write_cache_enabled = self._write_cache_enabled()
        self._sectors_before = self.rig.drive.device.sectors_written()

    def look_after(self) -> None:
        """Look again, and whether power state and limit are still those that were set."""
        self.smart_after = self._smart()
        self.bytes_written = self._written()
        self.state.bytes_written += self.bytes_written
        if self.rig.controller is None:
            return
        chosen = self.run.point.configuration
        if chosen.power_limit_watts is not None:
            self._require_limit(self.rig.controller, chosen.power_limit_watts)
        wanted = chosen.power_state
        if wanted is not None:
            change = power_state(self.rig.controller)
            now = int(change.get()) & POWER_STATE_MASK
            self.state_held = now == wanted
            if not self.state_held:
                self.rig.state.forget(change)
                raise DriveError(
                    f"{self.rig.controller.node}: was set to power state {wanted} but was in "
                    f"{now} after the run; the drive or another program changed it"
                )

    def _require_limit(self, controller: NvmeController, watts: float) -> None:
        change = power_limit(controller)
        present = limit_watts(int(change.get())) or 0.0
        if not math.isclose(present, watts, abs_tol=WATTS_BY_SCALE[2]):
            self.rig.state.forget(change)
            raise DriveError(
                f"{controller.node}: was set to a power limit of {watts:g} W (0: none) but had "
                f"{present:g} W after the run; the drive or another program changed it"
            )

    def _write_cache_enabled(self) -> bool | None:
        identity = self.rig.drive.controller
        if self.rig.controller is None or identity is None or not identity.volatile_write_cache:
            return None
        try:
            return bool(self.rig.controller.feature(VOLATILE_WRITE_CACHE) & 1)
        except DriveError:
            return None

    def _written(self) -> int:
        """Bytes written during the run; what bypasses the block layer only the drive counts."""
        sectors = self.rig.drive.device.sectors_written() - self._sectors_before
        if (
            self.run.point.configuration.engine in BYPASSING_ENGINES
            and self.smart_before is not None
            and self.smart_after is not None
        ):
            counted = self.smart_after.host_bytes_written - self.smart_before.host_bytes_written
            return max(SECTOR_BYTES * sectors, counted)
        return SECTOR_BYTES * sectors

    @contextmanager
    def timing_fio(self) -> Iterator[None]:
        """Take the time that fio takes."""
        self.clocks_before = Clocks.now()
        self.fio_began_ns = time.monotonic_ns()
        try:
            yield
        finally:
            self.fio_ended_ns = time.monotonic_ns()
            self.fio_seconds = (self.fio_ended_ns - self.fio_began_ns) * 1e-9
            self.clocks_after = Clocks.now()

    def wait_for_idle(self, recorder: Recorder) -> None:
        """Wait after a run that wrote until its housekeeping is over."""
        longest = self.plan.settle.after_writes_seconds_max
        waited = idle.wait_until_back(recorder, self.baseline, self.plan.settle, longest)
        self.waited_seconds += waited.seconds
        self.idle_is_back = waited.is_back
        if not waited.is_back:
            self.notes.append(
                f"idle power was not back {waited.seconds:.0f} s after the run: background energy "
                "and duration are lower bounds, and the next run may suffer"
            )

    def _smart(self) -> Smart | None:
        """The SMART log; None, with a note, where the drive does not give it."""
        if self.rig.controller is None:
            return None
        try:
            return self.rig.controller.smart()
        except DriveError as error:
            self.notes.append(f"temperature and wear are unknown: {error.message}")
            return None


_COMMANDS = ("disk-reads", "disk-writes")
_MERGED = ("disk-reads-merged", "disk-writes-merged")
_IN_FLIGHT = "disk-in-flight"
_COUNTED_BY_BLOCK_LAYER: dict[str, tuple[str, ...]] = {
    "device_commands_per_second": _COMMANDS,
    "merged_requests_per_second": _MERGED,
}
_COUNTED_BY_CPU: dict[str, tuple[str, ...]] = {"interrupts_per_second": ("cpu-interrupts",)}


def clock_evidence(watched: RunObservation, result: FioResult, begin: int, end: int) -> RunEvidence:
    """Evidence of clocks and fio, without samples; the measured part is in monotonic ns."""
    seen, point = result.observations, watched.run.point
    before, after = watched.clocks_before, watched.clocks_after
    return RunEvidence(
        workload=point.workload,
        configuration=point.configuration,
        measured_seconds=(end - begin) * 1e-9,
        iops=seen["iops"],
        bytes_per_second=seen["throughput_bytes_per_second"],
        latency_mean_ns=seen.get("latency_mean_ns"),
        usual_p999_ns=result.usual_p999_ns,
        wall_step_seconds=(after.wall_ns - before.wall_ns) * 1e-9,
        suspended_seconds=(after.boot_ns - before.boot_ns) * 1e-9,
        outside_seconds=max(watched.fio_began_ns - begin, end - watched.fio_ended_ns) * 1e-9,
        verify_littles_law=watched.plan.run.verify_littles_law,
    )


def sampled_evidence(
    clocks: RunEvidence,
    watched: RunObservation,
    result: FioResult,
    power: Mapping[Scope, PowerStatistics],
    begin: int,
    end: int,
) -> RunEvidence:
    """The same with what the sensors and the block layer recorded."""
    recording = watched.recording
    if recording is None:
        return clocks
    first, last = (unix - watched.clocks_after.wall_ns for unix in result.pause_unix_ns)
    in_flight = None
    if _IN_FLIGHT in recording.rail_names and _own_are_counted(watched) and last > first:
        in_flight = recording.gauge(_IN_FLIGHT, first, last)
    return replace(
        clocks,
        pause_seconds=(last - first) * 1e-9,
        in_flight_in_pause=in_flight.mean if in_flight is not None else None,
        unread_seconds=unread_seconds(watched, begin, end),
        power=tuple(
            _power_evidence(recording, scope, statistics, begin, end)
            for scope, statistics in power.items()
        ),
        device=_device(watched, recording, begin, end),
    )


def unread_seconds(watched: RunObservation, begin: int, end: int) -> float | None:
    """Longest time in which iojoule read no counters; None where it recorded none."""
    recording = watched.recording
    if recording is None or _IN_FLIGHT not in recording.rail_names or end <= begin:
        return None
    return recording.longest_pause_seconds(_IN_FLIGHT, begin, end)


def counted_rates(watched: RunObservation, begin: int, end: int) -> dict[str, float]:
    """What the block layer and the CPU counted in the measured part, as observations."""
    recording = watched.recording
    if recording is None:
        return {}
    wanted = _COUNTED_BY_CPU | (_COUNTED_BY_BLOCK_LAYER if _own_are_counted(watched) else {})
    rates = {name: recording.rate(rails, begin, end) for name, rails in wanted.items()}
    return {name: rate for name, rate in rates.items() if rate is not None}


def _power_evidence(
    recording: Recording, scope: Scope, power: PowerStatistics, begin: int, end: int
) -> PowerEvidence:
    sampled = recording.sampled(scope, begin, end) if scope is Scope.DEVICE else None
    return PowerEvidence(
        sensor=power.sensor,
        mean_watts=power.mean_watts,
        standard_error_watts=power.standard_error_watts,
        coverage=power.coverage,
        full_scale_seconds=sampled[1] if sampled is not None else None,
    )


def _device(
    watched: RunObservation, recording: Recording, begin: int, end: int
) -> DeviceEvidence | None:
    moved, done, merged = (
        recording.rate(rails, begin, end) for rails in (MOVED_BYTES, _COMMANDS, _MERGED)
    )
    if moved is None or done is None or merged is None:
        return None
    return DeviceEvidence(
        bytes_per_second=moved,
        commands_per_second=done,
        merged_per_second=merged,
        interval_seconds=INTERVAL_SECONDS,
        holds_own=_own_are_counted(watched),
        largest_command_bytes=watched.rig.drive.device.largest_command_bytes("max_sectors_kb"),
    )


def _own_are_counted(watched: RunObservation) -> bool:
    """Whether the block layer counts the run's own requests.

    Engines that bypass it are counted only with `iostats_passthrough`
    (Documentation/ABI/stable/sysfs-block).
    """
    if watched.run.point.configuration.engine not in BYPASSING_ENGINES:
        return True
    return watched.rig.drive.device.queue_attribute("iostats_passthrough") == "1"


_DISAGREE_SHARE = 0.1


def finished_record(watched: RunObservation) -> RunRecord:
    """The record of a finished run, with its verdict.

    Raises:
        FioError: fio's result says that the run failed.
        SensorError: The power meter delivered nothing.
    """
    run = watched.run
    result = read_fio_result(watched.folder, run.point)
    begin, end = (
        unix - watched.clocks_after.wall_ns for unix in (result.begin_unix_ns, result.end_unix_ns)
    )
    clocks = clock_evidence(watched, result, begin, end)
    verdict = judge(clocks)
    if verdict.verdict is Verdict.FAILED:
        return _judged_failed(watched, verdict)
    power = _power(watched, begin, end)
    verdict = judge(sampled_evidence(clocks, watched, result, power, begin, end))
    if verdict.verdict is Verdict.FAILED:
        return _judged_failed(watched, verdict)
    row = {
        **run.point.workload.model_dump(mode="json", exclude_none=True),
        **run.point.configuration.model_dump(mode="json", exclude_none=True),
        **_drive_state(watched),
        **_conditions(watched),
        **result.observations,
        **counted_rates(watched, begin, end),
        **_observed_power(watched, power),
    }
    return RunRecord(
        **_common(watched),
        status=Status.DONE,
        begin_monotonic_ns=begin,
        end_monotonic_ns=end,
        littles_ratio=result.littles_ratio,
        measurement=from_row(row, where=f"run {run.number}"),
        power={
            scope.value: PowerRecord.model_validate(statistics, from_attributes=True)
            for scope, statistics in power.items()
        },
        trace=_traced(watched, begin, end),
        notes=[*result.notes, *watched.notes, *_disagreements(watched, power, begin, end)],
    ).judged(verdict)


def _traced(watched: RunObservation, begin: int, end: int) -> TraceSummary | None:
    """What the trace says of the measured part; None without --trace."""
    if watched.trace is None:
        return None
    summary = watched.trace.summary(begin, end)
    if summary.lost_events:
        watched.notes.append(
            f"the trace lost {summary.lost_events} events: its counts are lower bounds"
        )
    return summary


def failed_record(watched: RunObservation, error: IojouleError) -> RunRecord:
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


def _judged_failed(watched: RunObservation, verdict: RunVerdict) -> RunRecord:
    return RunRecord(
        **_common(watched),
        status=Status.FAILED,
        reason=verdict.text,
        verdict=verdict,
        notes=watched.notes,
    )


def _common(watched: RunObservation) -> dict[str, Any]:
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
            name: SensorRecord(
                samples=delivery.samples, lost=delivery.lost, errors=list(delivery.errors)
            )
            for name, delivery in deliveries.items()
        },
    }


def _power(watched: RunObservation, begin: int, end: int) -> dict[Scope, PowerStatistics]:
    recording = watched.recording
    if recording is None:
        return {}
    by_scope = {scope: recording.power(scope, begin, end) for scope in POWER_FIELDS}
    known = {scope: statistics for scope, statistics in by_scope.items() if statistics is not None}
    device = known.get(Scope.DEVICE)
    if device is not None and device.mean_watts is None and device.samples == 0:
        raise SensorError(
            "the drive's power meter delivered nothing in the measured part of the run; see the "
            "run's raw series"
        )
    return known


def _disagreements(
    watched: RunObservation, power: Mapping[Scope, PowerStatistics], begin: int, end: int
) -> Iterator[str]:
    """Other sensors of the drive's power that say something else than the one that counts."""
    first, recording = power.get(Scope.DEVICE), watched.recording
    if recording is None or first is None or first.mean_watts is None:
        return
    for name in recording.power_sensors(Scope.DEVICE):
        if name == first.sensor:
            continue
        other = recording.power(Scope.DEVICE, begin, end, sensor=name)
        if other is None or other.mean_watts is None:
            continue
        if abs(other.mean_watts / first.mean_watts - 1) > _DISAGREE_SHARE:
            yield (
                f"{name} says {other.mean_watts:.2f} W where {first.sensor} says "
                f"{first.mean_watts:.2f} W; one of them does not see the whole drive"
            )


def _observed_power(
    watched: RunObservation, power: dict[Scope, PowerStatistics]
) -> dict[str, float]:
    """Power as observed; the 99th percentile of the drive is that of windows of 1 ms."""
    fields = {
        name: power[scope].mean_watts for scope, name in POWER_FIELDS.items() if scope in power
    }
    device = power.get(Scope.DEVICE)
    if device is not None and device.over_1_ms is not None:
        fields["device_power_p99_watts"] = device.over_1_ms.p99_watts
    baseline = watched.baseline
    if baseline is not None:
        fields["idle_power_watts"] = baseline.mean_watts
        fields |= _background(watched, baseline)
    return {name: max(0.0, value) for name, value in fields.items() if value is not None}


def _background(watched: RunObservation, baseline: IdleBaseline) -> dict[str, float | None]:
    """Energy above idle after a run that wrote, and how long it took."""
    if watched.idle_is_back is None or watched.recording is None:
        return {}
    settle = watched.plan.settle
    level = IdlePower(
        mean_watts=baseline.mean_watts,
        sd_watts=max(baseline.sd_watts, settle.tolerance * baseline.mean_watts / 3),
        window_seconds=settle.window_seconds,
    )
    background = watched.recording.background(Scope.DEVICE, watched.fio_ended_ns, level)
    if background is None:
        return {}
    return {
        "background_energy_joules": background.energy_joules,
        "background_seconds": background.seconds,
        "host_bytes_written": float(watched.bytes_written),
    }


def _drive_state(watched: RunObservation) -> dict[str, Any]:
    """What the drive's history says of its state; what is not known is left out."""
    fields: dict[str, Any] = {}
    state, run = watched.state, watched.run
    if watched.rig.controller is not None:
        fields["fill_fraction"] = _fill(watched)
        if state.bytes_written_at_purge is not None and watched.smart_before is not None:
            fields["host_bytes_written_since_purge"] = max(
                0, watched.smart_before.host_bytes_written - state.bytes_written_at_purge
            )
    if watched.last_write is not None:
        fields["seconds_since_last_write"] = watched.started - watched.last_write
    if state.steady.get(run.point.workload.pattern.value):
        fields["device_state"] = "steady"
    elif state.purged and state.bytes_written == 0:
        fields["device_state"] = "fresh"
    return {name: value for name, value in fields.items() if value is not None}


def _fill(watched: RunObservation) -> float | None:
    controller = watched.rig.controller
    known = controller is not None and watched.rig.drive.namespace is not None
    fill = controller.identify_namespace().fill_fraction if controller and known else None
    if fill is None:
        target, device = watched.plan.target, watched.rig.drive.device
        whole = target.offset_bytes == 0 and target.size_bytes in (None, device.size_bytes)
        return 1.0 if watched.state.filled and whole else None
    return min(fill, 1.0)


def _conditions(watched: RunObservation) -> dict[str, Any]:
    run, rig = watched.run, watched.rig
    fields = conditions(rig.drive, rig.host, watched.smart_before, watched.smart_after)
    fields |= {
        "series_id": f"{watched.plan.name}/{run.sweep}",
        "session_id": f"{watched.plan.name} {watched.started_utc:%Y-%m-%d}",
        "repeat_index": run.repeat,
    }
    if rig.drive.controller is not None and rig.drive.controller.volatile_write_cache:
        fields.pop("volatile_write_cache", None)  # that it has one does not say that it is on
        if watched.write_cache_enabled is not None:
            fields["volatile_write_cache"] = watched.write_cache_enabled
    if watched.plan.host.cpus is not None:
        fields["cpu_cores_available"] = _count(watched.plan.host.cpus)
    if run.point.configuration.engine is Engine.SPDK:
        # SPDK resets the controller when it attaches, the power state included
        fields["power_state_verified"] = watched.plan.host.spdk_verifies_power_state
    elif watched.state_held is not None:
        fields["power_state_verified"] = watched.state_held
    return fields


def _count(cpus: str) -> int:
    total = 0
    for part in cpus.split(","):
        first, _, last = part.partition("-")
        total += int(last or first) - int(first) + 1
    return total
