"""Conducts a campaign: run by run, each kept as soon as it is over, resumable at any."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from iojoule.measure.campaign.bench import Bench
from iojoule.measure.campaign.folder import CampaignFolder
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
    """

    done: int
    failed: int
    stopped: str | None


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
    state = folder.state()
    known = {run.number: record for run in runs if (record := folder.record(run)) is not None}
    left = [run for run in runs if not _counts(known.get(run.number))]
    clock = _Clock(left)

    def store(now: object) -> None:
        folder.write("state.json", state)

    stopped: str | None = None
    in_a_row = 0
    try:
        if left:
            bench.prepare(state, store)
        for run in left:
            stopped = _spent(plan, state.bytes_written)
            if stopped is not None:
                break
            bench.before(run, state, store)
            observer.begin(run, len(known), len(runs), clock.seconds_left())
            record = bench.perform(run, folder.run_folder(run), state)
            folder.keep(run, record)
            store(state)
            known[run.number] = record
            clock.made(record)
            observer.end(run, record)
            in_a_row = 0 if record.status is Status.DONE else in_a_row + 1
            if in_a_row >= plan.failures_in_a_row_max:
                stopped = f"{in_a_row} runs in a row failed, the last because {record.reason}"
                break
            if clock.dataset_due():
                folder.write_measurements(_sorted(known), plan.name)
        if left and in_a_row == 0:  # what failed a run would fail the last look at idle power too
            bench.finish(state, store)
    finally:
        folder.write_measurements(_sorted(known), plan.name)
    failed = [record for record in known.values() if record.status is Status.FAILED]
    summary = Summary(len(known) - len(failed), len(failed), stopped)
    if failed or stopped:
        raise RunsFailedError(_story(folder, summary, failed, len(runs)))
    return summary


def _counts(record: RunRecord | None) -> bool:
    return record is not None and record.status is Status.DONE


def _spent(plan: Plan, written: int) -> str | None:
    if plan.bytes_written_max is not None and written >= plan.bytes_written_max:
        return f"the plan allows {plan.bytes_written_max:,} bytes to be written, and they are"
    return None


def _sorted(known: dict[int, RunRecord]) -> list[RunRecord]:
    return [known[number] for number in sorted(known)]


def _story(
    folder: CampaignFolder, summary: Summary, failed: Sequence[RunRecord], total: int
) -> str:
    reasons: dict[str, list[int]] = {}
    for record in failed:
        reasons.setdefault(record.reason or "unknown", []).append(record.number)
    told = "; ".join(
        f"run{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers[:5]))}"
        f"{' ...' if len(numbers) > 5 else ''}: {reason}"
        for reason, numbers in reasons.items()
    )
    stopped = f" It stopped early: {summary.stopped}." if summary.stopped else ""
    return (
        f"{folder.path}: {summary.done} of {total} runs are done and stored, {summary.failed} "
        f"failed ({told}).{stopped} Mend the cause and make what is missing with "
        f"`iojoule measure resume {folder.path}`"
    )


class _Clock:
    """Guesses the time left from how long runs took beyond their planned seconds."""

    def __init__(self, left: Sequence[Run]) -> None:
        self._planned = [run.seconds + run.ramp_seconds for run in left]
        self._made = 0
        self._extra = 0.0
        self._dataset_at = time.monotonic()

    def made(self, record: RunRecord) -> None:
        self._extra += max(0.0, record.wall_seconds - self._planned[self._made])
        self._made += 1

    def seconds_left(self) -> float:
        extra = self._extra / self._made if self._made else 2.0
        return sum(self._planned[self._made :]) + extra * (len(self._planned) - self._made)

    def dataset_due(self) -> bool:
        if time.monotonic() - self._dataset_at < _DATASET_EVERY_SECONDS:
            return False
        self._dataset_at = time.monotonic()
        return True
