"""Tencent CBS 2018 (SNIA IOTTA 28064; Zhang et al., USENIX ATC 2020).

Timestamp,Offset,Size,IOType,VolumeID; seconds since 1970, sectors of 512 bytes, 0 reads, 1 writes.
Other programs write five numbers with other meanings, so the format must be named.
"""

from iojoule.datasets.traces.trace_format import TraceFormat

TENCENT = TraceFormat(
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
)
