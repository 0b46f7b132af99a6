"""Options of the commands that read traces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TraceFormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="msr, alibaba, tencent, fiu, spc, cloudphysics, systor, blkparse, fio-iolog or mqsim. "
        "Default: the only one that the first lines fit.",
    ),
]
VolumeOption = Annotated[
    list[str] | None,
    typer.Option("--volume", metavar="NAME", help="Only this volume. May be repeated."),
]
StartOption = Annotated[
    float, typer.Option("--start", metavar="SECONDS", help="Leave out what comes before.")
]
SecondsOption = Annotated[
    float | None, typer.Option("--seconds", metavar="SECONDS", help="Only so long.")
]
SpeedOption = Annotated[
    float, typer.Option("--speed", metavar="FACTOR", help="Time runs so many times faster.")
]
SampleOption = Annotated[
    float,
    typer.Option(
        "--sample", metavar="SHARE", help="Only this share of the address space, by hash."
    ),
]
TimeUnitOption = Annotated[
    str | None,
    typer.Option(
        "--time-unit", metavar="UNIT", help="Of the trace: ps, ns, 100ns, us, ms or s, if unusual."
    ),
]
ClassesOption = Annotated[
    Path | None,
    typer.Option(
        "--fleet-classes", metavar="FILE.toml", help="Write demand classes for a fleet file."
    ),
]
