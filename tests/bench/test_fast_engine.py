"""Speed of the fast engine: requests a second of a core beside the event engine; two threads.

A drive as a long trace runs on it, a 980 PRO at 1:16, in the region in which the fast engine was
checked; and a small one that collects all the time, which is outside of it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.engines.fast import FastSimulation
from iojoule.sim.formats.files import read_drive
from iojoule.sim.presets import drive_path
from iojoule.sim.scale_model import scale_model
from iojoule.sim.workload import FlowConfig, Scenario
from tests.sim.physical.drives import drive

REQUESTS = 1_000_000
ROUNDS = 3
TWO_THREADS = 1.5

Trace = tuple[np.ndarray, ...]


def nvme() -> DeviceConfig:
    """A 980 PRO as a day of 650 million requests runs on it."""
    return scale_model(read_drive(drive_path("samsung-980-pro-1tb")).device, 16)[0]


def trace(device: DeviceConfig, per_second: float, bytes_each: int, write_share: float) -> Trace:
    """Requests over the whole drive."""
    rng = np.random.default_rng(11)
    arrivals = np.cumsum(rng.exponential(1e9 / per_second, REQUESTS)).astype(np.int64)
    places = FastSimulation(device).capacity_bytes // bytes_each
    offsets = rng.integers(0, places, REQUESTS) * bytes_each
    writes = (rng.random(REQUESTS) < write_share).astype(np.uint8)
    return arrivals, offsets, np.full(REQUESTS, bytes_each), writes


def fed_per_second(device: DeviceConfig, columns: Trace, rounds: int = ROUNDS) -> float:
    """Of the processor's time, at best; the first round fills the tables."""
    simulation = FastSimulation(device)
    seconds = []
    for turn in range(1 + rounds):
        begin = time.thread_time()
        simulation.feed(columns[0] + turn * int(columns[0][-1]), *columns[1:])
        seconds.append(time.thread_time() - begin)
    return REQUESTS / min(seconds[1:])


def events_per_second(
    device: DeviceConfig, per_second: float, bytes_each: int, share: float
) -> float:
    flow = FlowConfig.model_validate(
        {
            "size_mean_sectors": bytes_each // 512, "alignment_sectors": bytes_each // 512,
            "read_percent": round(100 - 100 * share), "total_requests": REQUESTS // 2,
            "host": {"arrivals_per_second": per_second},
        }
    )  # fmt: skip
    result = EmbeddedEngine().run(device, Scenario(flows=(flow,)))
    return result.flows[0].serviced / result.run_user_seconds


@pytest.mark.parametrize(
    ("make", "per_second", "bytes_each", "share", "least"),
    [
        (nvme, 20_000.0, 4096, 0.0, 2.0),
        (nvme, 20_000.0, 4096, 0.3, 2.0),
        (drive, 3000.0, 8192, 0.0, 1.5),
        (drive, 3000.0, 8192, 0.3, 1.1),
    ],
)
def test_fed_requests_per_second(
    make: Callable[[], DeviceConfig],
    per_second: float,
    bytes_each: int,
    share: float,
    least: float,
) -> None:
    device = make()
    columns = trace(device, per_second, bytes_each, share)
    fast = fed_per_second(device, columns)
    event = max(events_per_second(device, per_second, bytes_each, share) for _ in range(ROUNDS))
    print(f"\n{make.__name__}, {share:.0%} writes: fed {fast / 1e6:.2f} M/s, event engine "
          f"{event / 1e6:.2f} M/s of a core: {fast / event:.1f} times")  # fmt: skip
    assert fast >= least * event


def test_two_threads_scale() -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core runs one thread at a time")
    device = nvme()
    columns = trace(device, 20_000.0, 4096, 0.3)

    def once(_: int = 0) -> float:
        begin = time.perf_counter()
        fed_per_second(device, columns, 1)
        return time.perf_counter() - begin

    def both() -> float:
        begin = time.perf_counter()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(once, range(2)))
        return time.perf_counter() - begin

    scaling = max((once() + once()) / both() for _ in range(ROUNDS))
    print(f"\ntwo simulations at once: {scaling:.2f} times one thread")
    assert scaling >= TWO_THREADS
