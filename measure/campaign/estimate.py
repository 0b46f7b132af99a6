"""What a campaign costs before it is begun: runs, hours, bytes written, share of the endurance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.errors import UnknownDeviceError
from iojoule.datasets.steady_state import WINDOW_ROUNDS
from iojoule.datasets.vocabulary import Operation
from iojoule.measure.campaign.plan import REPEATS_OF_ONE_MAX, Plan, Purge
from iojoule.measure.campaign.points import Run

OVERHEAD_SECONDS = 1.5
"""A run takes so much longer than its times: starting fio, looking at the drive, storing."""

UNKNOWN_WRITE_BYTES_PER_SECOND = 7e9
"""Taken for a drive that the catalogue does not know: as fast as PCIe 4.0 with four lanes."""

_SETTLE_AFTER_WRITES_SHARE = 0.25
_FORMAT_SECONDS = 60.0


@dataclass(frozen=True)
class Cost:
    """What a campaign costs at the most, as far as it can be known beforehand.

    Attributes:
        runs: Number of runs.
        points: Number of different points.
        seconds: Expected time.
        preparation_seconds: Of these before the first run: baselines, filling, writing until the
            drive is steady.
        bytes_written_max: No more is written, at the drive's full rate.
        write_bytes_per_second: The rate that was taken.
        rate_source: Where it comes from.
        endurance_bytes: What the drive is rated for; None = unknown.
        repeats_max: So often at the most doubtful and failed runs are made again.
        repeats_seconds_max: So much longer it then takes at the most; not part of `seconds`. What
            they write is part of `bytes_written_max`.
    """

    runs: int
    points: int
    seconds: float
    preparation_seconds: float
    bytes_written_max: float
    write_bytes_per_second: float
    rate_source: str
    endurance_bytes: float | None
    repeats_max: int = 0
    repeats_seconds_max: float = 0.0

    @property
    def endurance_share(self) -> float | None:
        """Share of the rated endurance that is written at the most."""
        return self.bytes_written_max / self.endurance_bytes if self.endurance_bytes else None


def cost(plan: Plan, runs: Sequence[Run], model: str, target_bytes: int, states: int) -> Cost:
    """Estimate a plan.

    Args:
        plan: The plan.
        runs: Its runs.
        model: Model of the drive, looked up in the catalogue.
        target_bytes: Size of the target.
        states: Number of power states whose idle power is measured.
    """
    rate, source, endurance = _drive(model)
    repeats = plan.repeats_of_doubtful(len(runs))
    each = [_written(run, rate) for run in runs]
    written = sum(each) + sum(_dearest(each, repeats))
    times = [run_seconds(plan, run) for run in runs]
    asked = plan.precondition
    patterns = {run.point.workload.pattern for run in runs}
    preparation = _preparation(plan, len(patterns), target_bytes / rate)
    baselines = states * plan.settle.baseline_seconds
    seconds = sum(times) + preparation + 2 * baselines
    if asked.fill_passes:
        written += asked.fill_passes * target_bytes
    if asked.until_steady:
        written += len(patterns) * asked.rounds_max * asked.round_seconds * rate
    if plan.bytes_written_max is not None:
        written = min(written, plan.bytes_written_max)
    return Cost(
        runs=len(runs),
        points=len({(run.sweep, run.point.key) for run in runs}),
        seconds=seconds,
        preparation_seconds=preparation + baselines,
        bytes_written_max=written,
        write_bytes_per_second=rate,
        rate_source=source,
        endurance_bytes=endurance,
        repeats_max=repeats,
        # idle power is measured once more after what it made doubtful
        repeats_seconds_max=sum(_dearest(times, repeats)) + (baselines if repeats else 0.0),
    )


def _dearest(costs: Sequence[float], repeats: int) -> list[float]:
    """The highest costs that so many repeats can have."""
    return sorted([*costs] * REPEATS_OF_ONE_MAX, reverse=True)[:repeats]


def run_seconds(plan: Plan, run: Run) -> float:
    """Time of one run on a drive that is prepared: settling, ramp, the run, and what follows it.

    After writes it is waited until housekeeping is over; a quarter of the longest wait is taken.
    """
    waits = plan.settle.after_writes_seconds_max * _SETTLE_AFTER_WRITES_SHARE
    planned = run.seconds + run.ramp_seconds + plan.settle.seconds + OVERHEAD_SECONDS
    return planned + (min(waits, 2 * run.seconds) if run.point.writes else 0.0)


def _preparation(plan: Plan, patterns: int, pass_seconds: float) -> float:
    """Time of purging, filling and writing until steady, for so many patterns."""
    asked = plan.precondition
    seconds = asked.fill_passes * pass_seconds
    if asked.until_steady:
        seconds += patterns * 2 * WINDOW_ROUNDS * asked.round_seconds
    return seconds + (_FORMAT_SECONDS if asked.purge is Purge.FORMAT else 0.0)


def _written(run: Run, rate: float) -> float:
    """At the most: the drive's rate, or what the demand or the share of writes leaves of it."""
    if not run.point.writes:
        return 0.0
    workload = run.point.workload
    share = 1.0
    if workload.operation is Operation.MIXED:
        share = 1.0 - (workload.read_fraction if workload.read_fraction is not None else 0.5)
    demand = workload.demand_bytes_per_second
    if workload.demand_operations_per_second:
        demand = workload.demand_operations_per_second * run.point.configuration.request_bytes
    return min(rate, demand or rate) * share * (run.seconds + run.ramp_seconds)


def _drive(model: str) -> tuple[float, str, float | None]:
    try:
        drive = load_catalogue().get(model)
    except UnknownDeviceError:
        return UNKNOWN_WRITE_BYTES_PER_SECOND, "no catalogue entry: PCIe 4.0 x4", None
    endurance = drive.fact("endurance_bytes_written")
    rated = float(endurance.value) if endurance and not isinstance(endurance.value, str) else None
    for metric in ("sequential_write_throughput", "sequential_write_throughput_max"):
        fact = drive.fact(metric)
        if fact is not None and fact.unit == "bytes/s" and not isinstance(fact.value, str):
            return float(fact.value), f"{drive.id}, {metric}", rated
    return UNKNOWN_WRITE_BYTES_PER_SECOND, f"{drive.id} states no rate: PCIe 4.0 x4", rated
