"""Who pays how much, against the Shapley values of a virtual drive's own joules.

The truth is simulated: what the drive draws above idle for each coalition of open loops, all of
them or sampled orders. The profile is fitted to runs of the same drive at full speed, and to how
long it stays awake after a read.
"""

from __future__ import annotations

import csv
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from iojoule.api.cli.app import run
from iojoule.datasets.profile import DeviceProfile, IdleBehaviour, Parameter, read_profile
from iojoule.measure.lab import drives
from iojoule.meter.meter import Meter
from iojoule.meter.readings import Basis
from iojoule.sim.engines import RunOptions, engine
from iojoule.sim.physical_options import HostOptions
from iojoule.sim.result import EngineName, ScenarioResult
from iojoule.sim.workload import AddressDistribution, FlowConfig, Generator, Scenario
from tests.meter.shapley import Floats, exact_shapley, sampled_shapley
from tests.meter.test_groups import Bench

SECONDS = 20
SECTOR = 512
DEVICE = drives.find(drives.DEFAULT).device
IDLE_WATTS = DEVICE.physical.power.states[0].idle_power_watts
COLUMNS = (
    "operation", "request_bytes", "queue_depth", "pattern", "bytes_per_second", "latency_ns",
    "watts", "idle_watts",
)  # fmt: skip
MAP = """
schema_version = 1
[constants]
jobs = 1
engine = "io_uring"
scheduler = "none"
power_state = 0
device_model = "iojoule lab NVMe"
[columns]
operation = "operation"
pattern = "pattern"
request_bytes = "request_bytes"
queue_depth = "queue_depth"
throughput_bytes_per_second = { column = "bytes_per_second", unit = "B/s" }
latency_mean_ns = { column = "latency_ns", unit = "ns" }
device_power_watts = { column = "watts", unit = "W" }
idle_power_watts = { column = "idle_watts", unit = "W" }
"""


def simulated(flows: tuple[FlowConfig, ...]) -> ScenarioResult:
    power = DEVICE.physical.power.model_copy(update={"autonomous_transitions": ()})
    physical = DEVICE.physical.model_copy(update={"power": power})
    awake = DEVICE.model_copy(update={"physical": physical})
    return engine(EngineName.EMBEDDED).run(awake, Scenario(flows=flows), RunOptions())


def dynamic_joules(done: ScenarioResult) -> float:
    """Above idle, for as long as the run took: the last of few requests may come long before the
    end."""
    joules, watts = done.device.energy_joules_total, done.device.power_watts_mean
    assert joules is not None
    assert watts is not None
    return joules - IDLE_WATTS * joules / watts


