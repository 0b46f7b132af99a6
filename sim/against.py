"""How far the simulator is from measurements: each one simulated as it was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Operation, Pattern
from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.physical_options import HostOptions
from iojoule.sim.result import ScenarioResult
from iojoule.sim.sweep import Job, Watch, run_jobs
from iojoule.sim.workers import Pool
from iojoule.sim.workers.local import HERE
from iojoule.sim.workload import AddressDistribution, FlowConfig, Scenario

SECTOR_BYTES = 512


@dataclass(frozen=True)
class Residual:
    """One quantity of one measurement, measured and simulated, in the unit that its name states."""

    quantity: str
    measured: float
    simulated: float

    @property
    def relative_error(self) -> float:
        """Simulated over measured, less 1."""
        return self.simulated / self.measured - 1


@dataclass(frozen=True)
class Comparison:
    """A measurement, and how far its simulation is from it."""

    measurement: Measurement
    residuals: tuple[Residual, ...]


def simulate_measurements(
    device: DeviceConfig,
    measurements: Sequence[Measurement],
    *,
    pool: Pool = HERE,
    simulated_ns: int = 200_000_000,
    watch: Watch | None = None,
) -> list[Comparison]:
    """Each measurement beside its simulation, in their order.

    The host's engine, completion, depth and jobs are the measurement's; the drive is the one given,
    also where the measurement names another.

    Args:
        device: The drive, in physical mode.
        measurements: Closed-loop runs of one operation.
        pool: Where they run.
        simulated_ns: Simulated time of each at most.
        watch: Told of progress, see `run_jobs`.

    Raises:
        InputError: There is none, or one that cannot be simulated; the message says which.
    """
    if not measurements:
        raise InputError("there are no measurements to compare with")
    jobs = [
        Job(device, Scenario(flows=(flow_of(each, f"measurement {number}", simulated_ns),)))
        for number, each in enumerate(measurements, 1)
    ]
    results = run_jobs(jobs, EmbeddedEngine(), pool=pool, watch=watch)
    return [
        Comparison(measurement, tuple(_residuals(measurement, result)))
        for measurement, result in zip(measurements, results, strict=True)
    ]


def flow_of(measurement: Measurement, place: str, simulated_ns: int) -> FlowConfig:
    """The flow that does what the measured run did.

    Raises:
        InputError: It mixes reads and writes, or its size is no whole number of sectors.
    """
    workload, chosen = measurement.workload, measurement.configuration
    if workload.operation is Operation.MIXED:
        raise InputError(f"{place}: mixed runs are not compared; leave them out")
    sectors, rest = divmod(chosen.request_bytes, SECTOR_BYTES)
    if rest or not sectors:
        raise InputError(f"{place}: request_bytes must be a multiple of {SECTOR_BYTES}")
    host: dict[str, object] = {"jobs": chosen.jobs}
    if chosen.engine is not None:
        host["engine"] = chosen.engine.value
    if chosen.completion is not None:
        host["completion"] = chosen.completion.value

    return FlowConfig(
        read_percent=100 if workload.operation is Operation.READ else 0,
        address_distribution=AddressDistribution.STREAMING
        if workload.pattern is Pattern.SEQUENTIAL
        else AddressDistribution.RANDOM_UNIFORM,
        size_mean_sectors=sectors,
        alignment_sectors=sectors,
        queue_depth=chosen.queue_depth,
        stop_ns=simulated_ns,
        host=HostOptions.model_validate(host),
    )


def _residuals(measurement: Measurement, result: ScenarioResult) -> list[Residual]:
    seen, flow = measurement.observations, result.flows[0]
    latency = flow.end_to_end_latency.all
    simulated = {
        "throughput_bytes_per_second": flow.bandwidth_bytes_per_second,
        "latency_mean_ns": latency.mean_ns,
        "latency_p99_ns": latency.p99_ns,
        "device_power_watts": result.device.power_watts_mean,
    }
    return [
        Residual(name, measured, value)
        for name, value in simulated.items()
        if (measured := getattr(seen, name)) and value
    ]


def median_errors(
    comparisons: Sequence[Comparison], groups: Sequence[str]
) -> list[dict[str, object]]:
    """Median and 90th percentile of the absolute errors, and the median error, by group.

    Args:
        comparisons: As `simulate_measurements` gives them.
        groups: Fields of the configuration that tell groups apart; none: one group of all.
    """
    found: dict[tuple[tuple[object, ...], str], list[float]] = {}
    for each in comparisons:
        key = tuple(getattr(each.measurement.configuration, name) for name in groups)
        for residual in each.residuals:
            found.setdefault((key, residual.quantity), []).append(residual.relative_error)
    return [
        {
            **dict(zip(groups, key, strict=True)),
            "quantity": quantity,
            "rows": len(errors),
            "median_error_percent": _percent(np.median(errors)),
            "median_absolute_error_percent": _percent(np.median(np.abs(errors))),
            "p90_absolute_error_percent": _percent(np.quantile(np.abs(errors), 0.9)),
        }
        for (key, quantity), errors in sorted(found.items(), key=lambda item: str(item[0]))
    ]


def _percent(share: np.floating) -> float:
    return round(100 * float(share), 1)
