"""What physical mode knows of a drive and its host beyond MQSim's parameters.

Field for field that of sim/core/physical/options.hpp; units are in the names. A drive's numbers
come with their source in its preset. The defaults are neutral: unknown energy, no power states, no
pseudo-SLC cache, a host that costs nothing.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, NamedTuple, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    model_validator,
)

from iojoule.sim.parameter import (
    Count,
    Nanoseconds,
    Percent,
    Uint32,
    between,
)


class HostEngine(StrEnum):
    """How the host submits requests; none: at no cost."""

    none = "none"
    psync = "psync"
    posixaio = "posixaio"
    libaio = "libaio"
    io_uring = "io_uring"
    io_uring_cmd = "io_uring_cmd"
    spdk = "spdk"


class Completion(StrEnum):
    """How the host learns that a request is done."""

    interrupt = "interrupt"
    polled = "polled"


class HostCosts(NamedTuple):
    """Nanoseconds of one request: on the CPU before and after the drive, and waking up."""

    submit_cpu_ns: int
    complete_cpu_ns: int
    wake_ns: int


HOST_COSTS: dict[tuple[HostEngine, Completion], HostCosts] = {
    (HostEngine.none, Completion.interrupt): HostCosts(0, 0, 0),
    (HostEngine.none, Completion.polled): HostCosts(0, 0, 0),
    # 168 + 313
    (HostEngine.spdk, Completion.polled): HostCosts(168, 313, 0),
    # 8855 - 7198 + 481 = 2138
    (HostEngine.io_uring, Completion.polled): HostCosts(1396, 742, 0),
    # 12299 - 7198 + 481 = 5582, of which 2612 on the CPU
    (HostEngine.io_uring, Completion.interrupt): HostCosts(1821, 791, 2970),
    # 12331 - 7198 + 481 = 5614
    (HostEngine.libaio, Completion.interrupt): HostCosts(1934, 791, 2889),
    # 10567 - 7198 + 481 = 3850, of which 3779 on the CPU
    (HostEngine.psync, Completion.interrupt): HostCosts(1889, 1890, 71),
}


def costed(
    engine: HostEngine, completion: Completion | None
) -> tuple[HostCosts | None, Completion]:
    """What a request costs the host, None where nobody published it, and how it completes."""
    if completion is None:
        completion = Completion.polled if engine is HostEngine.spdk else Completion.interrupt
    return HOST_COSTS.get((engine, completion)), completion


Joules = Annotated[StrictFloat, between(0.0, 1.0, "one operation takes micro- to millijoules")]
JoulesPerByte = Annotated[StrictFloat, between(0.0, 1e-3, "moving a byte takes nanojoules")]
Watts = Annotated[StrictFloat, between(0.0, 1000.0, "drives draw up to some dozen watts")]
Time = Annotated[StrictInt, between(0, 10**18, "runs are shorter than 31 years")]
PageJoules = tuple[Joules, Joules, Joules]
"""Of pages on the lower, centre and upper bit of a cell (LSB, CSB, MSB)."""


class WriteAllocation(StrEnum):
    """Where a page of user data is programmed."""

    striped = "striped"
    """On the plane that its logical address names (plane_allocation)."""
    round_robin = "round_robin"
    """On the next die that is free, over all its planes at once."""


class MultiPlane(StrEnum):
    """Which operations of one die's planes share a command."""

    none = "none"
    same_page = "same_page"
    any_page = "any_page"


class UnwrittenReads(StrEnum):
    """What a read of an address does that was never written."""

    flash = "flash"
    """Reads a page, as if it had been written before the run."""
    zeros = "zeros"
    """Is answered by the controller alone, as after a TRIM."""


class InitialState(StrEnum):
    """What preconditioning leaves besides the data that the flows' occupancy asks for."""

    steady = "steady"
    """Every block used up by random overwrites: garbage collection starts at once."""
    filled = "filled"
    """The data written once in address order; all other blocks are free."""


class SlcWhenFull(StrEnum):
    """Where writes go while the pseudo-SLC cache has no room."""

    direct = "direct"
    """Straight to the native blocks; the cache is folded when the host is idle."""
    fold = "fold"
    """They wait for the cache, which is folded meanwhile."""


class Arrivals(StrEnum):
    """Spacing of an open loop's requests."""

    exponential = "exponential"
    periodic = "periodic"


