"""Live watts and joules of this host's drives: what each estimate rests on, and the loop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from iojoule.api.application.build_profile import expected_profile
from iojoule.api.application.profiles import profile_in, profile_of
from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.errors import InputError, NoProfileError, UnknownDeviceError
from iojoule.datasets.profile import DeviceProfile, load_shipped_profile, shipped_profiles
from iojoule.measure.errors import HostStateError
from iojoule.measure.sensors import open_sensor
from iojoule.meter.attribution import IdlePolicy
from iojoule.meter.cgroups import find_hierarchy, raise_descriptor_limit
from iojoule.meter.counters import PROC, BlockCounters
from iojoule.meter.drives import LEFT_OUT, MeteredDrive
from iojoule.meter.groups import GroupMeter, GroupReading, ProcessMeter
from iojoule.meter.instrument import Instrument
from iojoule.meter.meter import Basis, Meter, Reading
from iojoule.model.prior.classes import class_profile

GROUPS_EXPECTED = 5000
"""Control groups whose files may stay open, where the host allows."""

PROFILE, CATALOGUE, CLASS = "profile", "catalogue", "class"
"""What an estimate rests on: a fit to measurements, facts of the model, or of its kind alone."""


@dataclass(frozen=True)
class MeterOptions:
    """What to meter, and by what.

    Attributes:
        drives: Kernel names; empty for all drives of the host.
        profiles: Name of a drive, and the file or the device model whose profile holds for it.
        instruments: Name of a drive, and the sensor that measures it.
        interval_seconds: Between two looks.
        sysfs: Where it is mounted; `proc` likewise.
        cgroups: Where control groups are mounted; None where nobody asks whose joules they are.
        idle: Who pays what a drive draws at rest.
        processes: Whether to divide among processes instead, an estimate.
        groups_optional: Whether to go on where control groups count nothing.
    """

    drives: tuple[str, ...] = ()
    profiles: Mapping[str, str] | None = None
    instruments: Mapping[str, str] | None = None
    interval_seconds: float = 1.0
    sysfs: Path = Path("/sys")
    proc: Path = PROC
    cgroups: Path | None = None
    idle: IdlePolicy = IdlePolicy.SEPARATE
    processes: bool = False
    groups_optional: bool = False


def assigned(texts: Sequence[str], option: str) -> dict[str, str]:
    """`DRIVE=VALUE` texts by the kernel's name of the drive.

    Raises:
        InputError: Not of that form, or a drive twice.
    """
    values: dict[str, str] = {}
    for text in texts:
        drive, equals, value = text.partition("=")
        name = kernel_name(drive)
        if not (equals and name and value):
            raise InputError(f"{option} {text!r}: write it as DRIVE=VALUE, such as nvme0n1=...")
        if name in values:
            raise InputError(f"{option}: {name} is named twice; keep one")
        values[name] = value
    return values


def kernel_name(drive: str) -> str:
    """`nvme0n1` of `nvme0n1`, `/dev/nvme0n1` or a link to it such as those in /dev/disk/by-id."""
    path = Path(drive)
    return path.resolve().name if path.is_absolute() else path.name


def basis_of(drive: MeteredDrive, stated: Mapping[str, str]) -> Basis:
    """What the estimate of a drive rests on: what is stated, else its model, else its kind.

    Raises:
        InputError: A stated profile cannot be read, or knows no watts.
    """
    profile, source = _profile_for(drive, stated)
    settings: tuple[tuple[str, Any], ...] = ()
    if drive.sleeps_by_itself and profile.idle is not None:
        settings = (("apst_enabled", True),)
    return Basis(profile, source, settings=settings)


def _profile_for(drive: MeteredDrive, stated: Mapping[str, str]) -> tuple[DeviceProfile, str]:
    named = stated.get(drive.name)
    if named is not None:
        profile = profile_in(Path(named)) if named.endswith(".json") else profile_of(named)
        if profile.device_power is None:
            raise NoProfileError(
                f"--profile {drive.name}={named}: it knows no watts of the drive; measure it with "
                "a power meter, or name another"
            )
        return profile, CATALOGUE if profile.device_power.is_expected else PROFILE
    known = _of_model(drive.model) if drive.model else None
    if known is not None:
        return known
    link = drive.link
    return (
        _of_class(
            drive.rotates,
            drive.transport == "nvme",
            drive.capacity_bytes,
            link.generation,
            link.lanes,
        ),
        CLASS,
    )


@cache
def _of_model(model: str) -> tuple[DeviceProfile, str] | None:
    """A shipped profile with watts, else what the catalogue lets expect; None for neither."""
    try:
        device = load_catalogue().get(model).id
    except UnknownDeviceError:
        return None
    if device in shipped_profiles():
        shipped = load_shipped_profile(device)
        if shipped.device_power is not None:
            return shipped, CATALOGUE if shipped.device_power.is_expected else PROFILE
    try:
        return expected_profile(device), CATALOGUE
    except NoProfileError:
        return None


@cache
def _of_class(
    rotates: bool, nvme: bool, capacity: int | None, generation: int | None, lanes: int | None
) -> DeviceProfile:
    """One profile for all drives of a kind, so that they are evaluated together."""
    return class_profile(
        rotates=rotates,
        nvme=nvme,
        capacity_bytes=capacity,
        pcie_generation=generation,
        pcie_lanes=lanes,
    )


class LiveMeter:
    """The meter of this host; use it in a `with` statement.

    Args:
        options: What to meter.

    Raises:
        HostStateError: The block counters cannot be read.
        InputError: A named drive is not there, or no drive of its own.
        SensorError: An instrument does not start.
    """

    def __init__(self, options: MeterOptions) -> None:
        self.options = options
        stated = options.profiles or {}
        named = {*options.drives, *stated, *(options.instruments or {})}
        self.counters = BlockCounters(options.proc, options.sysfs, also=named, only=options.drives)
        self.instruments: dict[str, Instrument] = {}
        self.groups: GroupMeter | ProcessMeter | None = None
        try:
            first = self.counters.read()
            self.left_out = first.inventory.left_out
            self._check(named, {name for drive in first.drives for name in drive.devices})
            self.meter = Meter(lambda drive: basis_of(drive, stated))
            self.readings = self.meter.step(first)
            if options.processes:
                self.groups = ProcessMeter(options.proc)
            elif options.cgroups is not None:
                self.groups = self._group_meter(options.cgroups)
            if self.groups is not None:
                self.groups.begin(first.drives)
            for drive, sensor in (options.instruments or {}).items():
                self.instruments[drive] = Instrument(open_sensor(sensor))
        except BaseException:
            self.close()
            raise
        self._last = first.monotonic_seconds
        self.step_seconds = 0.0

    def __enter__(self) -> LiveMeter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the instruments and the counters."""
        for instrument in self.instruments.values():
            instrument.close()
        if self.groups is not None:
            self.groups.close()
        self.counters.close()

    def step(self) -> list[Reading]:
        """Look once, now."""
        begin = time.monotonic()
        now = self.counters.read()
        seconds, self._last = now.monotonic_seconds - self._last, now.monotonic_seconds
        measured = {
            drive: watts
            for drive, instrument in self.instruments.items()
            if (watts := instrument.watts(seconds)) is not None
        }
        self.readings = self.meter.step(now, measured)
        if self.groups is not None and self.meter.intervals is not None:
            self.groups.step(self.meter.intervals, self.readings)
        self.step_seconds = time.monotonic() - begin
        return self.readings

    def follow(
        self, seconds: float | None = None, sleep: Callable[[float], Any] = time.sleep
    ) -> Iterator[list[Reading]]:
        """Look again and again, each time on the beat, for so long or until it is interrupted."""
        step = self.options.interval_seconds
        begin = time.monotonic()
        beat = 0
        while seconds is None or (beat + 0.5) * step < seconds:
            beat = max(beat + 1, int((time.monotonic() - begin) / step))
            wait = begin + beat * step - time.monotonic()
            if wait > 0:
                sleep(wait)
            yield self.step()

    def _group_meter(self, root: Path) -> GroupMeter | None:
        hierarchy = find_hierarchy(root)
        if hierarchy.folder is None and self.options.groups_optional:
            return None
        if hierarchy.folder is None:
            raise HostStateError(
                f"{'; '.join(hierarchy.remarks)}: control groups cannot tell whose joules they "
                "are; --processes estimates it"
            )
        raise_descriptor_limit(GROUPS_EXPECTED)
        return GroupMeter(hierarchy, self.options.sysfs, self.options.idle)

    def _check(self, named: set[str], there: set[str]) -> None:
        for name in sorted(named - there):
            code = self.left_out.get(name)
            if code is not None:
                raise InputError(f"{name}: no drive of its own here: {LEFT_OUT[code]}")
            raise InputError(f"{name}: there is no such block device; `lsblk -d` lists them")


