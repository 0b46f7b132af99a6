"""Which of a drive's timing parameters may be fitted, and over which range.

Geometry (channels, dies, planes, pages) is fixed from the data sheet; what nobody publishes to the
per cent is fitted here. A range is a factor around the drive's own value, or stands in the
parameter's unit where that value says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from iojoule.datasets.errors import InputError, close_names
from iojoule.model.evaluate.bands import Floats
from iojoule.sim.device import DeviceConfig
from iojoule.sim.formats.building import build
from iojoule.sim.sweep import put_field


@dataclass(frozen=True)
class Kind:
    """A parameter that may be fitted.

    Attributes:
        name: What it is called.
        unit: Unit of its value.
        meaning: What it is, in a few words.
        field: Field of the drive that it sets; "" where `place_values` knows better.
        low: Least value, as a factor of the drive's own where `relative`.
        high: Greatest value, likewise.
        relative: Whether the range is relative to the drive's own value.
        of_host: Whether every host has one of its own.
        writes: Whether only writes can tell what it is.
        collects: Whether only a series of writes into garbage collection can.
        compat: Whether MQSim has it.
    """

    name: str
    unit: str
    meaning: str
    field: str
    low: float
    high: float
    relative: bool = True
    of_host: bool = False
    writes: bool = False
    collects: bool = False
    compat: bool = False


KINDS = (
    Kind("page_read_ns", "ns", "array time of a page read", "page_read_ns", 0.5, 3.0, compat=True),
    Kind(
        "page_read_spread",
        "",
        "part by which pages on the outer bits of a cell differ from it",
        "page_read_ns",
        0.0,
        0.4,
        relative=False,
    ),
    Kind(
        "partial_read_share",
        "",
        "part of that time that a read of one mapping unit takes",
        "physical.nand.partial_read_share",
        0.25,
        1.0,
        relative=False,
    ),
    Kind(
        "command_latency_ns",
        "ns",
        "firmware time of a command",
        "physical.controller.command_latency_ns",
        0.1,
        2.5,
    ),
    Kind(
        "command_occupancy_ns",
        "ns",
        "time a command keeps the firmware",
        "physical.controller.command_occupancy_ns",
        0.4,
        2.5,
    ),
    Kind(
        "channel_megatransfers_per_second",
        "MT/s",
        "rate of a flash channel",
        "channel_megatransfers_per_second",
        0.5,
        2.0,
        compat=True,
    ),
    Kind(
        "page_program_ns",
        "ns",
        "array time of a page program",
        "page_program_ns",
        0.5,
        4.0,
        writes=True,
        collects=True,
        compat=True,
    ),
    Kind(
        "slc_page_program_ns",
        "ns",
        "array time of a program into the pseudo-SLC cache",
        "physical.slc.page_program_ns",
        0.5,
        3.0,
        writes=True,
    ),
    Kind(
        "overprovisioning_ratio",
        "",
        "share of the flash that holds no data: where the cache of writes ends",
        "overprovisioning_ratio",
        0.9,
        1.4,
        writes=True,
        collects=True,
        compat=True,
    ),
    Kind(
        "gc_threshold",
        "",
        "share of free blocks below which collection starts",
        "gc_threshold",
        0.25,
        2.5,
        writes=True,
        collects=True,
        compat=True,
    ),
    Kind(
        "suspend_program_ns",
        "ns",
        "time to suspend a program for a read",
        "suspend_program_for_read_ns",
        0.2,
        4.0,
        writes=True,
    ),
    Kind(
        "request_cost",
        "",
        "host's time for a request, as a factor of the usual",
        "",
        0.3,
        2.0,
        relative=False,
        of_host=True,
    ),
    Kind(
        "further_page_ns",
        "ns",
        "link time of each host page beyond the first of a transfer",
        "physical.link.further_page_ns",
        0.0,
        2500.0,
        relative=False,
        of_host=True,
    ),
)
"""Every parameter; a new one is a line here."""

USUAL_READS = (
    "page_read_ns",
    "page_read_spread",
    "partial_read_share",
    "command_latency_ns",
    "command_occupancy_ns",
    "channel_megatransfers_per_second",
    "request_cost",
    "further_page_ns",
)
"""What is fitted where nothing else is asked for."""

USUAL_COLLECTION = ("page_program_ns", "overprovisioning_ratio", "gc_threshold")
"""In addition, where the drive was written until it had to collect garbage."""

COMPAT_READS = ("page_read_ns", "channel_megatransfers_per_second")
"""What MQSim has of them."""


@dataclass(frozen=True)
class Parameter:
    """One coordinate of the calibration: a kind, of one host where hosts differ in it."""

    kind: Kind
    low: float
    high: float
    host: str | None = None

    @property
    def name(self) -> str:
        """Name in tables, with the host where it has one."""
        return f"{self.kind.name} ({self.host})" if self.host else self.kind.name

    def value(self, share: float) -> float:
        """The value at a share of the range, by factors where the range is relative."""
        if self.kind.relative:
            return float(self.low * (self.high / self.low) ** share)
        return float(self.low + (self.high - self.low) * share)

    def share(self, value: float) -> float:
        """Inverse of `value`, held within 0 and 1."""
        if self.kind.relative:
            found = np.log(value / self.low) / np.log(self.high / self.low)
        else:
            found = (value - self.low) / (self.high - self.low)
        return float(np.clip(found, 0.0, 1.0))


class ParameterSpace:
    """All parameters that are fitted together, as the unit cube.

    Args:
        device: The drive; its own values are the start, and the middle of relative ranges.
        names: Kinds to fit.
        hosts: Hosts of the measurements, in order.

    Raises:
        InputError: No such parameter, or a relative range around nothing.
    """

    def __init__(self, device: DeviceConfig, names: Sequence[str], hosts: Sequence[str]) -> None:
        known = {kind.name: kind for kind in KINDS}
        self.device = device
        self.parameters: list[Parameter] = []
        for name in dict.fromkeys(names):
            if name not in known:
                raise InputError(
                    f"{name}: cannot be fitted{close_names(name, known)}; what can be: "
                    + ", ".join(known)
                )
            self.parameters += _ranges(known[name], device, hosts)

    def __len__(self) -> int:
        return len(self.parameters)

    @property
    def names(self) -> list[str]:
        """Names in the order of the coordinates."""
        return [each.name for each in self.parameters]

    def start(self) -> Floats:
        """Where the drive stands as it is, shape (d,)."""
        return np.array(
            [each.share(_own_value(each.kind, self.device)) for each in self.parameters]
        )

    def values(self, cube: Floats) -> dict[str, float]:
        """Parameter values by name at a point of the unit cube, shape (d,)."""
        return {
            each.name: each.value(float(share))
            for each, share in zip(self.parameters, cube, strict=True)
        }

    def drive(self, cube: Floats, host: str) -> tuple[DeviceConfig, float]:
        """The drive at a point of the cube on one host, and the host's cost as a factor."""
        own = {
            each.kind.name: each.value(float(share))
            for each, share in zip(self.parameters, cube, strict=True)
            if each.host in (None, host)
        }
        return place_values(self.device, own), own.get("request_cost", 1.0)


