"""Settings from sysfs trees, and gaps and wakers from procfs trees, of the test's own making."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from iojoule.measure.errors import HostStateError
from iojoule.meter.idle_settings import ANY_LATENCY_US, drive_names, read_settings
from iojoule.meter.idle_watch import watch
from tests.meter.rest_trees import diskstats, nvme_tree, process, sata_tree, write


class Clock:
    """Time that passes in sleep alone; what is to happen at a time happens then."""

    def __init__(self, events: dict[float, Callable[[], None]]) -> None:
        self.now = 0.0
        self._events = sorted(events.items(), key=lambda one: one[0])

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        while self._events and self._events[0][0] <= self.now + 1e-9:
            self._events.pop(0)[1]()


def test_an_nvme_drive_in_sysfs(tmp_path: Path) -> None:
    sysfs = nvme_tree(tmp_path)
    assert drive_names(sysfs) == ["nvme0n1"]
    found = read_settings("nvme0n1", sysfs=sysfs)
    assert (found.model, found.serial, found.firmware) == (
        "Samsung SSD 980 1TB",
        "S649NX0R1",
        "1B4QFXO7",
    )
    assert (found.interface, found.controller, found.rotates) == ("nvme", "nvme0", False)
    assert (found.latency_tolerance_us, found.supports_transitions) == (100000, True)
    assert (found.default_latency_us, found.force_apst) == (100000, False)
    assert found.rule.primary_timeout_ms == 100
    assert found.link.policy == "default"
    assert found.link.states == {"l1_aspm": True, "l1_1_aspm": True, "l1_2_aspm": True}
    assert found.link.sleeps is True
    (device,) = found.runtime
    assert (device.device, device.control, device.power_state) == ("0000:01:00.0", "on", "D0")
    assert (device.active_seconds, device.suspended_seconds) == (90.0, 10.0)


def test_what_sysfs_does_not_say_is_not_known(tmp_path: Path) -> None:
    sysfs = nvme_tree(tmp_path, tolerance=None, substates=False)
    found = read_settings("nvme0n1", sysfs=sysfs)
    assert (found.latency_tolerance_us, found.supports_transitions) == (None, False)
    assert found.link.sleeps is False
    assert found.link_policy is None


@pytest.mark.parametrize(
    ("text", "value"), [("any", ANY_LATENCY_US), ("auto", ANY_LATENCY_US), (0, 0)]
)
def test_words_of_the_latency_tolerance(tmp_path: Path, text: str | int, value: int) -> None:
    sysfs = nvme_tree(tmp_path, tolerance=text)
    assert read_settings("nvme0n1", sysfs=sysfs).latency_tolerance_us == value


def test_a_sata_disk_in_sysfs(tmp_path: Path) -> None:
    found = read_settings("sda", sysfs=sata_tree(tmp_path))
    assert (found.interface, found.rotates, found.link_policy) == (
        "scsi",
        True,
        "med_power_with_dipm",
    )
    assert [one.device for one in found.runtime] == ["0:0:0:0", "0000:00:17.0"]
    assert found.manages_runtime_stop is True
    assert found.supports_transitions is None


def test_gaps_are_found_with_who_ended_them(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    diskstats(proc, "nvme0n1", reads=5)
    process(proc, 100, "backup", read=1000)
    process(proc, 101, "quiet")

    def reads() -> None:
        diskstats(proc, "nvme0n1", reads=7)
        process(proc, 100, "backup", read=9192)

    def writes() -> None:
        diskstats(proc, "nvme0n1", reads=7, writes=1)

    clock = Clock({1.0: reads, 3.0: writes})
    found = watch(["nvme0n1"], 4.0, proc=proc, clock=clock, sleep=clock.sleep)["nvme0n1"]
    assert found.gaps.seconds == pytest.approx([1.0, 2.0, 1.0], abs=0.011)
    assert (found.gaps.begun_before, found.gaps.ends_after) == (True, True)
    assert list(found.gaps.ended) == [True, True, False]
    assert found.gaps.watch_seconds == pytest.approx(4.0, abs=0.02)
    assert (found.reads, found.writes, found.ends, found.unattributed) == (2, 1, 2, 1)
    (waker,) = found.wakers
    assert (waker.pid, waker.program, waker.wakes, waker.read_bytes) == (100, "backup", 1, 8192)
    assert waker.cgroup == "/system.slice/backup.service"


def test_gaps_are_neither_too_long_nor_too_short_on_average(tmp_path: Path) -> None:
    proc, rng = tmp_path / "proc", np.random.default_rng(1)
    diskstats(proc, "nvme0n1", reads=0)
    arrivals = np.cumsum(rng.uniform(0.03, 0.5, 300))
    reads = [partial(diskstats, proc, "nvme0n1", reads=1 + at) for at in range(len(arrivals))]
    clock = Clock(dict(zip(arrivals.tolist(), reads, strict=True)))
    found = watch(["nvme0n1"], 100.0, proc=proc, clock=clock, sleep=clock.sleep)["nvme0n1"]
    gaps = found.gaps.seconds[1:-1]
    apart = gaps - np.diff(arrivals)[: len(gaps)]
    assert abs(apart).max() <= 0.011
    assert apart.mean() == pytest.approx(0.0, abs=1e-3)


def test_a_kernel_worker_keeps_its_name_whatever_it_works_on(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    diskstats(proc, "nvme0n1", reads=5)
    process(proc, 7, "kworker-", read=4096)
    write(proc / "7/comm", "kworker/u8:4-events_unbound")

    def works() -> None:
        diskstats(proc, "nvme0n1", reads=6)
        write(proc / "7/comm", "kworker/u8:4+flush-259:0")
        write(proc / "7/io", "read_bytes: 8192\nwrite_bytes: 0")

    clock = Clock({1.0: works})
    found = watch(["nvme0n1"], 2.0, proc=proc, clock=clock, sleep=clock.sleep)["nvme0n1"]
    wakers = [(one.program, one.wakes, one.read_bytes) for one in found.wakers]
    assert wakers == [("kworker/u8:4", 1, 4096)]


def test_a_request_in_flight_is_no_gap(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    diskstats(proc, "nvme0n1", reads=5, in_flight=1)
    clock = Clock({0.5: lambda: diskstats(proc, "nvme0n1", reads=6)})
    found = watch(["nvme0n1"], 1.0, proc=proc, clock=clock, sleep=clock.sleep)["nvme0n1"]
    assert found.gaps.seconds == pytest.approx([0.5], abs=0.011)
    assert (found.gaps.begun_before, found.gaps.ends_after) == (False, True)


def test_a_drive_without_io_only_rests(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    diskstats(proc, "nvme0n1", reads=5)
    clock = Clock({})
    found = watch(["nvme0n1"], 2.0, proc=proc, clock=clock, sleep=clock.sleep)["nvme0n1"]
    assert found.gaps.only_rest
    assert found.gaps.rest_share == pytest.approx(1.0)


def test_who_may_poll_is_named(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    diskstats(proc, "nvme0n1", reads=5)
    process(proc, 50, "smartd")
    process(proc, 51, "mystery", opened=Path("/dev/nvme0"))
    process(proc, 52, "editor", opened=Path("/home/a"))
    clock = Clock({})
    nodes = {"nvme0n1": [Path("/dev/nvme0n1"), Path("/dev/nvme0")]}
    found = watch(["nvme0n1"], 0.1, proc=proc, nodes=nodes, clock=clock, sleep=clock.sleep)
    pollers = [(one.pid, one.program, one.certain) for one in found["nvme0n1"].pollers]
    assert pollers == [(51, "mystery", True), (50, "smartd", False)]


@pytest.mark.parametrize("reads", [None, 3])
def test_a_drive_that_vanishes_ends_nothing_for_others(tmp_path: Path, reads: int | None) -> None:
    proc = tmp_path / "proc"

    def show(reads: dict[str, int]) -> None:
        lines = (f"259 0 {name} {count} {'0 ' * 16}\n" for name, count in reads.items())
        write(proc / "diskstats", "".join(lines))

    show({"nvme0n1": 5, "nvme1n1": 5})
    another = {} if reads is None else {"nvme0n1": reads}
    clock = Clock({0.5: lambda: show({**another, "nvme1n1": 6})})
    found = watch(["nvme0n1", "nvme1n1"], 1.0, proc=proc, clock=clock, sleep=clock.sleep)
    assert [(name, one.reads) for name, one in found.items()] == [("nvme1n1", 1)]


def test_a_drive_that_vanishes_is_named(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    diskstats(proc, "nvme0n1", reads=5)
    clock = Clock({0.5: lambda: write(proc / "diskstats", "")})
    with pytest.raises(HostStateError, match="nvme0n1"):
        watch(["nvme0n1"], 1.0, proc=proc, clock=clock, sleep=clock.sleep)


@pytest.mark.parametrize("there", ["nowhere", "file"])
def test_what_is_no_procfs_is_an_error_of_the_host(tmp_path: Path, there: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HostStateError):
        watch(["nvme0n1"], 1.0, proc=tmp_path / there)
