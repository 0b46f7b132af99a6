"""The SMART / Health log of the OCP Datacenter NVMe SSD Specification: log page C0h.

C0h is vendor space on other drives: only a page with the GUID of the specification is read.
"""

from __future__ import annotations

EXTENDED_SMART = 0xC0
EXTENDED_SMART_BYTES = 512

_GUID = 0xAFD514C97C6F4F9CA4F2BFEA2810AFC5
_CHANGES_FROM_VERSION = 2
"""Log page version from which bytes 200 to 207 hold the power state change count."""


def power_state_changes(data: bytes) -> int | None:
    """Power state changes since manufacture; None where the page does not hold them."""
    version = _version(data)
    if version is None:
        return None
    count = int.from_bytes(data[200:208], "little")
    # all bits set: not implemented
    return count if version >= _CHANGES_FROM_VERSION and count != 2**64 - 1 else None


def _version(data: bytes) -> int | None:
    """Version of the page; None where its GUID or size is not that of OCP."""
    if len(data) != EXTENDED_SMART_BYTES or int.from_bytes(data[496:], "little") != _GUID:
        return None
    return int.from_bytes(data[494:496], "little")
