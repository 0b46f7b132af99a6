"""Who pays how much, against the Shapley values of a virtual drive's own joules.

The truth is simulated: what the drive draws above idle for each coalition of open loops, all of
them or sampled orders. The profile is fitted to runs of the same drive at full speed.
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
from iojoule.datasets.profile import DeviceProfile, read_profile
from iojoule.measure.lab import drives
from iojoule.meter.meter import Basis, Meter
from iojoule.meter.shapley import Floats, exact_shapley, sampled_shapley
from iojoule.sim.engines import RunOptions, engine
from iojoule.sim.physical_options import HostOptions
from iojoule.sim.result import EngineName, ScenarioResult
from iojoule.sim.workload import AddressDistribution, FlowConfig, Generator, Scenario
from tests.meter.test_groups import Bench

pytestmark = pytest.mark.slow

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
    return read_profile(folder / "profile.json")


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
        done = simulated(tuple(self.flows[member] for member in members))
        assert done.device.energy_joules_total is not None
        return done.device.energy_joules_total / SECONDS - IDLE_WATTS


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
    bench.divided.step(bench.meter.intervals, readings)
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


FEW = {
    "reads": ([("read", 4, 120), ("read", 16, 50), ("read", 64, 20), ("read", 4, 30)], 0.10),
    "eight readers": (
        [("read", kib, rate) for kib, rate in
         ((4, 40), (4, 80), (16, 20), (16, 35), (64, 6), (64, 10), (4, 25), (16, 12))],
        0.10,
    ),
    "both": ([("read", 4, 100), ("read", 64, 15), ("write", 4, 90), ("write", 16, 50)], 0.10),
}  # fmt: skip


@pytest.mark.parametrize("name", FEW)
def test_shares_are_near_the_shapley_values(
    profile: DeviceProfile, tmp_path: Path, name: str
) -> None:
    few, most = FEW[name]
    groups = [Group(*one) for one in few]
    truth = Truth(groups)
    value = exact_shapley(truth, len(groups))
    shares, fair = shares_of(profile, truth, tmp_path / "host"), value / value.sum()
    show(groups, shares, fair)
    assert np.abs(shares / fair - 1).max() <= most


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