def refuse_unknown_to_mqsim(names: Sequence[str]) -> None:
    """Refuse parameters that MQSim does not have.

    Raises:
        InputError: One of them.
    """
    known = [kind.name for kind in KINDS if kind.compat]
    for name in names:
        if name not in known:
            raise InputError(f"{name}: MQSim has no such parameter; it has {', '.join(known)}")


def _ranges(kind: Kind, device: DeviceConfig, hosts: Sequence[str]) -> list[Parameter]:
    low, high = kind.low, kind.high
    if kind.relative:
        own = _own_value(kind, device)
        if own <= 0:
            raise InputError(f"{kind.name}: the drive has {own:g}, around which there is no range")
        low, high = low * own, high * own
    if kind.name == "overprovisioning_ratio":
        high = min(high, 0.9)
    return [Parameter(kind, low, high, host) for host in (hosts if kind.of_host else (None,))]


def _own_value(kind: Kind, device: DeviceConfig) -> float:
    if kind.name == "request_cost":
        return 1.0
    if kind.name == "page_read_spread":
        return device.page_read_ns[2] / device.page_read_ns[1] - 1.0
    found: Any = device
    for part in kind.field.split("."):
        found = getattr(found, part)
    return float(found[1] if isinstance(found, tuple) else found)


def place_values(device: DeviceConfig, values: Mapping[str, float]) -> DeviceConfig:
    """The drive with parameters set, rounded to what its fields take.

    Raises:
        RefusedError: A value is none that the field can have.
    """
    drive = device.model_dump()
    kinds = {kind.name: kind for kind in KINDS}
    for name, value in values.items():
        kind = kinds[name]
        if name in ("page_read_ns", "page_program_ns"):
            drive[kind.field] = (round(value),) * 3
        elif kind.field and name != "page_read_spread":
            whole = kind.unit in ("ns", "MT/s")
            put_field(drive, device, kind.field, kind.field, round(value) if whole else value)
    if "page_read_spread" in values:
        middle, spread = drive["page_read_ns"][1], values["page_read_spread"]
        drive["page_read_ns"] = tuple(round(middle * (1 + by * spread)) for by in (-1, 0, 1))
    if "partial_read_share" in values and not device.physical.nand.partial_read_bytes:
        unit = device.physical.nand.mapping_unit_bytes or device.page_bytes
        drive["physical"]["nand"]["partial_read_bytes"] = unit if unit < device.page_bytes else 0
    return build(DeviceConfig, drive, {"": "calibration"})
