"""Options of `measure command`, metrics in a program's output, and the sensors it needs."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from iojoule.datasets.errors import InputError
from iojoule.measure.drive.block_io import Disk
from iojoule.measure.errors import SensorError
from iojoule.measure.sensors import open_sensor
from iojoule.measure.sensors.protocol import Scope
from iojoule.measure.sensors.rapl import ROOT as RAPL_ROOT

LAST_BYTES = 64 * 1024 * 1024
"""So much of the end of an output is searched."""

_PREFIXES = {"": 1.0, "K": 1e3}
_PREFIXES |= {prefix: 1000.0**power for power, prefix in enumerate("kMGT", start=1)}
_PREFIXES |= {f"{prefix}i": 1024.0**power for power, prefix in enumerate("KMGT", start=1)}
_TIMES = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "min": 60.0, "h": 3600.0}
_TIMES |= dict.fromkeys(("s", "sec", "secs", "seconds"), 1.0)
_UNITS = (
    "B bytes byte op ops io ios IOPS iops tps tpm qps req reqs requests rows samples transactions "
    "records keys"
)
_COUNTED = {"", *_UNITS.split()}

_NUMBER = re.compile(
    r"(?P<sign>[+-]?)"
    r"(?P<whole>\d{1,3}(?:(?P<mark>[,'_\s])\d{3})(?:(?P=mark)\d{3})*|\d+|(?=\.\d))"
    r"(?P<rest>\.\d+|\.)?(?P<exponent>[eE][+-]?\d+)?"
    r"\s*(?P<suffix>[^\d\s.,].*)?"
)
_COUNT = re.compile(r"(?P<prefix>[kKMGT]i?)?\s*(?P<word>[A-Za-z]*)(?:/s|/sec|/second)?")


@dataclass(frozen=True)
class Metric:
    """One figure."""

    name: str
    pattern: re.Pattern[str]

    def find(self, outputs: Sequence[str]) -> float | None:
        """The last match in the first output that has one; None where none has.

        Raises InputError if the match is not a number.
        """
        for output in outputs:
            matches = deque(self.pattern.finditer(output), maxlen=1)
            if matches and matches[0][1] is not None:
                return read_number(matches[0][1], f"--metric {self.name}")
        return None


def parse_metric(text: str) -> Metric:
    """Read `NAME=REGEX`. Raises InputError if it has another form, or no group."""
    name, equals, expression = text.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_][\w.-]*", name):
        raise InputError(
            f"--metric {text!r} is not NAME=REGEX; for instance --metric 'tps=tps = ([0-9.]+)'"
        )
    try:
        pattern = re.compile(expression, flags=re.MULTILINE)
    except re.error as error:
        raise InputError(
            f"--metric {name}: {expression!r} is no regular expression ({error})"
        ) from None
    if not pattern.groups:
        raise InputError(
            f"--metric {name}: {expression!r} has no group; put the number into parentheses, as in "
            "'tps = ([0-9.]+)'"
        )
    return Metric(name, pattern)


def read_number(text: str, where: str) -> float:
    """A number as programs print it: `12`, `1,234.5`, `1e6`, `3.2M`, `12.5 kop/s`, `3 ms`.

    k, M, G, T are powers of 1000, Ki, Mi, Gi, Ti of 1024; times become seconds; counted units and
    `/s` change nothing. Raises InputError if it is none; names `where`.
    """
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise InputError(
            f"{where}: {text!r} is not a number; let the group hold the number alone, and let the "
            "program print in English (LC_ALL=C)"
        )
    digits = re.sub(r"\D", "", match["whole"] or "") or "0"
    value = float(f"{match['sign']}{digits}{match['rest'] or ''}{match['exponent'] or ''}")
    suffix = (match["suffix"] or "").strip()
    factor = _factor(suffix)
    if factor is None:
        raise InputError(
            f"{where}: {suffix!r} behind the number is no unit that is known; let the group hold "
            "the number alone"
        )
    return value * factor


def _factor(suffix: str) -> float | None:
    if suffix in _TIMES:
        return _TIMES[suffix]
    if suffix in _COUNTED:
        return 1.0
    match = _COUNT.fullmatch(suffix)
    if match is None:
        return None
    return _PREFIXES[match["prefix"] or ""] if match["word"] in _COUNTED else None


def read_output(path: Path) -> str:
    """The end of what a program printed, as text."""
    with path.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(0, size - LAST_BYTES))
        return stream.read().decode("utf-8", "replace")


@dataclass(frozen=True)
class CommandRequest:
    """What to measure.

    Attributes:
        folder: New; takes all files.
        work: Name of the metric that counts as work; None = none.
        unit: Unit of work; None = the metric's name.
        drive: The block device whose I/O counts; None = none.
        sensors: As `open_sensor` takes them.
        rapl_root: Root of the powercap tree; None = the system's, where it exists.
        idle_seconds: Duration of idle power before the first run; 0 = not measured.
        sync: Whether to wait for the page cache after each run, and count that as well.
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
        """Refuse an impossible request.

        Raises InputError, which names the option and the remedy.
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


def sensors_for(request: CommandRequest, disk: Disk | None) -> tuple[list[str], list[str]]:
    """The named sensors, RAPL where readable, CPU load and the drive's I/O.

    Raises SensorError if one of them cannot be used.
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
