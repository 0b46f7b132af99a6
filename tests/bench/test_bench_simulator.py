"""Budgets of the simulator: speed against MQSim, start-up, memory, threads, cost per request."""

from __future__ import annotations

import csv
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.engines.mqsim import MqsimEngine
from iojoule.sim.formats.files import read_drive, read_workload
from iojoule.sim.result import ScenarioResult
from iojoule.sim.workload import FlowConfig, Scenario
from tests.reference_data import MQSIM_RUNS

SLOW_SECONDS = 0.5
"""Cases in which MQSim takes less say more about its start than about its speed."""
SPEED_RATIO = 8.0
READS_PER_SECOND = 1.5e6
STARTUP_SECONDS = 0.1
PRECONDITIONED_SECONDS, PRECONDITIONED_BYTES = 5.0, 0.6e9
THREADS_SHARE = 0.6
REPEATS = 3

STOCK = DeviceConfig(
    preconditioning=False, link_lane_gigabytes_per_second=1.0, gc_preemptible=False
)
IDEAL = STOCK.model_copy(update={"mapping_ideal": True})
READS = FlowConfig(queue_depth=32, stop_ns=2 * 10**9, seed=798)


def run(device: DeviceConfig, *flows: FlowConfig) -> ScenarioResult:
    return EmbeddedEngine().run(device, Scenario(flows=flows))


def best(action: Callable[[], float], repeats: int = REPEATS) -> float:
    """The least of a few times; what disturbs a run only ever makes it longer."""
    return min(action() for _ in range(repeats))


def slow_cases() -> dict[str, float]:
    """Reference cases of 0.5 s and more, with the user time that MQSim took for them."""
    if not MQSIM_RUNS.is_dir():
        return {}
    with (MQSIM_RUNS / "golden.csv").open(newline="") as file:
        taken = {row["case"]: float(row["mqsim_user_s"]) for row in csv.DictReader(file)}
    return {case: seconds for case, seconds in taken.items() if seconds >= SLOW_SECONDS}


def test_speed_against_mqsim(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = slow_cases()
    if not cases:
        pytest.skip("MQSim's reference runs (../shared/mqsim) are not here")
    monkeypatch.chdir(MQSIM_RUNS)
    mqsim = MqsimEngine(tolerate_lost=True) if os.environ.get("IOJOULE_MQSIM") else None
    print(f"\nMQSim's user time: {'side by side' if mqsim else 'as recorded with the cases'}")
    ratios = []
    for case, recorded in cases.items():
        device = read_drive(f"cases/{case}.ssd.xml").device
        scenario = read_workload(f"cases/{case}.wl.xml").with_traces(0)
        ours = best(lambda d=device, s=scenario: EmbeddedEngine().run(d, s).run_user_seconds)
        theirs = best(lambda d=device, s=scenario: mqsim.user_seconds(d, s)) if mqsim else recorded
        ratios.append(theirs / ours)
        print(f"  {case:40} {theirs:6.2f} s {ours:8.4f} s {theirs / ours:7.1f}x")
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"  {len(ratios)} cases: {mean:.1f}x (geometric mean), {min(ratios):.1f}x at least")
    assert mean >= SPEED_RATIO


def test_random_reads_per_second() -> None:
    def reads_per_second() -> float:
        result = run(IDEAL, READS)
        return -result.flows[0].serviced / result.run_user_seconds

    rate = -best(reads_per_second)
    print(f"\n4 KiB random reads, depth 32, ideal mapping table: {rate / 1e6:.2f} M/s of user time")
    assert rate >= READS_PER_SECOND


def test_the_stock_drive_starts_at_once() -> None:
    one = READS.model_copy(update={"stop_ns": 0, "total_requests": 32})
    for name, device in (("ideal mapping table", IDEAL), ("mapping table cache", STOCK)):
        seconds = best(lambda d=device: run(d, one).run_wall_seconds)
        print(f"\n512 GiB with {name}, 32 requests: {seconds * 1e3:.1f} ms")
        assert seconds < STARTUP_SECONDS


