"""Who pays how much, against the Shapley values of a virtual drive's own joules.

The truth is simulated: what the drive draws above idle for each coalition of applications, all of
them or sampled orders, until what it does on its own behalf for them is done. The profile is fitted
to runs of the same drive (`tests.meter.virtual_bench`).
"""

from __future__ import annotations

import heapq
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from iojoule.datasets.profile import DeviceProfile
from iojoule.meter.meter import Meter
from iojoule.meter.readings import Basis
from iojoule.sim import _core
from iojoule.sim.engines.embedded import native
from tests.meter.shapley import Floats, exact_shapley, sampled_shapley
from tests.meter.test_groups import Bench
from tests.meter.virtual_bench import MANY, fitted, without_sleep
from tests.meter.virtual_drive import SECOND, SIZE, VirtualDrive, device_of

SECONDS, WRITTEN_SECONDS = 20, 200
"""Of a load that only reads, and of one that also writes: a drive folds block by block, so that it
takes many of them until every write costs the same."""
REST_SECONDS = 20
"""Until what writes leave behind is done."""
DEVICE = without_sleep(device_of("lab-nvme"))
IDLE_WATTS = DEVICE.physical.power.states[0].idle_power_watts


@pytest.fixture(scope="module")
def profile() -> DeviceProfile:
    return fitted("lab-nvme", DEVICE, MANY, characterised=True)


