"""Whether a run may be believed: good, doubtful or failed, with reasons. The only place that says.

A campaign judges each run by its recorded evidence and stores the verdict in the run's record and
in its row. `run` and `resume` repeat what is not good, `check` lists it, and fits and contributions
leave it out (`usable`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from iojoule.datasets.littles_law import USUAL_CAUSES
from iojoule.datasets.schema import Configuration, Judgement, Measurement, Section, Workload
from iojoule.datasets.vocabulary import Engine, Verdict

COVERAGE_DOUBTFUL, COVERAGE_FAILED = 0.95, 0.5
"""Share of the measured part that samples must stand for. Below the first a mean may miss a phase
of the run (5 % of it, at twice the power, is an error of 5 %); below the second most of the run was
not seen."""

FULL_SCALE_SECONDS = 0.0
"""A sample at full scale says nothing of the power, and no meter is chosen for so little range."""

STALL_SECONDS = 1.0
"""Shortest pause without a completion that is a stall: drives pause for tens to hundreds of
milliseconds to erase blocks and to throttle, and those pauses belong to them."""

STALL_TIMES = 20.0
"""A stall is also longer than so many times the 99.9th percentile of latency, or the mean time
between completions, so that slow drives and low demands have none."""

SLEEP_SECONDS = 1.0
"""The counters are read ten times a second; a pause of ten readings is no scheduling delay."""

CLOCK_STEP_SECONDS = 0.1
"""Clocks of one host drift by some 10 us a second; what moved more within a run was set."""

CLOCKS_APART_SECONDS = 0.5
"""So far fio's times may lie outside the time in which it ran: it ends up to 25 ms late, and
starts its processes before and after."""

IDLE_DRIFT_SHARE = 0.03
"""Change of idle power from the campaign's first to those around a run, as a share of the first."""

IDLE_DRIFT_OF_RUN = 0.01
"""The change must also be this share of the run's power: repeats of a run scatter by as much."""

STANDARD_ERRORS = 3.0
"""So many standard errors a difference must exceed to be one."""

LITTLE_DOUBTFUL, LITTLE_FAILED = 0.03, 0.05
"""Distance from Little's law. All 326 public runs of fio above depth 1, with io_uring, libaio and
SPDK, lie within 3 % (`datasets/public`)."""

LITTLE_ENDS_MOST = 0.05
"""A request that is in flight at an end of the measured part counts whole or not at all, so the law
holds to mean latency / length only; a run for which that is more than this is too short."""

GAP_SECONDS = {
    Engine.PSYNC: 0.3e-6,
    Engine.LIBAIO: 0.64e-6,
    Engine.IO_URING: 0.94e-6,
    Engine.IO_URING_CMD: 0.94e-6,
    Engine.SPDK: 0.28e-6,
    Engine.POSIXAIO: 0.94e-6,
}
"""Time between the completion of a request and the submission of the next that is in no latency:
medians of the 75 public runs of fio at depth 1 (`datasets/public`). Assumption: io_uring_cmd and
posixaio as io_uring."""

GAP_SCATTER_SECONDS = 2e-6
"""How far the gap may lie from the model: 1 us in those of these runs that have up to 16 jobs."""

TIMER_SECONDS = 100e-6
"""A think time ends late by the kernel's timer slack of 50 us (prctl(2)) and a wake-up."""

FOREIGN_SHARE = 0.05
"""Difference between what fio moved and what the drive counted, beyond what the ends of the
measured part explain."""


class ReasonCode(StrEnum):
    """Why a run is not good."""

    FULL_SCALE = "full_scale"
    LOW_COVERAGE = "low_coverage"
    STANDARD_ERROR = "standard_error"
    STALL = "stall"
    FIO_SLEPT = "fio_slept"
    IOJOULE_SLEPT = "iojoule_slept"
    HOST_SUSPENDED = "host_suspended"
    CLOCK_STEP = "clock_step"
    CLOCK_MISMATCH = "clock_mismatch"
    IDLE_DRIFT = "idle_drift"
    LITTLES_LAW = "littles_law"
    REQUEST_GAP = "request_gap"
    FOREIGN_IO = "foreign_io"
    MISSING_IO = "missing_io"
    COMMANDS = "commands"
    RUN_ERROR = "run_error"
    PAGE_CACHE = "page_cache"
    SEVERAL_DRIVES = "several_drives"
    MERGED_JOBS = "merged_jobs"
    PARTIAL_OVERLAP = "partial_overlap"


