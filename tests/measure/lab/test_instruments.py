"""What the lab's instruments show is what really happened."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iojoule.measure.errors import LabError, SensorError
from iojoule.measure.lab import host_power
from iojoule.measure.lab.client import LabClient, record
from iojoule.measure.lab.disk_control import COMPLETION, DiskPower
from iojoule.measure.lab.host_power import DOMAINS, RaplTree
from iojoule.measure.sensors.powersensor3 import PowerSensor3


def packed(latency_ns: int, sectors: int, kind: int, failed: int = 0) -> int:
    return latency_ns << 24 | sectors << 4 | kind << 1 | failed


class FakeDisk:
    def __init__(self) -> None:
        self.now_ns = time.monotonic_ns()
        self.reads = 0

    def status(self) -> dict[str, int]:
        return {
            "now_ns": self.now_ns,
            "read_commands": self.reads,
            "write_commands": 0,
            "other_commands": 0,
            "read_bytes": 4096 * self.reads,
            "written_bytes": 0,
        }

    def joules(self, begin_ns: int, end_ns: int) -> float:
        return (end_ns - begin_ns) * 2e-9

    def completions(self, begin_ns: int, end_ns: int) -> Any:
        entries = [
            (10, packed(1000, 8, 0)),
            (20, packed(3000, 8, 0)),
            (30, packed(5000, 256, 1)),
            (40, packed(7000, 8, 0, 1)),
            (50, packed(9000, 2048, 2)),
            (60, packed(11, 0, 3)),
        ]
        return np.array(entries, dtype=COMPLETION)


def test_a_record_counts_by_kind() -> None:
    told = record(FakeDisk(), 0, 10**9)  # type: ignore[arg-type]
    assert told["device_power_watts"] == pytest.approx(2.0)
    assert told["failed"] == 1
    read = told["read"]
    assert (read["completions"], read["bytes"], read["iops"]) == (2, 8192, 2.0)
    assert (read["latency_mean_ns"], read["latency_min_ns"], read["latency_p50_ns"]) == (
        2000,
        1000,
        2000,
    )
    assert sum(read["latency_histogram_ns"].values()) == 2
    assert told["write"]["throughput_bytes_per_second"] == 256 * 512
    assert told["trim"]["bytes"] == 1 << 20
    assert told["flush"]["completions"] == 1
    # idle, five commands, reads and the write moved
    assert told["host_energy_joules"]["package-0"] == pytest.approx(
        8.0 + 5 * 2e-3 + (8192 + 256 * 512) * 5e-8
    )


def counters(root: Path) -> dict[str, int]:
    return {each.name: int((root / each.folder / "energy_uj").read_text()) for each in DOMAINS}


def test_the_tree_counts_and_wraps(tmp_path: Path) -> None:
    disk = FakeDisk()
    tree = RaplTree(tmp_path / "powercap", disk)  # type: ignore[arg-type]
    disk.now_ns = time.monotonic_ns()
    tree.build()
    flat = tmp_path / "powercap" / "intel-rapl:0:1"
    assert (flat / "name").read_text() == "dram\n"
    before = counters(tree.root)
    size = (flat / "energy_uj").stat().st_size
    with (flat / "energy_uj").open() as left_open:
        disk.now_ns += 10**9
        disk.reads = 1000
        tree._update()
        after = counters(tree.root)
        assert int(left_open.read()) == after["dram"]
        package = after["package-0"] - before["package-0"]
        assert package == pytest.approx(1e6 * (8 + 1000 * (2e-3 + 4096 * 5e-8)), abs=2)
        disk.now_ns += 3600 * 10**9
        tree._update()
        left_open.seek(0)
        wrapped = int(left_open.read())
    assert wrapped < before["dram"]
    passed = (wrapped - after["dram"]) % host_power.RANGE_MICROJOULES
    assert passed == pytest.approx(1.5e6 * 3600, abs=2)
    assert (flat / "energy_uj").stat().st_size == size
    tree.close()


def test_a_tree_can_be_hidden_and_shut(tmp_path: Path) -> None:
    tree = RaplTree(tmp_path / "powercap", FakeDisk())  # type: ignore[arg-type]
    tree.build()
    tree.missing()
    assert not tree.root.exists()
    tree.heal()
    tree.unreadable()
    with pytest.raises(OSError, match="directory"):
        counters(tree.root)
    tree.heal()
    assert counters(tree.root)["psys"] > 0
    tree.close()


def test_watts_come_without_gap(lab: LabClient) -> None:
    source = DiskPower(lab.disk)
    begin, watts = source.watts(time.monotonic_ns())
    parts = [watts]
    expected = begin + len(watts) * source.step_ns
    for _ in range(5):
        time.sleep(0.01)
        begin, watts = source.watts(time.monotonic_ns())
        assert begin == expected
        expected += len(watts) * source.step_ns
        parts.append(watts)
    series = np.concatenate(parts)
    assert series.shape[1] == 1
    assert np.all(series > 1.0)


def test_the_power_sensor_shows_the_drives_joules(lab: LabClient) -> None:
    sensor = PowerSensor3(lab.state["powersensor3"])
    sensor.start()
    times, watts = [], []
    while sum(map(len, times)) < 12_000:
        chunk = sensor.read(1.0)
        times.append(chunk.monotonic_ns)
        watts.append(chunk.values[:, 0])
    sensor.stop()
    at = np.concatenate(times)
    told = lab.record(int(at[0]), int(at[-1]))
    mean = float(np.concatenate(watts).mean())
    assert mean == pytest.approx(told["device_power_watts"], rel=0.03)


def read_on(sensor: PowerSensor3) -> None:
    for _ in range(1000):
        sensor.read(0.5)


def test_the_power_sensor_can_be_pulled_out(lab: LabClient) -> None:
    sensor = PowerSensor3(lab.state["powersensor3"])
    sensor.start()
    sensor.read(1.0)
    lab.fault("powersensor3", "disconnect")
    with pytest.raises(SensorError):
        read_on(sensor)
    sensor.stop()
    lab.fault("powersensor3", "none")
    again = PowerSensor3(lab.state["powersensor3"])
    assert again.probe().rails[0].name == "m2-3v3"


def test_the_counters_of_a_lab_go_on(lab: LabClient) -> None:
    root = Path(lab.state["rapl_root"])
    before = counters(root)["psys"]
    deadline = time.monotonic() + 10
    while counters(root)["psys"] == before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert counters(root)["psys"] != before
    lab.fault("rapl", "missing")
    assert not root.exists()
    lab.fault("rapl", "none")
    assert root.exists()
    with pytest.raises(LabError, match="the lab has no part fan"):
        lab.fault("fan", "stuck")
