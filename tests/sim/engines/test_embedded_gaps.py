"""What the embedded engine cannot do as MQSim does is refused or said."""

import pytest

from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.errors import ConfigError, ModelError
from iojoule.sim.workload import FlowConfig, Scenario
from tests.errors import having

SMALL = {"channels": 1, "chips_per_channel": 1, "blocks_per_plane": 64, "preconditioning": False}
SMALL |= {"gc_preemptible": False, "mapping_ideal": True, "link_lane_gigabytes_per_second": 1.0}


def warnings(device: dict[str, object], **flow: object) -> list[str]:
    asked = FlowConfig.model_validate({"stop_ns": 2_000_000, **flow})
    drive = DeviceConfig.model_validate(SMALL | device)
    return list(EmbeddedEngine().run(drive, Scenario(flows=(asked,))).warnings)


@pytest.mark.parametrize(
    ("device", "flow", "said"),
    [
        (
            {"cache_bytes": 1 << 16},
            {
                "caching": "write_read_cache",
                "read_percent": 50,
                "working_set_percent": 1,
                "stop_ns": 100_000_000,
            },
            "read_cache_crashes",
        ),
        (
            {"scheduler": "priority_out_of_order", "gc_preemptible": True},
            {"priority": "low", "read_percent": 50},
            "priority_preemptible_near",
        ),
        (
            {"preconditioning": True, "blocks_per_plane": 512, "pages_per_block": 64},
            {"initial_occupancy_percent": 55, "working_set_percent": 60},
            "occupancy_near",
        ),
        ({"plane_allocation": "DWCP", "dies_per_chip": 1}, {}, "planes_past_the_dies"),
        (
            {
                "preconditioning": True,
                "blocks_per_plane": 512,
                "pages_per_block": 64,
                "gc_policy": "random",
            },
            {
                "address_distribution": "random_hotcold",
                "hot_region_percent": 20,
                "initial_occupancy_percent": 50,
            },
            "hot_region_near",
        ),
        (
            {
                "preconditioning": True,
                "blocks_per_plane": 256,
                "pages_per_block": 128,
                "overprovisioning_ratio": 0.3,
                "gc_threshold": 0.2,
            },
            {"address_distribution": "random_uniform", "initial_occupancy_percent": 10},
            "thin_blocks_near",
        ),
    ],
)
def test_what_is_near_but_not_equal_is_said(
    device: dict[str, object], flow: dict[str, object], said: str
) -> None:
    assert any(said in warning for warning in warnings(device, **flow))


def test_what_is_equal_is_not_doubted() -> None:
    assert not [warning for warning in warnings({}) if "near" in warning]


def test_a_first_read_on_a_plane_that_is_not_there_is_refused() -> None:
    drive = {"plane_allocation": "DWCP", "dies_per_chip": 2, "planes_per_die": 1}
    with pytest.raises(ConfigError, check=having(field="die_ids")):
        warnings(drive, die_ids=(1,), read_percent=100)
    assert not warnings(drive, die_ids=(1,), read_percent=0)


def test_more_pages_than_the_requests_reach_are_refused() -> None:
    with pytest.raises(ConfigError, check=having(field="initial_occupancy_percent")) as caught:
        warnings({"preconditioning": True}, initial_occupancy_percent=60, working_set_percent=30)
    assert caught.value.field == "initial_occupancy_percent"


def two_writers(**device: object) -> None:
    drive = DeviceConfig.model_validate(
        SMALL
        | {"mapping_ideal": False, "planes_per_die": 1, "dies_per_chip": 1, "page_bytes": 4096}
        | {
            "pages_per_block": 16,
            "overprovisioning_ratio": 0.3,
            "gc_policy": "greedy",
            "gc_threshold": 0.05,
            "io_queue_depth": 4,
            "queue_fetch_size": 3,
            "page_program_ns": (800_000,) * 3,
            "page_read_ns": (30_000,) * 3,
            "flash_technology": "slc",
        }
        | device
    )
    flow = {"read_percent": 0, "caching": "turned_off", "size_mean_sectors": 16}
    flow |= {
        "address_distribution": "random_hotcold",
        "hot_region_percent": 60,
        "total_requests": 3000,
    }
    flows = (
        FlowConfig.model_validate(
            {**flow, "seed": 962, "queue_depth": 32, "working_set_percent": 1, "aligned": False}
        ),
        FlowConfig.model_validate({**flow, "seed": 750, "queue_depth": 2, "aligned": True}),
    )
    EmbeddedEngine().run(drive, Scenario(flows=flows).on(drive))


def test_each_part_of_the_mapping_cache_must_hold_an_entry() -> None:
    with pytest.raises(ConfigError, check=having(field="cmt_bytes")):
        two_writers(cmt_sharing="equal_partitioning", cmt_bytes=6)


def test_a_waiting_write_whose_mapping_entry_left_ends_the_run() -> None:
    """MQSim aborts here: `Retrieve_ppa` does not find the entry."""
    with pytest.raises(ModelError, match="mapping cache"):
        two_writers(cmt_bytes=64)
