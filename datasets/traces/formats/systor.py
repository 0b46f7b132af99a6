"""SYSTOR 2017 (SNIA IOTTA 4964; Lee et al.).

Timestamp,Response,IOType,LUN,Offset,Size below a header line; seconds with decimals since 1970,
bytes. A request without a reply has no type and is left out. The capture pauses for seconds at each
full hour.
"""

from iojoule.datasets.traces.trace_format import TraceFormat

SYSTOR = TraceFormat(
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
    notes=("the capture pauses for seconds at each full hour: such gaps are not idle time",),
)
