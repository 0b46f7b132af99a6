"""What `measure command` is asked for, and which sensors that takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from iojoule.datasets.errors import InputError
from iojoule.measure.command.block_io import Disk
from iojoule.measure.command.metrics import Metric
from iojoule.measure.errors import SensorError
from iojoule.measure.sensors import open_sensor
from iojoule.measure.sensors.protocol import Scope
from iojoule.measure.sensors.rapl import ROOT as RAPL_ROOT


@dataclass(frozen=True)
class Request:
    """What is to be measured.

    Attributes:
        command: The program and its arguments.
        folder: New; takes everything.
        metrics: What to look for in the output.
        work: Name of the metric that counts as work; None = none.
        work_is_rate: It is a rate.
        unit: What work is counted in; None = the metric's name.
        drive: The block device whose I/O counts; None = none.
        sensors: As `open_sensor` takes them.
        rapl_root: Root of the powercap tree; None = the system's, where there is one.
        idle_seconds: Measure idle power so long before the first run; 0 = not.
        repeats: How often to run it.
        settle_seconds: Wait so long between runs.
        sync: Wait for the page cache to be written after each run, and count that as well.
    """

    command: Sequence[str]
    folder: Path
    metrics: Sequence[Metric] = ()
    work: str | None = None
    work_is_rate: bool = False
    unit: str | None = None
    drive: Path | None = None
    sensors: Sequence[str] = ()
    rapl_root: Path | None = None
    idle_seconds: float = 0.0
    repeats: int = 1
    settle_seconds: float = 0.0
    sync: bool = False

    def checked(self) -> None:
        """Refuse what cannot be done.

        Raises:
            InputError: Names the option and the remedy.
        """
        names = [metric.name for metric in self.metrics]
        if len(set(names)) != len(names):
            raise InputError(f"--metric: each name once, not {', '.join(names)}")
        if self.work is not None and self.work not in names:
            raise InputError(
                f"{'--rate' if self.work_is_rate else '--work'} {self.work}: no --metric is called "
                f"so; there are: {', '.join(names) or 'none'}"
            )
        if not self.command:
            raise InputError("no program is named; put it behind --")
        if self.repeats < 1 or self.idle_seconds < 0 or self.settle_seconds < 0:
            raise InputError("--repeat is at least 1, --idle and --settle at least 0")
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise InputError(f"{self.folder}: exists and is not an empty folder; name a new one")


def sensors_for(request: Request, disk: Disk | None) -> tuple[list[str], list[str]]:
    """Those that were named, the CPU's energy where it can be read, load, and the drive's I/O.

    Raises:
        SensorError: One of them cannot be used.
    """
    named = list(request.sensors)
    notes: list[str] = []
    if request.rapl_root is not None:
        named.append(f"rapl:{request.rapl_root}")
    elif RAPL_ROOT.exists() and not any(text.partition(":")[0] == "rapl" for text in named):
        try:
            open_sensor("rapl").probe()
            named.append("rapl")
        except SensorError as error:
            notes.append(f"the CPU's energy is not measured: {error.message}")
    named.append("cpu")
    if disk is not None:
        named.append(f"diskstats:{disk.name}")
    named = list(dict.fromkeys(named))
    rails = [rail for text in named for rail in open_sensor(text).probe().rails]
    scopes = {rail.scope for rail in rails if rail.counts}
    if Scope.DEVICE not in scopes:
        notes.append("the drive's power is not measured; name an instrument with --power")
    if Scope.CPU not in scopes and request.rapl_root is None and not notes:
        notes.append("the CPU's energy is not measured: this machine has no RAPL counters")
    return named, notes
