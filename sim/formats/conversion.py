"""Drives and workloads from one form to the other, and what is lost on the way."""

from __future__ import annotations

from pathlib import Path

from iojoule.datasets.atomic import write_text_atomically
from iojoule.datasets.errors import InputError
from iojoule.sim.device import DeviceConfig
from iojoule.sim.findings import Finding, Severity, Tell
from iojoule.sim.formats.files import TOML_SUFFIX, DriveFile, WorkloadFile
from iojoule.sim.formats.mqsim_device import write_device_xml
from iojoule.sim.formats.mqsim_workload import write_workload_xml
from iojoule.sim.formats.toml import write_drive_toml, write_workload_toml
from iojoule.sim.physical_options import HostOptions, PhysicalOptions
from iojoule.sim.result import Mode

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
        "lost_in_xml", Severity.WARNING, "",
        f"MQSim's XML has no tags for {what}, which is lost; keep the TOML file", place,
    )  # fmt: skip


def write_file(path: Path, text: str) -> None:
    """Write a file at once: whoever reads it sees the old one or the whole new one.

    Raises:
        InputError: It cannot be written.
    """
    try:
        write_text_atomically(path, text)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); check the path") from None
