"""Runs the characterisation experiments on a drive, guarded as a campaign is, and resumes.

Order, as in `campaign.session`: restore what a killed session left; inspect the drive; refuse one
in use; require consent before anything destructive; hold the drive; open the sensors; only then
change anything, and restore it on every way out.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from iojoule import __version__
from iojoule.datasets import measured_drive
from iojoule.datasets.characteristics import (
    FILE_NAME,
    Characteristics,
    Evidence,
    ExperimentResult,
    Row,
    Status,
)
from iojoule.datasets.errors import IojouleError
from iojoule.datasets.provenance import Provenance, SourceFile
from iojoule.datasets.schema import Measurement
from iojoule.datasets.store import Dataset, write_dataset
from iojoule.datasets.vocabulary import Operation, Pattern
from iojoule.measure.campaign import idle, settings
from iojoule.measure.campaign.plan import Settle
from iojoule.measure.campaign.rig import DriveFacts, Rig, Say
from iojoule.measure.campaign.runs import OVERHEAD_SECONDS, UNKNOWN_WRITE_BYTES_PER_SECOND
from iojoule.measure.campaign.session import inspect_drive, open_sensors
from iojoule.measure.characterise.experiment import Experiment, Extent, Job, ScaleName, extent_of
from iojoule.measure.characterise.experiments import EXPERIMENTS
from iojoule.measure.characterise.folder import OPTIONS_FILE, CharacteriseFolder, Options
from iojoule.measure.characterise.preset import preset_text
from iojoule.measure.characterise.report import draw, report
from iojoule.measure.characterise.workbench import Workbench, job_text
from iojoule.measure.drive.nvme import NvmeController
from iojoule.measure.drive.safety import require_consent, require_unused
from iojoule.measure.errors import CampaignError, DriveError, RunsFailedError, SensorError
from iojoule.measure.fio import find_fio
from iojoule.measure.host.facts import host_facts
from iojoule.measure.host.guard import guarded
from iojoule.measure.host.journal import HostState, restore_abandoned
from iojoule.measure.recording.recorder import Recorder

_NOMINAL_IOPS = 1000.0


class PlanningBench:
    """A `Bench` that does nothing: every row is nominal."""

    def __init__(self, extent: Extent, power_states: Sequence[int]) -> None:
        self._extent = extent
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
        timed = job.seconds + self._extent.ramp_seconds if not moved else 0.0
        self.seconds += timed + moved / UNKNOWN_WRITE_BYTES_PER_SECOND + OVERHEAD_SECONDS
        return Row(label=job.label, values={"iops": _NOMINAL_IOPS})

    def rest(self, label: str, seconds: float) -> Row:
        """Note a rest."""
        self.seconds += seconds
        return Row(label=label)

    def quiet(self, label: str) -> Row:
        """Note a wait."""
        self.seconds += self._extent.quiet_seconds
        return Row(label=label, values={"quiet": 1.0})

    def power_state(self, number: int) -> None:
        """Note a power state."""
        self.seconds += self._extent.settle_seconds

    def wake(self, label: str) -> Row:
        """Note a read of one block."""
        return Row(label=label, values={"latency_ns": 0.0})


@dataclass(frozen=True)
class Step:
    """What one experiment would do; an `obstacle` prevents it, `seconds` is a lower bound."""

    experiment: Experiment
    jobs: tuple[Job, ...]
    bytes_written: int
    seconds: float
    obstacle: str | None


def plan_steps(
    experiments: Sequence[Experiment], extent: Extent, drive: DriveFacts, *, has_power: bool
) -> list[Step]:
    """Jobs, bytes and least time of every experiment."""
    controller = drive.controller
    states = (
        tuple(state.index for state in controller.power_states) if controller is not None else ()
    )
    steps = []
    for experiment in experiments:
        obstacle = None
        if experiment.needs_controller and not states:
            obstacle = "the drive has no controller that sets power states; name --controller"
        elif experiment.needs_power and not has_power:
            obstacle = "it needs a power meter of the drive; name one with --power"
        bench = PlanningBench(extent, states)
        if obstacle is None:
            experiment.measure(bench, extent)
        written = sum(job.bytes_written for job in bench.jobs)
        steps.append(Step(experiment, tuple(bench.jobs), written, bench.seconds, obstacle))
    return steps


def fills_first(steps: Sequence[Step]) -> bool:
    """Whether the area is written in order before the first experiment that reads it.

    The write cache experiment does so itself; where nothing is written, existing data are read.
    """
    possible = [step for step in steps if step.obstacle is None]
    writes = any(step.bytes_written for step in possible)
    return writes and not any(step.experiment.name == "slc-cache" for step in possible)


def commands(steps: Sequence[Step], extent: Extent, device: Path) -> list[str]:
    """Every job file, for `--dry-run`."""
    lines = []
    for step in steps:
        lines.append(f"# {step.experiment.name}: {step.experiment.title}")
        if step.obstacle is not None:
            lines.append(f"# left out: {step.obstacle}")
        for number, job in enumerate(step.jobs, start=1):
            text = job_text(job, device, extent, number)
            lines.append(f"# run {number}: {job.label}\nfio - <<'JOB'\n{text}JOB")
    return lines


REPORT_FILE = "report.md"
PRESET_FILE = "preset.toml"
DATASET = "measurements"
FILL_BYTES = 131072
COUNTERS_EVERY_SECONDS = 0.05


@dataclass(frozen=True)
class PlannedExperiments:
    """An inspected drive and what the experiments would do; `fills`: the area is written first."""

    drive: DriveFacts
    controller: NvmeController | None
    extent: Extent
    steps: list[Step]
    fills: bool

    @property
    def bytes_written(self) -> int:
        """By all of it, exactly."""
        filled = self.extent.area_bytes if self.fills else 0
        return filled + sum(step.bytes_written for step in self.steps)

    @property
    def seconds(self) -> float:
        """It takes at least."""
        return sum(step.seconds for step in self.steps)


@dataclass(frozen=True)
class CharacteriseRequest:
    """Options of `characterise`; `base` is the preset that supplies unknown parameters."""

    sensors: Sequence[str]
    overwrite: Sequence[str]
    typed_serial: str | None
    base: str


def plan_experiments(
    experiments: Sequence[Experiment],
    drive: Path,
    controller: Path | None,
    scale: ScaleName,
    *,
    has_power: bool,
) -> PlannedExperiments:
    """Inspect a drive and plan the experiments; changes nothing.

    Raises IojouleError if it cannot.
    """
    facts, nvme = inspect_drive(drive, controller)
    settings.require_no_limit(facts, nvme)
    extent = extent_of(scale, facts.device.size_bytes)
    steps = plan_steps(experiments, extent, facts, has_power=has_power)
    return PlannedExperiments(facts, nvme, extent, steps, fills_first(steps))


def characterise(
    planned: PlannedExperiments,
    folder: CharacteriseFolder,
    request: CharacteriseRequest,
    say: Say,
) -> Characteristics:
    """Run every experiment without a result, and write the results.

    Raises:
        IojouleError: What went wrong; results so far are stored, and the host is restored.
        Interrupted: A signal ended it; likewise.
    """
    for line in restore_abandoned():
        say(line)
    fio, drive = find_fio(), planned.drive
    require_unused(drive.device, every_namespace=planned.controller is not None)
    if planned.bytes_written:
        require_consent(drive.device, drive.serial, request.typed_serial, request.overwrite)
    sensors = open_sensors([*request.sensors, _counters(drive)], drive)
    options = folder.begin(_options(planned, request))
    folder.write(measured_drive.FILE_NAME, drive.record())

    def work(state: HostState) -> None:
        if planned.bytes_written:  # again: until it was held, another program could write to it
            require_consent(drive.device, drive.serial, request.typed_serial, request.overwrite)
        rig = Rig(drive, planned.controller, host_facts(), fio, sensors, state, say)
        _Session(planned, folder, rig).run()

    stored = (
        "results so far are stored; give the same command again to resume the experiment that "
        "was interrupted"
    )
    guarded(drive.device, say, stored, work)
    characteristics = write_results(folder, options, request.base, drive.record())
    _refuse_failures(folder, characteristics)
    return characteristics


def write_results(
    folder: CharacteriseFolder, options: Options, base: str, drive: measured_drive.MeasuredDrive
) -> Characteristics:
    """Make characteristics, report, preset and dataset of all results there are."""
    results = {}
    measurements: list[Measurement] = []
    for experiment in EXPERIMENTS:
        result = folder.result(experiment.name)
        if result is not None:
            results[experiment.name] = result
            measurements += folder.measurements(experiment.name)
    characteristics = Characteristics(
        generator=f"iojoule {__version__}",
        scale=options.scale.value,
        began_utc=options.began_utc,
        drive=drive,
        answers=results,
    )
    folder.write(FILE_NAME, characteristics)
    folder.write_text(REPORT_FILE, report(characteristics))
    folder.write_text(PRESET_FILE, preset_text(characteristics, base))
    if measurements:
        source = SourceFile.of(folder.path / OPTIONS_FILE, name="characterise")
        provenance = Provenance(importer="characterise", sources=(source,))
        write_dataset(Dataset.from_measurements(measurements, provenance), folder.path / DATASET)
    return characteristics


def _counters(drive: DriveFacts) -> str:
    """The block layer's counters, read more often than a campaign does: traces are made of them."""
    return f"diskstats:{drive.device.carrier},every={COUNTERS_EVERY_SECONDS:g}"


