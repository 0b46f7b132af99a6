"""What the CPU drew for I/O: by the host's own watts, never more than it drew, who caused it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from iojoule.datasets.atomic import write_atomically
from iojoule.measure.errors import SensorError
from iojoule.meter.cpu import CpuMeter
from iojoule.meter.group_sums import GroupReading
from tests.meter.test_groups import Bench

TICKS = os.sysconf("SC_CLK_TCK")
RANGE_UJ = 10_000_000_000
REST_WATTS, CORE_WATTS = 25.0, 9.0


def show(path: Path, text: str) -> None:
    """Atomically, as the kernel does: another process may be reading it."""
    write_atomically(path, lambda stream: stream.write(text.encode()))


class HostWithRapl(Bench):
    """A bench whose packages draw 25 W and 9 W for each busy core."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.zone = self.host.sysfs / "class" / "powercap" / "intel-rapl:0"
        self.zone.mkdir(parents=True)
        (self.zone / "name").write_text("package-0\n")
        (self.zone / "max_energy_range_uj").write_text(f"{RANGE_UJ}\n")
        self.package_joules, self.user, self.kernel = 9900.0, 100.0, 100.0
        self.spend(0.0, 0.0, seconds=0.0)
        self.group("a")
        self.begin()
        self.cpu = CpuMeter(self.zone.parent, self.host.proc / "stat")

    def spend(self, user: float, kernel: float, *, seconds: float = 1.0) -> None:
        """Cores are busy for a while."""
        self.user += user
        self.kernel += kernel
        self.package_joules += REST_WATTS * seconds + CORE_WATTS * (user + kernel)
        counted = round(1e6 * self.package_joules) % RANGE_UJ
        show(self.zone / "energy_uj", f"{counted}\n")
        user_ticks, kernel_ticks = (round(TICKS * value) for value in (self.user, self.kernel))
        stat = f"cpu  {user_ticks} 0 {kernel_ticks} 900 0 0 0 0 0 0\nctxt 1\nintr 1\n"
        show(self.host.proc / "stat", stat)

    def after(self, user: float, kernel: float) -> dict[str, float]:
        """One second of the meter; what the CPU drew for the drive."""
        self.spend(user, kernel)
        readings = self.meter.step(self.clock.look())
        assert self.meter.intervals is not None
        joules = self.cpu.step(self.meter.intervals, readings)
        self.divided.step(self.meter.intervals, readings, joules)
        self.core_seconds = float(
            np.dot(
                readings.command_core_seconds[0],
                [
                    getattr(self.meter.intervals, name)[0]
                    for name in ("read_commands", "read_bytes", "write_commands", "write_bytes")
                ],
            )
        )
        return joules


@pytest.fixture
def host(tmp_path: Path) -> HostWithRapl:
    return HostWithRapl(tmp_path / "host")


def test_the_watts_of_a_core_are_learnt_from_the_host(host: HostWithRapl) -> None:
    """Whatever was assumed of it before; counters of the packages wrap meanwhile."""
    rng = np.random.default_rng(3)
    for _ in range(60):
        host.group("a", reads=50_000)
        [joules] = host.after(float(rng.uniform(0.0, 6.0)), 1.0).values()
    assert joules == pytest.approx(CORE_WATTS * host.core_seconds, rel=0.05)
    [reading] = host.cpu.readings.values()
    assert reading.joules_low < reading.joules < reading.joules_high
    assert reading.watts == pytest.approx(joules)


def test_never_more_than_the_kernel_s_time_or_the_packages_drew(host: HostWithRapl) -> None:
    for reads, kernel in ((200_000, 0.1), (400_000, 0.0), (3_000_000, 40.0)):
        host.group("a", reads=reads)
        before = host.package_joules
        joules = sum(host.after(0.0, kernel).values())
        assert joules <= host.package_joules - before
        assert joules <= 20.0 * kernel
    [reading] = host.cpu.readings.values()
    assert reading.joules_high <= host.package_joules


def test_groups_pay_by_their_commands_and_all_is_the_drive_s(host: HostWithRapl) -> None:
    for name in "bc":
        host.group(name)
    for _ in range(3):
        host.group("a", reads=20_000)
        host.group("b", writes=20_000)
        host.host.did("nvme0n1", writes=5000)  # a journal's
        host.after(1.0, 0.8)
    sums = host.sums()
    [reading] = host.cpu.readings.values()
    assert sum(one.cpu_joules for one in sums.values()) == pytest.approx(reading.joules)
    assert sums["/a"].cpu_joules == pytest.approx(sums["/b"].cpu_joules, rel=0.01)
    assert 0 < sums["unattributed"].cpu_joules < sums["/a"].cpu_joules
    assert sums["idle"].cpu_joules == 0
    assert "/c" not in sums


def test_joules_of_the_cpu_are_none_of_the_drive_s(host: HostWithRapl) -> None:
    host.group("a", reads=20_000)
    host.after(1.0, 0.8)
    own: list[GroupReading] = list(host.divided.readings())
    drive = sum(one.joules for one in own)
    assert drive == pytest.approx(sum(sum(one.part_joules.values()) for one in own))
    assert drive < host.package_joules


def test_an_interval_in_which_counters_began_anew_adds_nothing(host: HostWithRapl) -> None:
    host.group("a", reads=20_000)
    host.after(1.0, 0.8)
    [before] = host.cpu.readings.values()
    host.user, host.kernel = 0.0, 0.0
    host.group("a", reads=20_000)
    assert host.after(1.0, 0.8) == {}
    assert list(host.cpu.readings.values()) == [before]
    host.group("a", reads=20_000)
    assert sum(host.after(1.0, 0.8).values()) > 0


def test_a_host_without_packages_is_refused(host: HostWithRapl) -> None:
    (host.zone / "name").write_text("psys\n")
    with pytest.raises(SensorError):
        CpuMeter(host.zone.parent, host.host.proc / "stat")