COLUMNS = (
    "time_utc",
    "device",
    "group",
    "serial",
    "seconds",
    "watts",
    "watts_low",
    "watts_high",
    "idle_watts",
    "read_watts",
    "write_watts",
    "background_watts",
    "joules",
    "joules_low",
    "joules_high",
    "unmetered_seconds",
    "model",
    "profile",
    "source",
    "corrected",
    "reasons",
)
"""Fields of `record`."""


def record(reading: Reading, time_utc: str) -> dict[str, Any]:
    """One drive after one interval, as JSON and CSV have it; unknown is None."""

    def known(value: float) -> float | None:
        return None if math.isnan(value) else value

    drive = reading.drive
    return {
        "time_utc": time_utc,
        "device": drive.name,
        "group": None,
        "serial": drive.serial,
        "seconds": reading.seconds,
        "watts": known(reading.watts),
        "watts_low": known(reading.watts_low),
        "watts_high": known(reading.watts_high),
        **{f"{name}_watts": known(value) for name, value in reading.part_watts.items()},
        "joules": reading.joules,
        "joules_low": reading.joules_low,
        "joules_high": reading.joules_high,
        "unmetered_seconds": reading.unmetered_seconds,
        "model": drive.model,
        "profile": reading.basis.profile.device,
        "source": reading.basis.source,
        "corrected": reading.corrected,
        "reasons": list(reading.reasons),
    }


def group_record(reading: GroupReading, time_utc: str) -> dict[str, Any]:
    """What one group has drawn from one drive, with the fields of `record`; others are None."""
    return {
        **dict.fromkeys(COLUMNS),
        "time_utc": time_utc,
        "device": reading.drive,
        "group": reading.group,
        "watts": reading.watts,
        **{f"{name}_watts": value for name, value in reading.part_watts.items()},
        "joules": reading.joules,
        "source": reading.quality,
    }