PRECONDITIONED = """
import resource, sys
from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.workload import Scenario
device = DeviceConfig.model_validate_json(sys.argv[1])
result = EmbeddedEngine().run(device, Scenario.model_validate_json(sys.argv[2]))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(result.run_wall_seconds, peak, result.flows[0].serviced)
"""


def test_the_preconditioned_stock_drive() -> None:
    device = STOCK.model_copy(update={"preconditioning": True})
    flow = READS.model_copy(
        update={
            "queue_depth": 16, "read_percent": 70, "stop_ns": 10**9, "initial_occupancy_percent": 70
        }
    )  # fmt: skip
    inputs = (device.model_dump_json(), Scenario(flows=(flow,)).model_dump_json())
    done = subprocess.run(
        [sys.executable, "-c", PRECONDITIONED, *inputs], capture_output=True, text=True, check=True
    )
    seconds, peak, serviced = map(float, done.stdout.split())
    print(
        f"\n512 GiB preconditioned to 70 %, 1 s at depth 16: {seconds:.2f} s, "
        f"{peak / 1e6:.0f} MB for the whole process, {serviced:.0f} requests"
    )
    assert seconds < PRECONDITIONED_SECONDS
    assert peak < PRECONDITIONED_BYTES


def test_two_threads_do_not_wait_for_each_other() -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core runs one thread at a time")

    def wall(action: Callable[[], object]) -> float:
        start = time.perf_counter()
        action()
        return time.perf_counter() - start

    def in_a_row() -> None:
        run(IDEAL, READS)
        run(IDEAL, READS)

    def at_once() -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda _: run(IDEAL, READS), range(2)))

    # in pairs, because what else the machine does changes both alike
    shares = [wall(at_once) / wall(in_a_row) for _ in range(REPEATS)]
    print(f"\ntwo threads take {min(shares):.2f} of the time of two runs in a row (of {shares})")
    assert min(shares) <= THREADS_SHARE


def cost_ns(device: DeviceConfig, flow: FlowConfig) -> float:
    """User time for a request, in ns."""

    def once() -> float:
        result = run(device, flow)
        return result.run_user_seconds * 1e9 / result.flows[0].serviced

    return best(once)


def test_cost_grows_at_most_logarithmically_with_depth() -> None:
    depths = [2**power for power in range(0, 15, 2)]
    costs = [
        cost_ns(
            IDEAL,
            READS.model_copy(update={"queue_depth": d, "stop_ns": 0, "total_requests": 400_000}),
        )
        for d in depths
    ]
    print("\nuser time for a 4 KiB random read over the depth")
    for depth, cost in zip(depths, costs, strict=True):
        print(f"  depth {depth:6}: {cost:6.0f} ns")
    # a + b log2(depth) with a >= 0 grows by no more than the ratio of the logarithms, 14/4 here,
    # where a cost in proportion to the depth would grow by 1024.
    assert costs[-1] <= costs[2] * math.log2(depths[-1]) / math.log2(depths[2])


def test_cost_does_not_grow_with_capacity() -> None:
    blocks = [2**power for power in range(6, 15, 2)]
    flow = READS.model_copy(update={"stop_ns": 0, "total_requests": 400_000})
    costs = [cost_ns(IDEAL.model_copy(update={"blocks_per_plane": b}), flow) for b in blocks]
    print("\nuser time for a 4 KiB random read over the capacity")
    for count, cost in zip(blocks, costs, strict=True):
        gib = IDEAL.model_copy(update={"blocks_per_plane": count}).capacity_bytes / 2**30
        print(f"  {gib:6.0f} GiB: {cost:6.0f} ns")
    # Larger tables miss the processor's caches more often, which is no growth of the work.
    assert max(costs) <= 2 * min(costs)
