"""Conducts a campaign: run by run, each kept as soon as it is over, resumable at any."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from iojoule.datasets.schema import Measurement
from iojoule.measure.campaign.bench import Bench
from iojoule.measure.campaign.folder import STATE_FILE, CampaignFolder, CampaignState
from iojoule.measure.campaign.plan import Plan
from iojoule.measure.campaign.points import Run
from iojoule.measure.campaign.record import RunRecord, Status
from iojoule.measure.errors import RunsFailedError

_DATASET_EVERY_SECONDS = 30.0


class Observer(Protocol):
    """Follows a campaign."""

    def begin(self, run: Run, done: int, total: int, seconds_left: float) -> None:
        """A run begins."""

    def end(self, run: Run, record: RunRecord) -> None:
        """A run is over."""


@dataclass(frozen=True)
class Summary:
    """How a campaign ended.

    Attributes:
        done: Runs that count.
        failed: Runs that do not.
        stopped: Why it ended before its last run; None = it did not.
        told: What else is to be said of its end.
    """

    done: int
    failed: int
    stopped: str | None
    told: str = ""


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


class Conductor:
    """Makes single runs of a campaign and keeps each as soon as it is over.

    Args:
        plan: The plan.
        folder: Of the campaign.
        bench: Makes the runs.
        observer: Is told.
        known: Records that are there already, by number of the run.
    """

    def __init__(
        self,
        plan: Plan,
        folder: CampaignFolder,
        bench: Bench,
        observer: Observer,
        known: dict[int, RunRecord],
    ) -> None:
        self.known = known
        self.state = folder.state()
        self._plan = plan
        self._folder = folder
        self._bench = bench
        self._observer = observer
        self._in_a_row = 0
        self._reason: str | None = None
        self._dataset_at = time.monotonic()

    def prepare(self) -> None:
        """Bring the drive into the state in which the runs begin."""
        self._bench.prepare(self.state, self._store)

    def finish(self) -> None:
        """Measure what is measured after the last run, unless that failed.

        What failed a run would fail the last look at idle power too, and hide the reason.
        """
        if self._in_a_row == 0:
            self._bench.finish(self.state, self._store)

    def make(self, run: Run, total: int, seconds_left: float) -> RunRecord:
        """Make one run; `total` and `seconds_left` are for the observer."""
        self._bench.before(run, self.state, self._store)
        self._observer.begin(run, len(self.known), total, seconds_left)
        record = self._bench.perform(run, self._folder.run_folder(run), self.state)
        self._folder.keep(run, record)
        self._store(self.state)
        self.known[run.number] = record
        self._observer.end(run, record)
        self._in_a_row = 0 if counts(record) else self._in_a_row + 1
        self._reason = record.reason
        if time.monotonic() - self._dataset_at >= _DATASET_EVERY_SECONDS:
            self.write_measurements()
        return record

    def must_stop(self) -> str | None:
        """Why no further run may be made; None = it may."""
        if self._in_a_row >= self._plan.failures_in_a_row_max:
            return f"{self._in_a_row} runs in a row failed, the last because {self._reason}"
        most = self._plan.bytes_written_max
        if most is not None and self.state.bytes_written >= most:
            return f"the plan allows {most:,} bytes to be written, and they are"
        return None

    def measured(self) -> list[Measurement]:
        """What was measured so far, in the order of the runs."""
        found = [one.measurement for one in self._records()]
        return [one for one in found if one is not None]

    def write_measurements(self) -> None:
        """Make the dataset of all runs so far."""
        self._dataset_at = time.monotonic()
        self._folder.write_measurements(self._records(), self._plan.name)

    def summary(
        self, stopped: str | None, total: int, told: str = "", *, all_needed: bool = True
    ) -> Summary:
        """How it ended.

        Args:
            stopped: Why it ended before its time; None = it did not.
            total: Runs that there should be.
            told: What else is to be said.
            all_needed: Whether the campaign is incomplete when a run failed.

        Raises:
            RunsFailedError: Runs that are needed failed, or it was stopped; the others are stored.
        """
        failed = [one for one in self._records() if one.status is Status.FAILED]
        done = len(self.known) - len(failed)
        if failed and not all_needed:
            told = f"{told}. {len(failed)} runs failed ({_reasons(failed)})"
        summary = Summary(done, len(failed), stopped, told)
        if (failed and (all_needed or not done)) or stopped:
            raise RunsFailedError(_story(self._folder, summary, failed, total))
        return summary

    def _records(self) -> list[RunRecord]:
        return [self.known[number] for number in sorted(self.known)]

    def _store(self, now: CampaignState) -> None:
        self._folder.write(STATE_FILE, now)


def conduct(
    plan: Plan,
    runs: Sequence[Run],
    folder: CampaignFolder,
    bench: Bench,
    observer: Observer,
) -> Summary:
    """Make every run that has no result yet; failed ones are made again.

    Raises:
        RunsFailedError: Some runs failed; the others are stored.
        DriveError: The drive has vanished; what was measured is stored.
        CampaignError: The folder cannot be written any more.
    """
    known = {run.number: record for run in runs if (record := folder.record(run)) is not None}
    left = [run for run in runs if not counts(known.get(run.number))]
    conductor = Conductor(plan, folder, bench, observer, known)
    clock = _Clock(left)
    stopped: str | None = None
    try:
        if left:
            conductor.prepare()
        for run in left:
            stopped = conductor.must_stop()
            if stopped is not None:
                break
            clock.made(conductor.make(run, len(runs), clock.seconds_left()))
        if left:
            conductor.finish()
    finally:
        conductor.write_measurements()
    return conductor.summary(stopped, len(runs))


def counts(record: RunRecord | None) -> bool:
    """Whether a run has a result."""
    return record is not None and record.status is Status.DONE


def _reasons(failed: Sequence[RunRecord]) -> str:
    reasons: dict[str, list[int]] = {}
    for record in failed:
        reasons.setdefault(record.reason or "unknown", []).append(record.number)
    return "; ".join(
        f"run{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers[:5]))}"
        f"{' ...' if len(numbers) > 5 else ''}: {reason}"
        for reason, numbers in reasons.items()
    )


def _story(
    folder: CampaignFolder, summary: Summary, failed: Sequence[RunRecord], total: int
) -> str:
    stopped = f" It stopped early: {summary.stopped}." if summary.stopped else ""
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
