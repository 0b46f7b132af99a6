"""The true physics of a virtual drive, simulated offline: what a configuration does and costs."""

from __future__ import annotations

from dataclasses import dataclass

from iojoule.measure.drive.block_device import SECTOR_BYTES
from iojoule.measure.lab import drives
from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines import RunOptions, engine
from iojoule.sim.result import EngineName
from iojoule.sim.workload import FlowConfig, Generator, Scenario

_SIMULATED_SECONDS = 20


@dataclass(frozen=True)
class TrueFigures:
    """What a closed loop of random reads really does on the drive."""

    throughput_bytes_per_second: float
    latency_mean_ns: float
    device_power_watts: float

    @property
    def joules_per_gb(self) -> float:
        """Energy of the drive per 10^9 bytes read."""
        return self.device_power_watts / self.throughput_bytes_per_second * 1e9


def random_reads(
    request_bytes: int, queue_depth: int, power_state: int, drive: str = drives.DEFAULT
) -> TrueFigures:
    """Simulate random reads in a closed loop of that depth.

    Args:
        request_bytes: Whole sectors of 512 bytes, at most what the drive takes in one command.
        queue_depth: Requests in flight.
        power_state: One of the drive's operational power states.
        drive: Name or file of a virtual drive, as `iojoule lab up --preset` takes it.

    Raises:
        LabError: The drive has no watts.
        InputError: There is no such drive.
    """
    sectors = request_bytes // SECTOR_BYTES
    flow = FlowConfig(
        read_percent=100,
        generator=Generator.QUEUE_DEPTH,
        size_mean_sectors=sectors,
        alignment_sectors=sectors,
        queue_depth=queue_depth,
        working_set_percent=100,
        stop_ns=_SIMULATED_SECONDS * 10**9,
    )
    device = _held_in(drives.find(drive).device, power_state)
    result = engine(EngineName.EMBEDDED).run(device, Scenario(flows=(flow,)), RunOptions())
    (reads,) = result.flows
    joules = result.device.energy_joules_total
    assert joules is not None, "a physical drive has watts"
    return TrueFigures(
        throughput_bytes_per_second=reads.bytes_read / _SIMULATED_SECONDS,
        latency_mean_ns=reads.drt_ns,
        device_power_watts=joules / _SIMULATED_SECONDS,
    )


def _held_in(device: DeviceConfig, power_state: int) -> DeviceConfig:
    """The drive that stays in this power state."""
    power = device.physical.power.model_copy(
        update={"initial_state": power_state, "autonomous_transitions": ()}
    )
    return device.model_copy(
        update={"physical": device.physical.model_copy(update={"power": power})}
    )
