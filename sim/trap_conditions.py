"""When a trap holds: conditions on one drive and the flows that run on it together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from iojoule.sim.device import DeviceConfig, HostInterface, Scheduler
from iojoule.sim.findings import Severity
from iojoule.sim.workload import ID_FIELDS, CachingMode, FlowConfig, FlowKind, Priority

MIN_FREE_BLOCKS = 10
"""Writes to a plane with fewer free blocks wait in MQSim."""


@dataclass(frozen=True)
class Inputs:
    """One drive and the flows that run on it together."""

    device: DeviceConfig
    flows: tuple[FlowConfig, ...]

    def value(self, field: str) -> object:
        """The value at a path such as `flows[1].seed`."""
        flow = re.fullmatch(r"flows\[(\d+)\]\.(\w+)", field)
        if flow:
            return getattr(self.flows[int(flow[1])], flow[2])
        return getattr(self.device, field, None)


Condition = Callable[[Inputs], Iterator[str]]


@dataclass(frozen=True)
class Trap:
    """One row: `when` yields the fields in which it holds; `{value}` in the message is theirs.

    A severity of None says that the mode does not have this defect.
    """

    name: str
    compat: Severity | None
    physical: Severity | None
    when: Condition
    message: str
    remedy: str


def of_device(field: str, holds: Callable[[DeviceConfig], bool]) -> Condition:
    """At `field` of the drive, where `holds` is true of the drive."""

    def when(inputs: Inputs) -> Iterator[str]:
        if holds(inputs.device):
            yield field

    return when


def of_inputs(field: str, holds: Callable[[Inputs], bool]) -> Condition:
    """At `field`, where `holds` is true of the drive and its flows together."""

    def when(inputs: Inputs) -> Iterator[str]:
        if holds(inputs):
            yield field

    return when


def of_flows(field: str, holds: Callable[[FlowConfig, DeviceConfig], bool]) -> Condition:
    """At `field` of every flow of which `holds` is true."""

    def when(inputs: Inputs) -> Iterator[str]:
        for number, flow in enumerate(inputs.flows):
            if holds(flow, inputs.device):
                yield f"flows[{number}].{field}"

    return when


def of_synthetic(field: str, holds: Callable[[FlowConfig, DeviceConfig], bool]) -> Condition:
    """At `field` of every synthetic flow of which `holds` is true."""
    return of_flows(field, lambda f, d: f.kind is FlowKind.SYNTHETIC and holds(f, d))


def of_trace(field: str, holds: Callable[[FlowConfig, DeviceConfig], bool]) -> Condition:
    """At `field` of every trace flow of which `holds` is true."""
    return of_flows(field, lambda f, d: f.kind is FlowKind.TRACE and holds(f, d))


def may_collect(inputs: Inputs) -> bool:
    """Whether garbage collection can run at all, however unevenly the writes fall.

    Preconditioned drives collect at once. Others only after writes, at the rate at which the chips
    can program (one die at a time), have used up the blocks above the threshold.
    """
    if not any(flow.writes for flow in inputs.flows):
        return False
    device = inputs.device
    if device.preconditioning:
        return True
    reserve = max(int(device.gc_threshold * device.blocks_per_plane), MIN_FREE_BLOCKS)
    spare_pages = max(0, device.blocks_per_plane - reserve) * device.pages_per_block * device.planes
    return sum(_pages_written(flow, device) for flow in inputs.flows) > spare_pages


def _pages_written(flow: FlowConfig, device: DeviceConfig) -> int:
    """The most pages that a flow can program before it ends; 0 for traces, which are short."""
    if not flow.writes or flow.kind is FlowKind.TRACE:
        return 0
    if not flow.stop_ns:
        return flow.total_requests * (flow.size_mean_sectors // device.sectors_per_page + 2)
    programs = flow.stop_ns // max(1, min(device.page_program_ns))
    return programs * device.planes // device.dies_per_chip


def when_collecting(field: str, holds: Callable[[Inputs], bool]) -> Condition:
    """At `field`, where `holds` is true of the inputs and garbage collection can run."""
    return of_inputs(field, lambda inputs: holds(inputs) and may_collect(inputs))


def reads(inputs: Inputs) -> bool:
    """Whether any flow may read."""
    return any(flow.kind is FlowKind.TRACE or flow.read_percent > 0 for flow in inputs.flows)


def caches_writes(inputs: Inputs) -> bool:
    """Whether any flow may write through the data cache."""
    modes = (CachingMode.WRITE_CACHE, CachingMode.WRITE_READ_CACHE)
    return any(flow.writes and flow.caching in modes for flow in inputs.flows)


def ids_out_of_range(inputs: Inputs) -> Iterator[str]:
    """Every list of ids that names what the drive does not have."""
    for number, flow in enumerate(inputs.flows):
        for field, count in ID_FIELDS.items():
            ids = getattr(flow, field)
            if ids and ids[-1] >= getattr(inputs.device, count):
                yield f"flows[{number}].{field}"


def is_sata(device: DeviceConfig) -> bool:
    """Whether the drive has MQSim's SATA interface."""
    return device.host_interface is HostInterface.SATA


def overruled_by_sata(inputs: Inputs) -> Iterator[str]:
    """What a flow says of itself, but a SATA drive's single stream decides otherwise."""
    device = inputs.device
    if not is_sata(device):
        return
    weighs = device.scheduler is Scheduler.PRIORITY_OUT_OF_ORDER
    for number, flow in enumerate(inputs.flows):
        for field, count in ID_FIELDS.items():
            ids = getattr(flow, field)
            if ids and len(ids) < getattr(device, count):
                yield f"flows[{number}].{field}"
        if weighs and flow.priority is not Priority.HIGH:
            yield f"flows[{number}].priority"
        if flow.caching is not inputs.flows[0].caching:
            yield f"flows[{number}].caching"


def same_trace_twice(inputs: Inputs) -> Iterator[str]:
    """Every trace that more than one flow takes its requests from."""
    paths = Counter(flow.trace_path for flow in inputs.flows if flow.trace_path)
    for number, flow in enumerate(inputs.flows):
        if paths[flow.trace_path] > 1:
            yield f"flows[{number}].trace_path"


def transfer_is_rounded(device: DeviceConfig) -> bool:
    """Whether cutting the time of a byte to whole ns changes the channel by over 1 %."""
    rate = device.channel_megatransfers_per_second
    return rate <= 1000 and 1000 / (1000 // rate) > 1.01 * rate
