"""fio's iolog, versions 2 and 3 (fio's HOWTO, "Trace file format").

Version 3 has the microseconds since the job began, version 2 waits between requests; both have
bytes. A volume is a file of the log. Syncs and trims are counted and left out.
"""

import re

from iojoule.datasets.errors import InputError
from iojoule.datasets.traces.trace_format import Dialect, Parser, TraceFormat, row_parser

_FIRST = re.compile(rb"fio version (\d+) iolog\s*(\n|$)")
_DIALECTS = {b"2": Dialect.FIO_IOLOG_2, b"3": Dialect.FIO_IOLOG_3}


def _parser(head: bytes, where: str, unit: str) -> Parser:
    match = _FIRST.match(head)
    if match is None or match[1] not in _DIALECTS:
        raise InputError(f"{where}: line 1: is not `fio version 2 iolog` or version 3")
    return row_parser({"dialect": _DIALECTS[match[1]], "separator": " "}, unit)


FIO_IOLOG = TraceFormat(
    name="fio-iolog",
    describes="fio's iolog, versions 2 and 3",
    row="878 /dev/nvme0n1 write 0 16384",
    unit="us",
    parser=_parser,
)
