"""How far the simulator is from measurements: each one simulated as it was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from iojoule.datasets.errors import InputError, close_names
from iojoule.datasets.links import LANE_BYTES_PER_SECOND
from iojoule.datasets.schema import Configuration, Measurement
from iojoule.datasets.vocabulary import Operation, Pattern
from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.physical_options import Completion, HostEngine, HostOptions, costed
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

    The host's engine, completion, depth and jobs are the measurement's, and so are the power state
    and link that it states; the drive is the one given, also where the measurement names another.

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
    jobs = []
    for number, each in enumerate(measurements, 1):
        place = f"measurement {number}"
        if held_back(each):
            raise InputError(
                f"{place}: a rate, think time or flushes held it back, and what is simulated runs "
                "at full speed; leave it out"
            )
        flow = flow_of(each, place, simulated_ns)
        jobs.append(Job(drive_of(device, each, place), Scenario(flows=(flow,))))
    results = run_jobs(jobs, EmbeddedEngine(), pool=pool, watch=watch)
    return [
        Comparison(measurement, tuple(_residuals(measurement, result)))
        for measurement, result in zip(measurements, results, strict=True)
    ]


def held_back(measurement: Measurement) -> bool:
    """Whether something else than host and drive kept the run from its full speed."""
    return bool(not measurement.at_full_speed or measurement.workload.force_unit_access)


def drive_of(device: DeviceConfig, measurement: Measurement, place: str) -> DeviceConfig:
    """The drive in the measured run's power state and on its link.

    Raises:
        InputError: It has no such state, or the run was under a power limit.
    """
    chosen, about = measurement.configuration, measurement.conditions
    if chosen.power_limit_watts:
        raise InputError(f"{place}: a power limit held the drive back; leave it out")
    if state := chosen.power_state or 0:
        states = device.physical.power.states
        if state >= len(states) or not states[state].operational:
            raise InputError(
                f"{place}: power_state {state} is none in which this drive serves; leave it out, "
                "or name it in physical.power.states"
            )
        power = device.physical.power.model_copy(update={"initial_state": state})
        physical = device.physical.model_copy(update={"power": power})
        device = device.model_copy(update={"physical": physical})
    link: dict[str, float] = {}
    if about.pcie_generation in LANE_BYTES_PER_SECOND:
        rate = LANE_BYTES_PER_SECOND[about.pcie_generation] / 1e9
        link["link_lane_gigabytes_per_second"] = rate
    if about.pcie_lanes is not None:
        link["link_lanes"] = about.pcie_lanes
    return device.model_copy(update=link)


def flow_of(measurement: Measurement, place: str, simulated_ns: int) -> FlowConfig:
    """The flow that does what the measured run did.

    Raises:
        InputError: It mixes operations or sizes, its size is no whole number of sectors, or nobody
            knows what its host takes.
    """
    workload, chosen = measurement.workload, measurement.configuration
    if workload.operation is Operation.MIXED or workload.request_bytes_mix:
        raise InputError(f"{place}: mixed runs are not compared; leave them out")
    sectors, rest = divmod(chosen.request_bytes, SECTOR_BYTES)
    if rest or not sectors:
        raise InputError(f"{place}: request_bytes must be a multiple of {SECTOR_BYTES}")
    if lacking := without_costs(measurement):
        raise InputError(f"{place}: {lacking}; leave it out")
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


def without_costs(measurement: Measurement) -> str | None:
    """Says so where nobody has published what a request of such a host costs it."""
    chosen = measurement.configuration
    if chosen.engine is None:
        return None
    said = None if chosen.completion is None else Completion(chosen.completion.value)
    costs, completion = costed(HostEngine(chosen.engine.value), said)
    if costs is not None:
        return None
    return f"nobody has published what a request costs with {chosen.engine.value}, {completion}"


def _residuals(measurement: Measurement, result: ScenarioResult) -> list[Residual]:
    seen, flow = measurement.observations, result.flows[0]
    latency = flow.end_to_end_latency.all
    throughput = seen.throughput_bytes_per_second
    if throughput is None and seen.iops is not None:
        throughput = seen.iops * measurement.configuration.request_bytes
    compared = {
        "throughput_bytes_per_second": (throughput, flow.bandwidth_bytes_per_second),
        "latency_mean_ns": (seen.latency_mean_ns, latency.mean_ns),
        "latency_p99_ns": (seen.latency_p99_ns, latency.p99_ns),
        "device_power_watts": (seen.device_power_watts, result.device.power_watts_mean),
    }
    return [
        Residual(name, measured, simulated)
        for name, (measured, simulated) in compared.items()
        if measured and simulated
    ]


def parse_groups(text: str) -> list[str]:
    """Fields of the configuration that `FIELD,FIELD,...` names, each once.

    Raises:
        InputError: It has no such field.
    """
    groups = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in groups:
        if name not in Configuration.model_fields:
            said = close_names(name, Configuration.model_fields)
            raise InputError(f"--by {name}: the configuration has no such field{said}")
    return groups


def median_errors(
    comparisons: Sequence[Comparison], groups: Sequence[str]
) -> list[dict[str, object]]:
    """Median and 90th percentile of the absolute errors, and the median error, by group.

    Args:
        comparisons: As `simulate_measurements` gives them.
        groups: As `parse_groups` gives them; none: one group of all.
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
        for (key, quantity), errors in sorted(found.items(), key=lambda item: _place(*item[0]))
    ]


def _place(key: tuple[object, ...], quantity: str) -> tuple[object, ...]:
    """Sorts groups by their values, numbers as such, and what is unknown last."""
    return (*((value is None, 0 if value is None else value) for value in key), quantity)


def _percent(share: np.floating) -> float:
    return round(100 * float(share), 1)
