"""Formats of block traces: where the values of a row stand, and what they mean.

A new one is one entry of `FORMATS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.errors import InputError, close_names
from iojoule.datasets.traces._native import Dialect, Layout, RowParser

Columns = tuple[NDArray[Any], ...]

UNITS_PS = {
    "ps": 1,
    "ns": 1000,
    "100ns": 100_000,
    "us": 1_000_000,
    "ms": 10**9,
    "s": 10**12,
}
"""Units of time in picoseconds."""


class Parser(Protocol):
    """Turns the content of one file into rows, a block at a time.

    `defect` is the field of the first row that is none of the format, or empty; `lines` counts
    lines or records so far; `odd` is a reason -> how many rows were left out for it, and the first.
    """

    @property
    def defect(self) -> str: ...  # noqa: D102
    @property
    def defect_text(self) -> bytes: ...  # noqa: D102
    @property
    def lines(self) -> int: ...  # noqa: D102
    @property
    def ended(self) -> bool: ...  # noqa: D102
    @property
    def volumes(self) -> list[bytes]: ...  # noqa: D102
    @property
    def odd(self) -> dict[str, tuple[int, int]]: ...  # noqa: D102

    def feed(self, text: bytes) -> Columns:
        """Arrival in ns, offset, size, whether it writes, volume number and line, shape (n,)."""
        ...


@dataclass(frozen=True)
class TraceFormat:
    """One format.

    Attributes:
        name: What --format takes.
        describes: One line.
        row: An example.
        unit: Of its times, one of `UNITS_PS`; a format with a fixed clock has it in its rows.
        layout: Fields of `Layout`, without the unit of time.
        wall_clock: Whether times are of the calendar (ns since 1970 once read).
        resolution_seconds: Step of the clock where it is coarse.
        guessable: Whether a file may be taken for it without being named: not where another format
            looks alike and means something else.
        shared_names: Whether a volume's name means the same volume in every file.
        record_bytes: Of a binary format; 0: text.
        parser: Makes the parser from the file's first bytes and the unit; None: from `layout`.
        notes: What the format cannot tell.
    """

    name: str
    describes: str
    row: str
    unit: str
    layout: Mapping[str, Any] = field(default_factory=dict)
    wall_clock: bool = False
    resolution_seconds: float = 0.0
    guessable: bool = True
    shared_names: bool = False
    record_bytes: int = 0
    parser: Callable[[bytes, str, str], Parser] | None = None
    notes: tuple[str, ...] = ()

    def open(self, head: bytes, where: str, unit: str | None = None) -> Parser:
        """A parser for a file that begins with `head`.

        Raises:
            InputError: The file's beginning is none of the format, or the unit is unknown.
        """
        if unit is not None and unit not in UNITS_PS:
            raise InputError(f"--time-unit {unit}: is none of {', '.join(UNITS_PS)}")
        if self.parser is not None:
            return self.parser(head, where, unit or self.unit)
        return row_parser(self.layout, unit or self.unit, fixed_origin=unit is None)


def row_parser(layout: Mapping[str, Any], unit: str, *, fixed_origin: bool = True) -> RowParser:
    """The native parser of a layout; a unit of the user's own counts from 1970."""
    described = Layout()
    for name, value in layout.items():
        setattr(described, name, value)
    described.time_unit_ps = UNITS_PS[unit]
    if not fixed_origin:
        described.time_origin = 0
    return RowParser(described)


def rows_before_defect(form: TraceFormat, head: bytes) -> tuple[int, bool]:
    """How many of the whole lines at the beginning of a file are rows of a format, and if all."""
    if form.record_bytes == 0 and b"\n" in head:
        head = head[: head.rindex(b"\n") + 1]
    try:
        parser = form.open(head, "")
    except InputError:
        return 0, False
    arrival_ns, *_ = parser.feed(head)
    rows = len(arrival_ns) + sum(left_out for left_out, _ in parser.odd.values())
    return rows, rows > 0 and not parser.defect


