"""Gathers what was recorded about a run into the evidence that `datasets.verdict` judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from iojoule.datasets.verdict import DeviceEvidence, PowerEvidence, RunEvidence
from iojoule.datasets.vocabulary import BYPASSING_ENGINES
from iojoule.measure.campaign.watched_run import Watched
from iojoule.measure.fio import Outcome
from iojoule.measure.recording import PowerStatistics, Recording
from iojoule.measure.sensors.diskstats import INTERVAL_SECONDS
from iojoule.measure.sensors.protocol import Scope

_MOVED = ("disk-read-bytes", "disk-write-bytes")
_COMMANDS = ("disk-reads", "disk-writes")
_MERGED = ("disk-reads-merged", "disk-writes-merged")
_IN_FLIGHT = "disk-in-flight"
_COUNTED_BY_BLOCK_LAYER: dict[str, tuple[str, ...]] = {
    "device_commands_per_second": _COMMANDS,
    "merged_requests_per_second": _MERGED,
}
_COUNTED_BY_CPU: dict[str, tuple[str, ...]] = {"interrupts_per_second": ("cpu-interrupts",)}


def clock_evidence(watched: Watched, outcome: Outcome, begin: int, end: int) -> RunEvidence:
    """What the clocks say, and what fio does; samples are not looked at.

    Args:
        watched: The run.
        outcome: What fio says.
        begin: Of the measured part, monotonic ns.
        end: Likewise.
    """
    seen, point = outcome.observations, watched.run.point
    before, after = watched.clocks_before, watched.clocks_after
    return RunEvidence(
        workload=point.workload,
        configuration=point.configuration,
        measured_seconds=(end - begin) * 1e-9,
        iops=seen["iops"],
        bytes_per_second=seen["throughput_bytes_per_second"],
        latency_mean_ns=seen.get("latency_mean_ns"),
        usual_p999_ns=outcome.usual_p999_ns,
        wall_step_seconds=(after.wall_ns - before.wall_ns) * 1e-9,
        suspended_seconds=(after.boot_ns - before.boot_ns) * 1e-9,
        outside_seconds=max(watched.fio_began_ns - begin, end - watched.fio_ended_ns) * 1e-9,
        verify_littles_law=watched.plan.run.verify_littles_law,
    )


def sampled_evidence(
    clocks: RunEvidence,
    watched: Watched,
    outcome: Outcome,
    power: Mapping[Scope, PowerStatistics],
    begin: int,
    end: int,
) -> RunEvidence:
    """The same with what the sensors and the block layer recorded."""
    recording = watched.recording
    if recording is None:
        return clocks
    first, last = (unix - watched.clocks_after.wall_ns for unix in outcome.pause_unix_ns)
    in_flight = None
    if _IN_FLIGHT in _rails(recording) and _own_are_counted(watched) and last > first:
        in_flight = recording.gauge(_IN_FLIGHT, first, last)
    return replace(
        clocks,
        pause_seconds=(last - first) * 1e-9,
        in_flight_in_pause=in_flight.mean if in_flight is not None else None,
        unread_seconds=unread_seconds(watched, begin, end),
        power=tuple(_power(recording, scope, one, begin, end) for scope, one in power.items()),
        device=_device(watched, recording, begin, end),
    )


def unread_seconds(watched: Watched, begin: int, end: int) -> float | None:
    """Longest time in which iojoule read no counters; None where it recorded none."""
    recording = watched.recording
    if recording is None or _IN_FLIGHT not in _rails(recording) or end <= begin:
        return None
    return recording.longest_pause_seconds(_IN_FLIGHT, begin, end)


def counted_rates(watched: Watched, begin: int, end: int) -> dict[str, float]:
    """What the block layer and the CPU counted in the measured part, as observations."""
    recording = watched.recording
    if recording is None:
        return {}
    wanted = _COUNTED_BY_CPU | (_COUNTED_BY_BLOCK_LAYER if _own_are_counted(watched) else {})
    found = {name: _rate(recording, rails, begin, end) for name, rails in wanted.items()}
    return {name: rate for name, rate in found.items() if rate is not None}


def _power(
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


def _device(watched: Watched, recording: Recording, begin: int, end: int) -> DeviceEvidence | None:
    moved, done, merged = (
        _rate(recording, rails, begin, end) for rails in (_MOVED, _COMMANDS, _MERGED)
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


def _own_are_counted(watched: Watched) -> bool:
    """Whether the block layer counts the run's own requests.

    Those that bypass it are counted only where Linux is told to (`iostats_passthrough`,
    Documentation/ABI/stable/sysfs-block).
    """
    if watched.run.point.configuration.engine not in BYPASSING_ENGINES:
        return True
    return watched.rig.drive.device.queue_attribute("iostats_passthrough") == "1"


def _rails(recording: Recording) -> set[str]:
    return {rail.name for sensor in recording.sensors for rail in recording.rails(sensor)}


def _rate(recording: Recording, rails: Sequence[str], begin: int, end: int) -> float | None:
    """Sum of some counters' rates; None where one of them was not recorded."""
    recorded = _rails(recording)
    deltas = [recording.counter(rail, begin, end) for rail in rails if rail in recorded]
    known = [one.per_second for one in deltas if one is not None and one.per_second is not None]
    return sum(known) if len(known) == len(rails) else None
