"""Live watts and joules of this host's drives: what each estimate rests on, and the loop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iojoule.api.application.meter_basis import DriveState, ask, ask_again, basis_of, in_state
from iojoule.datasets.errors import InputError
from iojoule.measure.drive.nvme import NvmeController
from iojoule.measure.errors import DriveError, HostStateError, SensorError
from iojoule.measure.host.host_files import PROC
from iojoule.measure.sensors import open_sensor
from iojoule.meter.attribution import IdlePolicy
from iojoule.meter.cgroups import find_hierarchy, raise_descriptor_limit
from iojoule.meter.counters import APPEARED, RESET, BlockCounters, Intervals
from iojoule.meter.cpu import CpuMeter, CpuReading
from iojoule.meter.drives import LEFT_OUT, MeteredDrive
from iojoule.meter.group_sums import NAMED_MAX, GroupReading
from iojoule.meter.groups import GroupMeter, ProcessMeter
from iojoule.meter.idle_settings import block_device
from iojoule.meter.instrument import Instrument
from iojoule.meter.meter import Meter
from iojoule.meter.readings import Basis, Reading, Readings

ASK_SECONDS = 2.0
"""Between two questions for the power state of a drive that serves."""

INSTRUMENT_FAILED = "instrument_failed"
"""The instrument of a drive delivers no more until the meter is started again."""

_BEGAN_ANEW = {APPEARED, RESET}

GROUPS_EXPECTED = 5000
"""Control groups whose files may stay open, where the host allows."""


@dataclass(frozen=True)
class MeterOptions:
    """What to meter, and by what.

    Attributes:
        drives: Kernel names; empty for all drives of the host.
        profiles: Name of a drive, and the file or the device model whose profile holds for it. This
            and the next hold for the drive that has the name when the meter begins.
        instruments: Name of a drive, and the sensor that measures it.
        interval_seconds: Between two looks.
        sysfs: Where it is mounted; `proc` likewise.
        cgroups: Where control groups are mounted; None where nobody asks whose joules they are.
        idle: Who pays what a drive draws at rest.
        processes: Whether to divide among processes instead, an estimate.
        groups_optional: Whether to go on where control groups count nothing.
        ask_drives: Whether to ask NVMe drives for their power states and how they sleep: once, and
            for the state again while they serve.
        controllers: Name of a drive and the node of its controller, where the host has no other.
        named_max: So many pairs of group and drive have a counter of their own, of all drives
            together (`GroupReadings.counters`).
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
    ask_drives: bool = False
    controllers: Mapping[str, str] | None = None
    named_max: int = NAMED_MAX


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


@dataclass
class _Asked:
    """A drive: how it is asked, None where it cannot be; what it said last, and when."""

    nvme: NvmeController | None
    said: DriveState | None = None
    seconds: float = 0.0