def _options(planned: PlannedExperiments, request: CharacteriseRequest) -> Options:
    node = planned.controller.node if planned.controller is not None else None
    return Options(
        drive=str(planned.drive.device.path),
        controller=str(node) if node is not None else None,
        serial=planned.drive.serial,
        scale=planned.extent.scale,
        sensors=list(request.sensors),
        began_utc=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _refuse_failures(folder: CharacteriseFolder, characteristics: Characteristics) -> None:
    failed = {
        name: result.reason
        for name, result in characteristics.answers.items()
        if result.status is Status.FAILED
    }
    if failed:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in failed.items())
        raise RunsFailedError(
            f"{folder.path}: {len(failed)} experiments failed ({reasons}); the others are stored. "
            "Remove the cause and give the same command again"
        )


class _Session:
    """The experiments of one call on a held drive."""

    def __init__(self, planned: PlannedExperiments, folder: CharacteriseFolder, rig: Rig) -> None:
        self._planned = planned
        self._extent = planned.extent
        self._folder = folder
        self._rig = rig

    def run(self) -> None:
        left = [
            step for step in self._planned.steps if not self._folder.is_done(step.experiment.name)
        ]
        for step in left:
            if step.obstacle is not None:
                result = _result(step.experiment, Status.SKIPPED, reason=step.obstacle)
                self._folder.keep(step.experiment.name, result, [])
        left = [step for step in left if step.obstacle is None]
        if not left:
            return
        self._settle()
        baseline = self._baseline()
        if self._planned.fills:
            self._fill(baseline)
        for number, step in enumerate(left, start=1):
            self._rig.say(f"question {number} of {len(left)}: {step.experiment.title}")
            self._run_experiment(step.experiment, baseline)

    def _settle(self) -> None:
        """Awake, in the first state, and it stays there."""
        rig = self._rig
        settings.wake(rig.drive.device)
        controller = rig.drive.controller
        if rig.controller is None or controller is None:
            return
        if controller.has_apst:
            change = settings.transitions(rig.controller)
            rig.state.set(change, change.switched(False))
        if controller.operational_states:
            first = controller.operational_states[0].index
            rig.state.set(settings.power_state(rig.controller), str(first))

    def _baseline(self) -> Row | None:
        extent = self._extent
        self._rig.say(f"measuring idle power for {extent.idle_seconds:g} s")
        settle = Settle(
            baseline_seconds=extent.idle_seconds,
            window_seconds=extent.quiet_seconds,
            after_writes_seconds_max=extent.quiet_seconds_max,
        )
        baseline = idle.measure_baseline(lambda path: Recorder(self._rig.sensors, path), settle)
        if baseline is None:
            return None
        return Row(
            label="idle",
            values={
                "power_watts": baseline.mean_watts,
                "power_error_watts": baseline.standard_error_watts,
            },
        )

    def _fill(self, baseline: Row | None) -> None:
        self._rig.say(f"writing the first {self._extent.area_bytes / 1e6:,.0f} MB in order")
        with TemporaryDirectory(prefix="iojoule-fill-") as name:
            bench = Workbench(self._rig, Path(name), self._extent, baseline)
            bench.start()
            try:
                fill = Job(
                    "fill",
                    Operation.WRITE,
                    FILL_BYTES,
                    queue_depth=32,
                    pattern=Pattern.SEQUENTIAL,
                    bytes_total=self._extent.area_bytes,
                )
                bench.run(fill)
                bench.quiet("after")
            finally:
                bench.stop()

    def _run_experiment(self, experiment: Experiment, baseline: Row | None) -> None:
        began = time.monotonic()
        bench = Workbench(self._rig, self._folder.fresh(experiment.name), self._extent, baseline)
        try:
            bench.start()
            try:
                experiment.measure(bench, self._extent)
            finally:
                recording = bench.stop()
            failed = bench.failed()
            if failed is not None:
                raise SensorError(failed)
            evidence, measurements = bench.complete(recording)
            estimates = experiment.estimate(evidence)
        except CampaignError:
            raise
        except IojouleError as error:
            self._require_drive()
            self._rig.say(f"{experiment.name} failed: {error.message}")
            result = _result(
                experiment,
                Status.FAILED,
                reason=error.message,
                bytes_written=bench.bytes_written,
                seconds=time.monotonic() - began,
            )
            self._folder.keep(experiment.name, result, [])
            return
        result = _result(
            experiment,
            Status.ANSWERED,
            bytes_written=bench.bytes_written,
            seconds=time.monotonic() - began,
        ).model_copy(
            update={
                "estimates": estimates,
                "evidence": evidence,
                "plot": f"plots/{experiment.name}.svg",
            }
        )
        draw(experiment, result, self._folder.path / f"plots/{experiment.name}.svg")
        self._folder.keep(experiment.name, result, measurements)

    def _require_drive(self) -> None:
        """Raises DriveError if the drive is gone: then no other experiment makes sense."""
        device = self._rig.drive.device
        if device.has_vanished:
            raise DriveError(
                f"{device.path}: has vanished; results so far are stored. Look at dmesg, power "
                "cycle the drive if need be, and give the same command again"
            )


def _result(
    experiment: Experiment,
    status: Status,
    *,
    reason: str | None = None,
    bytes_written: int = 0,
    seconds: float = 0.0,
) -> ExperimentResult:
    return ExperimentResult(
        title=experiment.title,
        purpose=experiment.purpose,
        sources=experiment.sources,
        status=status,
        reason=reason,
        bytes_written=bytes_written,
        seconds=seconds,
        evidence=Evidence(),
    )
