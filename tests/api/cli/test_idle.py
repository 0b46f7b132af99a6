"""`iojoule idle`: on trees of the test's own, and on the virtual drive, whose table is written."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from iojoule.measure.drive.nvme import NvmeController
from iojoule.measure.drive.transition_table import decode
from iojoule.measure.errors import DriveError, UnsafeDriveError
from iojoule.measure.lab.client import LabClient
from tests.measure.lab.conftest import lab, shared_lab
from tests.meter.rest_trees import diskstats, nvme_tree, process, sata_tree

__all__ = ["lab", "shared_lab"]


@pytest.fixture
def host(tmp_path: Path) -> list[str]:
    """Words of a host with one idle NVMe drive that is not asked."""
    proc = tmp_path / "proc"
    diskstats(proc, "nvme0n1", reads=5)
    process(proc, 50, "smartd")
    return ["--sysfs", str(nvme_tree(tmp_path)), "--proc", str(proc), "--watch", "0.2"]


def test_a_drive_at_rest_gets_advice_without_a_command(iojoule, host: list[str]) -> None:
    done = iojoule("idle", *host, "-o", "json")
    assert done.code == 0
    (found,) = json.loads(done.out)
    assert (found["name"], found["model"], found["commands_sent"]) == (
        "nvme0n1", "Samsung SSD 980 1TB", 0,
    )  # fmt: skip
    assert found["transitions"]["in_force"] is None
    assert found["aspm"]["sleeps"] is True
    assert found["watch"]["only_rest"] is True
    assert [one["program"] for one in found["watch"]["pollers"]] == ["smartd"]
    advice = found["advice"]
    assert advice["saving_against"] == "no transitions"
    # 1 ms by default: no sleep state of this drive wakes so fast
    assert advice["tables"][0]["chain"] == []


@pytest.mark.parametrize(
    ("words", "bound", "state"),
    [
        (["--wake-latency-max", "2ms"], 2000, 3),
        # 45 mW in PS4 against 50 mW in PS3 of 1.33 W: equal, and PS3 wakes sooner
        (["--wake-latency-max", "0.1s"], 100_000, 3),
        (["--sla", "p99 < 3 ms"], 3000, 3),
    ],
)
def test_the_bound_decides_how_deep_it_sleeps(
    iojoule, host: list[str], words: list[str], bound: int, state: int
) -> None:
    (found,) = json.loads(iojoule("idle", *host, *words, "-o", "json").out)
    advice = found["advice"]
    best = advice["tables"][0]
    assert advice["wake_latency_max_us"] == bound
    assert [one["power_state"] for one in best["chain"]] == [state]
    assert best["wake_us"] <= bound
    saved = best["saving_milliwatts"]
    assert 0 <= saved["low"] <= saved["value"] <= saved["high"] <= 2500


def test_apst_that_linux_switched_off_is_known_without_asking(iojoule, tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    diskstats(proc, "nvme0n1", reads=5)
    sysfs = nvme_tree(tmp_path, tolerance=0)
    words = ["--sysfs", str(sysfs), "--proc", str(proc), "--watch", "0.1", "-o", "json"]
    (found,) = json.loads(iojoule("idle", *words).out)
    assert found["transitions"]["in_force"] == []
    assert found["advice"]["saving_against"] == "table in force"


def test_a_sata_disk_has_settings_and_no_table(iojoule, tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    diskstats(proc, "sda", reads=5)
    words = ["--sysfs", str(sata_tree(tmp_path)), "--proc", str(proc), "--watch", "0.1"]
    (found,) = json.loads(iojoule("idle", *words, "-o", "json").out)
    assert found["link_policy"] == "med_power_with_dipm"
    assert found["advice"]["tables"] == []
    assert found["advice"]["reason"]
    assert found["advice"]["link_policies"] == []  # the catalogue does not know this model
    profile = Path(__file__).parents[3] / "datasets/profiles/samsung-860-pro.json"
    known = ["--drive", "/dev/sda", "--profile", str(profile), "--wake-latency-max", "20ms"]
    (found,) = json.loads(iojoule("idle", *words, *known, "-o", "json").out)
    policies = found["advice"]["link_policies"]
    assert policies[0]["policy"] == "med_power_with_dipm"  # in force
    assert policies[0]["saving_milliwatts"]["value"] == 0.0
    assert {one["saving_milliwatts"]["value"] <= 0 for one in policies} == {True}
    assert iojoule("idle", *words, *known).code == 0
    assert iojoule("idle", *words).code == 0
    assert iojoule("idle", *words, "-o", "csv").out.splitlines()[1].startswith("sda,WDC WD40EFRX,")


def test_no_such_drive_a_partition_and_no_time(iojoule, host: list[str]) -> None:
    assert iojoule("idle", *host, "--drive", "/dev/nvme7n1").code == DriveError.exit_code
    assert iojoule("idle", *host, "--drive", "/dev/nvme0n1p1").code == UnsafeDriveError.exit_code
    assert iojoule("idle", *host, "--wake-latency-max", "soon").code == 2
    assert iojoule("idle", *host, "--write-table").code == 2


@pytest.fixture
def virtual(lab: LabClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Words of the virtual drive; its switch is off."""
    if shutil.which("nvme") is None and shutil.which("nvme", path="/usr/sbin") is None:
        pytest.skip("nvme-cli is not installed")
    for name, value in lab.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("IOJOULE_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("IOJOULE_JOURNALS", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return [
        "--drive", str(lab.state["drive"]), "--controller", str(lab.state["controller"]),
        "--watch", "0.5", "--wake-latency-max", "50ms",
    ]  # fmt: skip


