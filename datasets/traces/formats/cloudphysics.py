"""CloudPhysics vSCSI, binary (Waldspurger et al., FAST 2015).

Records of 32 bytes (version 1) or 40 (version 2), little endian: the address counts sectors of 512
bytes, the length bytes, the time microseconds. The file is the volume. Reads are the SCSI
commands READ(6), (10), (12), (16), writes likewise; others are counted and left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.errors import InputError
from iojoule.datasets.traces.trace_format import UNITS_PS, Columnar, Columns, Parser, TraceFormat

_VERSION_1 = np.dtype(
    [
        ("serial", "<u4"),
        ("length", "<u4"),
        ("segments", "<u4"),
        ("command", "<u2"),
        ("version", "<u2"),
        ("block", "<u8"),
        ("time", "<u8"),
    ]
)
_VERSION_2 = np.dtype(
    [
        ("command", "<u2"),
        ("version", "<u2"),
        ("serial", "<u4"),
        ("length", "<u4"),
        ("segments", "<u4"),
        ("block", "<u8"),
        ("time", "<u8"),
        ("response", "<u8"),
    ]
)
_READS = (0x08, 0x28, 0xA8, 0x88)
_WRITES = (0x0A, 0x2A, 0xAA, 0x8A)
_LIMIT = 1 << 62


def _parser(head: bytes, where: str, unit: str) -> Parser:
    for version, record in ((1, _VERSION_1), (2, _VERSION_2)):
        first = np.frombuffer(head, dtype=record, count=min(8, len(head) // record.itemsize))
        if len(first) and (first["version"] >> 8 == version).all():
            return _Records(record, version, UNITS_PS[unit], Path(where).name.split(".")[0])
    raise InputError(
        f"{where}: is no vSCSI file: neither version 1 nor version 2 stands in its first records"
    )


class _Records(Columnar):
    """Stops at the first record with another version or impossible values."""

    def __init__(self, record: np.dtype[Any], version: int, unit_ps: int, name: str) -> None:
        super().__init__(record, self._decoded, name)
        self.record_bytes = record.itemsize
        self._version, self._unit_ps = version, unit_ps

    def feed(self, text: bytes) -> Columns:
        """Rows up to the first damaged record."""
        rows = np.frombuffer(text, dtype=self._record, count=len(text) // self._record.itemsize)
        sound = {
            "version": rows["version"] >> 8 == self._version,
            "offset": rows["block"] < _LIMIT // 512,
            "time": rows["time"] < np.uint64(min(_LIMIT * 1000 // self._unit_ps, _LIMIT)),
        }
        for field, good in sound.items():
            bad = np.flatnonzero(~good)
            if len(bad):
                result = super().feed(text[: int(bad[0]) * self._record.itemsize])
                self.defect, self.lines = field, self.lines + 1
                self.defect_text = rows[bad[0]].tobytes().hex().encode()
                return result
        return super().feed(text)

    def _decoded(self, rows: NDArray[Any]) -> Columns:
        time = rows["time"].astype(np.int64)
        unit = self._unit_ps
        arrival = time * (unit // 1000) if unit >= 1000 else time // (1000 // unit)
        is_write = np.isin(rows["command"], _WRITES)
        return (
            arrival,
            rows["block"].astype(np.int64) * 512,
            rows["length"].astype(np.int64),
            is_write,
            is_write | np.isin(rows["command"], _READS),
        )


CLOUDPHYSICS = TraceFormat(
    name="cloudphysics",
    describes="CloudPhysics vSCSI, binary, versions 1 and 2",
    row="(binary records of 32 or 40 bytes)",
    unit="us",
    record_bytes=32,
    parser=_parser,
)
