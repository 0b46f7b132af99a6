"""Inputs that MQSim crashes on, loses requests over or computes wrongly without a message.

One table for every engine. The rule for compat mode, which is also that of the MQSim engine: what
ends MQSim, serves nothing or does not fit into its integers is an error; what it computes
deterministically but not as its documentation says is computed the same, with a warning. Physical
mode has none of these defects, so most rows do not concern it. Found by running MQSim 7ec40e3.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from iojoule.sim.device import (
    CacheMechanism,
    DeviceConfig,
    HostInterface,
    Mapping,
    Scheduler,
    Sharing,
    Suspension,
    VictimPolicy,
)
from iojoule.sim.findings import Finding, Severity
from iojoule.sim.result import Mode
from iojoule.sim.workload import (
    ID_FIELDS,
    AddressDistribution,
    CachingMode,
    FlowConfig,
    FlowKind,
    Generator,
    Priority,
    SizeDistribution,
)

MIN_FREE_BLOCKS = 10
"""Writes to a plane with fewer free blocks wait in MQSim."""


def blocks_before_collection(device: DeviceConfig) -> int:
    """Blocks of a plane that fill before MQSim collects, or lets writes wait."""
    reserve = max(int(device.gc_threshold * device.blocks_per_plane), MIN_FREE_BLOCKS)
    return max(device.blocks_per_plane - reserve, 0)


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
class KnownDefect:
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
    spare_pages = blocks_before_collection(device) * device.pages_per_block * device.planes
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


ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE

UINT16_LIMIT = 1 << 16
UINT32_LIMIT = 1 << 32


def findings(device: DeviceConfig, flows: Sequence[FlowConfig]) -> tuple[Finding, ...]:
    """What the table has to say about these inputs in `device.mode`, worst first."""
    inputs = Inputs(device, tuple(flows))
    warnings = [
        Finding(
            defect.name,
            severity,
            field,
            f"{defect.message.format(value=inputs.value(field))}; {defect.remedy}",
        )
        for defect in KNOWN_DEFECTS
        if (severity := defect.physical if device.mode is Mode.PHYSICAL else defect.compat)
        for field in defect.when(inputs)
    ]
    return tuple(sorted(warnings, key=lambda finding: list(Severity).index(finding.severity)))


KNOWN_DEFECTS: tuple[KnownDefect, ...] = (
    # what no engine can run
    KnownDefect(
        "mapping_hybrid", ERROR, ERROR,
        of_device("mapping", lambda d: d.mapping is Mapping.HYBRID),
        "hybrid mapping has no implementation: MQSim accepts it and serves no request",
        "use page-level mapping",
    ),
    KnownDefect(
        "scheduler_flin", ERROR, ERROR,
        of_device("scheduler", lambda d: d.scheduler is Scheduler.FLIN),
        "the FLIN scheduler has no implementation: MQSim aborts",
        "use OUT_OF_ORDER or PRIORITY_OUT_OF_ORDER",
    ),
    KnownDefect(
        "ids_out_of_range", ERROR, ERROR, ids_out_of_range,
        "{value} names one that the drive does not have (they count from 0)",
        "list only those that the drive's geometry has",
    ),
    KnownDefect(
        "hot_region_whole", ERROR, ERROR,
        of_synthetic(
            "hot_region_percent",
            lambda f, _: f.address_distribution is AddressDistribution.RANDOM_HOTCOLD
            and f.hot_region_percent == 100,
        ),
        "a hot region of 100 % leaves no cold one to draw from: MQSim stops",
        "write at most 99, or use RANDOM_UNIFORM",
    ),
    KnownDefect(
        "blocks_too_few", ERROR, ERROR,
        of_device("blocks_per_plane", lambda d: d.blocks_per_plane < 3),
        "{value} blocks in a plane are fewer than its three write frontiers: MQSim stops",
        "write at least 3, and at least 14 where a flow writes",
    ),
    # what ends MQSim or leaves it without a serviced request
    KnownDefect(
        "blocks_too_few_to_write", ERROR, None,
        of_inputs(
            "blocks_per_plane",
            lambda i: 3 <= i.device.blocks_per_plane < 14 and any(f.writes for f in i.flows),
        ),
        "a plane with fewer than 10 free blocks takes no writes, and {value} blocks cannot keep 10 "
        "free: MQSim hangs and crashes",
        "write at least 14",
    ),
    KnownDefect(
        "cache_simple", ERROR, None,
        of_flows(
            "caching",
            lambda f, d: d.cache_mechanism is CacheMechanism.SIMPLE
            and f.caching is not CachingMode.TURNED_OFF,
        ),
        "MQSim's SIMPLE cache works only for flows whose caching is TURNED_OFF, not {value}",
        "use the ADVANCED cache, or TURNED_OFF in every flow",
    ),
    KnownDefect(
        "cache_below_page", ERROR, None,
        of_inputs(
            "cache_bytes",
            lambda i: i.device.cache_bytes < i.device.page_bytes and caches_writes(i),
        ),
        "a cache of {value} bytes does not hold one page: MQSim aborts on the first write",
        "write at least the page size, or turn the flows' caching off",
    ),
    KnownDefect(
        "cache_below_buffers", None, WARNING,
        of_inputs(
            "cache_bytes",
            lambda i: 0 < i.device.cache_bytes < 2 * i.device.planes * i.device.page_bytes
            and any(flow.writes for flow in i.flows),
        ),
        "the controller buffers two pages of every plane, which is more than these {value} bytes, "
        "and so much is simulated",
        "write 0 for these buffers alone, or at least their size",
    ),
    KnownDefect(
        "cache_32_bit", ERROR, None,
        of_device("cache_bytes", lambda d: d.cache_bytes >= UINT32_LIMIT),
        "{value} bytes do not fit into the 32 bits in which MQSim keeps the size of its cache",
        "write less than 4 GiB (4294967296)",
    ),
    KnownDefect(
        "cmt_32_bit", ERROR, None, of_device("cmt_bytes", lambda d: d.cmt_bytes >= UINT32_LIMIT),
        "{value} bytes do not fit into the 32 bits in which MQSim keeps the size of its CMT",
        "write less than 4 GiB (4294967296), or use the ideal mapping table",
    ),
    KnownDefect(
        "dram_rate_32_bit", ERROR, None,
        of_device(
            "dram_megatransfers_per_second",
            lambda d: d.dram_megatransfers_per_second * 1_000_000 >= UINT32_LIMIT,
        ),
        "{value} MT/s wrap around in 32 bits in MQSim: its DRAM becomes hundreds of times slower",
        "write at most 4294",
    ),
    KnownDefect(
        "io_queue_depth_16_bit", ERROR, None,
        of_device("io_queue_depth", lambda d: d.io_queue_depth >= UINT16_LIMIT),
        "{value} does not fit into the 16 bits of MQSim's queue depth: no request is submitted",
        "write at most 65535",
    ),
    KnownDefect(
        "queue_fetch_size_16_bit", ERROR, None,
        of_device("queue_fetch_size", lambda d: d.queue_fetch_size >= UINT16_LIMIT),
        "{value} does not fit into the 16 bits of MQSim's fetch size: no request is fetched",
        "write at most 65535",
    ),
    KnownDefect(
        "page_32k", ERROR, None,
        of_inputs(
            "page_bytes",
            lambda i: i.device.sectors_per_page > 32 and any(f.writes for f in i.flows),
        ),
        "pages of {value} bytes have more sectors than MQSim's 32-bit write mask: writes hang",
        "write at most 16384",
    ),
    KnownDefect(
        "page_32k_read", WARNING, None,
        of_inputs(
            "page_bytes",
            lambda i: i.device.sectors_per_page > 32 and not any(f.writes for f in i.flows),
        ),
        "pages of {value} bytes have more sectors than MQSim's 32-bit masks; reads work by chance",
        "write at most 16384",
    ),
    KnownDefect(
        "planes_over_4", ERROR, None, of_device("planes_per_die", lambda d: d.planes_per_die > 4),
        "{value} planes overrun the table of command times, which MQSim keeps for up to 4",
        "write at most 4",
    ),
    KnownDefect(
        "flows_over_8", ERROR, None,
        of_inputs("flows[8].kind", lambda i: len(i.flows) > 8 and not is_sata(i.device)),
        "MQSim has doorbells for 8 flows and aborts on the 9th",
        "keep at most 8 flows in a scenario",
    ),
    KnownDefect(
        "bandwidth_below_request", ERROR, None,
        of_synthetic(
            "bandwidth_bytes_per_second",
            lambda f, _: 0 < f.bandwidth_bytes_per_second < 512 * f.size_mean_sectors,
        ),
        "{value} bytes/s are less than one request a second: MQSim divides by zero, in QUEUE_DEPTH "
        "mode too",
        "write 0 in QUEUE_DEPTH mode, else at least 512 times the mean size in sectors",
    ),
    KnownDefect(
        "bandwidth_32_bit", ERROR, None,
        of_synthetic(
            "bandwidth_bytes_per_second", lambda f, _: f.bandwidth_bytes_per_second >= 1 << 31
        ),
        "{value} bytes/s do not fit into MQSim's 31 bits: it stops",
        "write at most 2147483647, and share a higher rate between flows",
    ),
    KnownDefect(
        "size_16_bit", ERROR, None,
        of_synthetic("size_mean_sectors", lambda f, _: f.size_mean_sectors >= UINT16_LIMIT),
        "{value} sectors do not fit into the 16 bits of MQSim's request size",
        "write at most 65535",
    ),
    KnownDefect(
        "total_below_queue_depth", ERROR, None,
        of_synthetic(
            "total_requests",
            lambda f, _: f.generator is Generator.QUEUE_DEPTH
            and f.stop_ns == 0
            and f.total_requests < f.queue_depth,
        ),
        "{value} requests are fewer than the queue depth: MQSim submits one that does not exist "
        "and crashes",
        "write at least the queue depth, or say a stop time",
    ),
    KnownDefect(
        "trace_twice", ERROR, None, same_trace_twice,
        "{value} is the trace of two flows, which MQSim aborts on",
        "copy the file and give each flow its own",
    ),
    KnownDefect(
        "preconditioning_trace", ERROR, None,
        of_trace("initial_occupancy_percent", lambda _, d: d.preconditioning),
        "MQSim cannot precondition a drive for trace flows: it stops",
        "turn preconditioning off, or use synthetic flows",
    ),
    KnownDefect(
        "preconditioning_sata", ERROR, None,
        of_inputs(
            "preconditioning",
            lambda i: i.device.preconditioning and is_sata(i.device) and len(i.flows) > 1,
        ),
        "MQSim crashes when it preconditions a SATA drive for more than one flow",
        "turn preconditioning off, or use one flow",
    ),
    KnownDefect(
        "gc_copyback", ERROR, None, when_collecting("gc_copyback", lambda i: i.device.gc_copyback),
        "copyback crashes MQSim at the first garbage collection, which these flows can reach",
        "turn it off",
    ),
    KnownDefect(
        "gc_preemptible", ERROR, None,
        when_collecting("gc_preemptible", lambda i: i.device.gc_preemptible),
        "with preemptible garbage collection, which these flows can reach, MQSim's planes run out "
        "of free blocks and it crashes",
        "turn it off",
    ),
    # what MQSim may or may not survive
    KnownDefect(
        "preconditioning_blocks_writes", WARNING, None,
        of_inputs(
            "gc_threshold",
            lambda i: i.device.preconditioning
            and any(f.writes for f in i.flows)
            and int(i.device.gc_threshold * i.device.blocks_per_plane) // 2 < MIN_FREE_BLOCKS,
        ),
        "preconditioning may leave fewer than 10 free blocks in a plane, and then all writes wait "
        "for ever",
        "raise the threshold to 20 blocks of a plane or more",
    ),
    KnownDefect(
        "preconditioning_unplaceable", WARNING, None,
        of_device("preconditioning", lambda d: d.preconditioning and d.blocks_per_plane <= 1024),
        "MQSim's preconditioning cannot place all pages for most drives with up to 1024 blocks in "
        "a plane, and then it stops",
        "turn it off, or use more blocks and a lower occupancy",
    ),
    KnownDefect(
        "gc_reads_many_blocks", WARNING, None,
        when_collecting("blocks_per_plane", lambda i: i.device.blocks_per_plane > 100 and reads(i)),
        "with reads during garbage collection and more than 100 blocks in a plane, MQSim's static "
        "wear levelling marks the wrong block and the run stops",
        "keep reads and collection apart, use up to 100 blocks, or physical mode",
    ),
    KnownDefect(
        "gc_loses_requests", WARNING, None,
        when_collecting("gc_threshold", lambda i: i.device.blocks_per_plane <= 100 and reads(i)),
        "MQSim deletes reads of pages that garbage collection is moving, so the queue gets shorter "
        "and fewer requests are serviced than generated",
        "use physical mode for reads during collection",
    ),
    KnownDefect(
        "gc_policy_unsafe", WARNING, None,
        when_collecting(
            "gc_policy",
            lambda i: i.device.gc_policy not in (VictimPolicy.GREEDY, VictimPolicy.RGA),
        ),
        "MQSim's {value} policy takes blocks that are in use; long runs end in inconsistency",
        "use GREEDY or RGA",
    ),
    KnownDefect(
        "priority_strands", WARNING, None,
        of_flows(
            "priority",
            lambda f, d: d.scheduler is Scheduler.PRIORITY_OUT_OF_ORDER
            and f.priority in (Priority.MEDIUM, Priority.LOW),
        ),
        "MQSim's scheduler can leave the last requests of class {value} unserved",
        "compare serviced with generated, or use HIGH",
    ),
    # what MQSim computes otherwise than it says
    KnownDefect(
        "channel_rate_free", WARNING, None,
        of_device(
            "channel_megatransfers_per_second", lambda d: d.channel_megatransfers_per_second > 1000
        ),
        "{value} MT/s are less than 1 ns a byte, which MQSim cuts to 0: transfers take no time",
        "write at most 1000, or use physical mode",
    ),
    KnownDefect(
        "channel_rate_rounded", WARNING, None,
        of_device("channel_megatransfers_per_second", transfer_is_rounded),
        "MQSim cuts the time of a byte to whole ns, so {value} MT/s become the next of 333, 500 or "
        "1000 above",
        "write one of these, or use physical mode",
    ),
    KnownDefect(
        "sata_one_stream", WARNING, None, overruled_by_sata,
        "MQSim's SATA drive is one stream on all planes, of class HIGH and cached as the first "
        "flow says, so {value} has no effect",
        "list all ids, or use nvme",
    ),
    KnownDefect(
        "size_normal_wraps", WARNING, None,
        of_synthetic(
            "size_sd_sectors",
            lambda f, _: f.size_distribution is SizeDistribution.NORMAL
            and f.size_mean_sectors < 5 * f.size_sd_sectors,
        ),
        "MQSim uses this value as the standard deviation, and sizes drawn below 0 wrap around to "
        "requests of 32 MiB",
        "keep five standard deviations below the mean",
    ),
    KnownDefect(
        "size_normal_first", WARNING, None,
        of_synthetic(
            "size_distribution", lambda f, _: f.size_distribution is SizeDistribution.NORMAL
        ),
        "MQSim reads uninitialised memory for normal sizes, so its runs need not repeat",
        "use fixed sizes to compare with MQSim",
    ),
    KnownDefect(
        "trace_replays", WARNING, None, of_trace("trace_replays", lambda f, _: f.trace_replays > 1),
        "MQSim's end-to-end delays are meaningless from the second replay on",
        "use the device response times, or repeat the trace in its file",
    ),
    KnownDefect(
        "trace_percent_ignored", WARNING, None,
        of_trace("trace_percent", lambda f, _: f.trace_replays > 1 and f.trace_percent != 100),
        "MQSim ignores the percentage ({value}) of a trace that is replayed",
        "write 100, or replay once",
    ),
    KnownDefect(
        "wear_levelling_fixed", WARNING, None,
        of_device(
            "wear_levelling_static",
            lambda d: not (d.wear_levelling_dynamic and d.wear_levelling_static)
            or d.wear_levelling_threshold != 100,
        ),
        "MQSim ignores the settings of wear levelling: both kinds are on, the threshold is 100",
        "write true, true and 100, or use physical mode",
    ),
    KnownDefect(
        "overprovisioning_small", WARNING, None,
        of_device("overprovisioning_ratio", lambda d: d.overprovisioning_ratio < 0.05),
        "{value} is less than the 5 % that garbage collection needs to work at all",
        "write at least 0.05",
    ),
    KnownDefect(
        "capacity_over_2tib", WARNING, None,
        of_device("channels", lambda d: d.capacity_bytes > 512 * UINT32_LIMIT),
        "MQSim decodes addresses past 2 TiB wrongly, and this drive is larger",
        "make the drive smaller",
    ),
    KnownDefect(
        "suspension_dead", NOTE, None,
        of_device(
            "suspension",
            lambda d: d.suspension in (Suspension.PROGRAM, Suspension.PROGRAM_ERASE),
        ),
        "suspending programs and erases ({value}) has no effect in MQSim",
        "use physical mode to see its effect",
    ),
    KnownDefect(
        "cmt_shared_is_not", NOTE, None,
        of_inputs(
            "cmt_sharing",
            lambda i: not i.device.mapping_ideal
            and i.device.cmt_sharing is Sharing.SHARED
            and len(i.flows) > 1
            and not is_sata(i.device),
        ),
        "MQSim's SHARED gives each flow a mapping table cache of the full size",
        "use EQUAL_PARTITIONING for one cache in all",
    ),
)  # fmt: skip
