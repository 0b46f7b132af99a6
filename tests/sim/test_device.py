from enum import StrEnum

import numpy as np
import pytest
from pydantic import BaseModel, ValidationError

from iojoule.sim import _core, physical_options
from iojoule.sim.device import SECTIONS, DeviceConfig, section_fields
from iojoule.sim.physical_options import HostOptions
from iojoule.sim.workload import FlowConfig, Generator, Scenario

RECORDS = (
    DeviceConfig,
    FlowConfig,
    *(
        kind
        for kind in vars(physical_options).values()
        if isinstance(kind, type) and issubclass(kind, BaseModel) and kind.model_fields
    ),
)


@pytest.mark.parametrize("model", RECORDS)
def test_the_core_declares_the_same_fields_in_the_same_order(model: type[BaseModel]) -> None:
    record = getattr(_core, model.__name__)
    assert [name for name in vars(record) if not name.startswith("_")] == list(model.model_fields)


@pytest.mark.parametrize("model", RECORDS)
def test_the_core_has_the_same_defaults(model: type[BaseModel]) -> None:
    ours = getattr(_core, model.__name__)()
    for name, field in model.model_fields.items():
        default = field.get_default()
        if field.is_required() or isinstance(default, BaseModel):
            continue
        plain = default.value if isinstance(default, StrEnum) else default
        there = getattr(ours, name)
        if plain is None:  # unknown, which counts nothing in the core
            assert not np.any(there), name
            continue
        assert (tuple(there) if isinstance(plain, tuple) else there) == plain, name


def test_sections_hold_every_field_once() -> None:
    grouped = [name for section in SECTIONS for name in section_fields(section)]
    assert grouped == [name for name in DeviceConfig.model_fields if name in grouped]
    assert set(DeviceConfig.model_fields) - set(grouped) == {"mode", "physical"}


def test_the_stock_geometry_is_512_gib() -> None:
    device = DeviceConfig()
    assert device.planes == 8 * 4 * 2 * 2
    assert device.capacity_bytes == 512 << 30
    assert device.sectors_per_page == 16


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("channels", 0, "1 to 1024"),
        ("page_bytes", 5000, "multiple of the sector"),
        ("plane_allocation", "XYZW", "order the letters"),
        ("io_queue_depth", 1, "a queue of n entries holds n - 1"),
        ("seed", -1, "MQSim hangs"),
        ("link_lane_gigabytes_per_second", 0.0, "a lane moves data"),
        ("overprovisioning_ratio", 1.0, "left for data"),
        ("link_lane_gigabytes_per_second", float("nan"), "finite"),
        ("channels", True, "integer"),
        ("channels", 4.0, "integer"),
        ("chanels", 4, "not permitted"),
    ],
)
def test_what_is_no_drive_is_refused_with_the_reason(
    field: str, value: object, reason: str
) -> None:
    with pytest.raises(ValidationError, match=reason):
        DeviceConfig.model_validate({field: value})


def test_a_drive_larger_than_a_pebibyte_is_refused_before_memory_is_taken() -> None:
    with pytest.raises(ValidationError, match="1 PiB"):
        DeviceConfig(channels=1024, chips_per_channel=1024, dies_per_chip=64, planes_per_die=64)


def test_ids_are_a_sorted_set() -> None:
    assert FlowConfig(stop_ns=1, channel_ids=(3, 1, 3, 0)).channel_ids == (0, 1, 3)


def test_no_ids_mean_all_that_the_drive_has() -> None:
    flow = FlowConfig(stop_ns=1, chip_ids=(1,))
    filled = Scenario(flows=(flow,)).on(DeviceConfig(channels=3)).flows[0]
    assert filled.channel_ids == (0, 1, 2)
    assert filled.chip_ids == (1,)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({}, "stop_ns and total_requests"),
        ({"kind": "trace"}, "trace_path is missing"),
        ({"stop_ns": 1, "trace_path": "x"}, "no meaning in a synthetic flow"),
        ({"stop_ns": 1, "generator": "bandwidth"}, "say the rate"),
        ({"stop_ns": 1, "working_set_percent": 0}, "1 to 100"),
        ({"stop_ns": 1, "alignment_sectors": 0}, "at least one"),
    ],
)
def test_a_flow_without_requests_is_refused(values: dict[str, object], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        FlowConfig.model_validate(values)


def test_an_open_loop_may_have_its_rate_from_the_host() -> None:
    host = HostOptions(arrivals_per_second=1000.0)
    assert FlowConfig(stop_ns=1, generator=Generator.BANDWIDTH, host=host).host == host
