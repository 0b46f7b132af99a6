"""A drive that obeys formulas: what it truly does is known without any simulation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.provenance import Provenance
from iojoule.datasets.schema import Configuration, Measurement, Observations, Workload
from iojoule.datasets.store import Dataset
from iojoule.recommender.adaptive.aims import Candidate

Floats = NDArray[np.float64]

READS = Workload.model_validate({"operation": "read", "pattern": "random"})
NO_LOAD_SECONDS = 80e-6
BYTES_PER_SECOND = 3e9
OPERATIONS_PER_SECOND = 4e5


def candidates(workload: Workload = READS, seconds: float = 40.0) -> list[Candidate]:
    """Sizes x depths x jobs x power states."""
    return [
        Candidate(
            workload,
            Configuration.model_validate(
                {
                    "request_bytes": 4096 << size,
                    "queue_depth": 1 << depth,
                    "jobs": jobs,
                    "engine": "io_uring",
                    "completion": "interrupt",
                    "power_state": state,
                }
            ),
            seconds,
        )
        for size in range(5)
        for depth in range(7)
        for jobs in (1, 4)
        for state in (0, 1)
    ]


def truth(one: Configuration) -> dict[str, float]:
    """Saturation by a smooth minimum, power linear in the work, a tail that grows."""
    slower = 0.7 ** (one.power_state or 0)
    flight = one.queue_depth * one.jobs
    unloaded = NO_LOAD_SECONDS + one.request_bytes / 1e9
    most = slower * min(OPERATIONS_PER_SECOND, BYTES_PER_SECOND / one.request_bytes)
    iops = ((unloaded / flight) ** 3 + (1 / most) ** 3) ** (-1 / 3)
    mean = flight / iops
    return {
        "iops": iops,
        "throughput_bytes_per_second": iops * one.request_bytes,
        "latency_mean_ns": mean * 1e9,
        "latency_p99_ns": mean * 1e9 * (1.2 + flight / 64),
        "device_power_watts": 2.5 * slower + iops * (2e-6 + one.request_bytes * 5e-10),
        "cpu_power_watts": 4.0 + 3e-6 * iops + 0.4 * one.jobs,
    }


def measured(
    rows: Sequence[Candidate], source: np.random.Generator, noise: float = 0.02
) -> Dataset:
    """Runs of these candidates."""
    found = []
    for one in rows:
        seen = {
            name: value * float(np.exp(noise * source.standard_normal()))
            for name, value in truth(one.configuration).items()
        }
        found.append(
            Measurement(
                workload=one.workload,
                configuration=one.configuration,
                observations=Observations.model_validate(seen),
            )
        )
    return Dataset.from_measurements(found, Provenance(importer="test"))