def flow(operation: str, size: int, seconds: int, **more: object) -> FlowConfig:
    return FlowConfig.model_validate(
        {
            "read_percent": 100 if operation == "read" else 0,
            "size_mean_sectors": size // SECTOR,
            "alignment_sectors": size // SECTOR,
            "stop_ns": seconds * 10**9,
            **more,
        }
    )


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> DeviceProfile:
    folder = tmp_path_factory.mktemp("fair")
    points = [
        *(("read", size, depth, "random") for size in (4, 16, 64) for depth in (1, 4, 16, 64)),
        *(("write", size, depth, "random") for size in (4, 16, 64) for depth in (1, 4, 16)),
        *(("read", size, depth, "sequential") for size in (16, 64) for depth in (1, 8)),
    ]
    with (folder / "runs.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for operation, kib, depth, pattern in points:
            order = AddressDistribution.STREAMING
            if pattern == "random":
                order = AddressDistribution.RANDOM_UNIFORM
            done = simulated(
                (flow(operation, 1024 * kib, 4, queue_depth=depth, address_distribution=order),)
            )
            (one,) = done.flows
            joules = done.device.energy_joules_total
            assert joules is not None
            moved = (one.bytes_read + one.bytes_written) / 4
            table.writerow(
                [operation, 1024 * kib, depth, pattern, moved, one.drt_ns, joules / 4, IDLE_WATTS]
            )
    (folder / "map.toml").write_text(MAP)
    words = ["import", "csv", str(folder / "runs.csv"), "--columns", str(folder / "map.toml")]
    assert run([*words, "-o", str(folder / "runs")]) == 0
    assert run(["fit", str(folder / "runs"), "-o", str(folder / "profile.json")]) == 0
    fitted = read_profile(folder / "profile.json")
    return fitted.model_copy(update={"idle": idle_behaviour(fitted)})


def idle_behaviour(fitted: DeviceProfile) -> IdleBehaviour:
    """How long the drive stays awake: what reads far apart take beyond those back to back."""
    joules = []
    for host in ({"queue_depth": 1}, {"generator": Generator.BANDWIDTH, "arrivals": 5.0}):
        rate = host.pop("arrivals", None)
        if rate is not None:
            host["host"] = HostOptions(arrivals_per_second=rate)
        done = simulated((flow("read", 4096, SECONDS, **host),))
        joules.append(dynamic_joules(done) / (done.flows[0].bytes_read / 4096))
    assert fitted.device_power is not None
    awake = fitted.device_power.parameters[0].value - IDLE_WATTS
    seconds = max(joules[1] - joules[0], 1e-4 * awake) / awake
    settle, wake = (
        Parameter(name=name, value=value, sd=0.3, unit="s", source="runs", evidence="measured")
        for name, value in (("settle_seconds", seconds), ("wake_seconds", 1e-4))
    )
    return IdleBehaviour(settle_seconds=settle, wake_seconds=wake)


@dataclass(frozen=True)
class Group:
    """An application: requests of one size that come at random."""

    operation: str
    kib: int
    rate: float


class Truth:
    """Joules a second above idle of each coalition."""

    def __init__(self, groups: list[Group]) -> None:
        self.flows = [
            flow(
                one.operation,
                1024 * one.kib,
                SECONDS,
                generator=Generator.BANDWIDTH,
                seed=number + 1,
                host=HostOptions(arrivals_per_second=float(one.rate)),
            )
            for number, one in enumerate(groups)
        ]
        self.of = cache(self._of)

    def __call__(self, members: np.ndarray) -> float:
        return self.of(tuple(np.flatnonzero(members).tolist()))

    def _of(self, members: tuple[int, ...]) -> float:
        if not members:
            return 0.0
        return dynamic_joules(simulated(tuple(self.flows[row] for row in members))) / SECONDS


def shares_of(profile: DeviceProfile, truth: Truth, folder: Path) -> Floats:
    """What the meter tells of each group, as a share of all of them."""
    done = simulated(tuple(truth.flows))
    bench = Bench(folder)
    bench.meter = Meter(lambda _: Basis(profile, "profile"))
    bench.begin()
    took_ms = np.zeros(2)
    for row, (one, asked) in enumerate(zip(done.flows, truth.flows, strict=True)):
        size = asked.size_mean_sectors * SECTOR
        moved = np.array([one.bytes_read, one.bytes_written])
        reads, writes = (int(count) for count in moved // size)
        bench.group(f"g{row}", reads=reads, writes=writes, size=size)
        took_ms += moved / size * one.drt_ns * 1e-6
    values = bench.host.counters["nvme0n1"]
    values[3], values[7] = (int(ms) for ms in took_ms)
    values[9] = int(-1e3 * SECONDS * np.expm1(-took_ms.sum() / (1e3 * SECONDS)))
    bench.host.write()
    readings = bench.meter.step(bench.clock.look(SECONDS))
    assert bench.meter.intervals is not None
    bench.divided.step(bench.meter.intervals, readings, {})
    sums = bench.sums()
    assert sum(one.joules for one in sums.values()) == pytest.approx(readings[0].joules, rel=1e-12)
    assert min(one.joules for one in sums.values()) >= 0
    joules = np.array([sums[f"/g{row}"].joules for row in range(len(truth.flows))])
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
    "both": ([("read", 4, 100), ("read", 64, 15), ("write", 4, 90), ("write", 16, 50)], 0.10),
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


def test_shares_of_random_readers_and_writers(profile: DeviceProfile, tmp_path: Path) -> None:
    """A write costs by what the cache makes of it, which no law of rates tells.

    A single 4 KiB write programs a whole page where a stream of them fills it, and the cache is
    folded for some coalitions, whose pauses are long enough, and not for others.
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
