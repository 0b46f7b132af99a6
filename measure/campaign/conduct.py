"""Conducts a campaign run by run; each result is stored at once, so that any can be resumed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass
from pathlib import Path
from typing import Protocol

from iojoule.datasets.schema import Measurement
from iojoule.datasets.verdict import (
    IdleLevel,
    ReasonCode,
    RunVerdict,
    idle_drift,
    usable,
    verdict_of,
    with_idle_drift,
)
from iojoule.measure.campaign.folder import (
    STATE_FILE,
    CampaignFolder,
    CampaignState,
    RunRecord,
    Status,
)
from iojoule.measure.campaign.plan import REPEATS_OF_ONE_MAX, Plan
from iojoule.measure.campaign.runs import Run, run_seconds
from iojoule.measure.errors import RunsFailedError

Store = Callable[[CampaignState], None]
"""Keeps what was done to the drive."""


class Bench(Protocol):
    """Makes runs."""

    def prepare(self, state: CampaignState, store: Store) -> None:
        """Bring the drive into its initial state; steps in `state` (changed in place) are done."""

    def before(self, run: Run, state: CampaignState, store: Store) -> None:
        """What this run needs done to the drive that earlier ones did not."""

    def perform(self, run: Run, folder: Path, state: CampaignState) -> RunRecord:
        """Make one run; a failed one has a record too.

        Raises:
            DriveError: The drive has vanished; no further run is possible.
            CampaignError: The folder cannot be written.
        """

    def finish(self, state: CampaignState, store: Store) -> None:
        """What is measured after the last run."""


_DATASET_EVERY_SECONDS = 30.0


class Observer(Protocol):
    """Follows a campaign."""

    def begin(self, run: Run, done: int, total: int, seconds_left: float) -> None:
        """A run begins."""

    def end(self, run: Run, record: RunRecord) -> None:
        """A run is over."""


@dataclass(frozen=True)
class Repeat:
    """A repeated run, with the verdicts before (`why`) and after."""

    number: int
    why: RunVerdict
    verdict: RunVerdict


@dataclass(frozen=True)
class Summary:
    """How a campaign ended; `stopped` is None unless it ended before its last run."""

    done: int
    failed: int
    stopped: str | None
    explanation: str = ""
    repeats: tuple[Repeat, ...] = ()
    doubtful: tuple[int, ...] = ()

    @property
    def lines(self) -> list[str]:
        """What was repeated and why, and what is doubtful nevertheless."""
        lines = [
            f"run {repeat.number} was repeated, it was {repeat.why.verdict} ({repeat.why.text}): "
            f"now it is {repeat.verdict.verdict}"
            for repeat in self.repeats
        ]
        if self.doubtful:
            lines.append(
                f"doubtful, and not fitted unless asked for: runs "
                f"{', '.join(map(str, self.doubtful))} (`iojoule measure check`)"
            )
        return lines


class Conduct(Protocol):
    """A way to conduct a campaign: all of its runs, or those that turn out to be needed."""

    def __call__(
        self,
        plan: Plan,
        runs: Sequence[Run],
        folder: CampaignFolder,
        bench: Bench,
        observer: Observer,
    ) -> Summary:
        """Make runs; see `conduct`."""


@dataclass
class Conductor:
    """Makes single runs and stores each when it ends; `runs` bounds the repeats."""

    plan: Plan
    folder: CampaignFolder
    bench: Bench
    observer: Observer
    known: dict[int, RunRecord]
    runs: InitVar[int]

    def __post_init__(self, runs: int) -> None:
        self.state = self.folder.state()
        self.repeats_left = self.plan.repeats_of_doubtful(runs)
        self._in_a_row = 0
        self._last_failed = False
        self._reason: str | None = None
        self._dataset_at = time.monotonic()
        self._repeats: list[Repeat] = []
        self._repeated: Counter[int] = Counter()

    def prepare(self) -> None:
        """Bring the drive into the state in which the runs begin."""
        self.bench.prepare(self.state, self._store)

    def finish(self) -> None:
        """Measure what comes after the last run.

        Skipped if that run failed: the same cause would fail idle power and hide the reason.
        """
        if not self._last_failed:
            self.bench.finish(self.state, self._store)
            self._judge_idle()

    def _judge_idle(self) -> None:
        """Judge the runs by idle power that was measured on both sides of them."""
        for number, record in self.known.items():
            levels = self._idle(record)
            if record.verdict is None or not 0 < record.idle_bracket < len(levels):
                continue
            around = [levels[0], *levels[record.idle_bracket - 1 : record.idle_bracket + 1]]
            verdict = with_idle_drift(record.verdict, around, _watts(record))
            if verdict != record.verdict:
                self.known[number] = record.judged(verdict)
                self.folder.keep(self.known[number])

    def _idle(self, record: RunRecord) -> list[IdleLevel]:
        """Idle power in the power state of a run, in order of time; empty where none counts."""
        if record.measurement is None:
            return []
        chosen = record.measurement.configuration
        levels = self.state.idle_in(chosen.power_state, chosen.power_limit_watts)
        return [IdleLevel(level.mean_watts, level.standard_error_watts) for level in levels]

    def _helps(self, record: RunRecord) -> bool:
        """Whether to make a run again: not while idle power is where it makes it doubtful."""
        codes = {reason.code for reason in _verdict(record).reasons}
        if codes != {ReasonCode.IDLE_DRIFT}:
            return True
        levels = self._idle(record)
        return idle_drift([levels[0], levels[-1]], _watts(record)) is None

    def make(self, run: Run, total: int, seconds_left: float) -> RunRecord:
        """Make one run; `total` and `seconds_left` are for the observer."""
        self.bench.before(run, self.state, self._store)
        self.observer.begin(run, len(self.known), total, seconds_left)
        folder = self.folder.run_folder(run)
        attempt = self.folder.attempts(run) + 1
        record = self.bench.perform(run, folder, self.state)
        record = record.model_copy(update={"attempt": attempt})
        self.folder.keep(record)
        self._store(self.state)
        self.known[run.number] = record
        self.observer.end(run, record)
        self._last_failed = not counts(record)
        self._in_a_row = self._in_a_row + 1 if self._last_failed else 0
        self._reason = record.reason
        if time.monotonic() - self._dataset_at >= _DATASET_EVERY_SECONDS:
            self.write_measurements()
        return record

    def repeat(self, runs: Sequence[Run], total: int) -> None:
        """Repeat doubtful and failed runs, as often as the plan allows."""
        in_a_row = self._in_a_row
        self._repeat(runs, total)
        # what fails again and again says nothing of the runs that are still to come
        self._in_a_row = min(in_a_row, self._in_a_row)

    def _repeat(self, runs: Sequence[Run], total: int) -> None:
        for _ in range(REPEATS_OF_ONE_MAX):
            for run in runs:
                record = self.known.get(run.number)
                spent = self._repeated[run.number] >= REPEATS_OF_ONE_MAX
                if record is None or record.is_good or spent or not self._helps(record):
                    continue
                if not self.repeats_left or self.must_stop() is not None:
                    return
                self.repeats_left -= 1
                self._repeated[run.number] += 1
                now = self.make(run, total, run_seconds(self.plan, run))
                self._repeats.append(Repeat(run.number, _verdict(record), _verdict(now)))

    def ended(self, run: Run) -> bool:
        """Whether a run came to its end, so that its evidence was judged."""
        verdict = self.known[run.number].verdict
        codes = {reason.code for reason in verdict.reasons} if verdict else {ReasonCode.RUN_ERROR}
        return ReasonCode.RUN_ERROR not in codes

    def must_stop(self) -> str | None:
        """Why no further run may be made; None = it may."""
        if self._in_a_row >= self.plan.failures_in_a_row_max:
            return f"{self._in_a_row} runs in a row failed, the last because {self._reason}"
        most = self.plan.bytes_written_max
        if most is not None and self.state.bytes_written >= most:
            return f"the plan allows {most:,} bytes to be written, and they are"
        return None

    def measured(self) -> list[Measurement]:
        """What was measured so far and is good, in the order of the runs."""
        measurements = [record.measurement for record in self._records()]
        return usable(
            [measurement for measurement in measurements if measurement is not None]
        ).measurements

    def write_measurements(self) -> None:
        """Make the dataset of all runs so far."""
        self._dataset_at = time.monotonic()
        self.folder.write_measurements(self._records(), self.plan.name)

    def summary(
        self, stopped: str | None, total: int, message: str = "", *, all_needed: bool = True
    ) -> Summary:
        """The summary. With `all_needed`, one failed run makes the campaign incomplete.

        Raises:
            RunsFailedError: Needed runs failed, or it was stopped; the others are stored.
        """
        failed = [record for record in self._records() if record.status is Status.FAILED]
        done = len(self.known) - len(failed)
        if failed and not all_needed:
            message = f"{message}. {len(failed)} runs failed ({_reasons(failed)})"
        doubtful = [
            record.number for record in self._records() if counts(record) and not record.is_good
        ]
        summary = Summary(
            done, len(failed), stopped, message, tuple(self._repeats), tuple(doubtful)
        )
        if (failed and (all_needed or not done)) or stopped:
            raise RunsFailedError(_failure_text(self.folder, summary, failed, total))
        return summary

    def _records(self) -> list[RunRecord]:
        return [self.known[number] for number in sorted(self.known)]

    def _store(self, now: CampaignState) -> None:
        self.folder.write(STATE_FILE, now)


def conduct(
    plan: Plan, runs: Sequence[Run], folder: CampaignFolder, bench: Bench, observer: Observer
) -> Summary:
    """Make every run without a result; failed and doubtful ones are repeated.

    Raises:
        RunsFailedError: Some runs failed; the others are stored.
        DriveError: The drive has vanished; what was measured is stored.
        CampaignError: The folder can no longer be written.
    """
    known = {run.number: record for run in runs if (record := folder.record(run)) is not None}
    left = [run for run in runs if not counts(known.get(run.number))]
    complete = not left and all(known[run.number].is_good for run in runs)
    conductor = Conductor(plan, folder, bench, observer, known, len(runs))
    clock = _Clock(left)
    stopped: str | None = None
    try:
        if not complete:
            conductor.prepare()
        wanted = {run.number for run in left}
        for block in _blocks(plan, runs):
            for run in (run for run in block if run.number in wanted):
                stopped = conductor.must_stop()
                if stopped is not None:
                    break
                clock.made(conductor.make(run, len(runs), clock.seconds_left()))
            if stopped is not None:
                break
            conductor.repeat(block, len(runs))
        if not complete:
            conductor.finish()
            if stopped is None:
                _repeat_after_drift(conductor, runs)
    finally:
        conductor.write_measurements()
    return conductor.summary(stopped, len(runs))


def _blocks(plan: Plan, runs: Sequence[Run]) -> list[list[Run]]:
    """Runs that share a drive state; doubtful ones are repeated at the end of their block.

    By then the disturbance is over, and the drive is not yet preconditioned for the next block.
    """
    if not plan.precondition.until_steady:
        return [list(runs)]
    patterns = dict.fromkeys(run.point.workload.pattern for run in runs)
    return [[run for run in runs if run.point.workload.pattern is pattern] for pattern in patterns]


def _repeat_after_drift(conductor: Conductor, runs: Sequence[Run]) -> None:
    """Repeat runs that only the final idle power made doubtful; it is measured before and after."""
    drifted = [
        run
        for run in runs
        if (record := conductor.known.get(run.number)) is not None
        and any(reason.code is ReasonCode.IDLE_DRIFT for reason in _verdict(record).reasons)
    ]
    if not drifted or not conductor.repeats_left:
        return
    conductor.finish()
    before = conductor.repeats_left
    conductor.repeat(drifted, len(runs))
    if conductor.repeats_left < before:
        conductor.finish()


def counts(record: RunRecord | None) -> bool:
    """Whether a run has a result."""
    return record is not None and record.status is Status.DONE


def _watts(record: RunRecord) -> float | None:
    return record.measurement.observations.device_power_watts if record.measurement else None


def _verdict(record: RunRecord) -> RunVerdict:
    return record.verdict or verdict_of([])


def _reasons(failed: Sequence[RunRecord]) -> str:
    reasons: dict[str, list[int]] = {}
    for record in failed:
        reasons.setdefault(record.reason or "unknown", []).append(record.number)
    return "; ".join(
        f"run{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers[:5]))}"
        f"{' ...' if len(numbers) > 5 else ''}: {reason}"
        for reason, numbers in reasons.items()
    )


def _failure_text(
    folder: CampaignFolder, summary: Summary, failed: Sequence[RunRecord], total: int
) -> str:
    stopped = f" It stopped early: {summary.stopped}." if summary.stopped else ""
    if summary.repeats:
        stopped = f" {len(summary.repeats)} repeats of doubtful or failed runs were made.{stopped}"
    return (
        f"{folder.path}: {summary.done} of {total} runs are done and stored, {summary.failed} "
        f"failed ({_reasons(failed)}).{stopped} Mend the cause and make what is missing with "
        f"`iojoule measure resume {folder.path}`"
    )


class _Clock:
    """Guesses the time left from how long runs took beyond their planned seconds."""

    def __init__(self, left: Sequence[Run]) -> None:
        self._planned = [run.seconds + run.ramp_seconds for run in left]
        self._made = 0
        self._extra = 0.0

    def made(self, record: RunRecord) -> None:
        self._extra += max(0.0, record.wall_seconds - self._planned[self._made])
        self._made += 1

    def seconds_left(self) -> float:
        extra = self._extra / self._made if self._made else 2.0
        return sum(self._planned[self._made :]) + extra * (len(self._planned) - self._made)
