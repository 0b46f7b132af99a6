"""The true physics of the lab's drive, asked offline: what a configuration costs."""

from __future__ import annotations

from dataclasses import dataclass

from iojoule.measure.lab.drives import find
from iojoule.sim.engines import RunOptions, engine
from iojoule.sim.workload import FlowConfig, Generator, Scenario

SECTOR_BYTES = 512
_SECONDS = 20


@dataclass(frozen=True)
class Truth:
    joules_per_gb: float
    latency_mean_ns: float


def random_reads(request_bytes: int, queue_depth: int, power_state: int) -> Truth:
    """Random reads as fast as a closed loop of that depth goes."""
    device = find("lab-nvme").device
    power = device.physical.power.model_copy(
        update={"initial_state": power_state, "autonomous_transitions": ()}
    )
    device = device.model_copy(
        update={"physical": device.physical.model_copy(update={"power": power})}
    )
    sectors = request_bytes // SECTOR_BYTES
    flow = FlowConfig(
        read_percent=100,
        generator=Generator.QUEUE_DEPTH,
        size_mean_sectors=sectors,
        alignment_sectors=sectors,
        queue_depth=queue_depth,
        working_set_percent=100,
        stop_ns=_SECONDS * 10**9,
    )
    result = engine("embedded").run(device, Scenario(flows=(flow,)), RunOptions())
    (told,) = result.flows
    assert result.device.energy_joules_total is not None
    return Truth(
        result.device.energy_joules_total / (told.bytes_read) * 1e9,
        told.drt_ns,
    )
