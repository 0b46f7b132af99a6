"""What a campaign on a real drive works with: drive, controller, host, fio, sensors."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from iojoule.datasets.measured_drive import MeasuredDrive
from iojoule.measure.drive.block_device import BlockDevice
from iojoule.measure.drive.nvme import Controller, Namespace, NvmeController, Smart
from iojoule.measure.fio import Fio
from iojoule.measure.host.facts import HostFacts
from iojoule.measure.host.journal import HostState
from iojoule.measure.sensors.protocol import Sensor
from iojoule.measure.tracing.block_trace import Tracer

Say = Callable[[str], None]
"""Reports progress, one line at a time."""


@dataclass(frozen=True)
class DriveFacts:
    """What a drive says of itself at the start of a campaign; None without a controller."""

    device: BlockDevice
    controller: Controller | None
    namespace: Namespace | None

    @property
    def serial(self) -> str:
        """What the user types out to allow overwriting: the serial number, else the path."""
        if self.controller is not None and self.controller.serial:
            return self.controller.serial
        return self.device.serial or str(self.device.path)

    @property
    def model(self) -> str:
        """Model number; of a drive without one the kernel's name."""
        if self.controller is not None and self.controller.model:
            return self.controller.model
        return self.device.attribute("device/model") or self.device.name

    def record(self) -> MeasuredDrive:
        """What is stored beside the measurements, for fitting a profile."""
        controller = self.controller
        return MeasuredDrive(
            model=self.model,
            firmware=controller.firmware if controller else None,
            capacity_bytes=self.device.size_bytes,
            block_bytes=self.device.block_bytes,
            max_transfer_bytes=controller.max_transfer_bytes if controller else None,
            volatile_write_cache=controller.volatile_write_cache if controller else None,
            power_states=controller.power_states if controller else (),
        )


def conditions(
    drive: DriveFacts, host: HostFacts, before: Smart | None, after: Smart | None
) -> dict[str, Any]:
    """The fields of the schema that drive and host determine."""
    link = drive.device.link()
    identity = hashlib.sha256(f"iojoule {drive.serial}".encode()).hexdigest()[:16]
    fields: dict[str, Any] = {
        "device_model": drive.model,
        "device_serial_hash": identity,
        "pcie_generation": link.generation,
        "pcie_lanes": link.lanes,
        "aspm_policy": host.aspm_policy,
        "host_id": host.host_id,
        "cpu_model": host.cpu_model,
        "cpu_cores_available": host.cpu_cores,
        "kernel_version": host.kernel_version,
        "turbo_enabled": host.turbo_enabled,
        "smt_enabled": host.smt_enabled,
        "device_numa_node": drive.device.numa_node(),
        "poll_queues": drive.device.poll_queues(),
    }
    if drive.controller is not None:
        fields |= {
            "firmware": drive.controller.firmware,
            "max_transfer_bytes": drive.controller.max_transfer_bytes,
            "volatile_write_cache": drive.controller.volatile_write_cache,
        }
    if before is not None and after is not None:
        fields |= _health(before, after)
    return {name: value for name, value in fields.items() if value is not None}


def _health(before: Smart, after: Smart) -> dict[str, Any]:
    temperatures = [
        smart.temperature_celsius
        for smart in (before, after)
        if smart.temperature_celsius is not None
    ]
    fields: dict[str, Any] = {
        "percentage_used": after.percentage_used,
        "thermal_throttle_seconds": max(0, after.throttle_seconds - before.throttle_seconds),
    }
    if temperatures:
        fields |= {
            "temperature_celsius_start": temperatures[0],
            "temperature_celsius_mean": sum(temperatures) / len(temperatures),
            "temperature_celsius_max": max(temperatures),
        }
    return fields


@dataclass(frozen=True)
class Rig:
    """Everything that a campaign on a real drive works with; the controller may be unknown.

    `tracer` records block events; None where that was not asked for.
    """

    drive: DriveFacts
    controller: NvmeController | None
    host: HostFacts
    fio: Fio
    sensors: Sequence[Sensor]
    state: HostState
    say: Say
    tracer: Tracer | None = None
