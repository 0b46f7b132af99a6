"""What is said to be installed, allowed and missing, on hosts of different kinds."""

import json
from pathlib import Path

import pytest

from iojoule.api.application.doctor import Check, checks
from tests.meter.hosts import Host


@pytest.fixture
def host(tmp_path: Path) -> Host:
    host = Host(tmp_path)
    host.write()
    (tmp_path / "proc").mkdir(exist_ok=True)
    return host


def found(root: Path, what: str, machine: str = "x86_64") -> Check:
    return next(one for one in checks(root, machine) if one.what == what)


RAPL = "CPU energy (RAPL)"


def test_counters_that_can_be_read_are_counted(host: Host, tmp_path: Path) -> None:
    zone = tmp_path / "sys/class/powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    (zone / "energy_uj").write_text("1\n")
    assert found(tmp_path, RAPL).state == "ok"


@pytest.mark.parametrize(
    ("cpuinfo", "machine", "word"),
    [
        ("vendor_id : AuthenticAMD\n", "x86_64", "AMD"),
        ("CPU implementer : 0x41\n", "aarch64", "aarch64"),
        ("vendor_id : GenuineIntel\nflags : hypervisor\n", "x86_64", "hypervisor"),
    ],
)
def test_hosts_without_package_counters_get_an_answer_and_its_limits(
    host: Host, tmp_path: Path, cpuinfo: str, machine: str, word: str
) -> None:
    (tmp_path / "proc/cpuinfo").write_text(cpuinfo)
    check = found(tmp_path, RAPL, machine)
    assert check.state == "limited"
    assert word in check.detail
    assert "recommendations still answer" in check.detail


def test_drives_are_named_with_what_is_known_of_them(host: Host, tmp_path: Path) -> None:
    host.nvme("nvme0n1", "S1", device__model="Samsung SSD 980 PRO 1TB")
    host.nvme("nvme1n1", "S2", device__model="A drive that nobody knows")
    assert found(tmp_path, "drive nvme0n1").state == "ok"
    unknown = found(tmp_path, "drive nvme1n1")
    assert unknown.state == "limited"
    assert unknown.command.startswith("iojoule measure run --drive /dev/nvme1n1")


def test_tracefs_and_cgroups_are_looked_for(host: Host, tmp_path: Path) -> None:
    assert found(tmp_path, "tracefs").state == "limited"
    (tmp_path / "proc/filesystems").write_text("nodev\ttracefs\n")
    assert found(tmp_path, "tracefs").command.startswith("sudo mount")
    (tmp_path / "proc/mounts").write_text("tracefs /sys/kernel/tracing tracefs rw 0 0\n")
    assert found(tmp_path, "tracefs").state == "ok"
    groups = tmp_path / "sys/fs/cgroup"
    groups.mkdir(parents=True)
    (groups / "cgroup.controllers").write_text("cpu io memory\n")
    assert found(tmp_path, "cgroups").state == "ok"


def test_what_is_missing_comes_with_a_command(iojoule, host: Host, tmp_path: Path) -> None:
    listed = json.loads(iojoule("doctor", "--root", tmp_path, "-o", "json").out)
    assert {"iojoule", "simulator core", "extra fit", "fio", "nvme", "drives"} <= {
        one["what"] for one in listed
    }
    assert all(one["command"] for one in listed if one["state"] in ("missing", "not allowed"))
    out = iojoule("doctor", "--root", tmp_path).out
    assert all(one["command"] in out for one in listed)


def test_it_fits_a_terminal(iojoule, host: Host, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = iojoule("doctor", "--root", tmp_path).out.partition("To type:")[0]
    assert max(map(len, out.splitlines())) <= 80
