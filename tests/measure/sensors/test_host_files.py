"""The block layer's and the CPU's counters, from files as Linux writes them."""

import os
from pathlib import Path

import pytest

from iojoule.measure.errors import SensorError
from iojoule.measure.sensors import open_sensor
from iojoule.measure.sensors.protocol import Kind

STAT = "  100   5  4096  50  200  7  8192  90  3  120  140  0 0 0 0 0 0\n"
PROC_STAT = """cpu  100 10 50 8000 40 5 6 7 20 1
cpu0 100 10 50 8000 40 5 6 7 20 1
intr 12345 9 0 0
ctxt 67890
btime 1700000000
"""


def values(text: str) -> dict[str, float]:
    sensor = open_sensor(text)
    sensor.start()
    names = [rail.name for rail in sensor.probe().rails]
    return dict(zip(names, sensor.read(1.0).values[0].tolist(), strict=True))


def test_sectors_have_512_bytes(tmp_path: Path) -> None:
    (tmp_path / "nvme0n1").mkdir()
    (tmp_path / "nvme0n1" / "stat").write_text(STAT, encoding="ascii")
    assert values(f"diskstats:/dev/nvme0n1,root={tmp_path}") == pytest.approx(
        {
            "disk-reads": 100,
            "disk-reads-merged": 5,
            "disk-read-bytes": 4096 * 512,
            "disk-writes": 200,
            "disk-writes-merged": 7,
            "disk-write-bytes": 8192 * 512,
            "disk-in-flight": 3,
            "disk-busy-seconds": 0.12,
        }
    )
    rails = open_sensor(f"diskstats:nvme0n1,root={tmp_path}").probe().rails
    assert [rail.name for rail in rails if rail.kind is Kind.GAUGE] == ["disk-in-flight"]


def test_a_disk_that_is_not_there_and_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(SensorError, match="lsblk"):
        open_sensor(f"diskstats:nvme0n1,root={tmp_path}").probe()
    (tmp_path / "sda").mkdir()
    (tmp_path / "sda" / "stat").write_text("1 2 x", encoding="ascii")
    with pytest.raises(SensorError, match="not a disk's statistics"):
        open_sensor(f"diskstats:sda,root={tmp_path}").probe()


def test_busy_time_switches_interrupts_and_frequency(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "stat").write_text(PROC_STAT, encoding="ascii")
    for cpu, kilohertz in ((0, 3_000_000), (1, 1_000_000)):
        folder = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_cur_freq").write_text(f"{kilohertz}\n", encoding="ascii")
    # user, nice, system, irq, softirq, steal; guest is part of user
    busy = (100 + 10 + 50 + 5 + 6 + 7) / os.sysconf("SC_CLK_TCK")
    assert values(f"cpu:{tmp_path}") == pytest.approx(
        {
            "cpu-busy-seconds": busy,
            "cpu-context-switches": 67_890,
            "cpu-interrupts": 12_345,
            "cpu-frequency-mean": 2e9,
            "cpu-frequency-max": 3e9,
        }
    )


def test_this_machine_has_counters() -> None:
    found = values("cpu")
    assert found["cpu-context-switches"] > 0


def test_no_statistics(tmp_path: Path) -> None:
    with pytest.raises(SensorError, match="cannot be read"):
        open_sensor(f"cpu:{tmp_path}").probe()
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "stat").write_text("nothing", encoding="ascii")
    with pytest.raises(SensorError, match="not what Linux writes"):
        open_sensor(f"cpu:{tmp_path}").probe()
