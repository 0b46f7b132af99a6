"""What the simulated host asks for: flows, field for field those of sim/core/config.hpp."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    model_validator,
)

from iojoule.sim.device import DeviceConfig
from iojoule.sim.parameter import Count, Kind, Mqsim, ParameterSet, Percent, Seed, between
from iojoule.sim.physical_options import HostOptions


class FlowKind(StrEnum):
    """Where the requests of a flow come from."""

    SYNTHETIC = "synthetic"
    TRACE = "trace"


class Priority(StrEnum):
    """Class of a flow's flash transactions."""

    URGENT = "urgent"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class CachingMode(StrEnum):
    """Which requests of a flow the data cache serves."""

    TURNED_OFF = "turned_off"
    WRITE_CACHE = "write_cache"
    READ_CACHE = "read_cache"
    WRITE_READ_CACHE = "write_read_cache"


class Generator(StrEnum):
    """Open loop at a rate, or closed loop with a number of requests under way."""

    BANDWIDTH = "bandwidth"
    QUEUE_DEPTH = "queue_depth"


class AddressDistribution(StrEnum):
    """Order of a synthetic flow's addresses."""

    STREAMING = "streaming"
    RANDOM_UNIFORM = "random_uniform"
    RANDOM_HOTCOLD = "random_hotcold"


class SizeDistribution(StrEnum):
    """Sizes of a synthetic flow's requests."""

    FIXED = "fixed"
    NORMAL = "normal"


def _set(ids: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(set(ids)))


Ids = Annotated[
    tuple[Annotated[StrictInt, between(0, 1023, "ids count from 0")], ...],
    AfterValidator(_set),
    Field(max_length=4096),
]
"""Sorted and each once; empty means all that the drive has."""