def controller(lab: LabClient) -> NvmeController:
    return NvmeController(Path(lab.state["controller"]))


def table_now(lab: LabClient) -> tuple[Any, ...]:
    return controller(lab).feature(0x0C) & 1, decode(controller(lab).transitions())


def test_the_table_is_read_written_slept_by_and_taken_back(
    iojoule, virtual: list[str], lab: LabClient
) -> None:
    before = table_now(lab)
    (found,) = json.loads(iojoule("idle", *virtual, "--ask-drive", "-o", "json").out)
    assert found["commands_sent"] == 4  # its controller has no log page C0h
    assert found["watch"]["power_state_changes"] is None
    assert found["transitions"]["supported"] is True
    best = found["advice"]["tables"][0]
    assert [one["power_state"] for one in best["chain"]] == [3]  # PS4 takes 250 ms
    serial = str(lab.state["serial"])
    refused = iojoule("idle", *virtual, "--write-table", "--serial", "other")
    assert refused.code == UnsafeDriveError.exit_code
    assert table_now(lab) == before

    written = iojoule("idle", *virtual, "--write-table", "--serial", serial)
    assert written.code == 0, written.err
    enabled, table = table_now(lab)
    wait = best["chain"][0]["idle_milliseconds"]
    assert enabled == 1
    assert {(one.from_state, one.to_state, one.idle_milliseconds) for one in table} == {
        (state, 3, wait) for state in (0, 1, 2)
    }
    until = time.monotonic() + 60
    while lab.status()["disk"]["power_state"] != 3 and time.monotonic() < until:
        time.sleep(0.2)
    assert lab.status()["disk"]["power_state"] == 3

    assert iojoule("undo", "iojoule-undo.json").code == 0
    assert table_now(lab) == before
    lab.disk.ask("moves")


def test_a_table_that_the_drive_ignores_is_an_error_and_nothing_stays(
    iojoule, virtual: list[str], lab: LabClient
) -> None:
    before = table_now(lab)
    lab.fault("controller", "ignore")
    try:
        serial = str(lab.state["serial"])
        done = iojoule("idle", *virtual, "--write-table", "--serial", serial)
    finally:
        lab.fault("controller", "none")
    assert done.code == DriveError.exit_code
    assert table_now(lab) == before
    assert not Path("iojoule-undo.json").exists()
