"""RAPL: the energy counters of CPU packages, their parts, and DRAM, through Linux powercap.

Zones are identified by their file `name`, never by their number. `core` and `uncore` are parts of
`package-N`, `psys` contains the package and on a client machine perhaps the drive: they are
recorded but never added. A package that several interfaces show (`CONTROL_TYPES`) counts once.
Source: Documentation/power/powercap/powercap.rst of Linux.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from iojoule.measure.errors import SensorError
from iojoule.measure.sensors import Options
from iojoule.measure.sensors.polled import PolledSensor
from iojoule.measure.sensors.protocol import Chunk, Kind, Probe, Rail, Scope

ROOT = Path("/sys/class/powercap")
CONTROL_TYPES = ("intel-rapl", "intel-rapl-tpmi", "intel-rapl-mmio")
"""Linux' interfaces to the same counters, the preferred one first: model-specific registers (AMD's
too), TPMI and memory. A zone that one of them has is left out of the others."""
INTERVAL_SECONDS = 0.1
HIGHEST_WATTS = 2000.0
"""No package draws more; with it, a silence is known to be shorter than one wrap or not, and a
counter that was reset (suspend, reloaded module) is told from one that has wrapped."""


def from_options(options: Options) -> Rapl:
    """`rapl[:ROOT][,every=SECONDS]`."""
    options.known("every")
    root = Path(options.address) if options.address else ROOT
    return Rapl(root, interval_seconds=options.get("every", float) or INTERVAL_SECONDS)


@dataclass(frozen=True)
class Zone:
    """One counter, such as `package-0`, `package-0-core`, `package-0-dram` or `psys`.

    It wraps at `range_joules`; `counts`: whether it is part of its scope's total.
    """

    name: str
    folder: Path
    scope: Scope
    counts: bool
    range_joules: float


class Rapl(PolledSensor):
    """All zones below a powercap tree such as `/sys/class/powercap`."""

    def __init__(self, root: Path = ROOT, *, interval_seconds: float = INTERVAL_SECONDS) -> None:
        name = "rapl" if root == ROOT else f"rapl:{root}"
        super().__init__(name, interval_seconds, repeats_are_stale=True)
        self._root = root
        self._zones: list[Zone] = []
        self._totals: list[float] = []
        self._raw: list[float] | None = None

    def probe(self) -> Probe:
        """The zones; reads each once.

        Raises SensorError if there are none or they cannot be read.
        """
        if not self._zones:
            self._zones = _zones(self._root)
            for zone in self._zones:
                _joules(zone)
        rails = tuple(
            Rail(zone.name, "joules", Kind.ENERGY, zone.scope, 1e-6, counts=zone.counts)
            for zone in self._zones
        )
        return Probe(rails, 1 / self._interval, {"root": str(self._root)})

    def begin(self) -> None:
        """Count from here."""
        self._raw = None

    def poll(self) -> list[float]:
        """Joules since the start, wraps removed."""
        raw = [_joules(zone) for zone in self._zones]
        if self._raw is None:
            self._totals = [0.0] * len(raw)
        else:
            for place, (zone, now, before) in enumerate(
                zip(self._zones, raw, self._raw, strict=True)
            ):
                wrapped = zone.range_joules if now < before else 0.0
                self._totals[place] += now - before + wrapped
        self._raw = raw
        return list(self._totals)

    def read(self, timeout_seconds: float) -> Chunk:
        """See `protocol.Sensor`; raises SensorError also if a counter was reset."""
        before, then_ns = self._last, self._newest_ns
        chunk = super().read(timeout_seconds)
        if before is None or then_ns is None or not len(chunk):
            return chunk
        seconds = max((int(chunk.monotonic_ns[0]) - then_ns) * 1e-9, self._interval)
        for zone, joules in zip(self._zones, chunk.values[0] - before, strict=True):
            # psys may hold accelerators, whose power nothing limits
            if zone.scope is not Scope.SYSTEM and joules > HIGHEST_WATTS * seconds:
                raise SensorError(
                    f"{zone.folder}: counted {joules:.3g} J within {seconds:.3g} s, which no "
                    "processor draws: the counter was reset, by suspend or a reloaded module"
                )
        return chunk

    def missed(self, seconds: float) -> int:
        """A counter misses nothing, unless it may have wrapped more than once."""
        shortest = min(zone.range_joules for zone in self._zones) / HIGHEST_WATTS
        return super().missed(seconds) if seconds > shortest else 0


def _zones(root: Path) -> list[Zone]:
    folders = {
        path.parent.name: path.parent
        for pattern in ("*/energy_uj", "*/*/energy_uj", "*/*/*/energy_uj")
        for path in sorted(root.glob(pattern))
    }
    if not folders:
        raise SensorError(
            f"no RAPL counters below {root}: the CPU has none, a virtual machine hides them, or "
            "the kernel module is missing (`sudo modprobe intel_rapl_msr`)"
        )
    zones: list[Zone] = []
    seen_by: dict[str, str] = {}
    for identifier, folder in sorted(folders.items(), key=_preferred):
        own = _text(folder / "name")
        top, control = identifier.split(":")[:2], identifier.partition(":")[0]
        package = _text(folders[":".join(top)] / "name") if ":".join(top) in folders else own
        if seen_by.setdefault(package, control) != control:
            continue
        parent = folders.get(identifier.rpartition(":")[0])
        scope, counts = _meaning(own)
        name = own if parent is None else f"{_text(parent / 'name')}-{own}"
        if any(zone.name == name for zone in zones):
            name = f"{name}-{identifier.replace(':', '-')}"
        limit = folder / "max_energy_range_uj"
        zones.append(Zone(name, folder, scope, counts, _number(limit)))
        if zones[-1].range_joules <= 0:
            raise SensorError(f"{limit} holds {_text(limit)}, so it is unknown where {name} wraps")
    return zones


def _preferred(zone: tuple[str, Path]) -> tuple[int, str]:
    """The order in which zones are taken: of the preferred interface first."""
    control = zone[0].partition(":")[0]
    place = CONTROL_TYPES.index(control) if control in CONTROL_TYPES else len(CONTROL_TYPES)
    return place, zone[0]


def _meaning(name: str) -> tuple[Scope, bool]:
    if name.startswith("package"):
        return Scope.CPU, True
    if name == "dram":
        return Scope.DRAM, True
    if name == "psys":
        return Scope.SYSTEM, True
    return Scope.CPU, False


def _joules(zone: Zone) -> float:
    return _number(zone.folder / "energy_uj")


def _number(path: Path) -> float:
    text = _text(path)
    try:
        return int(text) * 1e-6
    except ValueError as error:
        raise SensorError(f"{path} holds {text!r} and not microjoules") from error


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()
    except PermissionError as error:
        raise SensorError(
            f"{path} is readable for root only (since Linux 5.10, against CVE-2020-8694): run as "
            "root, give the Python that runs iojoule CAP_DAC_READ_SEARCH, or add a udev rule: "
            'SUBSYSTEM=="powercap", RUN+="/bin/chgrp -R power /sys%p", '
            'RUN+="/bin/chmod -R g+r /sys%p"'
        ) from error
    except OSError as error:
        raise SensorError(f"{path} cannot be read: {error.strerror}") from error
