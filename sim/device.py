"""What the simulated drive is: one model, field for field that of sim/core/config.hpp."""

from __future__ import annotations

from enum import StrEnum
from itertools import permutations
from typing import Annotated, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    StrictBool,
    StrictFloat,
    StrictInt,
    field_validator,
    model_validator,
)

from iojoule.sim.parameter import (
    Count,
    Fraction,
    Kind,
    Mqsim,
    Nanoseconds,
    ParameterSet,
    Seed,
    Uint32,
    between,
)
from iojoule.sim.physical_options import PhysicalOptions
from iojoule.sim.result import Mode

SECTOR_BYTES = 512
CAPACITY_LIMIT_BYTES = 2**50
PLANE_ALLOCATIONS = tuple("".join(letters) for letters in permutations("CWDP"))


class HostInterface(StrEnum):
    """How the host reaches the drive."""

    NVME = "nvme"
    SATA = "sata"


class CacheMechanism(StrEnum):
    """Data cache in front of the flash."""

    SIMPLE = "simple"
    ADVANCED = "advanced"


class Sharing(StrEnum):
    """Whether flows use one pool or each a part of its own."""

    SHARED = "shared"
    EQUAL_PARTITIONING = "equal_partitioning"


class Mapping(StrEnum):
    """Granularity of the address mapping."""

    PAGE_LEVEL = "page_level"
    HYBRID = "hybrid"


class Scheduler(StrEnum):
    """Order in which flash transactions are served."""

    OUT_OF_ORDER = "out_of_order"
    PRIORITY_OUT_OF_ORDER = "priority_out_of_order"
    FLIN = "flin"


class VictimPolicy(StrEnum):
    """Which block garbage collection empties next (Van Houdt, SIGMETRICS 2013)."""

    GREEDY = "greedy"
    RGA = "rga"
    RANDOM = "random"
    RANDOM_P = "random_p"
    RANDOM_PP = "random_pp"
    FIFO = "fifo"


class FlashTechnology(StrEnum):
    """Bits in a cell: one, two or three."""

    SLC = "slc"
    MLC = "mlc"
    TLC = "tlc"


class Suspension(StrEnum):
    """Which flash operations a read may interrupt."""

    NONE = "none"
    ERASE = "erase"
    PROGRAM = "program"
    PROGRAM_ERASE = "program_erase"


PageTimes = tuple[Nanoseconds, Nanoseconds, Nanoseconds]
"""Of pages on the lower, centre and upper bit of a cell (LSB, CSB, MSB)."""