class Reason(Section):
    """One reason why a run is not good.

    Attributes:
        code: What is wrong.
        verdict: What it alone makes of the run.
        value: What was measured; None where there is no figure.
        limit: What the value must not pass.
        unit: Of both; empty for shares.
        said: In words.
        remedy: What to do about it.
    """

    code: ReasonCode
    verdict: Verdict
    value: float | None = None
    limit: float | None = None
    unit: str = ""
    said: str
    remedy: str


class RunVerdict(Section):
    """The verdict on a run.

    Attributes:
        verdict: That of its worst reason; good without any.
        reasons: The worst first.
    """

    verdict: Verdict
    reasons: tuple[Reason, ...] = ()

    @property
    def judgement(self) -> Judgement:
        """As it stands in the row of the run."""
        codes = ",".join(dict.fromkeys(reason.code.value for reason in self.reasons))
        return Judgement(verdict=self.verdict, verdict_reasons=codes or None)

    @property
    def text(self) -> str:
        """Every reason with its remedy."""
        return "; ".join(f"{reason.said}; {reason.remedy}" for reason in self.reasons)


@dataclass(frozen=True)
class PowerEvidence:
    """What is known of one scope's power over the measured part; None = unknown.

    Attributes:
        sensor: Whose samples these are.
        mean_watts: None where the sensor is too slow to say.
        standard_error_watts: Of the mean.
        coverage: Share of the measured part that samples stand for.
        full_scale_seconds: Time at the sensor's full scale.
    """

    sensor: str
    mean_watts: float | None
    standard_error_watts: float | None
    coverage: float
    full_scale_seconds: float | None = None


@dataclass(frozen=True)
class DeviceEvidence:
    """What the block layer counted over the measured part.

    Attributes:
        bytes_per_second: Moved.
        commands_per_second: Completed.
        merged_per_second: Requests that were merged into others.
        interval_seconds: Between two readings.
        holds_own: Whether fio's requests are counted there at all.
        largest_command_bytes: A larger request is split; None = unknown.
    """

    bytes_per_second: float
    commands_per_second: float
    merged_per_second: float
    interval_seconds: float
    holds_own: bool = True
    largest_command_bytes: int | None = None


@dataclass(frozen=True)
class RunEvidence:
    """What was recorded about a run; None = unknown, which contradicts nothing.

    Attributes:
        workload: Of the run.
        configuration: Of the run.
        measured_seconds: Length of the measured part.
        iops: As fio says.
        bytes_per_second: Likewise.
        latency_mean_ns: Likewise.
        usual_p999_ns: 99.9th percentile of latency, without the requests that one stall holds up.
        pause_seconds: Longest time without a completion, as fio logged it.
        in_flight_in_pause: Requests that the drive had meanwhile.
        unread_seconds: Longest time in which iojoule read no counters.
        wall_step_seconds: How far the wall clock moved against the monotonic one.
        suspended_seconds: How far the boot-time clock did: the host was suspended so long.
        outside_seconds: How far fio's times lie outside the time in which it ran.
        power: By scope.
        device: What the block layer counted.
        verify_littles_law: Whether the plan lets Little's law judge.
    """

    workload: Workload
    configuration: Configuration
    measured_seconds: float
    iops: float
    bytes_per_second: float
    latency_mean_ns: float | None = None
    usual_p999_ns: float | None = None
    pause_seconds: float | None = None
    in_flight_in_pause: float | None = None
    unread_seconds: float | None = None
    wall_step_seconds: float = 0.0
    suspended_seconds: float = 0.0
    outside_seconds: float = 0.0
    power: tuple[PowerEvidence, ...] = ()
    device: DeviceEvidence | None = None
    verify_littles_law: bool = True

    @property
    def in_flight(self) -> int:
        """Requests in flight that were asked for."""
        return self.configuration.queue_depth * self.configuration.jobs


@dataclass(frozen=True)
class IdleLevel:
    """Idle power in one power state, at one time."""

    mean_watts: float
    standard_error_watts: float = 0.0


def judge(seen: RunEvidence) -> RunVerdict:
    """The verdict on a run that came to its end.

    Clocks come first: where they are wrong, it is unknown which samples belong to the run, and
    nothing else is judged. What the drive counted is judged in runs without a pause only: after one
    a few requests at an end of the run may be most of them.
    """
    reasons = [*_clocks(seen)]
    if not reasons:
        pauses = [*_pauses(seen)]
        reasons = [*_power(seen), *pauses, *_littles_law(seen)]
        reasons += [] if pauses else [*_device(seen)]
    return verdict_of(reasons)


