"""The power state change count of log page C0h, and the pages that do not hold it."""

from __future__ import annotations

import struct

import pytest

from iojoule.measure.drive.nvme import parse_power_state_changes

GUID = bytes.fromhex("c5af1028eabff2a49c4f6f7cc914d5af")


def page(count: int = 4711, version: int = 3, guid: bytes = GUID) -> bytes:
    data = bytearray(512)
    struct.pack_into("<Q", data, 200, count)
    struct.pack_into("<H", data, 494, version)
    data[496:] = guid
    return bytes(data)


def test_the_count_is_read() -> None:
    assert parse_power_state_changes(page()) == 4711


@pytest.mark.parametrize(
    "data",
    [page(guid=bytes(16)), page(version=1), page(count=2**64 - 1), page()[:256], b""],
    ids=["vendor", "version", "not implemented", "short", "empty"],
)
def test_what_is_no_count_is_not_known(data: bytes) -> None:
    assert parse_power_state_changes(data) is None
