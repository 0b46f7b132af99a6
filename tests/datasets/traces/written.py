"""Rows as public sources quote them, and files of them."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np

from iojoule.datasets.traces.formats import FORMATS
from iojoule.datasets.traces.read import Batch, Selection, TraceReader


class Quoted(NamedTuple):
    """A format's rows and what they say: ns from the first row, bytes, bytes, writes, volume."""

    form: str
    text: bytes
    rows: list[tuple[int, int, int, bool, str]]


IOLOG_2 = b"""fio version 2 iolog
/dev/a add
/dev/a open
/dev/a write 0 16384
/dev/a wait 1500 0
/dev/a read 4096 512
/dev/a sync 0 0
/dev/a trim 0 65536
/dev/a close
"""

BLKPARSE = b"""  8,16   5        2     0.000001850 18615  Q   R 1444645666 + 256 [java]
  8,16   5        3     0.000001950 18615  G   R 1444645666 + 256 [java]
  8,16   5        4     0.000002850 18615  D   R 1444645666 + 256 [java]
  8,16   5        5     0.001002850 18615  Q FWS [jbd2]
  8,16   5        6     0.001003850 18615  Q FWFS 8 + 16 [jbd2/sda 1]
  8,16   5        7     0.001003950 18615  A  WS 8 + 16 <- (8,17) 0
  8,16   5        8     0.002003850     0  C   R 1444645666 + 256 [0]
  8,16   5        9     0.002013850     0  P   N [java]
  8,16   5       10     0.002013850     0 UT   N [java] 1
  8,16   5       11     0.002023850     0  m   N cfq18615S / alloced
  8,16   5       12     0.003003850     0  Q   D 64 + 8 [java]
CPU5 (8,16):
 Reads Queued:           1,      128KiB	 Writes Queued:           1,        8KiB
Total (8,16):
"""
BLKPARSE_HEADER = b"""#Maj,Mn CPU   SeqNo     Seconds     PID  Evt Typ Sector   +Len Description
#------ --- ------- --------------- -----|--|---|---------+--- ----------------
"""
"""Some people put these lines before the events."""
BLKPARSE_ISSUED = b"""259,0   11        6     0.024903271     0  D  WS 575480360 + 8 [nvme]
259,0   11        7     0.024993271     0  C WFS 575480360 [0]
259,0   11        8     0.025903271     0  D  FN [nvme]
259,0   11        9     0.026903271     0  D   R 575480368 + 8 [nvme]
"""
_BLKPARSE_ROWS = [
    (0, 1444645666 * 512, 256 * 512, False, "8,16"),
    (1_002_000, 8 * 512, 16 * 512, True, "8,16"),
]


def vscsi(version: int) -> bytes:
    """A read, a write, a command that does neither, and a read of nothing."""
    found = b""
    for number, (command, length) in enumerate(
        [(0x28, 512), (0x2A, 65536), (0x35, 0), (0x88, 0)], start=1
    ):
        common = (number, length, 1)
        where = (1000 + number, 5_633_898_000_000 + 7 * number)
        if version == 1:
            found += struct.pack("<IIIHHQQ", *common, command, 0x100, *where)
        else:
            found += struct.pack("<HHIIIQQQ", command, 0x200, *common, *where, 99)
    return found