def verdict_of(reasons: Sequence[Reason]) -> RunVerdict:
    """The verdict that some reasons make together."""
    failed = [reason for reason in reasons if reason.verdict is Verdict.FAILED]
    rest = [reason for reason in reasons if reason.verdict is not Verdict.FAILED]
    worst = Verdict.FAILED if failed else Verdict.DOUBTFUL if rest else Verdict.GOOD
    return RunVerdict(verdict=worst, reasons=(*failed, *rest))


def idle_drift(levels: Sequence[IdleLevel], run_watts: float | None) -> Reason | None:
    """Why idle power makes a run doubtful; None = it does not.

    The first level of the campaign is among them, for a zero that moved and stays where it is moves
    every later run.

    Args:
        levels: Idle power in the run's power state: first in the campaign, before and after it.
        run_watts: Mean power of the run; None = unknown.
    """
    first = levels[0]
    worst = max(levels, key=lambda level: abs(level.mean_watts - first.mean_watts))
    noise = (first.standard_error_watts**2 + worst.standard_error_watts**2) ** 0.5
    limit = max(
        IDLE_DRIFT_SHARE * first.mean_watts,
        IDLE_DRIFT_OF_RUN * (run_watts or 0.0),
        STANDARD_ERRORS * noise,
    )
    change = abs(worst.mean_watts - first.mean_watts)
    if change <= limit:
        return None
    return _doubtful(
        ReasonCode.IDLE_DRIFT,
        change,
        limit,
        "W",
        f"idle power was {first.mean_watts:.3g} W at first and {worst.mean_watts:.3g} W next to "
        "the run",
        "let the drive settle longer (settle.after_writes_seconds_max), keep its temperature, zero "
        "the sensor",
    )


def with_idle_drift(
    known: RunVerdict, levels: Sequence[IdleLevel], run_watts: float | None
) -> RunVerdict:
    """A run's verdict once idle power was measured after it; see `idle_drift`."""
    reasons = [reason for reason in known.reasons if reason.code is not ReasonCode.IDLE_DRIFT]
    drift = idle_drift(levels, run_watts)
    return verdict_of([*reasons, drift] if drift is not None else reasons)


@dataclass(frozen=True)
class Usable:
    """Measurements that may be used, and how many were left out for which verdict."""

    measurements: list[Measurement]
    notes: list[str]


def usable(measurements: Sequence[Measurement], *, with_doubtful: bool = False) -> Usable:
    """Leave out failed measurements, and doubtful ones unless they are asked for.

    Runs without a verdict stay. Notes say how many were left out, and for what.
    """
    unwanted = {Verdict.FAILED} if with_doubtful else {Verdict.FAILED, Verdict.DOUBTFUL}
    notes = []
    for verdict in sorted(unwanted, reverse=True):
        out = [
            measurement.judgement
            for measurement in measurements
            if measurement.judgement.verdict is verdict
        ]
        if not out:
            continue
        why = Counter(
            code
            for judgement in out
            for code in (judgement.verdict_reasons or "unknown").split(",")
        )
        counted = ", ".join(f"{count} {code}" for code, count in sorted(why.items()))
        ask = ", or ask for them (--with-doubtful)" if verdict is Verdict.DOUBTFUL else ""
        notes.append(
            f"{len(out)} {verdict} measurements are left out ({counted}); measure them again "
            f"(`iojoule measure resume`){ask}"
        )
    usable = [
        measurement for measurement in measurements if measurement.judgement.verdict not in unwanted
    ]
    return Usable(usable, notes)


def _failed(code: ReasonCode, value: float, limit: float, unit: str, *texts: str) -> Reason:
    message, remedy = texts
    return Reason(
        code=code,
        verdict=Verdict.FAILED,
        value=value,
        limit=limit,
        unit=unit,
        said=message,
        remedy=remedy,
    )


def _doubtful(code: ReasonCode, value: float, limit: float, unit: str, *texts: str) -> Reason:
    return _failed(code, value, limit, unit, *texts).model_copy(
        update={"verdict": Verdict.DOUBTFUL}
    )


