"""A drive whose physics is known, and what measuring it gives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from iojoule.datasets.schema import Measurement
from iojoule.sim.calibration.observations import Point
from iojoule.sim.calibration.parameters import ParameterSpace, place_values
from iojoule.sim.calibration.runs import run_point
from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.formats.files import read_drive
from iojoule.sim.presets import preset_path

PRESET = read_drive(preset_path("samsung-980-pro-1tb")).device

TRUTH = {"page_read_ns": 70_000.0, "command_latency_ns": 4_000.0}
"""What is hidden; the preset says 45 us and 6.8 us."""

HIDDEN = place_values(PRESET, TRUTH)


def question(size: int, depth: int, jobs: int = 1) -> Measurement:
    """A run that was not made yet."""
    return Measurement.model_validate(
        {
            "workload": {"operation": "read"},
            "configuration": {
                "request_bytes": size,
                "queue_depth": depth,
                "jobs": jobs,
                "engine": "spdk",
                "completion": "polled",
            },
            "conditions": {"device_model": "samsung-980-pro-1tb", "host_id": "bench"},
            "observations": {"iops": 20_000.0 * depth * jobs},
        }
    )


def measured(
    device: DeviceConfig, sizes: Sequence[int], depths: Sequence[int], jobs: Sequence[int] = (1,)
) -> list[Measurement]:
    """The drive measured over sizes, depths and jobs, with watts."""
    space, rows = ParameterSpace(device, (), ()), []
    nan = float("nan")
    for size in sizes:
        for depth in depths:
            for job in jobs:
                asked = question(size, depth, job)
                point = Point(asked, "bench", 20_000.0 * depth * job, nan, (nan, nan, nan), nan)
                told = run_point(space, np.empty(0), point, EmbeddedEngine())
                iops = float(np.exp(told.log_iops))
                latency = depth * job / iops * 1e9
                p50, p99, p999 = (latency * float(np.exp(one)) for one in told.log_tails)
                seen = {
                    "iops": iops,
                    "throughput_bytes_per_second": iops * size,
                    "latency_mean_ns": latency,
                    "latency_p50_ns": p50,
                    "latency_p99_ns": p99,
                    "latency_p999_ns": p999,
                    "device_power_watts": told.watts,
                }
                rows.append(
                    asked.model_copy(
                        update={"observations": type(asked.observations).model_validate(seen)}
                    )
                )
    return rows
