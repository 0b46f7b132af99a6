"""Reads a drive or workload file (XML or TOML) with source locations, and converts between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from iojoule.datasets.atomic import output_file, write_text_atomically
from iojoule.datasets.errors import InputError
from iojoule.sim.device import DeviceConfig
from iojoule.sim.findings import Finding, Severity, Tell
from iojoule.sim.formats.building import place_in, refusal
from iojoule.sim.formats.mqsim_inputs import (
    read_device_xml,
    read_workload_xml,
    write_device_xml,
    write_workload_xml,
)
from iojoule.sim.formats.mqsim_tags import DEVICE_ROOT, WORKLOAD_ROOT, stock_name
from iojoule.sim.formats.toml import (
    Drive,
    parse_toml,
    read_drive_toml,
    read_workload_toml,
    write_drive_toml,
    write_workload_toml,
)
from iojoule.sim.formats.xml_tree import parse, read_bytes
from iojoule.sim.known_defects import findings as known_defects
from iojoule.sim.physical_options import HostOptions, PhysicalOptions
from iojoule.sim.result import Mode
from iojoule.sim.workload import FlowConfig, Scenario

TOML_SUFFIX = ".toml"


@dataclass(frozen=True)
class DriveFile:
    """A drive as a file describes it, with what its reader had to say."""

    path: Path
    drive: Drive
    findings: tuple[Finding, ...] = ()

    @property
    def device(self) -> DeviceConfig:
        """The drive's configuration."""
        return self.drive.device

    def in_mode(self, mode: Mode) -> DriveFile:
        """The same in another mode."""
        device = self.device.model_copy(update={"mode": mode})
        return replace(self, drive=replace(self.drive, device=device))


@dataclass(frozen=True)
class WorkloadFile:
    """The scenarios of a file, with what its reader had to say.

    `places` says where `scenarios[0].flows[1].seed` stands.
    """

    path: Path
    scenarios: tuple[Scenario, ...]
    places: dict[str, str]
    findings: tuple[Finding, ...] = ()

    def with_traces(self, number: int, *folders: Path) -> Scenario:
        """A scenario whose traces are the paths of files that are there.

        A relative path is looked for from the current directory, then from the workload's folder,
        then from the others that are given.

        Raises:
            RefusedError: A trace is at none of these places.
        """
        flows = [
            self._with_trace(flow, f"scenarios[{number}].flows[{index}].trace_path", folders)
            for index, flow in enumerate(self.scenarios[number].flows)
        ]
        return Scenario(flows=tuple(flows))

    def _with_trace(self, flow: FlowConfig, field: str, folders: tuple[Path, ...]) -> FlowConfig:
        if not flow.trace_path:
            return flow
        places = (Path(), self.path.parent, *folders)
        tried = list(dict.fromkeys(folder / flow.trace_path for folder in places))
        for path in tried:
            if path.is_file():
                return flow.model_copy(update={"trace_path": str(path)})
        said = " and ".join(str(path.absolute()) for path in tried)
        raise refusal(
            "missing_trace",
            place_in(self.places, field),
            f"there is no trace {flow.trace_path}; looked for {said}; correct the path",
            field,
        )


def read_drive(path: str | Path) -> DriveFile:
    """Read a drive: TOML by its suffix, else MQSim's ssdconfig.xml.

    Raises:
        IojouleError: The file cannot be read or says what no drive is.
    """
    path = Path(path)
    content = read_bytes(path)
    told: list[Finding] = []
    if path.suffix.lower() == TOML_SUFFIX:
        drive = read_drive_toml(parse_toml(content, str(path)), str(path), told.append)
    else:
        drive = Drive(*_device_xml(content, path, told))
    return DriveFile(path, drive, tuple(told))


def _device_xml(
    content: bytes, path: Path, told: list[Finding]
) -> tuple[DeviceConfig, str, dict[str, str], dict[str, str]]:
    device, places = read_device_xml(parse(content, str(path)), str(path), told.append)
    return device, "", {}, places