class Options(BaseModel):
    """Base of every group of options."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


class NandOptions(Options):
    """The flash and how the drive uses it."""

    write_allocation: WriteAllocation = WriteAllocation.striped
    multi_plane: MultiPlane = MultiPlane.same_page
    """Round-robin writes fill all planes of a die at once and need no common page number."""
    unwritten_reads: UnwrittenReads = UnwrittenReads.flash
    initial_state: InitialState = InitialState.steady
    mapping_unit_bytes: Annotated[
        StrictInt, between(0, 2**20, "drives map 4 KiB or a page; 0 stands for a page")
    ] = 0
    """What one entry of the mapping table stands for; a page holds a whole number of them."""
    cache_register: StrictBool = False
    """The array works on the next page while the last one is moved (ONFI cache operations)."""
    transfer_metadata: StrictBool = True
    """Spare bytes (parity) cross the channel with their share of the page."""
    codeword_bytes: Count = 512
    """Least that is corrected and moved at once."""
    ecc_decode_ns: Nanoseconds = 0
    partial_read_bytes: Uint32 = 0
    """Reads of at most so many bytes of a page sense only a part of it (snap read); 0: none."""
    partial_read_share: Annotated[
        StrictFloat, between(0.01, 1.0, "a part of a page is not sensed later than the whole")
    ] = 1.0
    """Of the page's time, for such a read."""
    read_command_ns: Nanoseconds = 290
    """Channel time of a read's command and address cycles (mqsim.md 3.7, as those below)."""
    read_command_plane_ns: Nanoseconds = 650
    """The same for each further plane in the command."""
    program_command_ns: Nanoseconds = 361
    program_command_plane_ns: Nanoseconds = 816
    erase_command_ns: Nanoseconds = 220
    erase_command_plane_ns: Nanoseconds = 700
    resume_ns: Nanoseconds = 0
    """Added to the rest of a program or erase each time it is resumed."""
    suspends_max: Uint32 = 10
    """How often one program or erase may be suspended."""
    suspended_max_ns: Nanoseconds = 1_000_000
    """Reads are let in for so long; then the suspended operation goes on."""
    write_wait_max_ns: Nanoseconds = 20_000_000
    """Reads keep a die from writing for so long; then one write goes first. 0: forever."""


class LinkOptions(Options):
    """PCIe packets; the lanes are fields of the drive."""

    max_payload_bytes: Count = 128
    """Maximum payload of a packet (PCIe base specification, MPS)."""
    packet_overhead_bytes: Uint32 = 28
    """Framing, sequence number, header and checksums of a packet with 64-bit address."""
    latency_ns: Nanoseconds = 0
    """One way, besides the time the bytes take."""
    further_page_ns: Nanoseconds = 0
    """Added for each 4 KiB of host memory beyond the first in one transfer: an entry of the PRP
    list and its translation by the IOMMU."""


class ControllerOptions(Options):
    """Command processing, write buffering and mapping."""

    command_latency_ns: Nanoseconds = 0
    """From the arrival of a command to its first flash or cache operation."""
    command_occupancy_ns: Nanoseconds = 0
    """Time a command keeps the firmware; its inverse is the most commands a second."""
    max_transfer_bytes: Annotated[
        StrictInt, between(0, 2**32, "MDTS is some hundred KiB; 0 stands for no limit")
    ] = 0
    """Longer requests are split by the host into commands of this size (MDTS)."""
    power_loss_protection: StrictBool = False
    """The write cache survives a power cut: flush and FUA need not wait for the flash."""
    dirty_pages_per_plane: Uint32 = 0
    """Most unwritten pages in the cache, times the planes; 0: as many as it holds."""
    partial_page_wait_ns: Nanoseconds = 10_000_000
    """A page's worth of units is waited for so long before it is programmed in part."""
    mapping_entry_bytes: Annotated[
        StrictInt, between(1, 64, "an entry holds an address and a little more")
    ] = 8
    mapping_entries_per_line: Annotated[
        StrictInt, between(1, 4096, "a line of the mapping cache is at most a page of entries")
    ] = 1
    """Entries of the mapping table that are cached together; 1 is DFTL."""


class SlcOptions(Options):
    """Blocks used with one bit per cell as a write cache; both sizes 0: no cache."""

    static_blocks_per_plane: Uint32 = 0
    """Always in this use."""
    dynamic_blocks_per_plane: Uint32 = 0
    """Borrowed from the free blocks while there are enough of them."""
    page_read_ns: Nanoseconds = 25_000
    page_program_ns: Nanoseconds = 200_000
    block_erase_ns: Nanoseconds = 3_000_000
    when_full: SlcWhenFull = SlcWhenFull.direct
    fold_idle_ns: Nanoseconds = 1_000_000_000
    """Folding into native blocks starts after so long without a host command."""


