"""A guided first run on hosts with different drives."""

import shlex
from pathlib import Path

import pytest

from iojoule.api.cli.start import DRIVE_FILE
from tests.meter.hosts import Host


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def next_command(out: str) -> list[str]:
    command = out.partition("\n  iojoule ")[2].partition("\n\n")[0].replace("\\\n", " ")
    return shlex.split(command)


def test_a_drive_that_was_measured_is_named_and_answered_for(iojoule, host: Host) -> None:
    host.nvme("nvme0n1", "S1", device__model="Samsung SSD 980 PRO 1TB")
    done = iojoule("start", "--yes", "--sysfs", host.sysfs, "--workload", "ycsb-c")
    assert done.code == 0, done.err
    assert "a measured profile ships" in done.out
    words = next_command(done.out)
    assert words[:3] == ["recommend", "--device", "samsung-980-pro-1tb"]
    assert words[words.index("--workload") + 1] == "ycsb-c"


def test_an_unknown_model_is_answered_by_its_kind_with_a_profile_to_go_on_with(
    iojoule, host: Host, tmp_path: Path
) -> None:
    host.nvme("nvme0n1", "S1", device__model="A drive that nobody knows")
    folder = tmp_path / "files"
    folder.mkdir()
    done = iojoule("start", "--yes", "--sysfs", host.sysfs, "--workload", "ycsb-c", "--out", folder)
    assert done.code == 0, done.err
    assert "what drives of its kind do" in done.out
    profile = folder / DRIVE_FILE
    assert str(profile) in next_command(done.out)
    again = iojoule("recommend", "--profile", profile, "--workload", "ycsb-c", "--scope", "device")
    assert again.code == 0, again.err


def test_bounds_that_are_asked_for_count(iojoule, host: Host) -> None:
    host.nvme("nvme0n1", "S1", device__model="Samsung SSD 980 PRO 1TB")
    asked = ("start", "--yes", "--sysfs", host.sysfs, "--workload", "ycsb-c")
    done = iojoule(*asked, "--sla", "p99 < 1 us")
    assert done.code == 7
    assert "p99 latency" in done.out


def test_of_several_drives_the_stated_one_is_taken(iojoule, host: Host) -> None:
    host.nvme("nvme0n1", "S1", device__model="Samsung SSD 970 EVO Plus 1TB")
    host.nvme("nvme1n1", "S2", device__model="Samsung SSD 980 PRO 1TB")
    asked = ("start", "--yes", "--sysfs", host.sysfs, "--workload", "ycsb-c", "--drive")
    assert "samsung-980-pro-1tb" in next_command(iojoule(*asked, "/dev/nvme1n1").out)
    assert "samsung-970-evo-plus-1tb" in next_command(iojoule(*asked, "nvme0n1").out)
    assert iojoule(*asked, "nvme9n1").code == 3


def test_without_a_drive_it_says_so_and_shows_an_example(iojoule, host: Host) -> None:
    host.write()
    done = iojoule("start", "--yes", "--sysfs", host.sysfs)
    assert done.code == 0, done.err
    assert "no drive of this host's own" in done.out.lower()
    assert next_command(done.out)[:3] == ["recommend", "--device", "samsung-980-pro-1tb"]


@pytest.mark.skipif(not Path("/dev/loop0").exists(), reason="no loop device to observe")
def test_an_idle_drive_is_answered_for_a_preset(iojoule, tmp_path: Path) -> None:
    done = iojoule("start", "--yes", "--drive", "loop0", "--seconds", "0.2", "--out", tmp_path)
    if "nothing was read or written" not in done.err:
        pytest.skip("somebody uses loop0")
    assert "ycsb-b" in done.out
