"""Runs on a real drive: preconditioning, settings, waits, and sensors around fio."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from iojoule.datasets.errors import IojouleError
from iojoule.datasets.programs import find_program, program_environment
from iojoule.datasets.schema import Configuration, Workload
from iojoule.datasets.steady_state import WINDOW_ROUNDS, steadiness
from iojoule.datasets.vocabulary import Completion, Engine, Operation, Pattern
from iojoule.measure.campaign import idle, settings
from iojoule.measure.campaign.conduct import Store
from iojoule.measure.campaign.folder import CampaignState, RunRecord, idle_key
from iojoule.measure.campaign.idle import RecorderOf
from iojoule.measure.campaign.plan import Plan, Purge
from iojoule.measure.campaign.rig import DriveFacts, Rig, Say
from iojoule.measure.campaign.run_record import RunObservation, failed_record, finished_record
from iojoule.measure.campaign.runs import Run
from iojoule.measure.drive.block_device import BlockDevice
from iojoule.measure.drive.hdparm import SataDrive, SpinState
from iojoule.measure.drive.nvme import NvmeController
from iojoule.measure.errors import CampaignError, DriveError, HostStateError, SensorError
from iojoule.measure.fio import (
    JOB_FILE,
    Fio,
    JobHost,
    JobTarget,
    JobTiming,
    fio_job,
    read_fio_result,
    run_fio,
)
from iojoule.measure.host.changes import Change, Setting
from iojoule.measure.point import Point
from iojoule.measure.recording.recorder import Recorder
from iojoule.measure.sensors.protocol import Scope

_FILL_DEPTH = 32
_SLOWEST_BYTES_PER_SECOND = 5e6


@dataclass(frozen=True)
class Preconditioner:
    """Preconditions the drive as the plan says; without a controller it cannot be formatted."""

    plan: Plan
    fio: Fio
    device: BlockDevice
    controller: NvmeController | None
    target: JobTarget
    recorder_of: RecorderOf
    say: Say

    def fill(self, state: CampaignState, store: Store) -> None:
        """Purge and fill, unless done.

        Raises:
            DriveError: The drive refuses to be purged.
            FioError: A pass failed.
        """
        if self.plan.precondition.purge is not Purge.NONE and not state.purged:
            self._purge()
            state.purged = True
            state.bytes_written_at_purge = self._written()
            store(state)
        if self.plan.precondition.fill_passes and not state.filled:
            for index in range(self.plan.precondition.fill_passes):
                self.say(
                    f"filling the drive: pass {index + 1} of {self.plan.precondition.fill_passes}"
                )
                self._pass()
                state.bytes_written += self.target.size_bytes
            state.filled = True
            store(state)

    def steady(self, pattern: Pattern, state: CampaignState, store: Store) -> None:
        """Write in rounds until throughput and power are steady; a drive that never is, is marked.

        Raises:
            FioError: A round failed.
            SensorError: A sensor failed.
        """
        if not self.plan.precondition.until_steady or pattern.value in state.steady:
            return
        throughput: list[float] = []
        watts: list[float] = []
        reached = False
        for index in range(self.plan.precondition.rounds_max):
            self.say(f"preconditioning with {pattern.value} writes: round {index + 1}")
            bytes_per_second, power = self._round(pattern)
            state.bytes_written += int(bytes_per_second * self.plan.precondition.round_seconds)
            throughput.append(bytes_per_second)
            watts += [power] if power is not None else []
            windows = [steadiness(throughput)]
            if len(watts) == len(throughput):
                windows.append(steadiness(watts))
            reached = all(window is not None and window.steady for window in windows)
            if reached and index + 1 >= WINDOW_ROUNDS:
                break
        if not reached:
            self.say(
                f"the drive was not steady after {self.plan.precondition.rounds_max} rounds of "
                f"{pattern.value} writes; its runs are marked"
            )
        state.steady[pattern.value] = reached
        store(state)

    def _purge(self) -> None:
        if self.plan.precondition.purge is Purge.FORMAT:
            if self.controller is None:
                raise DriveError(
                    f"{self.device.path}: cannot be formatted without its controller; name it "
                    "with --controller, or say purge = trim"
                )
            self.say("formatting the drive")
            self.controller.format()
            return
        self.say("discarding all blocks of the drive")
        program = find_program("blkdiscard", "apt-get install util-linux", HostStateError)
        command = [program, "--force", str(self.device.path)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=program_environment()
        )
        if done.returncode != 0:
            raise DriveError(f"{self.device.path}: refuses to be trimmed: {done.stderr.strip()}")

    def _written(self) -> int | None:
        return self.controller.smart().host_bytes_written if self.controller else None

    def _pass(self) -> None:
        with TemporaryDirectory(prefix="iojoule-fill-") as name:
            folder = Path(name)
            (folder / JOB_FILE).write_text(fill_job(self.plan, self.target))
            run_fio(self.fio, folder, self.target.size_bytes / _SLOWEST_BYTES_PER_SECOND)
            point = _writes(Pattern.SEQUENTIAL, self.plan.precondition.fill_request_bytes)
            read_fio_result(folder, point)

    def _round(self, pattern: Pattern) -> tuple[float, float | None]:
        seconds = self.plan.precondition.round_seconds
        with TemporaryDirectory(prefix="iojoule-round-") as name:
            folder = Path(name)
            (folder / JOB_FILE).write_text(round_job(self.plan, self.target, pattern))
            recorder = self.recorder_of(folder)
            recorder.start()
            begin = time.monotonic_ns()
            try:
                run_fio(self.fio, folder, seconds, recorder.failed)
            finally:
                end = time.monotonic_ns()
                recording = recorder.stop()
            failed = recorder.failed()
            if failed is not None:
                raise SensorError(failed)
            point = _writes(pattern, _round_bytes(self.plan, pattern))
            result = read_fio_result(folder, point)
            power = recording.power(Scope.DEVICE, begin, end)
        watts = power.mean_watts if power is not None else None
        return result.observations["throughput_bytes_per_second"], watts


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
    precondition = plan.precondition
    random = pattern is Pattern.RANDOM
    return precondition.random_request_bytes if random else precondition.fill_request_bytes


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


class DriveBench:
    """A `Bench` for a real drive."""

    def __init__(self, plan: Plan, points: Sequence[Point], rig: Rig) -> None:
        self._plan = plan
        self._points = points
        self._rig = rig
        self._last_write: float | None = None
        self._throughout: dict[Change, str] = {}
        self._of_runs: dict[Change, None] = {}
        self._target = target_of(plan, rig.drive, None)
        self._preconditioner = Preconditioner(
            plan, rig.fio, rig.drive.device, rig.controller, self._target, self._recorder, rig.say
        )

    def prepare(self, state: CampaignState, store: Store) -> None:
        """Set what holds throughout, purge, fill, and measure idle power in every state."""
        rig = self._rig
        controller = rig.drive.controller
        has_apst = controller is not None and controller.has_apst
        settings.wake(rig.drive.device)
        if rig.controller is not None and settings.sweeps_limit(self._points):
            # restored in the opposite order: states above a limit are not available
            rig.state.remember(settings.power_state(rig.controller))
            rig.state.remember(settings.power_limit(rig.controller))
        self._lift_limit()
        for change, value in settings.of_campaign(
            self._plan, self._points, rig.drive.device, rig.controller, has_apst
        ):
            rig.state.set(change, value)
            self._throughout[change] = value
        self._preconditioner.fill(state, store)
        # also when a campaign goes on: since then the drive or the sensor may have changed
        self._baselines(state)
        store(state)

    def before(self, run: Run, state: CampaignState, store: Store) -> None:
        """Precondition for the pattern of the run."""
        if self._plan.precondition.until_steady:
            self._lift_limit()
        self._preconditioner.steady(run.point.workload.pattern, state, store)

    def finish(self, state: CampaignState, store: Store) -> None:
        """Measure idle power once more: the difference is drift."""
        self._baselines(state)
        store(state)

    def perform(self, run: Run, folder: Path, state: CampaignState) -> RunRecord:
        """Make one run."""
        watched = RunObservation(run, folder, self._rig, self._plan, state, self._last_write)
        try:
            self._measure(run, folder, watched)
            record = finished_record(watched)
        except IojouleError as error:
            self._require_drive()
            if isinstance(error, CampaignError):
                raise
            record = failed_record(watched, error)
        except OSError as error:
            raise CampaignError(
                f"{folder}: cannot be written ({error.strerror}); nothing measured so far is lost: "
                "make room and resume the campaign"
            ) from None
        if run.point.writes:
            self._last_write = time.monotonic()
        return record

    def _measure(self, run: Run, folder: Path, watched: RunObservation) -> None:
        rig, settle = self._rig, self._plan.settle
        self._set_up(run.point)
        watched.cool_down()
        (folder / JOB_FILE).write_text(self._job(run))
        watched.look_before()
        recorder = self._recorder(folder)
        recorder.start()
        try:
            idle.pause(recorder, settle.seconds)
            recorder.mark()
            expected = run.seconds + run.ramp_seconds
            with self._traced(folder), watched.timing_fio():
                run_fio(rig.fio, folder, expected, recorder.failed)
            recorder.mark()
            watched.look_after()
            if run.point.writes and settle.after_writes_seconds_max:
                self._post_write_state(run)
                watched.wait_for_idle(recorder)
        finally:
            watched.recording = recorder.stop()
        reason = recorder.failed()
        if reason is not None:
            raise SensorError(reason)
        if rig.tracer is not None:
            watched.trace = rig.tracer.requests(folder)

    def _lift_limit(self) -> None:
        """Where the plan sweeps the limit: what comes before a run is done without one."""
        if self._rig.controller is not None and settings.sweeps_limit(self._points):
            self._set(settings.of_power(None, 0.0, self._rig.controller))

    def _set_up(self, point: Point) -> None:
        """Set what a run states; what only other runs state is as it was before them."""
        state = self._rig.state
        wanted = dict(
            settings.of_run(point.configuration, self._rig.drive.device, self._rig.controller)
        )
        others = [change for change in reversed(self._of_runs) if change not in wanted]
        if others:
            self._lift_limit()  # below which the power state of before may not be available
        for change in others:
            if change in self._throughout:
                state.set(change, self._throughout[change])
            else:
                state.put_back(change)
        self._of_runs |= dict.fromkeys(wanted)
        self._set(wanted.items())

    def _set(self, wanted: Iterable[Setting]) -> None:
        controller, state = self._rig.controller, self._rig.state
        for change, value in wanted:
            state.set(change, value)
            if controller is not None and change == settings.power_limit(controller):
                state.forget(settings.power_state(controller))  # which a limit may change

    def _traced(self, folder: Path) -> AbstractContextManager[None]:
        """Records block events where that was asked for."""
        tracer = self._rig.tracer
        return nullcontext() if tracer is None else tracer.recording(folder)

    def _post_write_state(self, run: Run) -> None:
        wanted = run.point.configuration.post_write_power_state
        if wanted is not None and self._rig.controller is not None:
            change = settings.power_state(self._rig.controller)
            self._of_runs[change] = None
            self._rig.state.set(change, str(wanted))

    def _job(self, run: Run) -> str:
        return job_of(run, self._plan, self._rig.drive)

    def _recorder(self, folder: Path) -> Recorder:
        return Recorder(self._rig.sensors, folder)

    def _baselines(self, state: CampaignState) -> None:
        rig, settle = self._rig, self._plan.settle
        if not settle.baseline_seconds:
            return
        for number, limit in settings.resting_powers(self._points):
            if rig.controller is not None:
                self._set(settings.of_power(number, limit, rig.controller))
            where = "" if number is None else f" in power state {number}"
            where += f" limited to {limit:g} W" if limit else ""
            rig.say(f"measuring idle power{where} for {settle.baseline_seconds:g} s")
            baseline = idle.measure_baseline(self._recorder, settle)
            if baseline is not None:
                state.idle.setdefault(idle_key(number, limit), []).append(baseline)
        self._standby_baseline(state)

    def _standby_baseline(self, state: CampaignState) -> None:
        """Idle power of a disk with its platters still, where the plan sweeps the standby timer."""
        rig, settle = self._rig, self._plan.settle
        device = rig.drive.device
        timers = (point.configuration.standby_timer_seconds for point in self._points)
        if not device.rotates or not any(timers):
            return
        drive = SataDrive(device.path)
        drive.stop()
        rig.say(f"measuring standby power for {settle.baseline_seconds:g} s")
        baseline = idle.measure_baseline(self._recorder, settle)
        if drive.state() is not SpinState.STANDBY:
            rig.say(f"{device.path}: did not stay in standby; its standby power is not stored")
        elif baseline is not None:
            state.idle.setdefault(STANDBY, []).append(baseline)
        settings.wake(device)

    def _require_drive(self) -> None:
        """Tell a failed run from a drive that is gone: then no further run makes sense."""
        device = self._rig.drive.device
        if device.has_vanished:
            raise DriveError(
                f"{device.path}: has vanished; what was measured is stored. Look at dmesg, power "
                "cycle the drive if need be, and resume the campaign"
            )


STANDBY = "standby"
"""Key of the idle power of a disk whose platters stand still, beside those of power states."""


def target_of(plan: Plan, drive: DriveFacts, engine: Engine | None) -> JobTarget:
    """The target of an engine's jobs.

    Raises CampaignError if it is outside the drive or has no node.
    """
    device = drive.device
    offset = plan.target.offset_bytes
    size = plan.target.size_bytes or device.size_bytes - offset
    if size <= 0 or offset + size > device.size_bytes:
        raise CampaignError(
            f"target: {offset} + {size} bytes lie outside the drive of {device.size_bytes} bytes",
            field="target.size_bytes",
        )
    return JobTarget(_filename(plan, drive, engine), offset, size)


def _filename(plan: Plan, drive: DriveFacts, engine: Engine | None) -> str:
    device = drive.device
    if engine is Engine.SPDK:
        if plan.host.spdk_address is None:
            raise CampaignError(
                "engine spdk: say host.spdk_address in the plan, for instance 'trtype=PCIe "
                "traddr=0000.01.00.0 ns=1'",
                field="host.spdk_address",
            )
        return plan.host.spdk_address.replace(":", ".")
    if engine is Engine.IO_URING_CMD:
        node = device.character_node()
        if node is None:
            raise CampaignError(
                f"engine io_uring_cmd: {device.path} is no NVMe drive, so it has no character "
                "node; choose another engine",
                field="engine",
            )
        return str(node)
    return str(device.path)


def job_of(run: Run, plan: Plan, drive: DriveFacts) -> str:
    """The job file of a run."""
    configuration = run.point.configuration
    host = plan.host
    return fio_job(
        run.point.workload,
        configuration,
        target_of(plan, drive, configuration.engine or Engine.IO_URING),
        JobTiming(run.seconds, run.ramp_seconds, plan.run.io_bytes, offload=plan.run.offload),
        JobHost(
            cpus=host.cpus,
            numa_memory_node=host.numa_memory_node,
            spdk_plugin=host.spdk_plugin,
            data=plan.run.data,
            fsync_at_end=plan.run.fsync_at_end,
            seed=plan.seed + run.number,
        ),
    )
