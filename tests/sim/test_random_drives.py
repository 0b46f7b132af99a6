"""Drives and loads that nobody chose: both engines agree, where IOJOULE_MQSIM names a binary.

The strategies stay where MQSim ends by itself: no garbage collection (the runs are too short to
fill a plane), page sizes and queues within its types (mqsim.md, 0 and 6), one caching mode for all
flows, and one flow where reads are cached. IOJOULE_EXAMPLES says how many are tried.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iojoule.sim.compare import compare_results
from iojoule.sim.device import PLANE_ALLOCATIONS, DeviceConfig
from iojoule.sim.engines import EngineError, Limits, RunOptions
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.engines.mqsim import MqsimEngine
from iojoule.sim.errors import LimitError
from iojoule.sim.findings import RefusedError
from iojoule.sim.workload import FlowConfig, Scenario

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not os.environ.get("IOJOULE_MQSIM"), reason="IOJOULE_MQSIM does not name MQSim's binary"
    ),
]

UNKNOWABLE = ("read_cache_crashes", "planes_past_the_dies")
"""Warnings of what depends on the memory that MQSim reads or writes past its tables."""

drives = st.fixed_dictionaries(
    {
        "channels": st.integers(1, 3),
        "chips_per_channel": st.integers(1, 3),
        "dies_per_chip": st.integers(1, 2),
        "planes_per_die": st.integers(1, 4),
        "blocks_per_plane": st.sampled_from([64, 200]),
        "pages_per_block": st.sampled_from([64, 128]),
        "page_bytes": st.sampled_from([2048, 4096, 8192, 16384]),
        "flash_technology": st.sampled_from(["slc", "mlc", "tlc"]),
        "page_read_ns": st.tuples(*[st.integers(5_000, 90_000)] * 3),
        "page_program_ns": st.tuples(*[st.integers(100_000, 900_000)] * 3),
        "channel_megatransfers_per_second": st.sampled_from([200, 333, 500, 800]),
        "mapping_ideal": st.booleans(),
        "cmt_bytes": st.sampled_from([64, 512, 4096, 65536]),
        "cmt_sharing": st.sampled_from(["shared", "equal_partitioning"]),
        "cache_bytes": st.sampled_from([1 << 17, 1 << 20, 1 << 24]),
        "cache_sharing": st.sampled_from(["shared", "equal_partitioning"]),
        "dram_megatransfers_per_second": st.sampled_from([100, 800, 3200]),
        "dram_burst_bytes": st.sampled_from([1, 4, 8]),
        "plane_allocation": st.sampled_from(PLANE_ALLOCATIONS),
        "scheduler": st.sampled_from(["out_of_order", "priority_out_of_order"]),
        "io_queue_depth": st.sampled_from([4, 64, 1024]),
        "queue_fetch_size": st.sampled_from([1, 3, 512]),
        "link_lane_gigabytes_per_second": st.sampled_from([0.1, 0.4, 1.0]),
        "link_lanes": st.integers(1, 4),
        "overprovisioning_ratio": st.sampled_from([0.1, 0.3]),
    }
)
flows = st.fixed_dictionaries(
    {
        "read_percent": st.sampled_from([0, 30, 70, 100]),
        "address_distribution": st.sampled_from(["streaming", "random_uniform", "random_hotcold"]),
        "hot_region_percent": st.sampled_from([5, 30, 60]),
        "working_set_percent": st.sampled_from([1, 20, 100]),
        "aligned": st.booleans(),
        "alignment_sectors": st.sampled_from([1, 8, 16, 64]),
        "size_mean_sectors": st.integers(1, 130),
        "queue_depth": st.integers(1, 70),
        "seed": st.integers(1, 5000),
        "total_requests": st.integers(100, 600),
        "priority": st.sampled_from(["urgent", "high", "medium", "low"]),
    }
)


@settings(
    max_examples=int(os.environ.get("IOJOULE_EXAMPLES", "150")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(
    drive=drives,
    loads=st.lists(flows, min_size=1, max_size=3),
    caching=st.sampled_from(["turned_off", "write_cache", "read_cache", "write_read_cache"]),
)
def test_both_engines_agree(
    drive: dict[str, Any], loads: list[dict[str, Any]], caching: str
) -> None:
    device = DeviceConfig.model_validate(
        {**drive, "preconditioning": False, "gc_preemptible": False}
    )
    if "read" in caching:
        loads = loads[:1]
    scenario = Scenario(
        flows=tuple(FlowConfig.model_validate({**load, "caching": caching}) for load in loads)
    ).on(device)
    options = RunOptions(limits=Limits(wall_seconds=20))
    try:
        theirs = MqsimEngine(tolerate_lost=True).run(device, scenario, options)
    except (RefusedError, EngineError, LimitError):
        return  # a trap, or a way in which MQSim ends badly
    ours = EmbeddedEngine().run(device, scenario, options)
    if any(name in warning for warning in ours.warnings for name in UNKNOWABLE):
        return
    comparison = compare_results(ours, theirs)
    assert [quantity for quantity in comparison.quantities() if not quantity.equal] == []