class DeviceConfig(BaseModel):
    """One simulated SSD; defaults are those of MQSim.

    Units are in the names: bytes, nanoseconds, GB/s of 10^9 bytes, 10^6 transfers a second. Ranges
    exclude what is no drive; drives that MQSim cannot run are in `sim.known_defects`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    mode: Mode = Mode.COMPAT

    # host link
    link_lane_gigabytes_per_second: Annotated[
        StrictFloat,
        between(1e-6, 1000.0, "a lane moves data, and PCIe 7.0 moves 16 GB/s a lane"),
        Mqsim("PCIe_Lane_Bandwidth", ParameterSet.HOST),
    ] = 0.4
    link_lanes: Annotated[
        StrictInt,
        between(1, 1024, "PCIe links have 1 to 32 lanes"),
        Mqsim("PCIe_Lane_Count", ParameterSet.HOST),
    ] = 4
    sata_processing_delay_ns: Annotated[
        Nanoseconds, Mqsim("SATA_Processing_Delay", ParameterSet.HOST)
    ] = 400_000

    # front end
    seed: Annotated[Seed, Mqsim("Seed", kind=Kind.SIGNED)] = 123
    preconditioning: Annotated[StrictBool, Mqsim("Enabled_Preconditioning")] = True
    host_interface: Annotated[HostInterface, Mqsim("HostInterface_Type")] = HostInterface.NVME
    io_queue_depth: Annotated[
        StrictInt,
        between(2, 65536, "a queue of n entries holds n - 1, and NVMe ends at 65536"),
        Mqsim("IO_Queue_Depth"),
    ] = 1024
    queue_fetch_size: Annotated[Count, Mqsim("Queue_Fetch_Size")] = 512

    # data cache
    cache_mechanism: Annotated[CacheMechanism, Mqsim("Caching_Mechanism")] = CacheMechanism.ADVANCED
    cache_sharing: Annotated[Sharing, Mqsim("Data_Cache_Sharing_Mode")] = Sharing.SHARED
    cache_bytes: Annotated[
        StrictInt,
        between(0, 2**40, "a drive holds at most 1 TiB of DRAM"),
        Mqsim("Data_Cache_Capacity"),
    ] = 512 << 20
    dram_row_bytes: Annotated[Count, Mqsim("Data_Cache_DRAM_Row_Size")] = 8192
    dram_megatransfers_per_second: Annotated[Count, Mqsim("Data_Cache_DRAM_Data_Rate")] = 800
    dram_burst_bytes: Annotated[Count, Mqsim("Data_Cache_DRAM_Data_Busrt_Size")] = 4
    dram_trcd_ns: Annotated[Nanoseconds, Mqsim("Data_Cache_DRAM_tRCD")] = 13
    dram_tcl_ns: Annotated[Nanoseconds, Mqsim("Data_Cache_DRAM_tCL")] = 13
    dram_trp_ns: Annotated[Nanoseconds, Mqsim("Data_Cache_DRAM_tRP")] = 13

    # address mapping
    mapping: Annotated[Mapping, Mqsim("Address_Mapping")] = Mapping.PAGE_LEVEL
    mapping_ideal: Annotated[StrictBool, Mqsim("Ideal_Mapping_Table")] = False
    cmt_bytes: Annotated[
        StrictInt, between(0, 2**40, "a drive holds at most 1 TiB of DRAM"), Mqsim("CMT_Capacity")
    ] = 2 << 20
    cmt_sharing: Annotated[Sharing, Mqsim("CMT_Sharing_Mode")] = Sharing.SHARED
    plane_allocation: Annotated[str, Mqsim("Plane_Allocation_Scheme", kind=Kind.SCHEME)] = "CWDP"

    # back end
    scheduler: Annotated[Scheduler, Mqsim("Transaction_Scheduling_Policy")] = Scheduler.OUT_OF_ORDER
    overprovisioning_ratio: Annotated[
        StrictFloat,
        between(0.0, 0.95, "some of the flash must be left for data"),
        Mqsim("Overprovisioning_Ratio"),
    ] = 0.07
    gc_threshold: Annotated[Fraction, Mqsim("GC_Exec_Threshold")] = 0.05
    gc_policy: Annotated[VictimPolicy, Mqsim("GC_Block_Selection_Policy")] = VictimPolicy.RGA
    gc_copyback: Annotated[StrictBool, Mqsim("Use_Copyback_for_GC")] = False
    gc_preemptible: Annotated[StrictBool, Mqsim("Preemptible_GC_Enabled")] = True
    gc_hard_threshold: Annotated[Fraction, Mqsim("GC_Hard_Threshold")] = 0.005
    wear_levelling_dynamic: Annotated[StrictBool, Mqsim("Dynamic_Wearleveling_Enabled")] = True
    wear_levelling_static: Annotated[StrictBool, Mqsim("Static_Wearleveling_Enabled")] = True
    wear_levelling_threshold: Annotated[Uint32, Mqsim("Static_Wearleveling_Threshold")] = 100
    suspend_erase_for_read_ns: Annotated[
        Nanoseconds, Mqsim("Preferred_suspend_erase_time_for_read")
    ] = 700_000
    suspend_erase_for_write_ns: Annotated[
        Nanoseconds, Mqsim("Preferred_suspend_erase_time_for_write")
    ] = 700_000
    suspend_program_for_read_ns: Annotated[
        Nanoseconds, Mqsim("Preferred_suspend_write_time_for_read")
    ] = 100_000

    # flash
    channels: Annotated[
        StrictInt,
        between(1, 1024, "drives have up to some dozen channels"),
        Mqsim("Flash_Channel_Count"),
    ] = 8
    channel_width_bytes: Annotated[
        StrictInt,
        between(1, 64, "flash interfaces are one or two bytes wide"),
        Mqsim("Flash_Channel_Width"),
    ] = 1
    channel_megatransfers_per_second: Annotated[
        StrictInt,
        between(1, 100_000, "flash interfaces run at up to some 4800 MT/s"),
        Mqsim("Channel_Transfer_Rate"),
    ] = 333
    chips_per_channel: Annotated[
        StrictInt,
        between(1, 1024, "a channel holds up to some dozen chips"),
        Mqsim("Chip_No_Per_Channel"),
    ] = 4
    flash_technology: Annotated[FlashTechnology, Mqsim("Flash_Technology", ParameterSet.FLASH)] = (
        FlashTechnology.MLC
    )
    suspension: Annotated[Suspension, Mqsim("CMD_Suspension_Support", ParameterSet.FLASH)] = (
        Suspension.ERASE
    )
    page_read_ns: Annotated[
        PageTimes, Mqsim("Page_Read_Latency_{}", ParameterSet.FLASH, items=("LSB", "CSB", "MSB"))
    ] = (75_000, 75_000, 75_000)
    page_program_ns: Annotated[
        PageTimes, Mqsim("Page_Program_Latency_{}", ParameterSet.FLASH, items=("LSB", "CSB", "MSB"))
    ] = (750_000, 750_000, 750_000)
    block_erase_ns: Annotated[Nanoseconds, Mqsim("Block_Erase_Latency", ParameterSet.FLASH)] = (
        3_800_000
    )
    pe_cycles_limit: Annotated[Count, Mqsim("Block_PE_Cycles_Limit", ParameterSet.FLASH)] = 10_000
    suspend_erase_ns: Annotated[Nanoseconds, Mqsim("Suspend_Erase_Time", ParameterSet.FLASH)] = (
        700_000
    )
    suspend_program_ns: Annotated[
        Nanoseconds, Mqsim("Suspend_Program_Time", ParameterSet.FLASH)
    ] = 100_000
    dies_per_chip: Annotated[
        StrictInt,
        between(1, 64, "a package stacks up to some 32 dies"),
        Mqsim("Die_No_Per_Chip", ParameterSet.FLASH),
    ] = 2
    planes_per_die: Annotated[
        StrictInt,
        between(1, 64, "dies have up to 6 planes"),
        Mqsim("Plane_No_Per_Die", ParameterSet.FLASH),
    ] = 2
    blocks_per_plane: Annotated[
        StrictInt,
        between(1, 2**20, "planes have some 1000 blocks"),
        Mqsim("Block_No_Per_Plane", ParameterSet.FLASH),
    ] = 2048
    pages_per_block: Annotated[
        StrictInt,
        between(1, 2**16, "blocks have up to some 4000 pages"),
        Mqsim("Page_No_Per_Block", ParameterSet.FLASH),
    ] = 256
    page_bytes: Annotated[
        StrictInt,
        between(SECTOR_BYTES, 2**20, "pages are 2 KiB to 16 KiB, rarely more"),
        Mqsim("Page_Capacity", ParameterSet.FLASH),
    ] = 8192
    page_metadata_bytes: Annotated[
        StrictInt,
        between(0, 2**16, "the spare area is a fraction of the page"),
        Mqsim("Page_Metadat_Capacity", ParameterSet.FLASH),
    ] = 448

    # physical mode only
    physical: PhysicalOptions = PhysicalOptions()

    @field_validator("plane_allocation")
    @classmethod
    def _orders_all_four(cls, scheme: str) -> str:
        if scheme not in PLANE_ALLOCATIONS:
            raise ValueError(
                f"is {scheme!r}, but must order the letters C (channel), W (way), D (die) and "
                "P (plane), such as CWDP: the first varies fastest"
            )
        return scheme

    @field_validator("page_bytes")
    @classmethod
    def _whole_sectors(cls, page: int) -> int:
        if page % SECTOR_BYTES:
            raise ValueError(f"is {page}, but must be a multiple of the sector, {SECTOR_BYTES}")
        return page

    @model_validator(mode="after")
    def _can_be_addressed(self) -> Self:
        if self.capacity_bytes > CAPACITY_LIMIT_BYTES:
            raise ValueError(
                f"channels x chips x dies x planes x blocks x pages x page size is "
                f"{self.capacity_bytes:.3g} bytes, but the largest drive that is simulated has "
                f"{CAPACITY_LIMIT_BYTES:.3g} (1 PiB); make one of them smaller"
            )
        return self

    @property
    def planes(self) -> int:
        """Planes of the whole drive."""
        return self.channels * self.chips_per_channel * self.dies_per_chip * self.planes_per_die

    @property
    def physical_pages(self) -> int:
        """Pages of the whole drive, those held back for over-provisioning included."""
        return self.planes * self.blocks_per_plane * self.pages_per_block

    @property
    def capacity_bytes(self) -> int:
        """Flash of the whole drive in bytes, over-provisioning included, spare areas not."""
        return self.physical_pages * self.page_bytes

    @property
    def sectors_per_page(self) -> int:
        """Sectors of 512 bytes in a page."""
        return self.page_bytes // SECTOR_BYTES


SECTIONS: dict[str, tuple[str, str]] = {
    "host_link": ("link_lane_gigabytes_per_second", "sata_processing_delay_ns"),
    "front_end": ("seed", "queue_fetch_size"),
    "data_cache": ("cache_mechanism", "dram_trp_ns"),
    "address_mapping": ("mapping", "plane_allocation"),
    "back_end": ("scheduler", "suspend_program_for_read_ns"),
    "flash": ("channels", "page_metadata_bytes"),
}
"""First and last field of each group of a drive's fields, in the order of the model."""


def section_fields(section: str) -> tuple[str, ...]:
    """The fields of one group, in order."""
    names = list(DeviceConfig.model_fields)
    first, last = SECTIONS[section]
    return tuple(names[names.index(first) : names.index(last) + 1])
