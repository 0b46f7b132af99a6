"""Opens what a campaign works with, in the safe order, and closes it.

Order: restore what a killed campaign left; inspect the drive; refuse one in use; require consent
before anything destructive; hold the drive; open the sensors; only then change anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from iojoule.datasets import measured_drive
from iojoule.datasets.programs import require_safe
from iojoule.measure.campaign.conduct import Conduct, Observer, Summary
from iojoule.measure.campaign.drive_bench import DriveBench, fill_job, job_of, round_job, target_of
from iojoule.measure.campaign.folder import CampaignFolder, CampaignOptions
from iojoule.measure.campaign.plan import Plan, parse_plan
from iojoule.measure.campaign.rig import DriveFacts, Rig, Say
from iojoule.measure.campaign.runs import Abilities, Cost, Expansion, cost, expand
from iojoule.measure.campaign.settings import (
    of_campaign,
    of_run,
    require_no_limit,
    resting_powers,
    sweeps_limit,
)
from iojoule.measure.drive.block_device import BlockDevice, open_block_device
from iojoule.measure.drive.nvme import Namespace, NvmeController
from iojoule.measure.drive.safety import held, require_consent, require_unused
from iojoule.measure.errors import CampaignError, DriveError, UnsafeDriveError
from iojoule.measure.fio import JOB_FILE, OLDEST_FOR_URING_CMD, Fio, find_fio
from iojoule.measure.host.changes import Change, NvmeFeature, NvmeTransitions
from iojoule.measure.host.facts import host_facts
from iojoule.measure.host.guard import guarded
from iojoule.measure.host.journal import HostState, restore_abandoned
from iojoule.measure.sensors import open_sensor
from iojoule.measure.sensors.protocol import Sensor
from iojoule.measure.tracing.block_trace import tracer


@dataclass(frozen=True)
class OpenedDrive:
    """An inspected drive, its controller if known, and what a plan would do to it."""

    plan: Plan
    drive: DriveFacts
    controller: NvmeController | None
    expansion: Expansion
    cost: Cost


def inspect_drive(drive: Path, controller: Path | None) -> tuple[DriveFacts, NvmeController | None]:
    """Inspect a drive and its controller; changes nothing.

    Raises:
        DriveError: The drive or its controller does not answer.
        UnsafeDriveError: It is no whole drive.
        HostStateError: A permission or a program is missing.
    """
    device = open_block_device(drive)
    node = controller or device.controller_node()
    nvme = NvmeController(node, device.namespace_id()) if node is not None else None
    facts = DriveFacts(
        device,
        nvme.identify() if nvme is not None else None,
        _namespace(nvme) if nvme is not None else None,
    )
    return facts, nvme


def open_drive(plan: Plan, drive: Path, controller: Path | None) -> OpenedDrive:
    """Inspect a drive and work out what a plan would do to it; changes nothing.

    Raises as `inspect_drive`, and CampaignError if the plan does not fit the drive.
    """
    facts, nvme = inspect_drive(drive, controller)
    expansion = expand(plan, _abilities(facts))
    points = [run.point for run in expansion.runs]
    if not sweeps_limit(points):
        require_no_limit(facts, nvme)
    for run in expansion.runs:
        job_of(run, plan, facts)  # whatever cannot be written as a job is found now
    target = target_of(plan, facts, None)
    powers = len(resting_powers(points))
    price = cost(plan, expansion.runs, facts.model, target.size_bytes, powers)
    return OpenedDrive(plan, facts, nvme, expansion, price)


def _namespace(controller: NvmeController) -> Namespace | None:
    """Its namespace; None where the controller does not tell, as some behind adapters do not."""
    try:
        return controller.identify_namespace()
    except DriveError:
        return None


def _abilities(drive: DriveFacts) -> Abilities:
    device = drive.device
    states = (
        tuple(state.index for state in drive.controller.operational_states)
        if drive.controller is not None
        else None
    )
    offered = device.queue_attribute("scheduler")
    poll = device.queue_attribute("io_poll")
    nodes = [
        int(node.name.removeprefix("node"))
        for node in device.sysfs.glob("devices/system/node/node[0-9]*")
    ]
    return Abilities(
        power_states=states,
        polls=None if poll is None else poll != "0",
        schedulers=frozenset(re.findall(r"[\w-]+", offered)) if offered else None,
        numa_nodes=frozenset(nodes) or None,
        passthrough=(node := device.character_node()) is not None and node.exists(),
        passthrough_bytes_max=device.largest_command_bytes("max_hw_sectors_kb"),
        limits_power=drive.controller.limits_power if drive.controller is not None else None,
        caps_watts={
            state.index: state.max_power_watts
            for state in (drive.controller.power_states if drive.controller is not None else ())
        },
    )


def commands(opened: OpenedDrive, fio: Fio) -> list[str]:
    """Every command that the campaign would run, with the job files, for `--dry-run`."""
    lines: list[str] = []
    drive, controller = opened.drive, opened.controller
    has_apst = drive.controller is not None and drive.controller.has_apst
    points = [run.point for run in opened.expansion.runs]
    for change, value in of_campaign(opened.plan, points, drive.device, controller, has_apst):
        lines.append(change.command(value))
    precondition = opened.plan.precondition
    if precondition.purge == "format" and controller is not None:
        named = [drive.device, *_erased_besides(opened)]
        lines.append(f"# erases {', '.join(str(device.path) for device in named)}")
        lines.append(controller.format_command())
    elif precondition.purge == "trim":
        lines.append(f"blkdiscard --force {drive.device.path}")
    target = target_of(opened.plan, drive, None)
    if precondition.fill_passes:
        lines.append(f"# {precondition.fill_passes} times")
        lines.append(_fio_command(fio, fill_job(opened.plan, target)))
    if precondition.until_steady:
        for pattern in sorted({point.workload.pattern for point in points}):
            lines.append(f"# until it is steady, at most {precondition.rounds_max} times")
            lines.append(_fio_command(fio, round_job(opened.plan, target, pattern)))
    before: dict[Change, str] = {}
    for run in opened.expansion.runs:
        lines.append(f"# run {run.name}, repeat {run.repeat}")
        wanted = dict(of_run(run.point.configuration, drive.device, controller))
        others = [change for change in before if change not in wanted]
        lines += [f"# undo: {before.pop(change)}" for change in others]
        for change, value in wanted.items():
            line = change.command(value)
            if before.get(change) != line:
                lines.append(line)
                before[change] = line
        lines.append(_fio_command(fio, job_of(run, opened.plan, drive)))
    return lines


def _erased_besides(opened: OpenedDrive) -> list[BlockDevice]:
    controller = opened.drive.controller
    if (
        opened.plan.precondition.purge != "format"
        or controller is None
        or not controller.format_erases_all
    ):
        return []
    return opened.drive.device.namespaces()[1:]


def _changes_whole_drive(opened: OpenedDrive) -> bool:
    """Whether the plan formats or sets what belongs to the controller."""
    drive, controller = opened.drive, opened.controller
    has_apst = drive.controller is not None and drive.controller.has_apst
    points = [run.point for run in opened.expansion.runs]
    changes = [
        *of_campaign(opened.plan, points, drive.device, controller, has_apst),
        *(
            setting
            for point in points
            for setting in of_run(point.configuration, drive.device, controller)
        ),
    ]
    return opened.plan.precondition.purge == "format" or any(
        isinstance(change, NvmeFeature | NvmeTransitions) for change, _ in changes
    )


def _fio_command(fio: Fio, job: str) -> str:
    """Shell lines that write the job file and run it."""
    return f"cat >{JOB_FILE} <<'JOB'\n{job}JOB\n{' '.join(fio.command())}"


def run_campaign(
    folder: CampaignFolder,
    plan_text: str,
    options: CampaignOptions,
    *,
    typed_serial: str | None,
    say: Say,
    observer: Observer,
    resume: bool = False,
    conduct: Conduct,
) -> Summary:
    """Begin or resume a campaign; restores drive and host on every way out.

    `typed_serial` is the serial number as the user typed it; required where the plan writes.

    Raises:
        IojouleError: What went wrong; measurements are stored, and the host is restored.
        Interrupted: A signal ended it; likewise.
    """
    for line in restore_abandoned():
        say(line)
    plan = parse_plan(plan_text, str(folder.path / "plan.toml"))
    fio = find_fio()
    drive_path = Path(options.drive)
    opened = open_drive(plan, drive_path, Path(options.controller) if options.controller else None)
    _require_same_drive(opened.drive, options, resume)
    _require_engines(fio, opened)
    if plan.host.spdk_plugin is not None:
        require_safe(plan.host.spdk_plugin, CampaignError)
    require_unused(opened.drive.device, every_namespace=_changes_whole_drive(opened))
    erased = _erased_besides(opened)

    def consented() -> None:
        if plan.writes:
            consent = options.serial if resume else typed_serial
            serial = opened.drive.serial
            require_consent(opened.drive.device, serial, consent, options.overwrite, erased)

    consented()
    sensors = open_sensors(options.sensors, opened.drive)
    if options.trace:
        with tracer(opened.drive.device):
            pass  # where tracing is not allowed, nothing begins
    if not resume:
        folder.create(plan_text, options.model_copy(update={"serial": opened.drive.serial}))
        folder.write(measured_drive.FILE_NAME, opened.drive.record())

    def work(state: HostState) -> Summary:
        with ExitStack() as others:
            for namespace in erased:
                others.enter_context(held(namespace))
            consented()  # again: until it was held, another program could have put something on it
            traced = others.enter_context(tracer(opened.drive.device)) if options.trace else None
            rig = Rig(
                opened.drive, opened.controller, host_facts(), fio, sensors, state, say, traced
            )
            runs = opened.expansion.runs
            bench = DriveBench(plan, [run.point for run in runs], rig)
            return conduct(plan, runs, folder, bench, observer)

    stored = f"what was measured is stored; go on with `iojoule measure resume {folder.path}`"
    return guarded(opened.drive.device, say, stored, work)


def open_sensors(wanted: Sequence[str], drive: DriveFacts) -> list[Sensor]:
    """Open the requested sensors and those of every host.

    Raises SensorError if one cannot be read.
    """
    # what every host has: whether other programs used the drive, and what the CPU did
    own = [f"diskstats:{drive.device.carrier}", "cpu"]
    kinds = {name.partition(":")[0] for name in wanted}
    names = [*wanted, *(name for name in own if name.partition(":")[0] not in kinds)]
    sensors = [open_sensor(name) for name in names]
    for sensor in sensors:
        sensor.probe()
    return sensors


def _require_same_drive(drive: DriveFacts, options: CampaignOptions, resume: bool) -> None:
    if resume and options.serial != drive.serial:
        raise UnsafeDriveError(
            f"{options.drive}: is now the drive {drive.serial}, but the campaign was begun on "
            f"{options.serial}; nothing was done to it. Find the node of the right drive (`nvme "
            "list`) and resume with --drive"
        )


def _require_engines(fio: Fio, opened: OpenedDrive) -> None:
    engines = {run.point.configuration.engine for run in opened.expansion.runs}
    if "io_uring_cmd" in engines and fio.version < OLDEST_FOR_URING_CMD:
        raise CampaignError(
            f"engine io_uring_cmd: fio {fio.version[0]}.{fio.version[1]} is too old, "
            f"{OLDEST_FOR_URING_CMD[0]}.{OLDEST_FOR_URING_CMD[1]} has it",
            field="engine",
        )
