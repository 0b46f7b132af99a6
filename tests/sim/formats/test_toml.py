import re
from pathlib import Path

import pytest

from iojoule.datasets.errors import InputError, SchemaVersionError
from iojoule.sim.device import DeviceConfig, FlashTechnology
from iojoule.sim.findings import RefusedError
from iojoule.sim.formats.files import DriveFile, WorkloadFile, read_drive, read_workload
from iojoule.sim.formats.toml import Drive, write_drive_toml, write_workload_toml
from iojoule.sim.physical_options import (
    EnergyOptions,
    HostOptions,
    PhysicalOptions,
    PowerOptions,
    PowerState,
)
from iojoule.sim.result import Mode
from iojoule.sim.workload import FlowConfig, FlowKind, Scenario
from tests.errors import having

DRIVE = Drive(
    DeviceConfig(
        mode=Mode.PHYSICAL,
        flash_technology=FlashTechnology.TLC,
        page_read_ns=(1, 2, 3),
        physical=PhysicalOptions(
            energy=EnergyOptions(page_read_joules=(1e-6, 2e-6, 3e-6)),
            power=PowerOptions(states=(PowerState(max_power_watts=8.0), PowerState())),
        ),
    ),
    title="A drive",
    sources={"page_read_ns": "a data sheet"},
)
FLOW = FlowConfig(stop_ns=5, host=HostOptions(think_time_ns=7))
TRACE = FlowConfig(kind=FlowKind.TRACE, trace_path="a.trace")


def drive_of(text: str, folder: Path) -> DriveFile:
    path = folder / "drive.toml"
    path.write_text(text, encoding="utf-8")
    return read_drive(path)


def workload_of(text: str, folder: Path) -> WorkloadFile:
    path = folder / "workload.toml"
    path.write_text(text, encoding="utf-8")
    return read_workload(path)


def test_a_drive_comes_back_as_it_was_written(tmp_path: Path) -> None:
    read = drive_of(write_drive_toml(DRIVE), tmp_path)
    assert read.device == DRIVE.device
    assert (read.drive.title, read.drive.sources) == (DRIVE.title, DRIVE.sources)
    assert read.findings == ()


@pytest.mark.parametrize(
    "scenarios",
    [(Scenario(flows=(FLOW,)),), (Scenario(flows=(FLOW, TRACE)), Scenario(flows=(TRACE,)))],
)
def test_a_workload_comes_back_as_it_was_written(
    scenarios: tuple[Scenario, ...], tmp_path: Path
) -> None:
    read = workload_of(write_workload_toml(scenarios), tmp_path)
    assert read.scenarios == scenarios
    assert read.findings == ()


def test_missing_keys_take_the_defaults_and_are_named(tmp_path: Path) -> None:
    read = drive_of("schema_version = 1\n[flash]\nchannels = 4\n", tmp_path)
    assert read.device == DeviceConfig(channels=4)
    said = [finding.message for finding in read.findings]
    assert len(said) == 6
    assert any("page_bytes = 8192" in each for each in said)
    assert not any("channels = " in each for each in said)


def test_defaults_of_flows_are_named(tmp_path: Path) -> None:
    read = workload_of("schema_version = 1\n[[flows]]\nstop_ns = 5\n", tmp_path)
    assert read.scenarios == (Scenario(flows=(FlowConfig(stop_ns=5),)),)
    assert "read_percent = 100" in read.findings[0].message
    assert "channel_ids = all" in read.findings[0].message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[flash]", "drive.toml, schema_version: is missing"),
        ("schema_version = true", "schema_version: is missing or no number"),
        ("schema_version = 1\nx", "is not valid TOML"),
        ("schema_version = 1\n[flesh]", "flesh: no such key; did you mean flash?"),
        ("schema_version = 1\n[flash]\nchanels = 4", "flash.chanels: no such key; did you mean ch"),
        (
            "schema_version = 1\n[flash]\nchannels = 0",
            "flash.channels: is 0, but must be 1 to 1024",
        ),
        ("schema_version = 1\n[flash]\nchannels = '4'", "flash.channels: is '4', but"),
        ("schema_version = 1\n[flash]\npage_read_ns = [1, 2]", "flash.page_read_ns"),
        ("schema_version = 1\nflash = 3", "flash: must be a table"),
        ("schema_version = 1\nmode = 'exact'", "mode: is 'exact'"),
        ("schema_version = 1\n[physical.nand]\nx = 1", "physical: no such key"),
        ("schema_version = 1\n[physical.power]\ninitial_state = 3", "physical: power state 3"),
        ("schema_version = 1\n[flash]\nchannels = 2024-01-01", "flash.channels: is datetime"),
        (f"schema_version = 1\nseed = {'9' * 30}", "seed: does not fit into 64 bits"),
        (f"schema_version = 1\nseed = {'9' * 5000}", "is not valid TOML"),
        (f"schema_version = 1\nx = {'[' * 5000}", "is not valid TOML"),
        ("schema_version = 1\n[sources]\nchannels = 3", "sources.channels: must be text"),
    ],
)
def test_a_fault_of_a_drive_is_named_with_its_key(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        drive_of(text, tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must hold either [[flows]] or [[scenarios]]"),
        ("flows = []", "at least 1"),
        ("flows = 3", "flows: must be a list of tables; write [[flows]]"),
        ("scenarios = [3]", "scenarios[0]: must be a table"),
        ("[[scenarios]]\nx = 1", "scenarios[0].x: no such key"),
        ("[[flows]]\nkind = 'trace'\nread_percent = 5", "flows[0].read_percent: no such key"),
        ("[[flows]]\nkind = 'tape'", "flows[0].kind: is 'tape'"),
        ("[[flows]]\nstop_ns = 5\nreed_percent = 3", "did you mean read_percent?"),
        ("[[flows]]\nstop_ns = 5\n[flows.host]\nengine = 'aio'", "flows[0].host"),
    ],
)
def test_a_fault_of_a_workload_is_named_with_its_key(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=re.escape(said)):
        workload_of(f"schema_version = 1\n{text}", tmp_path)


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaVersionError, check=having(field="schema_version")):
        drive_of("schema_version = 99", tmp_path)
