"""SPC (UMass Trace Repository: Financial, WebSearch; SPC Trace File Format 1.0.1).

ASU,LBA,Size,Opcode,Timestamp and any number of further columns; blocks of 512 bytes but sizes in
bytes, seconds with decimals. Each ASU is an address space of its own.
"""

from iojoule.datasets.traces.trace_format import TraceFormat

SPC = TraceFormat(
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
)