def _clocks(seen: RunEvidence) -> Iterator[Reason]:
    step = seen.wall_step_seconds - seen.suspended_seconds
    if seen.suspended_seconds > CLOCK_STEP_SECONDS:
        yield _failed(
            ReasonCode.HOST_SUSPENDED,
            seen.suspended_seconds,
            CLOCK_STEP_SECONDS,
            "s",
            f"the host was suspended for {seen.suspended_seconds:.3g} s in the run",
            "keep it awake (systemd-inhibit --what=sleep)",
        )
    if abs(step) > CLOCK_STEP_SECONDS:
        yield _failed(
            ReasonCode.CLOCK_STEP,
            abs(step),
            CLOCK_STEP_SECONDS,
            "s",
            f"the host's clock was set by {step:+.3f} s in the run, so it is unknown which samples "
            "belong to it",
            "let the clock be adjusted slowly (chrony, adjtime)",
        )
    elif seen.outside_seconds > CLOCKS_APART_SECONDS:
        yield _failed(
            ReasonCode.CLOCK_MISMATCH,
            seen.outside_seconds,
            CLOCKS_APART_SECONDS,
            "s",
            f"fio says that it measured {seen.outside_seconds:.3f} s outside the time in which it "
            "ran",
            "its clock is another one than this host's: use the fio of this host",
        )


def _power(seen: RunEvidence) -> Iterator[Reason]:
    for power in seen.power:
        clipped = power.full_scale_seconds or 0.0
        if clipped > FULL_SCALE_SECONDS:
            yield _failed(
                ReasonCode.FULL_SCALE,
                clipped,
                FULL_SCALE_SECONDS,
                "s",
                f"{power.sensor}: was at its full scale for {clipped * 1e3:.3g} ms, where it says "
                "nothing of the power",
                "take a sensor of more range, or look for a bad contact",
            )
        if power.mean_watts is None:
            continue  # too slow a sensor says why itself
        if power.coverage < COVERAGE_DOUBTFUL:
            made = _failed if power.coverage < COVERAGE_FAILED else _doubtful
            yield made(
                ReasonCode.LOW_COVERAGE,
                power.coverage,
                COVERAGE_DOUBTFUL,
                "",
                f"{power.sensor}: samples stand for {power.coverage:.1%} of the measured part only",
                "keep cores free of fio's jobs (host.cpus), look at the cable, or use another port",
            )
        error = power.standard_error_watts
        if error is not None and error > abs(power.mean_watts):
            yield _failed(
                ReasonCode.STANDARD_ERROR,
                error,
                abs(power.mean_watts),
                "W",
                f"{power.sensor}: {power.mean_watts:.3g} W with a standard error of {error:.3g} W "
                "says nothing",
                "measure longer, or look for a bad contact",
            )


def _pauses(seen: RunEvidence) -> Iterator[Reason]:
    usual = max((seen.usual_p999_ns or 0.0) * 1e-9, 1 / seen.iops if seen.iops else 0.0)
    limit = max(STALL_SECONDS, STALL_TIMES * usual)
    pause = seen.pause_seconds
    if pause is not None and pause > limit:
        message = f"no request was completed for {pause:.3g} s"
        if seen.in_flight_in_pause is not None and seen.in_flight_in_pause < 0.5:
            yield _doubtful(
                ReasonCode.FIO_SLEPT,
                pause,
                limit,
                "s",
                f"{message} while the drive had none: fio did not run",
                "find out what stopped it (SIGSTOP, a frozen control group, a debugger)",
            )
        else:
            yield _doubtful(
                ReasonCode.STALL,
                pause,
                limit,
                "s",
                f"{message}: the drive stalled",
                "look at dmesg and at the drive's temperature; if it does so by itself, fit such "
                "runs with --with-doubtful",
            )
    slept = iojoule_slept(seen.unread_seconds)
    if slept is not None:
        yield slept


def iojoule_slept(unread_seconds: float | None) -> Reason | None:
    """The reason that iojoule read no counters for too long; None = it did, or this is unknown."""
    if unread_seconds is None or unread_seconds <= SLEEP_SECONDS:
        return None
    return _doubtful(
        ReasonCode.IOJOULE_SLEPT,
        unread_seconds,
        SLEEP_SECONDS,
        "s",
        f"iojoule read no counters for {unread_seconds:.3g} s: it was stopped, or had no processor",
        "keep cores free of fio's jobs (host.cpus), and do not stop it",
    )