QUOTED = [
    Quoted(
        "msr",
        b"128166372010810581,mds,0,Write,2654453760,4096,54086\n"
        b"128166372011600556,mds,0,Read,3201662976,20480,45361\n",
        [
            (0, 2654453760, 4096, True, "mds_0"),
            (78_997_500, 3201662976, 20480, False, "mds_0"),
        ],
    ),
    Quoted(
        "alibaba",
        b"0,R,126703661056,4096,1577808000000046\n"
        b"1,W,19496058880,77824,1577808000000426\n"
        b"0,R,126703644672,4096,1577808000000626\n",
        [
            (0, 126703661056, 4096, False, "0"),
            (380_000, 19496058880, 77824, True, "1"),
            (580_000, 126703644672, 4096, False, "0"),
        ],
    ),
    Quoted(
        "tencent",
        b"1538323199,1003027216,16,0,2313\n1538323199,105352008,584,1,1576\n",
        [
            (0, 1003027216 * 512, 16 * 512, False, "2313"),
            (0, 105352008 * 512, 584 * 512, True, "1576"),
        ],
    ),
    Quoted(
        "fiu",
        b"89968195792462 20782 gzip 283193184 8 R 6 0 56f11b711d91a065a2b6458eca924523\n"
        b"89968195892462 4892 sys log d 904265560 8 W 6 0 56f11b711d91a065a2b6458eca924523\n",
        [
            (0, 283193184 * 512, 4096, False, "6,0"),
            (100_000, 904265560 * 512, 4096, True, "6,0"),
        ],
    ),
    Quoted(
        "spc",
        b"0,303567,3584,w,0.000000\n1,55590,3072,W,0.000000,1,2\n0, 303574, 3584,r,0.026214",
        [
            (0, 303567 * 512, 3584, True, "0"),
            (0, 55590 * 512, 3072, True, "1"),
            (26_214_000, 303574 * 512, 3584, False, "0"),
        ],
    ),
    Quoted(
        "systor",
        b"Timestamp,Response,IOType,LUN,Offset,Size\n"
        b"1456095145.133076000,0.000806000,R,0,899056122368,131072\n"
        b"1456095145.143076000,,,0,899056122368,131072\n"
        b"1456095145.153077000,0.000806000,W,4,899056122368,512\n",
        [
            (0, 899056122368, 131072, False, "0"),
            (20_001_000, 899056122368, 512, True, "4"),
        ],
    ),
    Quoted("blkparse", BLKPARSE, _BLKPARSE_ROWS),
    Quoted("blkparse", BLKPARSE_HEADER + BLKPARSE, _BLKPARSE_ROWS),
    Quoted(
        "blkparse",
        BLKPARSE_ISSUED,
        [
            (0, 575480360 * 512, 4096, True, "259,0"),
            (2_000_000, 575480368 * 512, 4096, False, "259,0"),
        ],
    ),
    Quoted(
        "fio-iolog",
        b"fio version 3 iolog\n872 Nvme1n1 open\n878 Nvme1n1 write 0 16384\n"
        b"978 Nvme1n1 datasync 0 0\n1878 Nvme1n1 read 512 512\n",
        [(0, 0, 16384, True, "Nvme1n1"), (1_000_000, 512, 512, False, "Nvme1n1")],
    ),
    Quoted(
        "fio-iolog",
        IOLOG_2,
        [(0, 0, 16384, True, "/dev/a"), (1_500_000, 4096, 512, False, "/dev/a")],
    ),
    Quoted(
        "mqsim",
        b"938513000 4 264719034 16 0\n938513200 5 8 1 1\n",
        [(0, 264719034 * 512, 8192, True, "4"), (200, 4096, 512, False, "5")],
    ),
    Quoted(
        "cloudphysics",
        vscsi(1),
        [(0, 1001 * 512, 512, False, "trace"), (7000, 1002 * 512, 65536, True, "trace")],
    ),
    Quoted(
        "cloudphysics",
        vscsi(2),
        [(0, 1001 * 512, 512, False, "trace"), (7000, 1002 * 512, 65536, True, "trace")],
    ),
]


def reader_of(
    path: Path, form: str, selection: Selection | None = None, block_bytes: int = 1 << 20
) -> TraceReader:
    return TraceReader((path,), FORMATS[form], selection or Selection(), block_bytes)


def read(reader: TraceReader) -> Batch:
    """All batches as one."""
    batches = list(reader.batches())
    return Batch(*map(np.concatenate, zip(*batches, strict=True)))


def rows_of(reader: TraceReader) -> list[tuple[int, int, int, bool, str]]:
    batch = read(reader)
    names = [reader.volumes[number] for number in batch.volume]
    columns = [column.tolist() for column in batch[:4]]
    return list(zip(*columns, names, strict=True))
