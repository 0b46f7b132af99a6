"""FIU (SNIA IOTTA 391; Koller and Rangaswami, FAST 2010).

ts pid process lba size op major minor md5; nanoseconds of an unknown clock, sectors of 512 bytes. A
process may have blanks in its name, so the columns behind it are counted from the end.
"""

from iojoule.datasets.traces.trace_format import TraceFormat

FIU = TraceFormat(
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
)