_VSCSI_VERSION_1 = np.dtype(
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
_VSCSI_VERSION_2 = np.dtype(
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
_VSCSI_READS = (0x08, 0x28, 0xA8, 0x88)
_VSCSI_WRITES = (0x0A, 0x2A, 0xAA, 0x8A)
_VSCSI_LIMIT = 1 << 62


def _cloudphysics_parser(head: bytes, where: str, unit: str) -> Parser:
    for version, record in ((1, _VSCSI_VERSION_1), (2, _VSCSI_VERSION_2)):
        first = np.frombuffer(head, dtype=record, count=min(8, len(head) // record.itemsize))
        if len(first) and (first["version"] >> 8 == version).all():
            return _VscsiRecords(record, version, UNITS_PS[unit], Path(where).name.split(".")[0])
    raise InputError(
        f"{where}: is no vSCSI file: neither version 1 nor version 2 stands in its first records"
    )


class _VscsiRecords:
    """Stops at the first record with another version or impossible values."""

    def __init__(self, record: np.dtype[Any], version: int, unit_ps: int, name: str) -> None:
        self.record_bytes = record.itemsize
        self._record, self._version, self._unit_ps = record, version, unit_ps
        self.volumes = [name.encode()]
        self.defect, self.defect_text, self.lines, self.ended = "", b"", 0, False
        self.odd: dict[str, tuple[int, int]] = {}

    def feed(self, text: bytes) -> Columns:
        """Rows of whole records, up to the first damaged one."""
        rows = np.frombuffer(text, dtype=self._record, count=len(text) // self._record.itemsize)
        most_time = min(_VSCSI_LIMIT * 1000 // self._unit_ps, _VSCSI_LIMIT)
        sound = {
            "version": rows["version"] >> 8 == self._version,
            "offset": rows["block"] < _VSCSI_LIMIT // 512,
            "time": rows["time"] < np.uint64(most_time),
        }
        for name, good in sound.items():
            bad = np.flatnonzero(~good)
            if len(bad):
                columns = self._columns(rows[: bad[0]])
                self.defect, self.lines = name, self.lines + 1
                self.defect_text = rows[bad[0]].tobytes().hex().encode()
                return columns
        return self._columns(rows)

    def _columns(self, rows: NDArray[Any]) -> Columns:
        time, unit = rows["time"].astype(np.int64), self._unit_ps
        arrival_ns = time * (unit // 1000) if unit >= 1000 else time // (1000 // unit)
        is_write = np.isin(rows["command"], _VSCSI_WRITES)
        is_known = is_write | np.isin(rows["command"], _VSCSI_READS)
        is_empty = is_known & (rows["length"] == 0)
        lines = np.arange(self.lines + 1, self.lines + len(rows) + 1, dtype=np.uint64)
        self.lines += len(rows)
        for reason, left_out in (("ignored", ~is_known), ("empty", is_empty)):
            if left_out.any():
                count, first = self.odd.get(reason, (0, int(lines[left_out][0])))
                self.odd[reason] = (count + int(left_out.sum()), first)
        use = is_known & ~is_empty
        return (
            arrival_ns[use],
            rows["block"][use].astype(np.int64) * 512,
            rows["length"][use].astype(np.int64),
            is_write[use].astype(np.uint8),
            np.zeros(int(use.sum()), dtype=np.uint32),
            lines[use],
        )


_BLKPARSE_QUEUED = re.compile(rb"^\s*\d+,\d+\s+\d+\s+\d+\s+\d+\.\d+\s+\d+\s+Q\s", re.MULTILINE)


def _blkparse_parser(head: bytes, where: str, unit: str) -> Parser:
    layout = {
        "dialect": Dialect.BLKPARSE,
        "separator": " ",
        "comment": "#",
        "time_fraction": True,
        "action": "Q" if _BLKPARSE_QUEUED.search(head) else "D",
    }
    return row_parser(layout, unit)


_IOLOG_FIRST = re.compile(rb"fio version (\d+) iolog\s*(\n|$)")
_IOLOG_DIALECTS = {b"2": Dialect.FIO_IOLOG_2, b"3": Dialect.FIO_IOLOG_3}


def _fio_iolog_parser(head: bytes, where: str, unit: str) -> Parser:
    match = _IOLOG_FIRST.match(head)
    if match is None or match[1] not in _IOLOG_DIALECTS:
        raise InputError(f"{where}: line 1: is not `fio version 2 iolog` or version 3")
    return row_parser({"dialect": _IOLOG_DIALECTS[match[1]], "separator": " "}, unit)


FORMATS: dict[str, TraceFormat] = {
    form.name: form
    for form in (
        # MSR Cambridge (SNIA IOTTA 388; Narayanan et al., FAST 2008).
        # Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime; Windows file times (100 ns
        # since 1601), bytes. A volume is a host and its disk: disk numbers repeat between hosts.
        # The response time is that of the old drive and is not used.
        TraceFormat(
            name="msr",
            describes="MSR Cambridge, SNIA IOTTA 388",
            row="128166372010810581,mds,0,Write,2654453760,4096,54086",
            unit="100ns",
            layout={
                "columns_min": 7,
                "columns_max": 7,
                "time": 0,
                "time_origin": 116444736000000000,
                "volume": 1,
                "volume_2": 2,
                "op": 3,
                "reads": ["read"],
                "writes": ["write"],
                "offset": 4,
                "size": 5,
            },
            wall_clock=True,
            shared_names=True,
        ),
        # Alibaba block traces 2020 (github.com/alibaba/block-traces; Li et al., IISWC 2020; CC BY
        # 4.0). device_id,opcode,offset,length,timestamp; microseconds since 1970, bytes. Times are
        # those of arrival at the block server.
        TraceFormat(
            name="alibaba",
            describes="Alibaba block traces 2020",
            row="0,R,126703661056,4096,1577808000000046",
            unit="us",
            layout={
                "columns_min": 5,
                "columns_max": 5,
                "volume": 0,
                "op": 1,
                "reads": ["r"],
                "writes": ["w"],
                "offset": 2,
                "size": 3,
                "time": 4,
            },
            wall_clock=True,
            shared_names=True,
        ),
        # Tencent CBS 2018 (SNIA IOTTA 28064; Zhang et al., USENIX ATC 2020).
        # Timestamp,Offset,Size,IOType,VolumeID; seconds since 1970, sectors of 512 bytes, 0 reads,
        # 1 writes. Other programs write five numbers with other meanings, so the format must be
        # named.
        TraceFormat(
            name="tencent",
            describes="Tencent CBS 2018, SNIA IOTTA 28064",
            row="1538323199,1003027216,16,0,2313",
            unit="s",
            layout={
                "columns_min": 5,
                "columns_max": 5,
                "time": 0,
                "offset": 1,
                "offset_unit": 512,
                "size": 2,
                "size_unit": 512,
                "op": 3,
                "reads": ["0"],
                "writes": ["1"],
                "volume": 4,
            },
            wall_clock=True,
            resolution_seconds=1.0,
            guessable=False,
            shared_names=True,
        ),
        # FIU (SNIA IOTTA 391; Koller and Rangaswami, FAST 2010). ts pid process lba size op major
        # minor md5; nanoseconds of an unknown clock, sectors of 512 bytes. A process may have
        # blanks in its name, so the columns behind it are counted from the end.
        TraceFormat(
            name="fiu",
            describes="FIU, SNIA IOTTA 391",
            row="89968195792462 20782 gzip 283193184 8 R 6 0 56f11b711d91a065a2b6458eca924523",
            unit="ns",
            layout={
                "separator": " ",
                "columns_min": 9,
                "columns_max": 9,
                "elastic": 2,
                "time": 0,
                "offset": 3,
                "offset_unit": 512,
                "size": 4,
                "size_unit": 512,
                "op": 5,
                "reads": ["r"],
                "writes": ["w"],
                "volume": 6,
                "volume_2": 7,
                "volume_joint": ",",
            },
        ),
        # SPC (UMass Trace Repository: Financial, WebSearch; SPC Trace File Format 1.0.1).
        # ASU,LBA,Size,Opcode,Timestamp and any number of further columns; blocks of 512 bytes but
        # sizes in bytes, seconds with decimals. Each ASU is an address space of its own.
        TraceFormat(
            name="spc",
            describes="UMass Financial and WebSearch, SPC format 1.0.1",
            row="0,303567,3584,w,0.000000",
            unit="s",
            layout={
                "columns_min": 5,
                "columns_max": 32,
                "volume": 0,
                "offset": 1,
                "offset_unit": 512,
                "size": 2,
                "op": 3,
                "reads": ["r"],
                "writes": ["w"],
                "time": 4,
                "time_fraction": True,
            },
        ),
        # CloudPhysics vSCSI, binary (Waldspurger et al., FAST 2015). Records of 32 bytes (version
        # 1) or 40 (version 2), little endian: the address counts sectors of 512 bytes, the length
        # bytes, the time microseconds. The file is the volume. Reads are the SCSI commands READ(6),
        # (10), (12), (16), writes likewise; others are counted and left out.
        TraceFormat(
            name="cloudphysics",
            describes="CloudPhysics vSCSI, binary, versions 1 and 2",
            row="(binary records of 32 or 40 bytes)",
            unit="us",
            record_bytes=32,
            parser=_cloudphysics_parser,
        ),
        # SYSTOR 2017 (SNIA IOTTA 4964; Lee et al.). Timestamp,Response,IOType,LUN,Offset,Size below
        # a header line; seconds with decimals since 1970, bytes. A request without a reply has no
        # type and is left out. The capture pauses for seconds at each full hour.
        TraceFormat(
            name="systor",
            describes="SYSTOR 2017, SNIA IOTTA 4964",
            row="1456095145.133076000,0.000806000,R,0,899056122368,131072",
            unit="s",
            layout={
                "columns_min": 6,
                "columns_max": 6,
                "comment": "T",
                "time": 0,
                "time_fraction": True,
                "op": 2,
                "reads": ["r"],
                "writes": ["w"],
                "ignored": [""],
                "volume": 3,
                "offset": 4,
                "size": 5,
            },
            wall_clock=True,
            shared_names=True,
            notes=(
                "the capture pauses for seconds at each full hour: such gaps are not idle time",
            ),
        ),
        # blkparse's default text, of blktrace (blkparse(1)), also of the YCSB/RocksDB traces.
        # Requests are queued events (Q), or issued ones (D) where the file begins without any Q.
        # Flushes and discards are counted and left out; so are events without data, and the remaps
        # (A), merges, plugs and completions that repeat a request. Lines that begin with # are
        # passed over, and the summary at the end ends the file.
        TraceFormat(
            name="blkparse",
            describes="blkparse's default text",
            row="  8,16   5        2     0.000001850 18615  Q   R 1444645666 + 256 [java]",
            unit="s",
            parser=_blkparse_parser,
        ),
        # fio's iolog, versions 2 and 3 (fio's HOWTO, "Trace file format"). Version 3 has the
        # microseconds since the job began, version 2 waits between requests; both have bytes. A
        # volume is a file of the log. Syncs and trims are counted and left out.
        TraceFormat(
            name="fio-iolog",
            describes="fio's iolog, versions 2 and 3",
            row="878 /dev/nvme0n1 write 0 16384",
            unit="us",
            parser=_fio_iolog_parser,
        ),
        # MQSim and SSDsim text: time device sector sectors op, with 0 writing and 1 reading.
        # Nanoseconds unless --time-unit says otherwise. Other programs write five numbers with
        # other meanings, so the format must be named.
        TraceFormat(
            name="mqsim",
            describes="MQSim and SSDsim text, five numbers in ns and sectors",
            row="938513000 4 264719034 16 0",
            unit="ns",
            layout={
                "separator": " ",
                "columns_min": 5,
                "columns_max": 5,
                "time": 0,
                "volume": 1,
                "offset": 2,
                "offset_unit": 512,
                "size": 3,
                "size_unit": 512,
                "op": 4,
                "reads": ["1"],
                "writes": ["0"],
            },
            guessable=False,
        ),
    )
}


def format_named(name: str) -> TraceFormat:
    """The format of that name.

    Raises:
        InputError: There is none.
    """
    if name not in FORMATS:
        raise InputError(
            f"--format {name}: is none of {', '.join(FORMATS)}{close_names(name, FORMATS)}"
        )
    return FORMATS[name]


def fitting(head: bytes) -> list[str]:
    """Names of the formats whose rows the beginning of a file could be."""
    return [name for name, form in FORMATS.items() if rows_before_defect(form, head)[1]]


def format_of(head: bytes, where: str) -> TraceFormat:
    """The only format that a file's beginning fits, or that its very first lines fit.

    Raises:
        InputError: They fit none, or several, or one whose rows look like those of other programs
            with another meaning.
    """
    if not head:
        raise InputError(f"{where}: is empty")
    rows = {name: rows_before_defect(form, head) for name, form in FORMATS.items()}
    most = max(read for read, _ in rows.values())
    # reading on then names the line that is none of the format
    names = fitting(head) or [name for name, (read, _) in rows.items() if read == most > 0]
    if len(names) == 1 and FORMATS[names[0]].guessable:
        return FORMATS[names[0]]
    if not names:
        raise InputError(
            f"{where}: its first line fits none of {', '.join(FORMATS)}; --format with the one "
            "that it should be says what differs"
        )
    doubt = "; other programs write rows like these with another meaning" if len(names) == 1 else ""
    raise InputError(
        f"{where}: the format is not certain: its first lines fit {', '.join(names)}{doubt}; state "
        f"it: --format {names[0]}"
    )
