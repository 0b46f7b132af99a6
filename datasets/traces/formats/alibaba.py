"""Alibaba block traces 2020 (github.com/alibaba/block-traces; Li et al., IISWC 2020; CC BY 4.0).

device_id,opcode,offset,length,timestamp; microseconds since 1970, bytes. Times are those of arrival
at the block server.
"""

from iojoule.datasets.traces.trace_format import TraceFormat

ALIBABA = TraceFormat(
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
)