def _sum(*watts: float | None) -> float:
    return sum(each for each in watts if each is not None)


class EnergyOptions(Options):
    """Energy = counts x joules + time x watts. Both terms of an operation may be given.

    None is unknown: nothing is counted for it, and what the run has for an answer names it. Say 0.0
    where there is none, or where another parameter holds it.
    """

    page_read_joules: PageJoules | None = None
    page_program_joules: PageJoules | None = None
    block_erase_joules: Joules | None = None
    slc_page_read_joules: Joules | None = None
    slc_page_program_joules: Joules | None = None
    slc_block_erase_joules: Joules | None = None
    array_read_watts: Watts | None = None
    """Voltage x current of a plane while its array reads; the next two likewise."""
    array_program_watts: Watts | None = None
    array_erase_watts: Watts | None = None
    channel_joules_per_byte: JoulesPerByte | None = None
    dram_joules_per_byte: JoulesPerByte | None = None
    dram_refresh_watts: Watts | None = None
    controller_idle_watts: Watts | None = None
    controller_active_watts: Watts | None = None
    """While commands or flash operations are under way."""
    controller_busy_watts: Watts = 0.0
    """In addition, when `controller_busy_commands` are in the drive; with n of them the part
    (n / controller_busy_commands) ** controller_busy_exponent of it, with more all of it."""
    controller_busy_commands: Annotated[
        StrictInt, between(1, 65536, "it counts commands in the drive")
    ] = 1
    controller_busy_exponent: Annotated[
        StrictFloat, between(0.01, 10.0, "1 is linear; below, the first commands cost most")
    ] = 1.0
    controller_joules_per_command: Joules | None = None
    controller_joules_per_byte: JoulesPerByte | None = None
    link_idle_watts: Watts | None = None
    link_active_watts: Watts | None = None
    link_joules_per_byte: JoulesPerByte | None = None
    power_step_ns: Nanoseconds = 0
    """Step of the series of watts; 0: no series."""

    @property
    def idle_watts(self) -> float:
        """Of the drive that is ready and does nothing, as far as known."""
        return _sum(self.controller_idle_watts, self.dram_refresh_watts, self.link_idle_watts)

    @property
    def active_watts(self) -> float:
        """Of the drive at work, before what its operations take, as far as known."""
        return _sum(self.controller_active_watts, self.dram_refresh_watts, self.link_active_watts)

    def known(self, *fields: str) -> bool:
        """Whether one of these parameters is given, so that what they cost is not unknown."""
        return any(getattr(self, name) is not None for name in fields)


class PowerState(Options):
    """An entry of the drive's power state table (NVMe Base Specification 2.1, figure 313)."""

    max_power_watts: Watts = 0.0
    """MP; 0: not reported, so no cap."""
    operational: StrictBool = True
    entry_latency_ns: Nanoseconds = 0
    exit_latency_ns: Nanoseconds = 0
    idle_power_watts: Watts = 0.0
    """Of the whole drive when idle (IDLP, or better: measured); 0: the sum of its parts."""
    active_power_watts: Watts = 0.0
    """ACTP: largest average over 10 s; caps the power where it is below max_power_watts."""


class PowerTransition(Options):
    """An autonomous transition (APST): after `idle_ns` in one state to another."""

    from_state: Annotated[StrictInt, between(0, 31, "NVMe has 32 power states")]
    to_state: Annotated[StrictInt, between(0, 31, "NVMe has 32 power states")]
    idle_ns: Time


class PowerCommand(Options):
    """The host sets a power state (feature 02h) at a time of the run."""

    time_ns: Time
    state: Annotated[StrictInt, between(0, 31, "NVMe has 32 power states")]


