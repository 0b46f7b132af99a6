"""What the meter tells of the drives of a host after one interval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DeviceProfile
from iojoule.meter.drives import MeteredDrive
from iojoule.meter.idle import Descent
from iojoule.model.evaluate.bands import Floats

PARTS = ("idle", "awake", "read", "write", "background")


@dataclass(frozen=True)
class Basis:
    """What the estimate of a drive rests on.

    Attributes:
        profile: Of the drive, of its model, or of its class.
        source: `profile`, `catalogue` or `class`.
        power_state: Operational power state that it is held in.
        settings: Further columns of `make_frame` that hold for it.
        sleep: What it falls through at rest; None where it is not known that it sleeps.
        power_limited: Whether it is known to keep a power limit, under which no profile was fitted.
    """

    profile: DeviceProfile
    source: str
    power_state: int = 0
    settings: tuple[tuple[str, Any], ...] = ()
    sleep: Descent | None = None
    power_limited: bool = False

    @property
    def is_expected(self) -> bool:
        """Whether nobody measured a drive of this model."""
        power = self.profile.device_power
        return power is not None and power.is_expected


class Reading(NamedTuple):
    """One drive after one interval.

    Attributes:
        drive: Which.
        basis: What the estimate rests on.
        seconds: Length of the interval; 0 where there was none.
        watts: Mean power in it, with the 90 % interval from `watts_low` to `watts_high`.
        part_watts: By `PARTS`; they add up to `watts`.
        joules: Since the meter began, with `joules_low` and `joules_high`.
        part_joules: By `PARTS`; they add up to `joules`.
        unmetered_seconds: Since the meter began, of which nothing is known.
        served: Whether the drive completed a command in the interval.
        corrected: Whether an instrument has corrected the estimate.
        reasons: Codes of what makes this interval less certain, or absent.
    """

    drive: MeteredDrive
    basis: Basis
    seconds: float
    watts: float
    watts_low: float
    watts_high: float
    part_watts: dict[str, float]
    joules: float
    joules_low: float
    joules_high: float
    part_joules: dict[str, float]
    unmetered_seconds: float
    served: bool
    corrected: bool
    reasons: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Readings(Sequence[Reading]):
    """Those of n drives, in columns: what goes on with all of them makes no object for each.

    The first columns are those of `Reading`; arrays have shape (n,), parts (n, 5) in the order of
    `PARTS`.

    Attributes:
        command_joules: What one read command, read byte, write command and written byte takes
            beside keeping the drive awake, shape (n, 4).
        command_load: How far one of each keeps the drive awake (`Estimate.load`), shape (n, 4).
        command_core_seconds: Core time of the host that one of each takes, shape (n, 4).
    """

    drive: Sequence[MeteredDrive]
    basis: Sequence[Basis]
    seconds: Floats
    watts: Floats
    watts_low: Floats
    watts_high: Floats
    part_watts: Floats
    joules: Floats
    joules_low: Floats
    joules_high: Floats
    part_joules: Floats
    unmetered_seconds: Floats
    served: NDArray[np.bool_]
    corrected: NDArray[np.bool_]
    reasons: list[tuple[str, ...]]
    command_joules: Floats
    command_load: Floats
    command_core_seconds: Floats

    @classmethod
    def absent(cls, drives: Sequence[MeteredDrive], bases: Sequence[Basis]) -> Readings:
        """Of drives without an interval, that have drawn nothing yet; to be filled in place."""
        n, parts = len(drives), len(PARTS)
        return cls(
            drive=drives,
            basis=bases,
            seconds=np.zeros(n),
            watts=np.full(n, np.nan),
            watts_low=np.full(n, np.nan),
            watts_high=np.full(n, np.nan),
            part_watts=np.full((n, parts), np.nan),
            joules=np.zeros(n),
            joules_low=np.zeros(n),
            joules_high=np.zeros(n),
            part_joules=np.zeros((n, parts)),
            unmetered_seconds=np.zeros(n),
            served=np.zeros(n, dtype=bool),
            corrected=np.zeros(n, dtype=bool),
            reasons=[drive.reasons for drive in drives],
            command_joules=np.zeros((n, 4)),
            command_load=np.zeros((n, 4)),
            command_core_seconds=np.zeros((n, 4)),
        )

    def rows(self, drives: Sequence[MeteredDrive]) -> NDArray[np.intp]:
        """Where these drives stand, each of which is there."""
        place = {drive.key: row for row, drive in enumerate(self.drive)}
        return np.array([place[drive.key] for drive in drives], dtype=np.intp)

    def __len__(self) -> int:
        return len(self.drive)

    def __iter__(self) -> Iterator[Reading]:
        return map(Reading._make, zip(*map(self._values, Reading._fields), strict=True))

    @overload
    def __getitem__(self, index: int) -> Reading: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Reading]: ...
    def __getitem__(self, index: int | slice) -> Reading | Sequence[Reading]:
        return list(self)[index]

    def _values(self, name: str) -> Sequence[Any]:
        """A column as the readings have it."""
        column = getattr(self, name)
        values: Sequence[Any] = column.tolist() if isinstance(column, np.ndarray) else column
        if name.startswith("part_"):
            return [dict(zip(PARTS, row, strict=True)) for row in values]
        return values
