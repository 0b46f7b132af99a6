"""What a simulation says, whichever engine ran it and in whichever mode.

One scenario gives one `ScenarioResult`: the drive's counts, one `FlowResult` for each flow in
the order of the input, and what the run itself cost. Times are nanoseconds of simulated time
from the start of the run, unless a name says otherwise.

`None` means that this engine cannot know a value; it is left out of the JSON form, and
`ScenarioResult.unavailable` says why. A class of requests that did not occur has zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

Count = Annotated[int, Field(ge=0)]
Nanoseconds = Annotated[int, Field(ge=0)]
MeanNanoseconds = Annotated[float, Field(ge=0)]
Joules = Annotated[float, Field(ge=0)]
Watts = Annotated[float, Field(ge=0)]


ENERGY_COMPONENTS = (
    "array_read",
    "array_program",
    "array_erase",
    "channel",
    "dram",
    "controller",
    "link",
)
"""Parts of a drive whose joules are told apart."""


class Result(BaseModel):
    """Base of every part of a result: frozen, no unknown fields, no NaN.

    A subclass lists in `derived` the properties that follow from its fields. They are written
    out with the fields, and ignored when a written result is read again.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)
    derived: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def _drop_derived(cls, data: Any) -> Any:
        if isinstance(data, dict):
            return {key: value for key, value in data.items() if key not in cls.derived}
        return data

    @model_serializer(mode="wrap")
    def _with_derived(self, fields: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = fields(self)
        written.update((name, getattr(self, name)) for name in self.derived)
        return {name: value for name, value in written.items() if value is not None}


class OriginCounts(Result):
    """Pages or blocks by who asked for them."""

    user: Count = 0
    gc: Count = 0
    mapping: Count = 0

    @property
    def total(self) -> int:
        """Sum over the origins."""
        return self.user + self.gc + self.mapping


class QueueResult(Result):
    """One transaction queue of one chip, as MQSim's result file has it."""

    name: str
    """The kind of queue, e.g. `User_Read_TR_Queue`."""
    channel: Count
    chip: Count
    priority: Annotated[int, Field(ge=-1, le=3)] = -1
    """0 urgent, 1 high, 2 medium, 3 low; -1: the queue has no classes."""
    enqueued: Count = 0
    dequeued: Count = 0
    max_length: Count = 0
    max_waiting_ns: Nanoseconds = 0
    mean_length: Annotated[float, Field(ge=0)] = 0.0
    mean_waiting_ns: MeanNanoseconds = 0.0
    sd_length: Annotated[float, Field(ge=0)] | None = None
    """MQSim's `STDev_Queue_Length`: with f(x) the share of time at length x, the root of the sum of
    (x f(x) - mean)^2, which is no standard deviation."""


class FlashWork(Result):
    """Pages or blocks of one kind that the arrays worked on, from the end of the warm-up."""

    operation: Literal["read", "program", "erase"]
    page: Literal["lsb", "csb", "msb", "slc"]
    """Which bit of a cell; slc: of the pseudo-SLC cache. Erased native blocks count as lsb."""
    origin: Literal["user", "gc", "mapping"]
    count: Count
    joules: Joules | None = None
    """In the arrays, without the channel; suspended and resumed once counts the whole operation."""


class PhysicalResult(Result):
    """What only a drive that works has: physical mode, counted from the end of the warm-up.

    Pages and blocks of the pseudo-SLC cache are also in the totals of `DeviceResult`. A unit is
    what the mapping table maps, `unit_bytes` long.
    """

    measured_from_ns: Nanoseconds = 0
    commands: Count = 0
    """After requests were split at the drive's largest transfer."""
    unit_bytes: Count = 0
    units_written: Count = 0
    """Programmed for the host."""
    units_moved: Count = 0
    """Programmed by garbage collection, wear levelling and folding."""
    slc_pages_read: Count = 0
    slc_pages_programmed: Count = 0
    slc_blocks_erased: Count = 0
    slc_folds: Count = 0
    """Pseudo-SLC blocks that were emptied into native ones."""
    program_suspends: Count = 0
    erase_suspends: Count = 0
    fill_reads: Count = 0
    """Of units of which the host wrote a part."""
    flushes: Count = 0
    flush_wait_sum_ns: Nanoseconds = 0
    blocks_retired: Count = 0
    erase_count_min: Count = 0
    erase_count_max: Count = 0
    throttled_ns: Nanoseconds = 0
    """Time in which the power cap held dies back."""
    power_state_ns: tuple[Nanoseconds, ...] = ()
    """Time in each state of the drive's table."""
    power_transitions: Count = 0
    flash_work: tuple[FlashWork, ...] = ()
    static_joules: dict[str, Joules] | None = None
    """The part of `energy_joules` that time alone took: idle and active watts, refresh, link."""
    power_step_ns: Annotated[int, Field(ge=1)] | None = None
    power_watts: tuple[Watts, ...] | None = None
    """Means over steps of `power_step_ns`, the first of them from `measured_from_ns` on."""


class DeviceResult(Result):
    """What the whole drive did.

    Counts of pages and blocks are single ones: a command over n planes counts n. Counts of
    commands are apart: `cmd_read` over one plane, `cmd_mp_read` over several.
    Busy times have one entry per chip, die or channel; chips and dies are numbered channel by
    channel. In physical mode the energies by component add up to `energy_joules_total`.
    """

    derived = (
        "pages_read",
        "pages_programmed",
        "blocks_erased",
        "cmt_queries",
        "cmt_hits",
        "write_amplification",
        "energy_joules_total",
    )

    pages_read_by_origin: OriginCounts
    pages_programmed_by_origin: OriginCounts
    blocks_erased_by_origin: OriginCounts
    cmd_read: Count
    cmd_mp_read: Count
    cmd_prog: Count
    cmd_mp_prog: Count
    cmd_erase: Count
    cmd_mp_erase: Count
    map_reads: Count
    map_writes: Count
    """Write-backs of mapping pages that were asked for; compat mode, like MQSim, runs none."""
    cmt_queries_read: Count
    cmt_queries_write: Count
    cmt_hits_read: Count
    cmt_hits_write: Count
    cmt_misses_at_once: Count | None = None
    """Misses that needed no read of a mapping page; MQSim calls these alone `CMT_Misses`."""
    cache_hits_read: Count | None = None
    cache_misses_read: Count | None = None
    cache_hits_write: Count | None = None
    cache_misses_write: Count | None = None
    gc_exec: Count
    gc_page_moves: Count
    """In compat mode, like MQSim's, without those of wear levelling."""
    wl_exec: Count = 0
    chip_exec_ns: tuple[Nanoseconds, ...]
    chip_transfer_ns: tuple[Nanoseconds, ...]
    die_busy_ns: tuple[Nanoseconds, ...] | None = None
    channel_busy_ns: tuple[Nanoseconds, ...] | None = None
    dram_busy_ns: Nanoseconds | None = None
    link_busy_to_device_ns: Nanoseconds | None = None
    link_busy_to_host_ns: Nanoseconds | None = None
    memory_bytes: Count | None = None
    """Held by the simulated drive's tables: in compat mode what is filled of them, in physical mode
    as if all were."""
    energy_joules: dict[str, Joules] | None = None
    """By component, from the end of the warm-up to the end of the run; physical mode. What is
    unknown is left out, and so from all sums."""
    energy_unknown: dict[str, str] | None = None
    """The components of which all or a part is left out, and the parameters that would tell it."""
    power_watts_mean: Watts | None = None
    physical: PhysicalResult | None = None
    queues: tuple[QueueResult, ...] = Field(default=(), exclude=True)
    """Only for MQSim's result layout; not part of the JSON form. The embedded engine measures them
    in compat mode where `RunOptions.queues` asks for it."""

    @property
    def pages_read(self) -> int:
        """Flash pages read, whoever asked."""
        return self.pages_read_by_origin.total

    @property
    def pages_programmed(self) -> int:
        """Flash pages programmed, whoever asked."""
        return self.pages_programmed_by_origin.total

    @property
    def blocks_erased(self) -> int:
        """Blocks erased, whoever asked."""
        return self.blocks_erased_by_origin.total

    @property
    def cmt_queries(self) -> int:
        """Look-ups in the cached mapping table."""
        return self.cmt_queries_read + self.cmt_queries_write

    @property
    def cmt_hits(self) -> int:
        """Look-ups that found their entry."""
        return self.cmt_hits_read + self.cmt_hits_write

    @property
    def write_amplification(self) -> float | None:
        """What was programmed over what was programmed for users; None where users wrote none.

        In mapping units where the engine counts them, else in pages.
        """
        if self.physical is not None and self.physical.units_written:
            return 1 + self.physical.units_moved / self.physical.units_written
        user = self.pages_programmed_by_origin.user
        return self.pages_programmed / user if user else None

    @property
    def energy_joules_total(self) -> float | None:
        """Sum over the components."""
        return None if self.energy_joules is None else sum(self.energy_joules.values())


NS_PER_SECOND = 1_000_000_000


class EngineName(StrEnum):
    """Which program simulated."""

    EMBEDDED = "embedded"
    FAST = "fast"
    MQSIM = "mqsim"


class Mode(StrEnum):
    """compat: MQSim with its quirks, to the nanosecond; physical: a drive that works."""

    COMPAT = "compat"
    PHYSICAL = "physical"


class LatencySummary(Result):
    """One distribution of latencies.

    A percentile p of n latencies is the one nearest to position p (n - 1), counted from 0 in
    ascending order; the higher of two that are equally near.
    """

    count: Count = 0
    mean_ns: MeanNanoseconds = 0.0
    min_ns: Nanoseconds = 0
    max_ns: Nanoseconds = 0
    p50_ns: Nanoseconds = 0
    p90_ns: Nanoseconds = 0
    p99_ns: Nanoseconds = 0
    p999_ns: Nanoseconds = 0
    p9999_ns: Nanoseconds = 0
    percentile_relative_error: Annotated[float, Field(ge=0)] = 0.0
    """Largest error of a percentile as a share of it; 0 is exact, more comes from a histogram."""
    resolution_ns: Annotated[int, Field(ge=1)] = 1
    """Step of the clock: a true value lies in [value, value + resolution_ns)."""


class LatencyByClass(Result):
    """One kind of latency over all requests, over reads and over writes."""

    all: LatencySummary
    read: LatencySummary | None = None
    write: LatencySummary | None = None


class TransactionTimes(Result):
    """Means over the flash transactions of one class of a flow's requests.

    turnaround = waiting + execution (array) + transfer (channel). In compat mode as MQSim has
    them: the times of all transactions, a read that a program waits for among the reads, over the
    pages of all requests, those that the cache served included; transfer is the command and the
    page's own data, less 1 ns.
    """

    turnaround_ns: MeanNanoseconds = 0.0
    execution_ns: MeanNanoseconds = 0.0
    transfer_ns: MeanNanoseconds = 0.0
    waiting_ns: MeanNanoseconds = 0.0


class FlowSeries(Result):
    """What a flow completed over time: entry i is for [i * step, (i + 1) * step)."""

    serviced_read: tuple[Count, ...]
    serviced_write: tuple[Count, ...]
    bytes_read: tuple[Count, ...]
    bytes_written: tuple[Count, ...]
    latency_sum_ns: tuple[Nanoseconds, ...]
    latency_max_ns: tuple[Nanoseconds, ...]


class FlowResult(Result):
    """What one flow asked for and got.

    `drt` is the device response time, from the submission queue to the completion; `e2e` the
    end-to-end latency, from the arrival (in an open loop: the intended start) to the completion.
    Rates are over `flow_last_completion_ns - measured_from_ns`.
    """

    derived = (
        "drt_ns",
        "drt_read_ns",
        "drt_write_ns",
        "e2e_ns",
        "max_drt_ns",
        "p50_ns",
        "p99_ns",
        "p999_ns",
        "iops",
        "iops_read",
        "iops_write",
        "bandwidth_bytes_per_second",
        "bandwidth_read_bytes_per_second",
        "bandwidth_write_bytes_per_second",
    )

    name: str = ""
    generated: Count
    generated_read: Count
    generated_write: Count
    serviced: Count
    serviced_read: Count | None
    serviced_write: Count | None
    bytes_read: Count
    bytes_written: Count
    measured_from_ns: Nanoseconds = 0
    """End of the warm-up: nothing that completed before it is counted."""
    first_arrival_ns: Nanoseconds | None = None
    flow_last_completion_ns: Nanoseconds
    sim_end_ns: Nanoseconds
    """The scenario's last event, the same for all its flows."""
    device_latency: LatencyByClass
    end_to_end_latency: LatencyByClass
    read_transactions: TransactionTimes | None = None
    write_transactions: TransactionTimes | None = None
    """Of user data. MQSim's SATA drive has one stream: the first flow has what is all flows'."""
    generated_trim: Count | None = None
    serviced_trim: Count | None = None
    bytes_trimmed: Count | None = None
    """TRIMs are part of generated and serviced, and neither reads nor writes."""
    host_cpu_seconds: Annotated[float, Field(ge=0)] | None = None
    """Processor time of all the flow's jobs, where the host has costs."""
    series: FlowSeries | None = None
    """In steps of `ScenarioResult.series_step_ns`, where a time series was asked for."""

    @property
    def drt_ns(self) -> float:
        """Mean device response time."""
        return self.device_latency.all.mean_ns

    @property
    def drt_read_ns(self) -> float | None:
        """Mean device response time of reads."""
        return None if self.device_latency.read is None else self.device_latency.read.mean_ns

    @property
    def drt_write_ns(self) -> float | None:
        """Mean device response time of writes."""
        return None if self.device_latency.write is None else self.device_latency.write.mean_ns

    @property
    def e2e_ns(self) -> float:
        """Mean end-to-end latency."""
        return self.end_to_end_latency.all.mean_ns

    @property
    def max_drt_ns(self) -> int:
        """Longest device response time."""
        return self.device_latency.all.max_ns

    @property
    def p50_ns(self) -> int:
        """Median of the device response time."""
        return self.device_latency.all.p50_ns

    @property
    def p99_ns(self) -> int:
        """99th percentile of the device response time."""
        return self.device_latency.all.p99_ns

    @property
    def p999_ns(self) -> int:
        """99.9th percentile of the device response time."""
        return self.device_latency.all.p999_ns

    def _per_second(self, amount: int | None) -> float | None:
        duration_ns = self.flow_last_completion_ns - self.measured_from_ns
        if amount is None or duration_ns <= 0:
            return None if amount is None else 0.0
        return amount * NS_PER_SECOND / duration_ns

    @property
    def iops(self) -> float:
        """Serviced requests per second."""
        return self._per_second(self.serviced) or 0.0

    @property
    def iops_read(self) -> float | None:
        """Serviced reads per second."""
        return self._per_second(self.serviced_read)

    @property
    def iops_write(self) -> float | None:
        """Serviced writes per second."""
        return self._per_second(self.serviced_write)

    @property
    def bandwidth_bytes_per_second(self) -> float:
        """Bytes of serviced requests per second."""
        return self._per_second(self.bytes_read + self.bytes_written) or 0.0

    @property
    def bandwidth_read_bytes_per_second(self) -> float:
        """Bytes of serviced reads per second."""
        return self._per_second(self.bytes_read) or 0.0

    @property
    def bandwidth_write_bytes_per_second(self) -> float:
        """Bytes of serviced writes per second."""
        return self._per_second(self.bytes_written) or 0.0


class RunCost(Result):
    """What one scenario's run cost, from building the device to the last event."""

    run_user_seconds: Annotated[float, Field(ge=0)]
    run_wall_seconds: Annotated[float, Field(ge=0)]
    peak_bytes: Count
    """Most memory held; of the run's tables (embedded) or of its process (mqsim)."""
    events: Count | None = None


class ScenarioResult(RunCost):
    """One scenario: the drive, the flows in file order, and what the run cost."""

    engine: EngineName
    mode: Mode
    device: DeviceResult
    flows: tuple[FlowResult, ...]
    series_step_ns: Annotated[int, Field(ge=1)] | None = None
    warnings: tuple[str, ...] = ()
    """What a reader of the numbers must know, one sentence each."""
    unavailable: dict[str, str] = Field(default_factory=dict)
    """Fields that this engine cannot know, as `device.x` or `flows.x`, and why."""

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if len({flow.sim_end_ns for flow in self.flows}) > 1:
            raise ValueError("sim_end_ns must be the same for all flows of a scenario")
        return self

    def lost(self) -> Iterator[tuple[int, int]]:
        """Which flows were serviced less than they generated: number from 0, requests lost."""
        for number, flow in enumerate(self.flows):
            if flow.serviced < flow.generated:
                yield number, flow.generated - flow.serviced


class SimulationResult(Result):
    """Every scenario of a workload in file order; its JSON form is what `iojoule simulate` says."""

    scenarios: tuple[ScenarioResult, ...]