class PowerOptions(Options):
    """Power states; without a table there is neither a cap nor sleep."""

    states: Annotated[tuple[PowerState, ...], Field(max_length=32)] = ()
    initial_state: Annotated[StrictInt, between(0, 31, "NVMe has 32 power states")] = 0
    autonomous_transitions: Annotated[tuple[PowerTransition, ...], Field(max_length=32)] = ()
    commands: Annotated[tuple[PowerCommand, ...], Field(max_length=4096)] = ()
    cap_window_ns: Annotated[
        StrictInt, between(1_000_000, 10**12, "power is averaged over milliseconds to minutes")
    ] = 10_000_000_000
    """The average over any such window stays below the cap (NVMe Base Specification 2.1, figure
    313, ACTP: 10 s)."""
    cap_burst_ns: Nanoseconds = 10_000_000
    """So much time's worth of the cap may be spent at once."""
    cap_reopen_ns: Nanoseconds = 0
    """Once overdrawn, so much time's worth of the cap is gathered before flash operations begin
    again: a cap with hysteresis. 0: until none is owed."""

    @model_validator(mode="after")
    def _reopens(self) -> Self:
        if self.cap_reopen_ns > self.cap_burst_ns:
            raise ValueError("cap_reopen_ns is over cap_burst_ns, so that work would never go on")
        return self

    @model_validator(mode="after")
    def _states_exist(self) -> Self:
        named = [self.initial_state, *(command.state for command in self.commands)]
        for move in self.autonomous_transitions:
            named += [move.from_state, move.to_state]
        used = bool(self.initial_state or self.commands or self.autonomous_transitions)
        if used and max(named) >= len(self.states):
            raise ValueError(
                f"power state {max(named)} is used, but the table has {len(self.states)} states; "
                "name one of them or add it"
            )
        if self.states and not self.states[self.initial_state].operational:
            raise ValueError("initial_state is not operational; name one that is")
        return self


class PhysicalOptions(Options):
    """Everything that physical mode adds to a drive."""

    nand: NandOptions = NandOptions()
    link: LinkOptions = LinkOptions()
    controller: ControllerOptions = ControllerOptions()
    slc: SlcOptions = SlcOptions()
    energy: EnergyOptions = EnergyOptions()
    power: PowerOptions = PowerOptions()
    warmup_ns: Time = 0
    """Statistics and energy count from here."""
    finish_background: StrictBool = True
    """The run ends when nothing is left to program or collect, and not before."""
    finish_folding: StrictBool = False
    """Nor before the pseudo-SLC cache is folded into native blocks."""
    idle_tail_ns: Time = 0
    """So much idle time is simulated after that."""
    check_consistency: StrictBool = False
    """Check at the end that every written unit lies in exactly one place and every block counts
    what it holds; ModelError if not. Takes time in proportion to the drive."""


class HostOptions(Options):
    """How a flow's requests are made and what they cost the host; physical mode only.

    The costs of an engine come from `HOST_COSTS` unless all three are given.
    """

    engine: HostEngine = HostEngine.none
    """psync keeps one request under way per job, whatever the flow's queue_depth."""
    completion: Completion = Completion.interrupt
    jobs: Annotated[StrictInt, between(1, 4096, "jobs are threads of the host")] = 1
    """Each has a core, and its own queue_depth."""
    submit_cpu_ns: Nanoseconds = 0
    complete_cpu_ns: Nanoseconds = 0
    wake_ns: Nanoseconds = 0
    """From the interrupt to the job's running again, when it sleeps; nothing when polled."""
    think_time_ns: Nanoseconds = 0
    """From a completion to the next request in its place."""
    arrivals_per_second: Annotated[
        StrictFloat, between(0.0, 1e9, "an open loop's rate; 0: from bandwidth_bytes_per_second")
    ] = 0.0
    arrivals: Arrivals = Arrivals.exponential
    burst_requests: Time = 0
    """After so many requests all complete, and then the flow pauses; 0: it never does."""
    burst_gap_ns: Time = 0
    flush_every_writes: Time = 0
    """A flush follows every so many writes, and the writes wait for it; 0: none."""
    force_unit_access: StrictBool = False
    trim_percent: Percent = 0
    """So many of the requests are TRIMs, the others reads and writes as the flow says."""

    @model_validator(mode="before")
    @classmethod
    def _costs_of_engine(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not data.get("engine"):
            return data
        given = [name for name in ("submit_cpu_ns", "complete_cpu_ns", "wake_ns") if name in data]
        if len(given) == 3:
            return data
        engine = HostEngine(data["engine"])
        said = data.get("completion")
        costs, completion = costed(engine, None if said is None else Completion(said))
        if costs is None:
            raise ValueError(
                f"nobody has published what a request costs with {engine}, {completion}; give "
                "submit_cpu_ns, complete_cpu_ns and wake_ns"
            )
        return {**costs._asdict(), "completion": completion, **data}
