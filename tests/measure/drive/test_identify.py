"""Binary NVMe structures, against bytes laid out by hand from the specification."""

import struct

import pytest

from iojoule.measure.drive.nvme import parse_controller, parse_namespace, parse_smart
from iojoule.measure.errors import DriveError


def controller_bytes() -> bytearray:
    data = bytearray(4096)
    data[4:24] = b"S5GXNX0T123456      "
    data[24:64] = b"Samsung SSD 980 PRO 1TB".ljust(40)
    data[64:72] = b"5B2QGXA7"
    data[77] = 7
    data[263] = 4
    data[265] = 1
    data[524] = 4
    data[525] = 1
    states = [
        (849, 0, 0, 0),
        (448, 0, 0, 200),
        (318, 0, 0, 1000),
        (400, 3, 2000, 1200),
        (50, 3, 500, 9500),
    ]
    for index, (power, flags, entry, exit_) in enumerate(states):
        at = 2048 + 32 * index
        struct.pack_into("<HBBII", data, at, power, 0, flags, entry, exit_)
    struct.pack_into("<HB", data, 2048 + 16, 175, 2 << 6)
    return data


def test_the_980_pros_table_is_read_as_published() -> None:
    drive = parse_controller(bytes(controller_bytes()))
    assert (drive.serial, drive.firmware) == ("S5GXNX0T123456", "5B2QGXA7")
    assert drive.model == "Samsung SSD 980 PRO 1TB"
    assert drive.max_transfer_bytes == 512 * 1024
    assert [state.max_power_watts for state in drive.power_states] == pytest.approx(
        [8.49, 4.48, 3.18, 0.04, 0.005]
    )
    assert [state.index for state in drive.operational_states] == [0, 1, 2]
    assert drive.power_states[4].exit_latency_us == 9500
    assert drive.power_states[0].idle_power_watts == pytest.approx(1.75)
    assert drive.power_states[1].idle_power_watts is None
    assert drive.has_apst


@pytest.mark.parametrize(("attributes", "all_of_them"), [(4, False), (1, True), (2, True)])
def test_a_format_may_erase_every_namespace(attributes: int, all_of_them: bool) -> None:
    data = controller_bytes()
    data[524] = attributes
    assert parse_controller(bytes(data)).format_erases_all is all_of_them


@pytest.mark.parametrize(
    ("attributes", "abilities"),
    [(0, (False, False)), (1 << 20, (True, False)), (1 << 21, (False, True))],
)
def test_limiting_and_measuring_power_are_attributes(
    attributes: int, abilities: tuple[bool, bool]
) -> None:
    data = controller_bytes()
    struct.pack_into("<I", data, 96, attributes)
    drive = parse_controller(bytes(data))
    assert (drive.limits_power, drive.measures_power) == abilities


def test_no_transfer_limit_is_no_limit() -> None:
    data = controller_bytes()
    data[77] = 0
    assert parse_controller(bytes(data)).max_transfer_bytes is None


def test_a_namespace_says_how_full_it_is() -> None:
    data = bytearray(4096)
    struct.pack_into("<QQQ", data, 0, 1000, 1000, 250)
    assert parse_namespace(bytes(data)).fill_fraction == 0.25


@pytest.mark.parametrize(("features", "fill"), [(0, None), (1, 1.0)])
def test_a_full_namespace_may_be_one_that_keeps_no_count(features: int, fill: float | None) -> None:
    data = bytearray(4096)
    struct.pack_into("<QQQ", data, 0, 1000, 1000, 1000)
    data[24] = features
    assert parse_namespace(bytes(data)).fill_fraction == fill


def test_smart_counts_in_units_of_512000_bytes_and_in_kelvin() -> None:
    data = bytearray(512)
    data[0] = 4
    struct.pack_into("<H", data, 1, 310)
    data[5] = 103
    data[48:64] = (7).to_bytes(16, "little")
    struct.pack_into("<II", data, 224, 5, 6)
    smart = parse_smart(bytes(data))
    assert smart.temperature_celsius == 37
    assert smart.percentage_used == 103
    assert smart.host_bytes_written == 3_584_000
    assert smart.throttle_seconds == 11


@pytest.mark.parametrize("data", [b"", bytes(100), bytes(4096)])
def test_what_is_no_structure_is_refused(data: bytes) -> None:
    with pytest.raises(DriveError, match="Identify Controller"):
        parse_controller(data)
