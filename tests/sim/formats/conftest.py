"""Input files to read, written by the project's own writers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from iojoule.sim.device import DeviceConfig
from iojoule.sim.formats.files import DriveFile, WorkloadFile, read_drive, read_workload
from iojoule.sim.formats.mqsim_inputs import write_device_xml, write_workload_xml
from iojoule.sim.workload import FlowConfig, FlowKind, Scenario

SYNTHETIC = FlowConfig(stop_ns=10**9)
TRACE = FlowConfig(kind=FlowKind.TRACE, trace_path="traces/a.trace")

Change = tuple[str, str]


@pytest.fixture
def drive_with(tmp_path: Path) -> Callable[..., DriveFile]:
    """Read MQSim's default drive with parts of its text replaced."""

    def read(*changes: Change) -> DriveFile:
        path = tmp_path / "ssd.xml"
        path.write_text(_changed(write_device_xml(DeviceConfig()), changes), encoding="utf-8")
        return read_drive(path)

    return read


@pytest.fixture
def workload_with(tmp_path: Path) -> Callable[..., WorkloadFile]:
    """Read a workload of one synthetic and one trace flow with parts of its text replaced."""

    def read(*changes: Change) -> WorkloadFile:
        path = tmp_path / "workload.xml"
        text = write_workload_xml([Scenario(flows=(SYNTHETIC, TRACE))], DeviceConfig())
        path.write_text(_changed(text, changes), encoding="utf-8")
        return read_workload(path)

    return read


def _changed(text: str, changes: tuple[Change, ...]) -> str:
    for old, new in changes:
        assert old in text, f"{old} is not in the file"
        text = text.replace(old, new)
    return text
