"""The tags of MQSim's input files and the fields of the models that they stand for.

Spelling is that of the stock files ("Busrt", "Metadat", "Relay"); what others write is an alias.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from iojoule.sim import device as d
from iojoule.sim import workload as w


class Kind(StrEnum):
    """How the text of a tag is read."""

    UNSIGNED = "unsigned"
    SIGNED = "signed"
    DECIMAL = "decimal"
    BOOLEAN = "boolean"
    IDS = "ids"
    SCHEME = "scheme"
    PATH = "path"
    WORD = "word"


@dataclass(frozen=True)
class Tag:
    """One tag: the field it sets, how it is read, and for words which there are.

    `item` is the position in a field that holds several values.
    """

    name: str
    field: str
    kind: Kind
    words: type[StrEnum] | None = None
    item: int | None = None


@dataclass(frozen=True)
class FixedTag:
    """A tag that sets no field: `value` is written, any of `known` (None: anything) is read.

    Something else is worth a warning with this `remark`; where there is none, it ends MQSim.
    """

    name: str
    value: str
    known: tuple[str, ...] | None = None
    remark: str = ""


def _unsigned(name: str, field: str) -> Tag:
    return Tag(name, field, Kind.UNSIGNED)


def _boolean(name: str, field: str) -> Tag:
    return Tag(name, field, Kind.BOOLEAN)


def _word(name: str, field: str, words: type[StrEnum]) -> Tag:
    return Tag(name, field, Kind.WORD, words)


def _decimal(name: str, field: str) -> Tag:
    return Tag(name, field, Kind.DECIMAL)


HOST_SET, DEVICE_SET, FLASH_SET = (
    "Host_Parameter_Set",
    "Device_Parameter_Set",
    "Flash_Parameter_Set",
)
DEVICE_ROOT, WORKLOAD_ROOT, SCENARIO = (
    "Execution_Parameter_Set",
    "MQSim_IO_Scenarios",
    "IO_Scenario",
)
SYNTHETIC_SET = "IO_Flow_Parameter_Set_Synthetic"
TRACE_SET = "IO_Flow_Parameter_Set_Trace_Based"

RESPONSE_LOG, RESPONSE_LOG_PERIOD = (
    "Enable_ResponseTime_Logging", "ResponseTime_Logging_Period_Length",
)  # fmt: skip

AnyTag = Tag | FixedTag

HOST_TAGS: tuple[AnyTag, ...] = (
    _decimal("PCIe_Lane_Bandwidth", "link_lane_gigabytes_per_second"),
    _unsigned("PCIe_Lane_Count", "link_lanes"),
    _unsigned("SATA_Processing_Delay", "sata_processing_delay_ns"),
    FixedTag(
        RESPONSE_LOG,
        "false",
        ("false",),
        "no log of response times is written; percentiles and time series say what it would",
    ),
    FixedTag(RESPONSE_LOG_PERIOD, "400000"),
)

DEVICE_TAGS: tuple[AnyTag, ...] = (
    Tag("Seed", "seed", Kind.SIGNED),
    _boolean("Enabled_Preconditioning", "preconditioning"),
    FixedTag("Memory_Type", "FLASH", ("FLASH",)),
    _word("HostInterface_Type", "host_interface", d.HostInterface),
    _unsigned("IO_Queue_Depth", "io_queue_depth"),
    _unsigned("Queue_Fetch_Size", "queue_fetch_size"),
    _word("Caching_Mechanism", "cache_mechanism", d.CacheMechanism),
    _word("Data_Cache_Sharing_Mode", "cache_sharing", d.Sharing),
    _unsigned("Data_Cache_Capacity", "cache_bytes"),
    _unsigned("Data_Cache_DRAM_Row_Size", "dram_row_bytes"),
    _unsigned("Data_Cache_DRAM_Data_Rate", "dram_megatransfers_per_second"),
    _unsigned("Data_Cache_DRAM_Data_Busrt_Size", "dram_burst_bytes"),
    _unsigned("Data_Cache_DRAM_tRCD", "dram_trcd_ns"),
    _unsigned("Data_Cache_DRAM_tCL", "dram_tcl_ns"),
    _unsigned("Data_Cache_DRAM_tRP", "dram_trp_ns"),
    _word("Address_Mapping", "mapping", d.Mapping),
    _boolean("Ideal_Mapping_Table", "mapping_ideal"),
    _unsigned("CMT_Capacity", "cmt_bytes"),
    _word("CMT_Sharing_Mode", "cmt_sharing", d.Sharing),
    Tag("Plane_Allocation_Scheme", "plane_allocation", Kind.SCHEME),
    _word("Transaction_Scheduling_Policy", "scheduler", d.Scheduler),
    _decimal("Overprovisioning_Ratio", "overprovisioning_ratio"),
    _decimal("GC_Exec_Threshold", "gc_threshold"),
    _word("GC_Block_Selection_Policy", "gc_policy", d.VictimPolicy),
    _boolean("Use_Copyback_for_GC", "gc_copyback"),
    _boolean("Preemptible_GC_Enabled", "gc_preemptible"),
    _decimal("GC_Hard_Threshold", "gc_hard_threshold"),
    _boolean("Dynamic_Wearleveling_Enabled", "wear_levelling_dynamic"),
    _boolean("Static_Wearleveling_Enabled", "wear_levelling_static"),
    _unsigned("Static_Wearleveling_Threshold", "wear_levelling_threshold"),
    _unsigned("Preferred_suspend_erase_time_for_read", "suspend_erase_for_read_ns"),
    _unsigned("Preferred_suspend_erase_time_for_write", "suspend_erase_for_write_ns"),
    _unsigned("Preferred_suspend_write_time_for_read", "suspend_program_for_read_ns"),
    _unsigned("Flash_Channel_Count", "channels"),
    _unsigned("Flash_Channel_Width", "channel_width_bytes"),
    _unsigned("Channel_Transfer_Rate", "channel_megatransfers_per_second"),
    _unsigned("Chip_No_Per_Channel", "chips_per_channel"),
    FixedTag("Flash_Comm_Protocol", "NVDDR2", ("NVDDR2",)),
)

FLASH_TAGS: tuple[AnyTag, ...] = (
    _word("Flash_Technology", "flash_technology", d.FlashTechnology),
    _word("CMD_Suspension_Support", "suspension", d.Suspension),
    *(
        Tag(f"Page_{operation}_Latency_{kind}", field, Kind.UNSIGNED, item=item)
        for operation, field in (("Read", "page_read_ns"), ("Program", "page_program_ns"))
        for item, kind in enumerate(("LSB", "CSB", "MSB"))
    ),
    _unsigned("Block_Erase_Latency", "block_erase_ns"),
    _unsigned("Block_PE_Cycles_Limit", "pe_cycles_limit"),
    _unsigned("Suspend_Erase_Time", "suspend_erase_ns"),
    _unsigned("Suspend_Program_Time", "suspend_program_ns"),
    _unsigned("Die_No_Per_Chip", "dies_per_chip"),
    _unsigned("Plane_No_Per_Die", "planes_per_die"),
    _unsigned("Block_No_Per_Plane", "blocks_per_plane"),
    _unsigned("Page_No_Per_Block", "pages_per_block"),
    _unsigned("Page_Capacity", "page_bytes"),
    _unsigned("Page_Metadat_Capacity", "page_metadata_bytes"),
)

_FLOW_TAGS: tuple[AnyTag, ...] = (
    _word("Priority_Class", "priority", w.Priority),
    _word("Device_Level_Data_Caching_Mode", "caching", w.CachingMode),
    Tag("Channel_IDs", "channel_ids", Kind.IDS),
    Tag("Chip_IDs", "chip_ids", Kind.IDS),
    Tag("Die_IDs", "die_ids", Kind.IDS),
    Tag("Plane_IDs", "plane_ids", Kind.IDS),
    _unsigned("Initial_Occupancy_Percentage", "initial_occupancy_percent"),
)

SYNTHETIC_TAGS: tuple[AnyTag, ...] = (
    *_FLOW_TAGS,
    _unsigned("Working_Set_Percentage", "working_set_percent"),
    _word("Synthetic_Generator_Type", "generator", w.Generator),
    _unsigned("Read_Percentage", "read_percent"),
    _word("Address_Distribution", "address_distribution", w.AddressDistribution),
    _unsigned("Percentage_of_Hot_Region", "hot_region_percent"),
    _boolean("Generated_Aligned_Addresses", "aligned"),
    _unsigned("Address_Alignment_Unit", "alignment_sectors"),
    _word("Request_Size_Distribution", "size_distribution", w.SizeDistribution),
    _unsigned("Average_Request_Size", "size_mean_sectors"),
    _unsigned("Variance_Request_Size", "size_sd_sectors"),
    Tag("Seed", "seed", Kind.SIGNED),
    _unsigned("Average_No_of_Reqs_in_Queue", "queue_depth"),
    _unsigned("Bandwidth", "bandwidth_bytes_per_second"),
    _unsigned("Stop_Time", "stop_ns"),
    _unsigned("Total_Requests_To_Generate", "total_requests"),
)

TRACE_TAGS: tuple[AnyTag, ...] = (
    *_FLOW_TAGS,
    Tag("File_Path", "trace_path", Kind.PATH),
    _unsigned("Percentage_To_Be_Executed", "trace_percent"),
    _unsigned("Relay_Count", "trace_replays"),
    FixedTag(
        "Time_Unit",
        "NANOSECOND",
        ("NANOSECOND",),
        "MQSim takes the times of a trace for nanoseconds whatever this says, and so does iojoule; "
        "convert the trace and write NANOSECOND",
    ),
)

QUIET_TAGS = frozenset({"Intensity"})
"""Stand in MQSim's own files although it does not read them."""

