"""The drive's part of a result: counts, busy times, energy."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from iojoule.sim.result_base import (
    Count,
    Joules,
    MeanNanoseconds,
    Nanoseconds,
    Result,
    Watts,
)


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
        "pages_read", "pages_programmed", "blocks_erased", "cmt_queries", "cmt_hits",
        "write_amplification", "energy_joules_total",
    )  # fmt: skip

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
    """By component, from the end of the warm-up to the end of the run; physical mode."""
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
