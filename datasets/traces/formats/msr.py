"""MSR Cambridge (SNIA IOTTA 388; Narayanan et al., FAST 2008).

Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime; Windows file times (100 ns since 1601),
bytes. A volume is a host and its disk: disk numbers repeat between hosts. The response time is that
of the old drive and is not used.
"""

from iojoule.datasets.traces.trace_format import TraceFormat

MSR = TraceFormat(
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
)