ALIASES = {
    # MQSim itself, its README and its forks write these
    "Prefered_suspend_erase_time_for_read": "Preferred_suspend_erase_time_for_read",
    "Prefered_suspend_erase_time_for_write": "Preferred_suspend_erase_time_for_write",
    "Prefered_suspend_write_time_for_read": "Preferred_suspend_write_time_for_read",
    "Data_Cache_DRAM_Data_Burst_Size": "Data_Cache_DRAM_Data_Busrt_Size",
    "Replay_Count": "Relay_Count",
    "Page_Metadata_Capacity": "Page_Metadat_Capacity",
    "ExecParameterSet": DEVICE_ROOT,
    "HostParameterSet": HOST_SET,
    "DeviceParameterSet": DEVICE_SET,
    "FlashParameterSet": FLASH_SET,
    "SyntheticFlowParamSet": SYNTHETIC_SET,
    "SyntheticFlowParameterSet": SYNTHETIC_SET,
    "TraceFlowParamSet": TRACE_SET,
    "TraceFlowParameterSet": TRACE_SET,
}
"""Spellings of other programs -> the stock one (Sungup/MQSim: sets without underscores)."""

WORD_ALIASES = {"EQUAL_SIZE_PARTITIONING": "EQUAL_PARTITIONING"}
"""Words that MQSim writes itself but does not read."""
