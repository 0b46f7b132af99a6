"""Small runs of MQSim: what was asked for, and what it left behind in tests/sim/recorded/.

`IOJOULE_MQSIM=... python tests/sim/recordings.py` records them again; MQSim repeats to the byte.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from iojoule.sim.device import DeviceConfig, HostInterface, Scheduler, Sharing
from iojoule.sim.engines import RunOptions
from iojoule.sim.engines.mqsim import MqsimEngine, write_inputs
from iojoule.sim.workload import CachingMode, FlowConfig, FlowKind, Generator, Priority, Scenario

FOLDER = Path(__file__).resolve().parent / "recorded"
TRACE = FOLDER / "six.trace"

ONE_CHIP = DeviceConfig(
    preconditioning=False,
    mapping_ideal=True,
    cache_bytes=1 << 20,
    link_lane_gigabytes_per_second=1.0,
    gc_preemptible=False,
    channels=1,
    chips_per_channel=1,
    dies_per_chip=1,
    planes_per_die=2,
    blocks_per_plane=64,
)
TWO_CHIPS = ONE_CHIP.model_copy(
    update={
        "channels": 2,
        "mapping_ideal": False,
        "cmt_bytes": 1024,
        "scheduler": Scheduler.PRIORITY_OUT_OF_ORDER,
    }
)
SATA_QUEUE = TWO_CHIPS.model_copy(
    update={
        "host_interface": HostInterface.SATA,
        "sata_processing_delay_ns": 5000,
        "io_queue_depth": 16,
        "queue_fetch_size": 2,
        "cache_sharing": Sharing.EQUAL_PARTITIONING,
    }
)
READS = FlowConfig(queue_depth=3, read_percent=100, total_requests=24, seed=5)
WRITES = READS.model_copy(update={"read_percent": 0, "size_mean_sectors": 16, "seed": 7})
MIXED = READS.model_copy(update={"read_percent": 60, "priority": Priority.URGENT})
UNCACHED = WRITES.model_copy(
    update={"caching": CachingMode.TURNED_OFF, "priority": Priority.LOW, "channel_ids": (1,)}
)
SPACED = MIXED.model_copy(
    update={"generator": Generator.BANDWIDTH, "bandwidth_bytes_per_second": 20_000_000, "seed": 11}
)
REPLAY = FlowConfig(kind=FlowKind.TRACE, trace_path=str(TRACE))

RUNS: dict[str, tuple[DeviceConfig, Scenario]] = {
    "reads": (ONE_CHIP, Scenario(flows=(READS,))),
    "writes": (ONE_CHIP, Scenario(flows=(WRITES,))),
    "two_flows": (TWO_CHIPS, Scenario(flows=(MIXED, WRITES))),
    "trace": (ONE_CHIP, Scenario(flows=(REPLAY,))),
    "sata": (
        ONE_CHIP.model_copy(update={"host_interface": HostInterface.SATA}),
        Scenario(flows=(READS,)),
    ),
    "sata_deep": (
        SATA_QUEUE.model_copy(update={"mapping_ideal": True}),
        Scenario(flows=(MIXED.model_copy(update={"queue_depth": 40, "total_requests": 64}),)),
    ),
    "sata_flows": (SATA_QUEUE, Scenario(flows=(MIXED, UNCACHED, SPACED))),
}


def record(name: str, engine: MqsimEngine, target: Path) -> None:
    """Run one of `RUNS` and keep what MQSim wrote."""
    device, scenario = RUNS[name]
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        write_inputs(directory, device, scenario.on(device), 0)
        engine.execute(directory, RunOptions())
        target.mkdir(parents=True, exist_ok=True)
        for path in directory.iterdir():
            if path.name.startswith(("workload_scenario", "workload.IO_Flow", "stdout")):
                shutil.copyfile(path, target / path.name)
    # The progress bars and the dates say nothing that lasts.
    said = (target / "stdout.txt").read_text().splitlines()
    kept = [line for line in said if line.startswith("Flow ") or "response time" in line]
    (target / "stdout.txt").write_text("\n".join(kept) + "\n")


if __name__ == "__main__":
    for each in sys.argv[1:] or RUNS:
        record(each, MqsimEngine(), FOLDER / each)
