"""The meter of 1,000 drives and 5,000 control groups, and the exporter that publishes it."""

import resource
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest
from prometheus_client import generate_latest

from iojoule.api.application.meter import LiveMeter, MeterOptions
from iojoule.api.exporter.prometheus import registry_of
from iojoule.api.exporter.publication import Publisher
from tests.meter.hosts import Host

DRIVES, GROUPS, STEPS = 1000, 5000, 10


class Large:
    """A host as large as they come; a tenth of its groups do I/O in each step."""

    def __init__(self, root: Path) -> None:
        self.host = Host(root)
        self.cgroups = root / "cgroup"
        self.cgroups.mkdir()
        for name in ("cgroup.controllers", "cgroup.subtree_control"):
            (self.cgroups / name).write_text("io\n")
        write, self.host.write = self.host.write, lambda: None
        for number in range(DRIVES):
            self.host.nvme(f"nvme{number}n1", f"S{number}", dev=f"259:{number}")
        self.host.write = write
        self.turn = 0
        for number in range(GROUPS):
            (self.cgroups / f"g{number}").mkdir()
            self._stat(number, 0)
        self.host.write()

    def _stat(self, number: int, count: int) -> None:
        drives = (number % DRIVES, (number * 7 + 1) % DRIVES)
        text = "".join(
            f"259:{drive} rbytes={4096 * count} wbytes={65536 * count} rios={count} wios={count}\n"
            for drive in sorted(set(drives))
        )
        (self.cgroups / f"g{number}" / "io.stat").write_text(text)

    def work(self) -> None:
        self.turn += 1
        for number in range(self.turn % 10, GROUPS, 10):
            self._stat(number, 100 * self.turn)
        for values in self.host.counters.values():
            values[0] += 1000
            values[2] += 8000
            values[4] += 500
            values[6] += 64000
            values[3] += 90
        self.host.write()


@pytest.fixture(scope="module")
def large() -> Iterator[Large]:
    root = Path(mkdtemp(prefix="iojoule-meter-", dir="/dev/shm"))
    try:
        yield Large(root)
    finally:
        shutil.rmtree(root)


def test_a_step_and_a_scrape(large: Large) -> None:
    options = MeterOptions(proc=large.host.proc, sysfs=large.host.sysfs, cgroups=large.cgroups)
    with LiveMeter(options) as live:
        publisher = Publisher(live)
        steps = live.follow(sleep=lambda _: None)
        next(steps)
        cpu = []
        for _ in range(STEPS):
            large.work()
            begin = time.process_time()
            next(steps)
            publisher.publish()
            cpu.append(time.process_time() - begin)
        begin = time.perf_counter()
        size = len(generate_latest(registry_of(publisher)))
        scrape = time.perf_counter() - begin
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(
        f"\n{DRIVES} drives, {GROUPS} groups: {100 * sorted(cpu)[STEPS // 2]:.1f} % of a core at "
        f"1 Hz, {memory:.0f} MB; scrape {scrape:.2f} s of {size / 1e6:.1f} MB\n"
    )
    assert memory < 400
