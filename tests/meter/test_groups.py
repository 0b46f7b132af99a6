"""Whose joules, from counters in files to sums: nothing is lost and nothing counts twice."""

import shutil
from pathlib import Path

import pytest

from iojoule.api.application.meter import LiveMeter, MeterOptions
from iojoule.datasets.profile import load_shipped_profile
from iojoule.measure.errors import HostStateError
from iojoule.meter.cgroups import find_hierarchy
from iojoule.meter.group_sums import NAMED_MAX, OTHERS, GroupReading
from iojoule.meter.groups import GroupMeter, ProcessMeter
from iojoule.meter.meter import Meter
from iojoule.meter.readings import Basis, Reading
from tests.meter.hosts import Clock, Host

PROFILE = load_shipped_profile("samsung-980-pro-1tb")


class Bench:
    """A host with one drive, control groups and processes, and a clock of its own."""

    def __init__(self, root: Path, *, processes: bool = False, named_max: int = NAMED_MAX) -> None:
        root.mkdir(exist_ok=True)
        self.host = Host(root)
        self.host.nvme("nvme0n1", "S1", dev="259:0")
        self.groups = root / "cgroup"
        self.groups.mkdir()
        for name in ("cgroup.controllers", "cgroup.subtree_control"):
            (self.groups / name).write_text("io\n")
        (self.host.proc / "uptime").write_text("1000.0 0\n")
        self.clock = Clock(self.host)
        self.meter = Meter(lambda drive: Basis(PROFILE, "profile"))
        self.divided = (
            ProcessMeter(self.host.proc)
            if processes
            else GroupMeter(find_hierarchy(self.groups), self.host.sysfs, named_max=named_max)
        )
        self.written: dict[str, list[int]] = {}

    def group(self, name: str, *, reads: int = 0, writes: int = 0, size: int = 4096) -> None:
        """A group submits requests, which the drive completes."""
        counts = self.written.setdefault(name, [0, 0, 0, 0])
        for place, value in enumerate((reads * size, writes * size, reads, writes)):
            counts[place] += value
        folder = self.groups / name
        folder.mkdir(exist_ok=True)
        named = zip(("rbytes", "wbytes", "rios", "wios"), counts, strict=True)
        (folder / "io.stat").write_text("259:0 " + " ".join(f"{k}={v}" for k, v in named) + "\n")
        self.host.did("nvme0n1", reads=reads, writes=writes, size=size, ms=(reads + writes) // 20)

    def process(self, pid: int, *, read: int) -> None:
        folder = self.host.proc / str(pid)
        folder.mkdir(exist_ok=True)
        tail = " ".join(["0"] * 18 + ["77"] + ["0"] * 5)
        (folder / "stat").write_text(f"{pid} (job) S {tail}\n")
        (folder / "io").write_text(
            f"read_bytes: {read}\nwrite_bytes: 0\ncancelled_write_bytes: 0\n"
        )

    def begin(self) -> None:
        first = self.clock.look()
        self.meter.step(first)
        self.divided.begin(first.drives)

    def step(self) -> Reading:
        readings = self.meter.step(self.clock.look())
        assert self.meter.intervals is not None
        self.divided.step(self.meter.intervals, readings, {})
        return readings[0]

    def sums(self) -> dict[str, GroupReading]:
        return {reading.group: reading for reading in self.divided.readings()}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_all_sums_are_the_drive_s_joules(bench: Bench) -> None:
    bench.group("a")
    bench.begin()
    for turn in range(5):
        bench.group("a", reads=900 * turn)
        bench.group("b", writes=300, size=65536)
        bench.host.did("nvme0n1", writes=50)  # a journal's
        reading = bench.step()
        sums = bench.sums()
        assert sum(one.joules for one in sums.values()) == pytest.approx(reading.joules, rel=1e-12)
        assert min(one.joules for one in sums.values()) >= 0
    assert sums["/a"].part_joules["read"] == pytest.approx(reading.part_joules["read"])
    assert sums["/a"].part_joules["write"] == 0
    assert sums["/b"].part_joules["write"] > sums["unattributed"].part_joules["write"] > 0
    assert sums["idle"].joules == pytest.approx(reading.part_joules["idle"])


def test_equal_groups_pay_equal_and_one_without_requests_pays_nothing(bench: Bench) -> None:
    for name in "abc":
        bench.group(name)
    bench.begin()
    for _ in range(3):
        for name in "ab":
            bench.group(name, reads=500, writes=100)
        bench.step()
    sums = bench.sums()
    assert sums["/a"].joules == pytest.approx(sums["/b"].joules)
    assert "/c" not in sums


def test_what_an_ended_group_has_drawn_is_kept_and_told_apart(bench: Bench) -> None:
    bench.group("a")
    bench.begin()
    bench.group("a", writes=2000, size=65536)
    bench.step()
    drawn = bench.sums()["/a"].joules
    shutil.rmtree(bench.groups / "a")
    for _ in range(12):  # a group without children is looked at once in ten readings
        reading = bench.step()
    sums = bench.sums()
    assert "/a" not in sums
    assert sums["ended"].inherited_joules == pytest.approx(drawn, rel=0.2)
    assert sums["ended"].joules >= sums["ended"].inherited_joules
    assert sum(one.joules for one in sums.values()) == pytest.approx(reading.joules, rel=1e-12)


def test_counters_add_up_when_no_group_has_its_own(tmp_path: Path) -> None:
    bench = Bench(tmp_path, named_max=0)
    bench.group("a")
    bench.begin()
    for turn in range(14):
        bench.group(f"g{turn}", writes=500, size=65536)
        if turn % 4 == 3:  # some end, and others may get their rows
            shutil.rmtree(bench.groups / f"g{turn - 1}")
        reading = bench.step()
        counters = {one.group: one.joules for one in bench.divided.readings().counters()}
        assert not any(name.startswith("/") for name in counters)
        assert sum(counters.values()) == pytest.approx(reading.joules, rel=1e-12)
    assert counters[OTHERS] > 0


def test_a_group_that_ends_before_the_drive_did_anything_for_it(bench: Bench) -> None:
    bench.group("a")
    bench.begin()
    for turn in range(16):
        bench.group("a", reads=100)
        if turn == 2:
            (bench.groups / "b").mkdir()
            (bench.groups / "b" / "io.stat").write_text("259:0 rbytes=0 wbytes=8192 rios=0 wios=2")
        reading = bench.step()
        if turn == 3:
            shutil.rmtree(bench.groups / "b")
        sums = bench.sums()
        assert sum(one.joules for one in sums.values()) == pytest.approx(reading.joules, rel=1e-12)
    assert "/b" not in sums


def test_what_was_told_stays_what_it_was(bench: Bench) -> None:
    bench.group("a")
    bench.begin()
    bench.group("a", reads=1000)
    bench.step()
    told = bench.divided.readings()
    before = list(told), list(told.counters())
    bench.group("a", reads=1000)
    bench.group("b", writes=1000)
    bench.step()
    assert (list(told), list(told.counters())) == before


def test_a_drive_that_comes_back_under_another_number_goes_on(bench: Bench) -> None:
    bench.group("a")
    bench.begin()
    bench.group("a", reads=1000)
    bench.step()
    before = bench.sums()["/a"].joules
    bench.host.remove("nvme0n1")
    bench.meter.step(bench.clock.look())
    bench.host.nvme("nvme1n1", "S1", dev="259:9")
    bench.step()
    bench.step()
    sums = bench.sums()
    assert sums["/a"].joules >= before
    assert {one.drive for one in sums.values()} == {"nvme1n1"}


def test_a_drive_that_takes_another_s_name_has_sums_of_its_own(bench: Bench) -> None:
    bench.group("a")
    bench.begin()
    first = []
    for serial in ("S1", "S2", "S1"):
        bench.host.swap("nvme0n1", serial, dev="259:0")
        bench.step()
        for _ in range(2):
            bench.group("a", reads=1000)
            reading = bench.step()
        counters = list(bench.divided.readings().counters())
        assert len({(one.drive, one.group) for one in counters}) == len(counters)
        assert sum(one.joules for one in counters) == pytest.approx(reading.joules, rel=1e-12)
        first.append(bench.sums()["/a"].joules)
    assert first == pytest.approx([first[0], first[0], 2 * first[0]])


def test_processes_share_what_each_has_read(tmp_path: Path) -> None:
    bench = Bench(tmp_path, processes=True)
    bench.process(10, read=0)
    bench.process(11, read=0)
    bench.begin()
    bench.host.did("nvme0n1", reads=4000, ms=200)
    bench.process(10, read=3000 * 4096)
    bench.process(11, read=500 * 4096)
    reading = bench.step()
    sums = bench.sums()
    assert sum(one.joules for one in sums.values()) == pytest.approx(reading.joules, rel=1e-12)
    read = reading.part_joules["read"] + reading.part_joules["awake"]
    assert sums["job[10]"].joules == pytest.approx(0.75 * read)
    assert sums["job[11]"].joules == pytest.approx(0.125 * read)
    assert sums["unattributed"].joules == pytest.approx(0.125 * read)
    assert sums["job[10]"].quality == "estimate"


def test_a_host_without_counting_groups_is_named(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.nvme("nvme0n1", "S1")
    with pytest.raises(HostStateError):
        LiveMeter(MeterOptions(proc=host.proc, sysfs=host.sysfs, cgroups=tmp_path))
