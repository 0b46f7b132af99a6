"""Speed of the fast engine: requests a second of a core beside the event engine; two threads."""

from __future__ import annotations

import os
import resource
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.engines.fast import FastSimulation
from iojoule.sim.workload import FlowConfig, Scenario
from tests.sim.physical.drives import drive

REQUESTS = 1_000_000
PAGE = 8192
RATE = 3000.0
READ_RATIO, MIXED_RATIO = 1.5, 1.2
TWO_THREADS = 1.5


def user_seconds() -> float:
    return resource.getrusage(resource.RUSAGE_THREAD).ru_utime


def trace(write_share: float) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(11)
    arrivals = np.cumsum(rng.exponential(1e9 / RATE, REQUESTS)).astype(np.int64)
    pages = rng.integers(0, FastSimulation(drive()).capacity_bytes // PAGE, REQUESTS) * PAGE
    writes = (rng.random(REQUESTS) < write_share).astype(np.uint8)
    return arrivals, pages, np.full(REQUESTS, PAGE), writes


def fed_per_second(columns: tuple[np.ndarray, ...]) -> float:
    simulation = FastSimulation(drive())
    begin = user_seconds()
    simulation.feed(*columns)
    return REQUESTS / (user_seconds() - begin)


def events_per_second(device: DeviceConfig, read_percent: int) -> float:
    flow = FlowConfig.model_validate(
        {
            "size_mean_sectors": 16, "alignment_sectors": 16, "read_percent": read_percent,
            "total_requests": REQUESTS // 4, "host": {"arrivals_per_second": RATE},
        }
    )  # fmt: skip
    result = EmbeddedEngine().run(device, Scenario(flows=(flow,)))
    return result.flows[0].serviced / result.run_user_seconds


@pytest.mark.parametrize(("share", "least"), [(0.0, READ_RATIO), (0.3, MIXED_RATIO)])
def test_fed_requests_per_second(share: float, least: float) -> None:
    columns = trace(share)
    fast = max(fed_per_second(columns) for _ in range(3))
    event = max(events_per_second(drive(), round(100 - 100 * share)) for _ in range(3))
    print(f"\n{share:.0%} writes: fed {fast / 1e6:.2f} M/s, event engine {event / 1e6:.2f} M/s of "
          f"user time: {fast / event:.1f} times")  # fmt: skip
    assert fast >= least * event


def test_two_threads_scale() -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core runs one thread at a time")
    columns = trace(0.3)

    def once(_: int = 0) -> float:
        begin = time.perf_counter()
        fed_per_second(columns)
        return time.perf_counter() - begin

    def both() -> float:
        begin = time.perf_counter()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(once, range(2)))
        return time.perf_counter() - begin

    scaling = max((once() + once()) / both() for _ in range(3))
    print(f"\ntwo simulations at once: {scaling:.2f} times one thread")
    assert scaling >= TWO_THREADS
