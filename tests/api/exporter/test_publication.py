"""What is published: series that Prometheus accepts, that never fall and that add up."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from iojoule.api.application.meter import LiveMeter, MeterOptions
from iojoule.api.exporter.prometheus import registry_of, textfile_writer, write_textfile
from iojoule.api.exporter.publication import Publisher
from iojoule.datasets.errors import InputError
from iojoule.meter.group_sums import NAMED_MAX, OTHERS
from tests.meter.test_cpu import HostWithRapl
from tests.meter.test_groups import Bench

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


class Exporter:
    """A host of a test's own, and an exporter that steps when it is told to."""

    def __init__(self, root: Path, groups_max: int = NAMED_MAX, bench: Bench | None = None) -> None:
        self.bench = Bench(root) if bench is None else bench
        self.bench.group("a")
        host = self.bench.host
        self.live = LiveMeter(
            MeterOptions(
                proc=host.proc, sysfs=host.sysfs, cgroups=self.bench.groups, named_max=groups_max
            )
        )
        self.publisher = Publisher(self.live)
        self.registry: CollectorRegistry = registry_of(self.publisher)

    def step(self) -> Series:
        self.live.step()
        self.publisher.publish()
        text = generate_latest(self.registry).decode()
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }


def value(series: Series, name: str, **labels: str) -> float:
    """The sum of those that have the labels."""
    found = [
        number
        for (other, pairs), number in series.items()
        if other == name and pairs >= set(labels.items())
    ]
    assert found, (name, labels)
    return sum(found)


@pytest.fixture
def exporter(tmp_path: Path) -> Iterator[Exporter]:
    made = Exporter(tmp_path)
    yield made
    made.live.close()


def test_counters_never_fall_and_add_up(exporter: Exporter) -> None:
    before: Series = {}
    for turn in range(4):
        exporter.bench.group("a", reads=1000)
        exporter.bench.group("b", writes=200 * turn, size=65536)
        now = exporter.step()
        for key, number in before.items():
            if key[0].endswith("_total"):
                assert now[key] >= number
        whole = value(now, "iojoule_device_energy_joules_total", device="nvme0n1", serial="S1")
        parts = value(now, "iojoule_device_energy_by_part_joules_total", device="nvme0n1")
        groups = value(now, "iojoule_cgroup_energy_joules_total", device="nvme0n1")
        assert parts == pytest.approx(whole)
        assert groups == pytest.approx(whole)
        low = value(now, "iojoule_device_energy_low_joules_total")
        assert low <= whole <= value(now, "iojoule_device_energy_high_joules_total")
        before = now
    assert value(before, "iojoule_device_info", source="profile", model="Samsung SSD 980 PRO 1TB")


def test_drives_that_swap_their_names_keep_their_counters(exporter: Exporter) -> None:
    host = exporter.bench.host
    host.nvme("nvme1n1", "S2")
    exporter.step()
    host.did("nvme1n1", reads=100_000)
    before = exporter.step()
    for name in ("nvme0n1", "nvme1n1"):
        host.remove(name)
        shutil.rmtree(host.sysfs / "devices" / "pci" / name.rpartition("n")[0])
    host.nvme("nvme0n1", "S2")
    host.nvme("nvme1n1", "S1")
    now = exporter.step()
    for name in {name for name, labels in before if name.endswith("_total") and labels}:
        for serial in ("S1", "S2"):
            assert value(now, name, serial=serial) >= value(before, name, serial=serial)


def test_what_the_cpu_draws_is_a_series_of_its_own(tmp_path: Path) -> None:
    host = HostWithRapl(tmp_path)
    exporter = Exporter(tmp_path, bench=host)
    for _ in range(3):
        for name in ("a", "b"):
            host.group(name, reads=1000)
        host.spend(0.01, 0.01, seconds=0.0)
        now = exporter.step()
        assert exporter.live.cpu is not None
        [reading] = exporter.live.cpu.readings.values()
        whole = value(now, "iojoule_device_cpu_energy_joules_total", device="nvme0n1")
        assert whole == pytest.approx(reading.joules)
        low, high = (
            value(now, f"iojoule_device_cpu_energy_{side}_joules_total") for side in ("low", "high")
        )
        assert low <= whole <= high
        groups = value(now, "iojoule_cgroup_cpu_energy_joules_total", device="nvme0n1")
        assert groups == pytest.approx(whole)
    assert whole > 0
    exporter.live.close()


def test_groups_beyond_the_most_are_one_series_that_never_falls(tmp_path: Path) -> None:
    exporter = Exporter(tmp_path, groups_max=2)
    last = 0.0
    for turn in range(15):
        for name in ("a", "b", "c", "d"):
            if (exporter.bench.groups / name).exists() or turn < 5:
                exporter.bench.group(name, reads=300)
        if turn == 5:  # one that had no name ends, and one that had
            for name in ("b", "d"):
                shutil.rmtree(exporter.bench.groups / name)
        now = exporter.step()
        named = {
            dict(pairs)["cgroup"]
            for name, pairs in now
            if name == "iojoule_cgroup_energy_joules_total"
        }
        assert len({name for name in named if name.startswith("/")}) <= 2
        other = value(now, "iojoule_cgroup_energy_joules_total", cgroup=OTHERS)
        assert other >= last
        last = other
    assert last > 0
    exporter.live.close()


def test_promtool_accepts_the_series(exporter: Exporter) -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed: apt-get install prometheus")
    exporter.step()
    done = subprocess.run(
        [program, "check", "metrics"],
        input=generate_latest(exporter.registry),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_textfile_is_whole_or_told_of(exporter: Exporter, tmp_path: Path) -> None:
    exporter.step()
    file = tmp_path / "iojoule.prom"
    write_textfile(exporter.registry, file)
    assert b"iojoule_device_power_watts{" in file.read_bytes()
    assert [path.name for path in tmp_path.glob(".iojoule*")] == []
    with pytest.raises(InputError):
        write_textfile(exporter.registry, tmp_path / "nowhere" / "iojoule.prom")


def test_a_textfile_that_cannot_be_written_for_a_while_ends_nothing(
    exporter: Exporter, tmp_path: Path
) -> None:
    folder, warned = tmp_path / "collector", list[str]()
    with pytest.raises(InputError):
        textfile_writer(exporter.registry, folder / "iojoule.prom", warned.append)
    folder.mkdir()
    write = textfile_writer(exporter.registry, folder / "iojoule.prom", warned.append)
    shutil.rmtree(folder)
    for _ in range(3):
        write(None)
    folder.mkdir()
    write(None)
    assert len(warned) == 1
    assert (folder / "iojoule.prom").is_file()


def test_the_meter_steps_by_itself_and_ends(tmp_path: Path) -> None:
    exporter = Exporter(tmp_path)
    exporter.live.options = replace(exporter.live.options, interval_seconds=0.05)
    with exporter.publisher as publisher:
        while publisher.last.steps < 3:
            time.sleep(0.02)
    assert publisher.last.readings[0].joules > 0
    exporter.live.close()