def _littles_law(seen: RunEvidence) -> Iterator[Reason]:
    """Little's law: requests in flight = rate x mean latency.

    Above depth 1 a closed loop keeps all of its requests in flight, but for the ends of the run.
    At depth 1 a job's cycle is latency + gap + think time, and the gap is modelled by the engine:
    at a latency of a few microseconds a gap of a third of one is more than 3 % already.
    """
    workload, latency_ns = seen.workload, seen.latency_mean_ns
    paced = workload.demand_bytes_per_second or workload.demand_operations_per_second
    if not seen.verify_littles_law or paced or workload.flush_every_writes:
        return
    if latency_ns is None or not seen.iops:
        return
    latency = latency_ns * 1e-9
    if seen.configuration.queue_depth == 1:
        yield from _request_gap(seen, latency)
        return
    if workload.think_time_ns:
        return
    ratio = seen.iops * latency / seen.in_flight
    ends = latency / seen.measured_seconds
    off = max(abs(ratio - 1.0) - min(ends, LITTLE_ENDS_MOST), 0.0)
    if off <= LITTLE_DOUBTFUL:
        return
    remedy = (
        f"too short for a mean latency of {latency:.2g} s: measure at least "
        f"{latency / LITTLE_ENDS_MOST:.0f} s, or at a lower depth"
        if ends > LITTLE_ENDS_MOST
        else USUAL_CAUSES
    )
    made = _failed if off > LITTLE_FAILED else _doubtful
    yield made(
        ReasonCode.LITTLES_LAW,
        off,
        LITTLE_DOUBTFUL,
        "",
        f"throughput x mean latency / concurrency = {ratio:.3f}, off Little's law",
        remedy,
    )


def _request_gap(seen: RunEvidence, latency: float) -> Iterator[Reason]:
    cycle = seen.configuration.jobs / seen.iops
    think = (seen.workload.think_time_ns or 0.0) * 1e-9
    modelled = GAP_SECONDS[seen.configuration.engine or Engine.IO_URING] + think
    gap = cycle - latency
    scatter = GAP_SCATTER_SECONDS + (TIMER_SECONDS if think else 0.0)
    off = max(abs(gap - modelled) - scatter, 0.0) / cycle
    if off > LITTLE_DOUBTFUL:
        made = _failed if off > LITTLE_FAILED else _doubtful
        yield made(
            ReasonCode.REQUEST_GAP,
            off,
            LITTLE_DOUBTFUL,
            "",
            f"{gap * 1e6:.3g} us of each request's {cycle * 1e6:.3g} us are in no latency, where "
            f"{modelled * 1e6:.3g} us are expected",
            "fewer jobs than cores, and nothing else on them (host.cpus)",
        )


def _device(seen: RunEvidence) -> Iterator[Reason]:
    """The drive's counters against what fio says that it did.

    They are read a few times a second, so that what is done in one interval, and what is in flight,
    may be counted on either side of both ends.
    """
    device = seen.device
    if device is None:
        return
    request_bytes = seen.configuration.request_bytes
    edge = 2 * seen.in_flight / seen.measured_seconds
    late = device.interval_seconds / seen.measured_seconds
    own = seen.bytes_per_second if device.holds_own else 0.0
    more = FOREIGN_SHARE * seen.bytes_per_second + edge * request_bytes
    moved = device.bytes_per_second
    if moved > own + more:
        yield _failed(
            ReasonCode.FOREIGN_IO,
            moved - own,
            more,
            "B/s",
            f"other processes moved {(moved - own) / 1e6:.2f} MB/s through the drive beside fio's "
            f"{seen.bytes_per_second / 1e6:.2f} MB/s",
            "find out who (`lsof`, `fatrace`, a scrub) and stop it",
        )
    if not device.holds_own:
        return
    less = (FOREIGN_SHARE + late) * own + edge * request_bytes
    if moved < own - less:
        yield _failed(
            ReasonCode.MISSING_IO,
            own - moved,
            less,
            "B/s",
            f"the drive counted {moved / 1e6:.2f} MB/s of fio's {own / 1e6:.2f} MB/s",
            "requests end in a cache above it: use direct I/O, on the whole drive",
        )
    yield from _commands(seen, device, edge, late)


def _commands(
    seen: RunEvidence, device: DeviceEvidence, edge: float, late: float
) -> Iterator[Reason]:
    """Requests may be merged, and split where they are larger than a command."""
    largest = device.largest_command_bytes
    if seen.workload.request_bytes_mix is not None or largest is None:
        return
    # one command more where a request is not aligned to the largest
    parts = -(-seen.configuration.request_bytes // largest)
    most_parts = parts + 1 if parts > 1 else 1
    most = seen.iops * most_parts * (1 + FOREIGN_SHARE) + edge * most_parts
    least = seen.iops * (1 - FOREIGN_SHARE - late) - edge
    done, merged = device.commands_per_second, device.merged_per_second
    if least <= done + merged and done <= most:
        return
    over = done > most
    yield _doubtful(
        ReasonCode.COMMANDS,
        done if over else done + merged,
        most if over else least,
        "1/s",
        f"the drive counted {done:,.0f} commands/s and {merged:,.0f} merges/s for fio's "
        f"{seen.iops:,.0f} requests/s",
        "look at the queue's limits (max_sectors_kb, nomerges) and at who else uses the drive",
    )
