"""The meter: joules of every drive since it began, from looks at the block counters.

What is told never falls and is never counted twice. Time without an estimate (a drive that was
away, counters that began anew, a machine that was suspended) adds no joules and is told beside them
as unmetered seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from iojoule.datasets.profile import DeviceProfile
from iojoule.meter.correction import WORKLOAD_SHARE, Correction, Observed
from iojoule.meter.counters import Intervals, Snapshot, difference
from iojoule.meter.drives import MeteredDrive
from iojoule.meter.estimate import DriveModel, Estimate, States
from iojoule.meter.idle import Descent
from iojoule.model.evaluate.quantities import NORMAL_90

SUSPENDED = "suspended"
DRIFTED = "drifted"
POWER_LIMITED = "power_limited"

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
        command_joules: What one read command, read byte, write command and written byte takes
            beside keeping the drive awake.
        command_load: How far one of each keeps the drive awake (`Estimate.load`).
        command_core_seconds: Core time of the host that one of each takes.
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
    command_joules: tuple[float, ...]
    command_load: tuple[float, ...]
    command_core_seconds: tuple[float, ...]
    joules: float
    joules_low: float
    joules_high: float
    part_joules: dict[str, float]
    unmetered_seconds: float
    served: bool
    corrected: bool
    reasons: tuple[str, ...]


@dataclass
class _Account:
    """Sums of one drive; `row` is its place among the states."""

    drive: MeteredDrive
    basis: Basis
    row: int
    joules: float = 0.0
    low: float = 0.0
    high: float = 0.0
    parts: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    unmetered: float = 0.0
    correction: Correction = field(default_factory=Correction)
    last: Reading | None = None


class Meter:
    """Follows all drives of a host.

    Args:
        choose: What the estimate of a drive rests on; asked once for each.

    Attributes:
        intervals: What the drives did in the last one; None before the second look.
    """

    def __init__(self, choose: Callable[[MeteredDrive], Basis]) -> None:
        self._choose = choose
        self._accounts: dict[str, _Account] = {}
        self._states = States.fresh(0)
        self._models: dict[tuple[Any, ...], DriveModel] = {}
        self._before: Snapshot | None = None
        self.intervals: Intervals | None = None

    def rebase(self, key: str, basis: Basis) -> None:
        """What the estimate of a drive rests on has changed; its joules go on."""
        self._accounts[key].basis = basis

    def step(
        self, now: Snapshot, measured_watts: Mapping[str, tuple[float, float]] | None = None
    ) -> list[Reading]:
        """Account for the time since the last look.

        Args:
            now: The counters.
            measured_watts: Mean power since the last look, and its standard deviation, of drives
                that an instrument measures, by name. It counts in the place of the estimate, and
                corrects it.

        Returns:
            Every drive that is there, by name; the first look has no watts yet.
        """
        before, self._before = self._before, now
        for drive in now.drives:
            account = self._accounts.get(drive.key)
            if account is None:
                basis = self._choose(drive)
                self._accounts[drive.key] = _Account(drive, basis, len(self._accounts))
            else:
                account.drive = drive
        new = len(self._accounts) - len(self._states.quiet_seconds)
        self._states = self._states.and_fresh(new)
        if before is None:
            return [self._absent(self._accounts[drive.key], 0.0, ()) for drive in now.drives]
        self.intervals = intervals = difference(before, now)
        done = self._account(intervals, measured_watts or {})
        readings = []
        for drive in now.drives:
            reading = done.get(drive.key)
            if reading is None:
                problem = intervals.problems.get(drive.name)
                reasons = (problem,) if problem else ()
                account = self._accounts[drive.key]
                self._states.put([account.row], States.fresh(1))
                lost = intervals.seconds + intervals.suspended_seconds
                reading = self._absent(account, lost, reasons)
            readings.append(reading)
        return readings

    def _account(
        self, intervals: Intervals, measured: Mapping[str, tuple[float, float]]
    ) -> dict[str, Reading]:
        """The drives that have an interval, those of one model evaluated together."""
        if intervals.seconds <= 0:
            return {}
        groups: dict[tuple[Any, ...], list[int]] = {}
        accounts = [self._accounts[drive.key] for drive in intervals.drives]
        for row, account in enumerate(accounts):
            basis = account.basis
            key = (id(basis.profile), basis.power_state, basis.settings, basis.sleep)
            groups.setdefault(key, []).append(row)
        readings: dict[str, Reading] = {}
        served, uses = (intervals.commands > 0).tolist(), _uses(intervals)
        for key, rows in groups.items():
            group = [accounts[row] for row in rows]
            model, expected = self._model(key, group[0].basis), group[0].basis.is_expected
            places = [account.row for account in group]
            states = self._states.take(places)
            estimate = model.step(intervals.take(rows), states)
            self._states.put(places, states)
            for row, account, own in zip(rows, group, _each(estimate), strict=True):
                readings[account.drive.key] = self._reading(
                    account,
                    own,
                    intervals,
                    served[row],
                    uses[row],
                    measured.get(account.drive.name),
                    is_expected=expected,
                )
        return readings

    def _model(self, key: tuple[Any, ...], basis: Basis) -> DriveModel:
        if key not in self._models:
            self._models[key] = DriveModel(
                basis.profile,
                power_state=basis.power_state,
                sleep=basis.sleep,
                settings=dict(basis.settings),
            )
        return self._models[key]

    def _reading(
        self,
        account: _Account,
        own: _Own,
        intervals: Intervals,
        served: bool,
        uses: tuple[float, float],
        measured: tuple[float, float] | None,
        *,
        is_expected: bool,
    ) -> Reading:
        seconds = intervals.seconds
        parts, sd = own.parts, own.sd
        watts = sum(parts.values())
        # where its data lie is not to be seen, which a correction learns
        unlearnt = math.hypot(sd, WORKLOAD_SHARE * watts) if served else sd
        reasons = list(account.drive.reasons)
        correction = account.correction
        if measured is not None or correction.has_learnt:
            observed = Observed(parts, uses, served)
            correction.follow(observed, seconds + intervals.suspended_seconds)
            if measured is not None:
                if correction.learn(*measured, observed, sd):
                    reasons.append(DRIFTED)
                watts, sd = max(measured[0], 0.0), measured[1]
            else:
                better = correction.corrected(observed)
                watts, sd = better.watts, min(better.sd, unlearnt)
            parts = _scaled(parts, watts)
        else:
            sd = unlearnt
        if account.basis.power_limited and measured is None:
            reasons.append(POWER_LIMITED)
        if intervals.suspended_seconds:
            reasons.append(SUSPENDED)
            account.unmetered += intervals.suspended_seconds
        low, high = _interval(watts, sd, in_ratios=is_expected and measured is None)
        for name, value in parts.items():
            account.parts[name] += value * seconds
        account.joules += watts * seconds
        account.low += low * seconds
        account.high += high * seconds
        reading = Reading(
            drive=account.drive,
            basis=account.basis,
            seconds=seconds,
            watts=watts,
            watts_low=low,
            watts_high=high,
            part_watts=parts,
            command_joules=own.joules,
            command_load=own.load,
            command_core_seconds=own.core_seconds,
            joules=account.joules,
            joules_low=account.low,
            joules_high=account.high,
            part_joules=dict(account.parts),
            unmetered_seconds=account.unmetered,
            served=served,
            corrected=measured is not None or correction.has_learnt,
            reasons=tuple(reasons),
        )
        account.last = reading
        return reading

    def _absent(self, account: _Account, seconds: float, reasons: tuple[str, ...]) -> Reading:
        account.unmetered += seconds
        return Reading(
            drive=account.drive,
            basis=account.basis,
            seconds=0.0,
            watts=np.nan,
            watts_low=np.nan,
            watts_high=np.nan,
            part_watts=dict.fromkeys(PARTS, np.nan),
            command_joules=(0.0,) * 4,
            command_load=(0.0,) * 4,
            command_core_seconds=(0.0,) * 4,
            joules=account.joules,
            joules_low=account.low,
            joules_high=account.high,
            part_joules=dict(account.parts),
            unmetered_seconds=account.unmetered,
            served=False,
            corrected=account.correction.has_learnt,
            reasons=(*account.drive.reasons, *reasons),
        )


def _interval(watts: float, sd: float, *, in_ratios: bool) -> tuple[float, float]:
    """The 90 % interval of a mean power; in ratios where it is wide, so that it stays above 0."""
    if not in_ratios or watts <= 0:
        return max(watts - NORMAL_90 * sd, 0.0), watts + NORMAL_90 * sd
    ratio = math.exp(NORMAL_90 * math.sqrt(math.log1p((sd / watts) ** 2)))
    return watts / ratio, watts * ratio


def _scaled(parts: dict[str, float], watts: float) -> dict[str, float]:
    """Parts that add up to the watts: what differs is the requests', idle only where none came."""
    dynamic = sum(parts.values()) - parts["idle"]
    wanted = watts - parts["idle"]
    if dynamic > 0 and wanted >= 0:
        scale = wanted / dynamic
        return {name: part if name == "idle" else part * scale for name, part in parts.items()}
    total = sum(parts.values())
    if total <= 0:
        return {**dict.fromkeys(parts, 0.0), "idle": watts}
    if dynamic <= 0:
        return {**dict.fromkeys(parts, 0.0), "idle": watts}
    return {name: part * watts / total for name, part in parts.items()}


def _uses(intervals: Intervals) -> list[tuple[float, float]]:
    """Shares of an interval in which reads, and writes, were in flight; together at most 1."""
    everything, writes = intervals.in_flight_seconds, intervals.write_in_flight_seconds
    scale = 1.0 / np.maximum(everything, intervals.seconds)
    shares = ((everything - writes) * scale, writes * scale)
    return list(zip(*(share.tolist() for share in shares), strict=True))


class _Own(NamedTuple):
    """What `Estimate` says of one drive."""

    parts: dict[str, float]
    sd: float
    joules: tuple[float, ...]
    load: tuple[float, ...]
    core_seconds: tuple[float, ...]


def _each(estimate: Estimate) -> Iterator[_Own]:
    parts = zip(*(getattr(estimate, name).tolist() for name in PARTS), strict=True)
    of_commands = (estimate.joules, estimate.load, estimate.core_seconds)
    each = zip(
        parts, estimate.sd.tolist(), *(values.tolist() for values in of_commands), strict=True
    )
    for own, sd, *commands in each:
        yield _Own(dict(zip(PARTS, own, strict=True)), sd, *map(tuple, commands))
