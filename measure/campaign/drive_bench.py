"""Makes runs on a real drive: sets, waits, records all sensors around fio, and looks closely."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from iojoule.datasets.errors import IojouleError
from iojoule.datasets.vocabulary import Engine
from iojoule.measure.campaign import idle, settings
from iojoule.measure.campaign.bench import Store
from iojoule.measure.campaign.conditions import DriveFacts
from iojoule.measure.campaign.folder import CampaignState
from iojoule.measure.campaign.plan import Plan
from iojoule.measure.campaign.points import Run
from iojoule.measure.campaign.precondition import Preconditioner
from iojoule.measure.campaign.record import RunRecord
from iojoule.measure.campaign.rig import Rig
from iojoule.measure.campaign.run_record import failed_record, finished_record
from iojoule.measure.campaign.watched_run import Watched
from iojoule.measure.drive.hdparm import SataDrive, SpinState
from iojoule.measure.errors import CampaignError, DriveError, SensorError
from iojoule.measure.fio import JOB_FILE, JobHost, JobTarget, JobTiming, fio_job, run_fio
from iojoule.measure.point import Point
from iojoule.measure.recording import Recorder


class DriveBench:
    """A `Bench` for a real drive.

    Args:
        plan: The plan.
        points: Every point of the campaign.
        rig: What it works with.
    """

    def __init__(self, plan: Plan, points: Sequence[Point], rig: Rig) -> None:
        self._plan = plan
        self._points = points
        self._rig = rig
        self._last_write: float | None = None
        self._target = target_of(plan, rig.drive, None)
        self._preconditioner = Preconditioner(
            plan,
            rig.fio,
            rig.drive.device,
            rig.controller,
            self._target,
            self._recorder,
            rig.say,
        )

    def prepare(self, state: CampaignState, store: Store) -> None:
        """Set what holds throughout, purge, fill, and measure idle power in every state."""
        rig = self._rig
        controller = rig.drive.controller
        has_apst = controller is not None and controller.has_apst
        settings.wake(rig.drive.device)
        for change, value in settings.of_campaign(
            self._plan, self._points, rig.drive.device, rig.controller, has_apst
        ):
            rig.state.set(change, value)
        self._preconditioner.fill(state, store)
        # also when a campaign goes on: since then the drive or the sensor may have changed
        self._baselines(state)
        store(state)

    def before(self, run: Run, state: CampaignState, store: Store) -> None:
        """Precondition for the pattern of the run."""
        self._preconditioner.steady(run.point.workload.pattern, state, store)

    def finish(self, state: CampaignState, store: Store) -> None:
        """Measure idle power once more: the difference is drift."""
        self._baselines(state)
        store(state)

    def perform(self, run: Run, folder: Path, state: CampaignState) -> RunRecord:
        """Make one run."""
        watched = Watched(run, folder, self._rig, self._plan, state, self._last_write)
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

    def _measure(self, run: Run, folder: Path, watched: Watched) -> None:
        rig, settle = self._rig, self._plan.settle
        for change, value in settings.of_run(
            run.point.configuration, rig.drive.device, rig.controller
        ):
            rig.state.set(change, value)
        watched.cool_down()
        (folder / JOB_FILE).write_text(self._job(run))
        watched.look_before()
        recorder = self._recorder(folder)
        recorder.start()
        try:
            idle.pause(recorder, settle.seconds)
            recorder.mark()
            expected = run.seconds + run.ramp_seconds
            with watched.timing_fio():
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

    def _post_write_state(self, run: Run) -> None:
        wanted = run.point.configuration.post_write_power_state
        if wanted is not None and self._rig.controller is not None:
            self._rig.state.set(settings.power_state(self._rig.controller), str(wanted))

    def _job(self, run: Run) -> str:
        return job_of(run, self._plan, self._rig.drive)

    def _recorder(self, folder: Path) -> Recorder:
        return Recorder(self._rig.sensors, folder)

    def _baselines(self, state: CampaignState) -> None:
        rig, settle = self._rig, self._plan.settle
        if not settle.baseline_seconds:
            return
        swept = sorted(
            {
                point.configuration.power_state
                for point in self._points
                if point.configuration.power_state is not None
            }
        )
        states: list[int | None] = [*swept] or [None]
        for number in states:
            if number is not None and rig.controller is not None:
                rig.state.set(settings.power_state(rig.controller), str(number))
            where = "" if number is None else f" in power state {number}"
            rig.say(f"measuring idle power{where} for {settle.baseline_seconds:g} s")
            found = idle.measure_baseline(self._recorder, settle)
            if found is not None:
                state.idle.setdefault(str(number or 0), []).append(found)
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
        found = idle.measure_baseline(self._recorder, settle)
        if drive.state() is not SpinState.STANDBY:
            rig.say(f"{device.path}: did not stay in standby; its standby power is not stored")
        elif found is not None:
            state.idle.setdefault(STANDBY, []).append(found)
        settings.wake(device)

    def _require_drive(self) -> None:
        """Tell a failed run from a drive that is gone: then no further run makes sense."""
        device = self._rig.drive.device
        if device.attribute("size") in (None, "0") or not device.path.exists():
            raise DriveError(
                f"{device.path}: has vanished; what was measured is stored. Look at dmesg, power "
                "cycle the drive if need be, and resume the campaign"
            )


STANDBY = "standby"
"""Key of the idle power of a disk whose platters stand still, beside those of power states."""


def target_of(plan: Plan, drive: DriveFacts, engine: Engine | None) -> JobTarget:
    """What the jobs of an engine read and write.

    Raises:
        CampaignError: The target lies outside the drive, or the engine has no node for it.
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
