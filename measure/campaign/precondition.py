"""Brings a drive into a state that lasts: purge, fill, write until nothing changes any more.

SNIA SSS PTS 2.0.2: purge, workload-independent preconditioning (two sequential passes), then
workload-dependent preconditioning with the pattern of the test until the steady state.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from iojoule.datasets.programs import find_program, program_environment
from iojoule.datasets.schema import Configuration, Workload
from iojoule.datasets.steady_state import WINDOW_ROUNDS, steadiness
from iojoule.datasets.vocabulary import Completion, Engine, Operation, Pattern
from iojoule.measure.campaign.bench import Say, Store
from iojoule.measure.campaign.folder import CampaignState
from iojoule.measure.campaign.idle import RecorderOf
from iojoule.measure.campaign.plan import Plan, Purge
from iojoule.measure.drive.block_device import BlockDevice
from iojoule.measure.drive.nvme import NvmeController
from iojoule.measure.errors import DriveError, HostStateError, SensorError
from iojoule.measure.fio import (
    JOB_FILE,
    Fio,
    JobHost,
    JobTarget,
    JobTiming,
    fio_job,
    read_outcome,
    run_fio,
)
from iojoule.measure.point import Point
from iojoule.measure.sensors.protocol import Scope

_FILL_DEPTH = 32
_SLOWEST_BYTES_PER_SECOND = 5e6


class Preconditioner:
    """Does to the drive what the plan asks for, once.

    Args:
        plan: The plan.
        fio: The program.
        device: The drive.
        controller: Its controller; None = none, so that it cannot be formatted.
        target: What is filled.
        recorder_of: For the power of every round.
        say: Tells people.
    """

    def __init__(
        self,
        plan: Plan,
        fio: Fio,
        device: BlockDevice,
        controller: NvmeController | None,
        target: JobTarget,
        recorder_of: RecorderOf,
        say: Say,
    ) -> None:
        self._plan = plan
        self._asked = plan.precondition
        self._fio = fio
        self._device = device
        self._controller = controller
        self._target = target
        self._recorder_of = recorder_of
        self._say = say

    def fill(self, state: CampaignState, store: Store) -> None:
        """Purge and fill, as far as that is not done.

        Raises:
            DriveError: The drive refuses to be purged.
            FioError: A pass failed.
        """
        if self._asked.purge is not Purge.NONE and not state.purged:
            self._purge()
            state.purged = True
            state.bytes_written_at_purge = self._written()
            store(state)
        if self._asked.fill_passes and not state.filled:
            for index in range(self._asked.fill_passes):
                self._say(f"filling the drive: pass {index + 1} of {self._asked.fill_passes}")
                self._pass()
                state.bytes_written += self._target.size_bytes
            state.filled = True
            store(state)

    def steady(self, pattern: Pattern, state: CampaignState, store: Store) -> None:
        """Write in rounds until throughput and power are steady; marks a drive that never is.

        Raises:
            FioError: A round failed.
            SensorError: A sensor failed.
        """
        if not self._asked.until_steady or pattern.value in state.steady:
            return
        throughput: list[float] = []
        watts: list[float] = []
        reached = False
        for index in range(self._asked.rounds_max):
            self._say(f"preconditioning with {pattern.value} writes: round {index + 1}")
            bytes_per_second, power = self._round(pattern)
            state.bytes_written += int(bytes_per_second * self._asked.round_seconds)
            throughput.append(bytes_per_second)
            watts += [power] if power is not None else []
            found = [steadiness(throughput)]
            if len(watts) == len(throughput):
                found.append(steadiness(watts))
            reached = all(one is not None and one.steady for one in found)
            if reached and index + 1 >= WINDOW_ROUNDS:
                break
        if not reached:
            self._say(
                f"the drive was not steady after {self._asked.rounds_max} rounds of "
                f"{pattern.value} writes; its runs are marked"
            )
        state.steady[pattern.value] = reached
        store(state)

    def _purge(self) -> None:
        if self._asked.purge is Purge.FORMAT:
            if self._controller is None:
                raise DriveError(
                    f"{self._device.path}: cannot be formatted without its controller; name it "
                    "with --controller, or say purge = trim"
                )
            self._say("formatting the drive")
            self._controller.format()
            return
        self._say("discarding all blocks of the drive")
        program = find_program("blkdiscard", "apt-get install util-linux", HostStateError)
        command = [program, "--force", str(self._device.path)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=program_environment()
        )
        if done.returncode != 0:
            raise DriveError(f"{self._device.path}: refuses to be trimmed: {done.stderr.strip()}")

    def _written(self) -> int | None:
        return self._controller.smart().host_bytes_written if self._controller else None

    def _pass(self) -> None:
        with TemporaryDirectory(prefix="iojoule-fill-") as name:
            folder = Path(name)
            (folder / JOB_FILE).write_text(fill_job(self._plan, self._target))
            run_fio(self._fio, folder, self._target.size_bytes / _SLOWEST_BYTES_PER_SECOND)
            point = _writes(Pattern.SEQUENTIAL, self._asked.fill_request_bytes)
            read_outcome(folder, point)

    def _round(self, pattern: Pattern) -> tuple[float, float | None]:
        """Throughput and device power of one round."""
        seconds = self._asked.round_seconds
        with TemporaryDirectory(prefix="iojoule-round-") as name:
            folder = Path(name)
            (folder / JOB_FILE).write_text(round_job(self._plan, self._target, pattern))
            recorder = self._recorder_of(folder)
            recorder.start()
            begin = time.monotonic_ns()
            try:
                run_fio(self._fio, folder, seconds, recorder.failed)
            finally:
                end = time.monotonic_ns()
                recording = recorder.stop()
            failed = recorder.failed()
            if failed is not None:
                raise SensorError(failed)
            point = _writes(pattern, _round_bytes(self._plan, pattern))
            outcome = read_outcome(folder, point)
            power = recording.power(Scope.DEVICE, begin, end)
        watts = power.mean_watts if power is not None else None
        return outcome.observations["throughput_bytes_per_second"], watts


def fill_job(plan: Plan, target: JobTarget) -> str:
    """The fio job of one sequential pass over the target."""
    point = _writes(Pattern.SEQUENTIAL, plan.precondition.fill_request_bytes)
    return _job(plan, target, point, JobTiming(0, 0, time_based=False))


def round_job(plan: Plan, target: JobTarget, pattern: Pattern) -> str:
    """The fio job of one round of preconditioning with a pattern."""
    point = _writes(pattern, _round_bytes(plan, pattern))
    return _job(plan, target, point, JobTiming(plan.precondition.round_seconds, 0))


def _job(plan: Plan, target: JobTarget, point: Point, timing: JobTiming) -> str:
    host = JobHost(cpus=plan.host.cpus, data=plan.run.data)
    return fio_job(point.workload, point.configuration, target, timing, host)


def _round_bytes(plan: Plan, pattern: Pattern) -> int:
    asked = plan.precondition
    random = pattern is Pattern.RANDOM
    return asked.random_request_bytes if random else asked.fill_request_bytes


def _writes(pattern: Pattern, request_bytes: int) -> Point:
    return Point(
        Workload(operation=Operation.WRITE, pattern=pattern),
        Configuration(
            request_bytes=request_bytes,
            queue_depth=_FILL_DEPTH,
            engine=Engine.LIBAIO,
            completion=Completion.INTERRUPT,
        ),
    )