class FlowConfig(BaseModel):
    """One stream of requests with a part of the drive of its own or shared with others.

    A synthetic flow ends at `stop_ns`, or after `total_requests` where `stop_ns` is 0. Sectors
    have 512 bytes. A trace flow takes its requests from the file `trace_path`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    kind: FlowKind = FlowKind.SYNTHETIC
    priority: Annotated[Priority, Mqsim("Priority_Class", ParameterSet.FLOW)] = Priority.HIGH
    caching: Annotated[CachingMode, Mqsim("Device_Level_Data_Caching_Mode", ParameterSet.FLOW)] = (
        CachingMode.WRITE_CACHE
    )
    channel_ids: Annotated[Ids, Mqsim("Channel_IDs", ParameterSet.FLOW)] = ()
    chip_ids: Annotated[Ids, Mqsim("Chip_IDs", ParameterSet.FLOW)] = ()
    die_ids: Annotated[Ids, Mqsim("Die_IDs", ParameterSet.FLOW)] = ()
    plane_ids: Annotated[Ids, Mqsim("Plane_IDs", ParameterSet.FLOW)] = ()
    initial_occupancy_percent: Annotated[
        Percent, Mqsim("Initial_Occupancy_Percentage", ParameterSet.FLOW)
    ] = 0

    # synthetic
    working_set_percent: Annotated[
        StrictInt,
        between(1, 100, "it is the percentage of the flow's space that is used"),
        Mqsim("Working_Set_Percentage", ParameterSet.SYNTHETIC),
    ] = 100
    generator: Annotated[Generator, Mqsim("Synthetic_Generator_Type", ParameterSet.SYNTHETIC)] = (
        Generator.QUEUE_DEPTH
    )
    read_percent: Annotated[Percent, Mqsim("Read_Percentage", ParameterSet.SYNTHETIC)] = 100
    address_distribution: Annotated[
        AddressDistribution, Mqsim("Address_Distribution", ParameterSet.SYNTHETIC)
    ] = AddressDistribution.RANDOM_UNIFORM
    hot_region_percent: Annotated[
        Percent, Mqsim("Percentage_of_Hot_Region", ParameterSet.SYNTHETIC)
    ] = 0
    aligned: Annotated[StrictBool, Mqsim("Generated_Aligned_Addresses", ParameterSet.SYNTHETIC)] = (
        True
    )
    alignment_sectors: Annotated[Count, Mqsim("Address_Alignment_Unit", ParameterSet.SYNTHETIC)] = 8
    size_distribution: Annotated[
        SizeDistribution, Mqsim("Request_Size_Distribution", ParameterSet.SYNTHETIC)
    ] = SizeDistribution.FIXED
    size_mean_sectors: Annotated[Count, Mqsim("Average_Request_Size", ParameterSet.SYNTHETIC)] = 8
    size_sd_sectors: Annotated[
        StrictInt,
        between(0, 2**32 - 1, "it is a standard deviation in sectors"),
        Mqsim("Variance_Request_Size", ParameterSet.SYNTHETIC),
    ] = 0
    seed: Annotated[Seed, Mqsim("Seed", ParameterSet.SYNTHETIC, kind=Kind.SIGNED)] = 1
    queue_depth: Annotated[Count, Mqsim("Average_No_of_Reqs_in_Queue", ParameterSet.SYNTHETIC)] = 1
    bandwidth_bytes_per_second: Annotated[
        StrictInt,
        between(0, 10**15, "no drive moves more than 1 PB/s"),
        Mqsim("Bandwidth", ParameterSet.SYNTHETIC),
    ] = 0
    stop_ns: Annotated[
        StrictInt,
        between(0, 10**18, "runs are shorter than 31 years"),
        Mqsim("Stop_Time", ParameterSet.SYNTHETIC),
    ] = 0
    total_requests: Annotated[
        StrictInt,
        between(0, 2**40, "runs have fewer than 10^12 requests"),
        Mqsim("Total_Requests_To_Generate", ParameterSet.SYNTHETIC),
    ] = 0

    # trace
    trace_path: Annotated[
        StrictStr, Field(max_length=4096), Mqsim("File_Path", ParameterSet.TRACE, kind=Kind.PATH)
    ] = ""
    trace_percent: Annotated[
        StrictInt,
        between(1, 10_000, "it is the percentage of the trace that is run"),
        Mqsim("Percentage_To_Be_Executed", ParameterSet.TRACE),
    ] = 100
    trace_replays: Annotated[
        StrictInt,
        between(1, 10_000, "it says how often the trace is run"),
        Mqsim("Relay_Count", ParameterSet.TRACE),
    ] = 1

    # physical mode only
    host: HostOptions = HostOptions()

    @model_validator(mode="after")
    def _requests_come_from_somewhere(self) -> Self:
        if self.kind is FlowKind.TRACE:
            if not self.trace_path.strip() or "\0" in self.trace_path:
                raise ValueError("trace_path is missing; name the file of the trace")
            return self
        if self.trace_path:
            raise ValueError("trace_path has no meaning in a synthetic flow; say kind = trace")
        if not self.stop_ns and not self.total_requests:
            raise ValueError(
                "stop_ns and total_requests are both 0, so the flow is empty; set one of them"
            )
        rate = self.bandwidth_bytes_per_second or self.host.arrivals_per_second
        if self.generator is Generator.BANDWIDTH and not rate:
            raise ValueError(
                "bandwidth_bytes_per_second is 0, but the generator is bandwidth; say the rate"
            )
        return self

    @property
    def writes(self) -> bool:
        """Whether the flow may write; a trace may."""
        return self.kind is FlowKind.TRACE or self.read_percent < 100


class Scenario(BaseModel):
    """Flows that run at the same time on one drive."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    flows: Annotated[tuple[FlowConfig, ...], Field(min_length=1, max_length=64)]

    def on(self, device: DeviceConfig) -> Scenario:
        """The same with every empty list of ids filled with all that the drive has."""
        return Scenario(flows=tuple(_filled(flow, device) for flow in self.flows))


ID_FIELDS = {
    "channel_ids": "channels",
    "chip_ids": "chips_per_channel",
    "die_ids": "dies_per_chip",
    "plane_ids": "planes_per_die",
}
"""Each list of ids and the field of the drive that says how many there are."""


def _filled(flow: FlowConfig, device: DeviceConfig) -> FlowConfig:
    empty = {
        name: tuple(range(getattr(device, count)))
        for name, count in ID_FIELDS.items()
        if not getattr(flow, name)
    }
    return flow.model_copy(update=empty) if empty else flow
