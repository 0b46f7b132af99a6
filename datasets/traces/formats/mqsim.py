"""MQSim and SSDsim text: time device sector sectors op, with 0 writing and 1 reading.

Nanoseconds unless --time-unit says otherwise. Other programs write five numbers with other
meanings, so the format must be named.
"""

from iojoule.datasets.traces.trace_format import TraceFormat

MQSIM = TraceFormat(
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
)
