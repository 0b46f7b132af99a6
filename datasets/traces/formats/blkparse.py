"""blkparse's default text, of blktrace (blkparse(1)), also of the YCSB/RocksDB traces.

Requests are queued events (Q), or issued ones (D) where the file begins without any Q. Flushes and
discards are counted and left out; so are events without data, and the remaps (A), merges, plugs and
completions that repeat a request. Lines that begin with # are passed over, and the summary at the
end ends the file.
"""

import re

from iojoule.datasets.traces.trace_format import Dialect, Parser, TraceFormat, row_parser

_QUEUED = re.compile(rb"^\s*\d+,\d+\s+\d+\s+\d+\s+\d+\.\d+\s+\d+\s+Q\s", re.MULTILINE)


def _parser(head: bytes, where: str, unit: str) -> Parser:
    layout = {
        "dialect": Dialect.BLKPARSE,
        "separator": " ",
        "comment": "#",
        "time_fraction": True,
        "action": "Q" if _QUEUED.search(head) else "D",
    }
    return row_parser(layout, unit)


BLKPARSE = TraceFormat(
    name="blkparse",
    describes="blkparse's default text",
    row="  8,16   5        2     0.000001850 18615  Q   R 1444645666 + 256 [java]",
    unit="s",
    parser=_parser,
)
