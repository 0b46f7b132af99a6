"""Inputs that end MQSim or make it compute wrongly, as changes to a drive and workload it runs.

Found by running MQSim 7ec40e3. Each holds the values that make its run fail; the complete files
that were run are not part of the repository (`../shared/mqsim/failures`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from iojoule.sim.device import DeviceConfig
from iojoule.sim.formats.mqsim_inputs import write_device_xml, write_workload_xml
from iojoule.sim.workload import FlowConfig, FlowKind, Scenario

DRIVE = DeviceConfig(
    preconditioning=False,
    mapping_ideal=True,
    gc_preemptible=False,
    io_queue_depth=65535,
    blocks_per_plane=64,
)
READS = FlowConfig(
    queue_depth=16, stop_ns=50_000_000, initial_occupancy_percent=75, working_set_percent=50
)
WRITES = {"read_percent": 0}
SMALL = {
    "preconditioning": True,
    "channels": 2,
    "chips_per_channel": 2,
    "dies_per_chip": 1,
    "blocks_per_plane": 96,
    "pages_per_block": 64,
    "gc_threshold": 0.3,
}
"""A small preconditioned drive, which collects at once."""
FULL = {"initial_occupancy_percent": 60, "working_set_percent": 85}


@dataclass(frozen=True)
class FailingInput:
    """A drive and a workload that MQSim fails on.

    Attributes:
        name: Under which iojoule refuses the input or warns of it.
        device: Fields of the drive that differ from `DRIVE`.
        flow: Fields of each flow that differ from `READS`.
        drive_text: What is replaced in the drive's file, where no drive has such a value.
        workload_text: The same in the workload's file.
        flows: Flows that run together.
    """

    name: str
    device: Mapping[str, object] = field(default_factory=dict)
    flow: Mapping[str, object] = field(default_factory=dict)
    drive_text: tuple[str, str] = ("", "")
    workload_text: tuple[str, str] = ("", "")
    flows: int = 1

    def write(self, case: str, folder: Path) -> Sequence[Path]:
        """Write both files, `CASE.ssd.xml` and `CASE.wl.xml`."""
        drive = DeviceConfig.model_validate(DRIVE.model_dump() | self.device)
        flow = FlowConfig.model_validate(READS.model_dump() | self.flow)
        texts = {
            "ssd": (write_device_xml(drive), self.drive_text),
            "wl": (
                write_workload_xml([Scenario(flows=(flow,) * self.flows)], drive),
                self.workload_text,
            ),
        }
        paths = []
        for part, (text, (old, new)) in texts.items():
            assert old in text, f"{old} is not in the file"
            paths.append(folder / f"{case}.{part}.xml")
            paths[-1].write_text(text.replace(old, new) if old else text, encoding="ascii")
        return paths


def _trace(path: str, **changed: object) -> dict[str, object]:
    return {**FlowConfig(kind=FlowKind.TRACE, trace_path=path).model_dump(), **changed}


FAILING_INPUTS = {
    "simple_write_cache": FailingInput("cache_simple", {"cache_mechanism": "simple"}),
    "hybrid_mapping": FailingInput("mapping_hybrid", {"mapping": "hybrid"}),
    "flin": FailingInput("scheduler_flin", {"scheduler": "flin"}),
    "mixed_streaming": FailingInput(
        "mixed_streaming", workload_text=("RANDOM_UNIFORM", "MIXED_STREAMING_RANDOM")
    ),
    "bandwidth_small": FailingInput(
        "bandwidth_below_request", flow={"bandwidth_bytes_per_second": 4095}
    ),
    "bandwidth_3e9": FailingInput(
        "bandwidth_32_bit", flow={"bandwidth_bytes_per_second": 3_000_000_000}
    ),
    "total_lt_qd": FailingInput(
        "total_below_queue_depth", flow={"stop_ns": 0, "total_requests": 8}
    ),
    "page32k_write": FailingInput(
        "page_32k", {"page_bytes": 32768}, {**WRITES, "size_mean_sectors": 64}
    ),
    "ioq65536": FailingInput("io_queue_depth_16_bit", {"io_queue_depth": 65536}),
    "fetch65536": FailingInput("queue_fetch_size_16_bit", {"queue_fetch_size": 65536}),
    "flows9": FailingInput("flows_over_8", flows=9),
    "bad_enum": FailingInput("unknown_word", drive_text=(">CWDP<", ">XYZW<")),
    "nonnumeric": FailingInput("not_a_number", drive_text=("<Seed>123<", "<Seed>abc<")),
    "channel_oob": FailingInput("ids_out_of_range", flow={"channel_ids": (0, 1, 9)}),
    "missing_trace": FailingInput("missing_trace", flow=_trace("traces/none.trace")),
    "trace_precond": FailingInput(
        "preconditioning_trace", {"preconditioning": True}, _trace("one.trace")
    ),
    "copyback": FailingInput("gc_copyback", SMALL | {"gc_copyback": True}, FULL | WRITES),
    "preemptible_gc": FailingInput(
        "gc_preemptible", SMALL | {"gc_preemptible": True}, FULL | WRITES
    ),
    "precond_ppa": FailingInput(
        "preconditioning_unplaceable", SMALL, {**FULL, **WRITES, "initial_occupancy_percent": 80}
    ),
    "precond_deadlock": FailingInput(
        "preconditioning_blocks_writes",
        SMALL | {"blocks_per_plane": 128, "gc_threshold": 0.05},
        {**FULL, **WRITES, "initial_occupancy_percent": 75, "stop_ns": 5 * 10**9},
    ),
    "gc_mixed_128blk": FailingInput(
        "gc_reads_many_blocks",
        SMALL | {"chips_per_channel": 1, "blocks_per_plane": 128, "gc_threshold": 0.05},
        {**FULL, "read_percent": 50, "stop_ns": 5 * 10**9},
    ),
    "gc_mixed_leak": FailingInput(
        "gc_loses_requests",
        SMALL | {"chips_per_channel": 1},
        {**FULL, "read_percent": 50, "stop_ns": 30 * 10**9},
    ),
    "gc_fifo_long": FailingInput(
        "gc_policy_unsafe",
        SMALL | {"gc_policy": "fifo"},
        {**FULL, **WRITES, "stop_ns": 60 * 10**9},
    ),
    "gc_random_long": FailingInput(
        "gc_policy_unsafe",
        SMALL | {"gc_policy": "random"},
        {**FULL, **WRITES, "stop_ns": 60 * 10**9},
    ),
    "dram_4300": FailingInput("dram_rate_32_bit", {"dram_megatransfers_per_second": 4300}, WRITES),
    "relay2": FailingInput("trace_replays", flow=_trace("one.trace", trace_replays=2)),
    "normal_negative": FailingInput(
        "size_normal_wraps",
        flow={
            "size_distribution": "normal",
            "size_mean_sectors": 32,
            "size_sd_sectors": 12,
        },
    ),
    "hot100": FailingInput(
        "hot_region_whole",
        flow={"address_distribution": "random_hotcold", "hot_region_percent": 100},
    ),
}
"""Each failing input of MQSim, under the name that it has in `mqsim/failures.csv`."""