def read_workload(path: str | Path) -> WorkloadFile:
    """Read a workload: TOML by its suffix, else MQSim's workload.xml.

    Raises:
        IojouleError: The file cannot be read or says what no workload is.
    """
    path = Path(path)
    content = read_bytes(path)
    told: list[Finding] = []
    if path.suffix.lower() == TOML_SUFFIX:
        read = read_workload_toml(parse_toml(content, str(path)), str(path), told.append)
    else:
        read = read_workload_xml(parse(content, str(path)), str(path), told.append)
    return WorkloadFile(path, *read, tuple(told))


def read_any(path: str | Path) -> DriveFile | WorkloadFile:
    """Read a drive or a workload, whichever the file holds (raises as the two above)."""
    path = Path(path)
    content = read_bytes(path)
    if path.suffix.lower() == TOML_SUFFIX:
        tables = parse_toml(content, str(path))
        return (read_workload if {"flows", "scenarios"} & tables.keys() else read_drive)(path)
    root = stock_name(parse(content, str(path)).tag)
    if root in (DEVICE_ROOT, WORKLOAD_ROOT):
        return (read_drive if root == DEVICE_ROOT else read_workload)(path)
    raise refusal(
        "wrong_root",
        f"{path}, {root}",
        f"is neither a drive ({DEVICE_ROOT}) nor a workload ({WORKLOAD_ROOT}) of MQSim",
    )


def known_findings(drive: DriveFile, workload: WorkloadFile, number: int) -> tuple[Finding, ...]:
    """What the table of known defects says of a scenario on a drive, at its place in the files."""
    flows = workload.scenarios[number].flows
    return tuple(
        finding.at(_place(finding.field, drive, workload, number))
        for finding in known_defects(drive.device, flows)
    )


def _place(field: str, drive: DriveFile, workload: WorkloadFile, number: int) -> str:
    if field.startswith("flows["):
        return place_in(workload.places, f"scenarios[{number}].{field}")
    return place_in(drive.drive.places, field)


XML_SUFFIX = ".xml"


def convert(
    source: DriveFile | WorkloadFile, target: Path, tell: Tell, device: DeviceConfig | None = None
) -> str:
    """The text of a file of the form that the target's suffix names.

    Args:
        source: What was read.
        target: `.toml`, or `.xml` for MQSim's form.
        tell: Takes a warning for whatever the form cannot say.
        device: The drive of a workload, for flows that mean all of it.

    Raises:
        InputError: The suffix is another one, or MQSim's form needs the drive.
    """
    suffix = target.suffix.lower()
    if suffix not in (TOML_SUFFIX, XML_SUFFIX):
        raise InputError(f"{target}: the suffix must be .toml or .xml; it says which form to write")
    if isinstance(source, DriveFile):
        if suffix == TOML_SUFFIX:
            return write_drive_toml(source.drive)
        _tell_lost_drive(source, tell)
        return write_device_xml(source.device)
    if suffix == TOML_SUFFIX:
        return write_workload_toml(source.scenarios)
    for number, scenario in enumerate(source.scenarios):
        for index, flow in enumerate(scenario.flows):
            if flow.host != HostOptions():
                place = f"{source.path}, scenarios[{number}].flows[{index}].host"
                tell(_lost(place, "what requests cost the host"))
    return write_workload_xml(source.scenarios, device)


def _tell_lost_drive(source: DriveFile, tell: Tell) -> None:
    if source.device.physical != PhysicalOptions():
        tell(_lost(f"{source.path}, physical", "the options of physical mode"))
    if source.device.mode is Mode.PHYSICAL:
        tell(_lost(f"{source.path}, mode", "mode = physical"))
    if source.drive.sources or source.drive.title:
        tell(_lost(f"{source.path}, sources", "titles and sources"))


def _lost(place: str, what: str) -> Finding:
    return Finding(
        "lost_in_xml",
        Severity.WARNING,
        "",
        f"MQSim's XML has no tags for {what}, which is lost; keep the TOML file",
        place,
    )


def write_file(path: Path, text: str) -> None:
    """Write a file at once: whoever reads it sees the old one or the whole new one.

    Raises:
        InputError: It cannot be written.
    """
    with output_file(path):
        write_text_atomically(path, text)
