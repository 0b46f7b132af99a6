"""A drive with known physics, measured without and with noise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from iojoule.datasets.schema import Measurement
from iojoule.model.evaluate.surface import log_smooth_max

UNLOADED_NS = {4096: 70e3, 16384: 95e3, 65536: 150e3}
CAPACITY = {4096: 6e5, 16384: 1.8e5, 65536: 4.5e4}
SHARPNESS = 1.7
CORE_NS = 2600.0


def true_latency_ns(request_bytes: int, depth: int, jobs: int) -> float:
    """Closed form of the drive: its own bend, then the host's sharper one."""
    requests = depth * jobs
    drive = log_smooth_max(
        np.log([UNLOADED_NS[request_bytes]]),
        np.log([requests / CAPACITY[request_bytes] * 1e9]),
        SHARPNESS,
    )
    host = np.log([requests * CORE_NS / jobs])
    return float(np.exp(log_smooth_max(drive, host, 12.0))[0])


Maker = Callable[..., list[Measurement]]


@pytest.fixture(scope="session")
def measure() -> Maker:
    """Return a function that measures the drive over sizes, depths and jobs."""

    def run(
        sizes: tuple[int, ...] = (4096, 16384, 65536),
        depths: tuple[int, ...] = (1, 4, 16, 64, 256),
        jobs: tuple[int, ...] = (1,),
        noise: float = 0.0,
        watts: bool = False,
    ) -> list[Measurement]:
        random = np.random.default_rng(7)
        rows = []
        for size in sizes:
            for depth in depths:
                for job in jobs:
                    latency = true_latency_ns(size, depth, job) * np.exp(random.normal(0, noise))
                    iops = depth * job / latency * 1e9
                    seen = {
                        "iops": iops,
                        "throughput_bytes_per_second": iops * size,
                        "latency_mean_ns": latency,
                        "latency_p50_ns": 0.95 * latency,
                        "latency_p99_ns": latency + 0.5 * UNLOADED_NS[size],
                        "latency_p999_ns": latency + 1.2 * UNLOADED_NS[size],
                        "cpu_utilisation": min(iops * CORE_NS * 1e-9, job),
                    }
                    if watts:
                        seen["device_power_watts"] = 2.5 + 6e-10 * iops * size + 1e-6 * iops
                    rows.append(
                        Measurement.model_validate(
                            {
                                "workload": {"operation": "read", "pattern": "random"},
                                "configuration": {
                                    "request_bytes": size,
                                    "queue_depth": depth,
                                    "jobs": job,
                                    "engine": "io_uring",
                                    "completion": "interrupt",
                                    "scheduler": "none",
                                },
                                "conditions": {"device_model": "truth", "session_id": "one"},
                                "observations": seen,
                            }
                        )
                    )
        return rows

    return run
