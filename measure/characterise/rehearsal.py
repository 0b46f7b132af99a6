"""What a characterisation would do: its questions played on a bench that only notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from iojoule.datasets.characteristics import Row
from iojoule.measure.campaign.rig import DriveFacts
from iojoule.measure.campaign.runs import OVERHEAD_SECONDS, UNKNOWN_WRITE_BYTES_PER_SECOND
from iojoule.measure.characterise.jobs import job_text
from iojoule.measure.characterise.question import Job, Question
from iojoule.measure.characterise.scope import Scope

_NOMINAL_IOPS = 1000.0


class Rehearsal:
    """A `Bench` that does nothing: every row is nominal.

    Args:
        scope: Times and sizes.
        power_states: That the drive declares.
    """

    def __init__(self, scope: Scope, power_states: Sequence[int]) -> None:
        self._scope = scope
        self._states = tuple(power_states)
        self.jobs: list[Job] = []
        self.seconds = 0.0

    @property
    def power_states(self) -> tuple[int, ...]:
        """As given."""
        return self._states

    def run(self, job: Job) -> Row:
        """Note a job."""
        self.jobs.append(job)
        moved = job.bytes_total or len(job.order or ()) * job.request_bytes
        timed = job.seconds + self._scope.ramp_seconds if not moved else 0.0
        self.seconds += timed + moved / UNKNOWN_WRITE_BYTES_PER_SECOND + OVERHEAD_SECONDS
        return Row(label=job.label, values={"iops": _NOMINAL_IOPS})

    def rest(self, label: str, seconds: float) -> Row:
        """Note a rest."""
        self.seconds += seconds
        return Row(label=label)

    def quiet(self, label: str) -> Row:
        """Note a wait."""
        self.seconds += self._scope.quiet_seconds
        return Row(label=label, values={"quiet": 1.0})

    def power_state(self, number: int) -> None:
        """Note a power state."""
        self.seconds += self._scope.settle_seconds

    def wake(self, label: str) -> Row:
        """Note a read of one block."""
        return Row(label=label, values={"latency_ns": 0.0})


@dataclass(frozen=True)
class Step:
    """What one question would do.

    Attributes:
        question: The question.
        jobs: Its runs of fio.
        bytes_written: By these.
        seconds: It takes at least.
        obstacle: Why it cannot be asked; None = it can.
    """

    question: Question
    jobs: tuple[Job, ...]
    bytes_written: int
    seconds: float
    obstacle: str | None


def rehearse(
    questions: Sequence[Question], scope: Scope, drive: DriveFacts, *, has_power: bool
) -> list[Step]:
    """Every question's jobs, bytes and least time."""
    told = drive.controller
    states = tuple(one.index for one in told.power_states) if told is not None else ()
    steps = []
    for question in questions:
        obstacle = None
        if question.needs_controller and not states:
            obstacle = "the drive has no controller that sets power states; name --controller"
        elif question.needs_power and not has_power:
            obstacle = "it needs a power meter of the drive; name one with --power"
        bench = Rehearsal(scope, states)
        if obstacle is None:
            question.measure(bench, scope)
        written = sum(job.bytes_written for job in bench.jobs)
        steps.append(Step(question, tuple(bench.jobs), written, bench.seconds, obstacle))
    return steps


def fills_first(steps: Sequence[Step]) -> bool:
    """Whether the area is written in order before the first question that reads it.

    The question of the write cache does that itself; and where nothing is to be written, what is
    on the drive is read.
    """
    asked = [step for step in steps if step.obstacle is None]
    writes = any(step.bytes_written for step in asked)
    return writes and not any(step.question.name == "slc-cache" for step in asked)


def commands(steps: Sequence[Step], scope: Scope, device: Path) -> list[str]:
    """Every job file, for `--dry-run`."""
    said = []
    for step in steps:
        said.append(f"# {step.question.name}: {step.question.title}")
        if step.obstacle is not None:
            said.append(f"# left out: {step.obstacle}")
        for number, job in enumerate(step.jobs, start=1):
            text = job_text(job, device, scope, number)
            said.append(f"# run {number}: {job.label}\nfio - <<'JOB'\n{text}JOB")
    return said