class LiveMeter:
    """The meter of this host; use it in a `with` statement.

    Args:
        options: What to meter.

    Raises:
        DriveError: A drive that is to be asked does not answer.
        HostStateError: The block counters cannot be read.
        InputError: A named drive is not there, or no drive of its own.
        SensorError: An instrument does not start.
    """

    def __init__(self, options: MeterOptions) -> None:
        self.options = options
        controllers = options.controllers or {}
        named = {
            *options.drives,
            *(options.profiles or {}),
            *(options.instruments or {}),
            *controllers,
        }
        self._asked: dict[str, _Asked] = {}
        self._began = False
        self.counters = BlockCounters(options.proc, options.sysfs, also=named, only=options.drives)
        self.instruments: dict[str, Instrument] = {}
        self._measured: dict[str, Instrument] = {}  # by the key of the drive
        self.groups: GroupMeter | ProcessMeter | None = None
        self.cpu: CpuMeter | None = None
        self._cpu_remark = ""
        try:
            first = self.counters.read()
            self.left_out = first.inventory.left_out
            keys = {name: drive.key for drive in first.drives for name in drive.devices}
            self._check(named, keys.keys())
            self.meter = Meter(self._basis)
            self.readings = self.meter.step(first)
            self._began = True
            if options.processes:
                self.groups = ProcessMeter(options.proc, options.named_max)
            elif options.cgroups is not None:
                self.groups = self._group_meter(options.cgroups)
            if self.groups is not None:
                self.groups.begin(first.drives)
            self.cpu = self._cpu_meter()
            for drive, sensor in (options.instruments or {}).items():
                instrument = Instrument(open_sensor(sensor))
                self.instruments[drive] = self._measured[keys[drive]] = instrument
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

    def step(self) -> Readings:
        """Look once, now."""
        begin = time.monotonic()
        now = self.counters.read()
        seconds, self._last = now.monotonic_seconds - self._last, now.monotonic_seconds
        self.left_out = now.inventory.left_out
        measured = {
            drive.name: watts
            for drive in now.drives
            if (instrument := self._measured.get(drive.key)) is not None
            and (watts := instrument.watts(seconds)) is not None
        }
        self.readings = self.meter.step(now, measured)
        for row, drive in enumerate(now.drives):
            if self._has_lost_instrument(drive):
                self.readings.reasons[row] += (INSTRUMENT_FAILED,)
        self._ask_again()
        if self.meter.intervals is not None:
            of_cpu = self._step_cpu(self.meter.intervals)
            if self.groups is not None:
                self.groups.step(self.meter.intervals, self.readings, of_cpu)
        self.step_seconds = time.monotonic() - begin
        return self.readings

    def cpu_of(self, reading: Reading) -> CpuReading | None:
        """What the CPU drew for a drive's commands, where that is known."""
        return self.cpu.readings.get(reading.drive.key) if self.cpu is not None else None

    def remarks(self) -> Iterator[str]:
        """What limits the last step's answers."""
        if self._cpu_remark:
            yield self._cpu_remark
        for drive, instrument in self.instruments.items():
            if instrument.failure is not None:
                yield f"{drive}: watts are estimated, its instrument failed: {instrument.failure}"
        if self.groups is not None:
            yield from self.groups.remarks

    def follow(
        self, seconds: float | None = None, sleep: Callable[[float], Any] = time.sleep
    ) -> Iterator[Readings]:
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

    def _has_lost_instrument(self, drive: MeteredDrive) -> bool:
        """Whether its instrument failed, or was stated for a drive that had its name before."""
        instrument = self._measured.get(drive.key)
        if instrument is not None:
            return instrument.failure is not None
        return drive.stated(self.instruments) is not None

    def _basis(self, drive: MeteredDrive) -> Basis:
        """Of a new drive.

        One that comes later is asked by `_ask_again`, where it may be silent, and has no stated
        profile: that is of the drive that had its name at the beginning.
        """
        said = None
        if self.options.ask_drives:
            self._asked[drive.key] = asked = _Asked(self._controller(drive))
            said = None if self._began else self._ask(asked)
        stated = {} if self._began else self.options.profiles or {}
        return basis_of(drive, stated, self.options.sysfs, said)

    def _ask(self, asked: _Asked) -> DriveState | None:
        """What a drive says now; None for one that has no NVMe controller."""
        asked.seconds = time.monotonic()
        if asked.nvme is not None:
            asked.said = ask_again(asked.nvme, asked.said) if asked.said else ask(asked.nvme)
        return asked.said

    def _ask_again(self) -> None:
        """Ask drives that have just come or served, so that none wakes, for state and limit."""
        for reading in self.readings if self._asked else ():
            asked = self._asked[reading.drive.key]
            if _BEGAN_ANEW.intersection(reading.reasons):
                asked.said = None  # a reset undoes what was set, and the node may be another's
                asked.nvme = self._controller(reading.drive)
            elif not reading.served or time.monotonic() - asked.seconds < ASK_SECONDS:
                continue
            before = asked.said
            try:
                said = self._ask(asked)
            except (DriveError, HostStateError):
                asked.nvme = None  # it is asked when it comes back
                continue
            if said is not None and said != before:
                basis = in_state(reading.basis, reading.drive, self.options.sysfs, said)
                self.meter.rebase(reading.drive.key, basis)

    def _controller(self, drive: MeteredDrive) -> NvmeController | None:
        device = block_device(drive.name, self.options.sysfs)
        named = drive.stated(self.options.controllers or {})
        node = Path(named) if named is not None else device.controller_node()
        return None if node is None else NvmeController(node, device.namespace_id())

    def _cpu_meter(self) -> CpuMeter | None:
        """Where the packages' counters may be read."""
        powercap = self.options.sysfs / "class" / "powercap"
        if not powercap.is_dir():
            return None
        try:
            return CpuMeter(powercap, self.options.proc / "stat")
        except SensorError as error:
            self._cpu_remark = f"the CPU's joules for I/O are not known: {error.message}"
            return None

    def _step_cpu(self, intervals: Intervals) -> dict[str, float]:
        """Joules that the CPU drew for each drive in the interval."""
        if self.cpu is None:
            return {}
        try:
            return self.cpu.step(intervals, self.readings)
        except SensorError as error:
            self.cpu = None
            self._cpu_remark = f"the CPU's joules for I/O are not known any more: {error.message}"
            return {}

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
        return GroupMeter(
            hierarchy, self.options.sysfs, self.options.idle, named_max=self.options.named_max
        )

    def _check(self, named: set[str], there: Set[str]) -> None:
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
    "awake_watts",
    "read_watts",
    "write_watts",
    "background_watts",
    "joules",
    "joules_low",
    "joules_high",
    "unmetered_seconds",
    "cpu_watts",
    "cpu_joules",
    "cpu_joules_low",
    "cpu_joules_high",
    "model",
    "profile",
    "source",
    "corrected",
    "reasons",
)
"""Fields of `record`."""


def record(reading: Reading, cpu: CpuReading | None, time_utc: str) -> dict[str, Any]:
    """One drive after one interval, as JSON and CSV have it; unknown is None.

    Args:
        reading: Of the drive.
        cpu: What the CPU drew for it.
        time_utc: Now.
    """

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
        "cpu_watts": cpu.watts if cpu else None,
        "cpu_joules": cpu.joules if cpu else None,
        "cpu_joules_low": cpu.joules_low if cpu else None,
        "cpu_joules_high": cpu.joules_high if cpu else None,
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
        "cpu_joules": reading.cpu_joules,
        "source": reading.quality,
    }