@dataclass(frozen=True)
class Group:
    """An application: requests of one size that come at random."""

    operation: str
    kib: int
    rate: float

    def arrivals(self, seed: int, seconds: int) -> list[tuple[int, int]]:
        """When requests come, ns, and to which sectors."""
        random = np.random.default_rng((41, seed))
        times = np.cumsum(random.exponential(SECOND / self.rate, int(3 * self.rate * seconds) + 50))
        places = random.integers(SIZE // (self.kib * 1024), size=len(times)) * (self.kib * 2)
        soon = times < seconds * SECOND
        return list(zip(times[soon].astype(int).tolist(), places[soon].tolist(), strict=True))


class Truth:
    """Joules a second above idle of each coalition."""

    def __init__(self, groups: list[Group]) -> None:
        self.groups = groups
        writes = any(one.operation == "write" for one in groups)
        self.seconds = WRITTEN_SECONDS if writes else SECONDS
        self.arrivals = [
            [(at_ns, row, sector) for at_ns, sector in one.arrivals(row, self.seconds)]
            for row, one in enumerate(groups)
        ]
        self.of = cache(self._of)

    def __call__(self, members: np.ndarray) -> float:
        return self.of(tuple(np.flatnonzero(members).tolist()))

    def _of(self, members: tuple[int, ...]) -> float:
        drive = _core.LiveDrive(native(VirtualDrive.metered(DEVICE)))
        for number, (at_ns, row, sector) in enumerate(
            heapq.merge(*(self.arrivals[row] for row in members))
        ):
            one = self.groups[row]
            drive.submit(one.operation, sector, 2 * one.kib, number, at_ns)
        until = self.seconds + REST_SECONDS
        drive.advance(until * SECOND)
        joules = float(np.sum(drive.take_steps()[1]))
        return (joules - IDLE_WATTS * until) / self.seconds


def shares_of(profile: DeviceProfile, truth: Truth, folder: Path) -> Floats:
    """What the meter tells of each group, as a share of all of them."""
    drive = VirtualDrive(DEVICE)
    bench = Bench(folder)
    bench.meter = Meter(lambda _: Basis(profile, "profile"))
    for row in range(len(truth.groups)):
        bench.group(f"g{row}")
    bench.begin()
    arrivals = list(heapq.merge(*truth.arrivals))
    for second in range(1, truth.seconds + REST_SECONDS + 1):
        submitted = np.zeros(len(truth.groups), dtype=int)
        while arrivals and arrivals[0][0] < second * SECOND:
            at_ns, row, sector = arrivals.pop(0)
            drive.rest((at_ns - drive.now_ns) / SECOND)
            one = truth.groups[row]
            drive.submit(sector, 2 * one.kib, writes=one.operation == "write")
            submitted[row] += 1
        drive.align()
        for row, one in enumerate(truth.groups):
            count = {f"{one.operation}s": int(submitted[row])}
            bench.group(f"g{row}", size=1024 * one.kib, **count)
        bench.host.counters["nvme0n1"] = list(drive.looks[-1][0])
        bench.host.write()
        reading = bench.step()
    sums = bench.sums()
    assert sum(one.joules for one in sums.values()) == pytest.approx(reading.joules, rel=1e-12)
    assert min(one.joules for one in sums.values()) >= 0
    joules = np.array([sums[f"/g{row}"].joules for row in range(len(truth.groups))])
    return np.asarray(joules / joules.sum())


def show(groups: list[Group], shares: Floats, fair: Floats) -> None:
    for one, share, value in zip(groups, shares, fair, strict=True):
        sys.stdout.write(
            f"{one.operation} {one.kib} KiB, {one.rate:g}/s: {share:.2%} of {value:.2%}, "
            f"{share / value - 1:+.1%}\n"
        )


MIXES = 12
MOST = ((4, 120.0), (16, 50.0), (64, 18.0))
"""KiB, and requests a second of a group that is alone."""
FEW = {
    "reads": ([("read", 4, 120), ("read", 16, 50), ("read", 64, 20), ("read", 4, 30)], 0.10),
    "eight readers": (
        [("read", kib, rate) for kib, rate in
         ((4, 40), (4, 80), (16, 20), (16, 35), (64, 6), (64, 10), (4, 25), (16, 12))],
        0.10,
    ),
    "both": ([("read", 4, 100), ("read", 64, 15), ("write", 4, 90), ("write", 16, 50)], 0.13),
}  # fmt: skip


def random_mix(seed: int, share_of_reads: float) -> list[Group]:
    """Three to six groups whose rates span a factor of twenty."""
    generator = np.random.default_rng(seed)
    number = int(generator.integers(3, 7))
    groups = []
    for _ in range(number):
        kib, most = MOST[int(generator.integers(len(MOST)))]
        rate = 3.0 * most / number * 10 ** generator.uniform(-1.3, 0.0)
        operation = "read" if generator.random() < share_of_reads else "write"
        groups.append(Group(operation, kib, max(round(float(rate), 1), 0.5)))
    return groups


def deviations(profile: DeviceProfile, groups: list[Group], folder: Path) -> Floats:
    """Of every group's share from its Shapley value, as a share of that."""
    truth = Truth(groups)
    value = exact_shapley(truth, len(groups))
    shares, fair = shares_of(profile, truth, folder), value / value.sum()
    show(groups, shares, fair)
    return np.asarray(np.abs(shares / fair - 1))


@pytest.mark.parametrize("name", FEW)
def test_shares_are_near_the_shapley_values(
    profile: DeviceProfile, tmp_path: Path, name: str
) -> None:
    few, most = FEW[name]
    groups = [Group(*one) for one in few]
    assert deviations(profile, groups, tmp_path / "host").max() <= most


def test_shares_of_random_readers(profile: DeviceProfile, tmp_path: Path) -> None:
    found = of_random_mixes(profile, tmp_path, share_of_reads=1.0)
    assert found.max() <= 0.10


@pytest.mark.slow
def test_shares_of_random_readers_and_writers(profile: DeviceProfile, tmp_path: Path) -> None:
    """A write costs by what the drive makes of it, which no law of rates tells.

    A single write of 4 KiB programs a whole page, to be folded later, where a stream of them fills
    it; and among others a group's writes find a full cache, or no pause to fold it in, that alone
    would have found both.
    """
    found = of_random_mixes(profile, tmp_path, share_of_reads=0.6)
    assert np.median(found) <= 0.06
    assert np.mean(found <= 0.10) >= 0.80


def of_random_mixes(profile: DeviceProfile, folder: Path, share_of_reads: float) -> Floats:
    """Deviations of all groups of some mixes."""
    found = np.concatenate(
        [
            deviations(profile, random_mix(seed, share_of_reads), folder / str(seed))
            for seed in range(MIXES)
        ]
    )
    sys.stdout.write(
        f"{len(found)} groups, {share_of_reads:.0%} readers: median {np.median(found):.1%}, "
        f"largest {found.max():.1%}, {np.mean(found <= 0.1):.0%} within 10 %\n"
    )
    return found


def test_fifty_readers_pay_what_sampled_orders_say(profile: DeviceProfile, tmp_path: Path) -> None:
    sizes = np.array([4, 16, 64])[np.arange(50) % 3]
    rates = (1.0 + np.arange(50) % 5) * np.array([2.0, 1.0, 0.4])[np.arange(50) % 3]
    groups = [Group("read", int(kib), float(rate)) for kib, rate in zip(sizes, rates, strict=True)]
    truth = Truth(groups)
    sampled = sampled_shapley(truth, 50, orders=12, generator=np.random.default_rng(3))
    whole = sampled.joules.sum()
    shares = shares_of(profile, truth, tmp_path / "host")
    fair, error = sampled.joules / whole, sampled.standard_error / whole
    away = np.abs(shares - fair)
    sys.stdout.write(
        f"50 groups: median {np.median(away / fair):.1%}, {np.mean(away <= 0.1 * fair):.0%} within "
        f"10 %; standard error of the truth {np.median(error / fair):.1%}\n"
    )
    assert np.median(away / fair) <= 0.10
    assert np.mean(away <= 0.10 * fair + 2.0 * error) >= 0.90
