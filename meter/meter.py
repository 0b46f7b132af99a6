"""The meter: joules of every drive since it began, from looks at the block counters.

What is told never falls and is never counted twice. Time without an estimate (a drive that was
away, counters that began anew, a machine that was suspended) adds no joules and is told beside them
as unmetered seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.meter.correction import Correction, Observed
from iojoule.meter.counters import Intervals, Snapshot, difference
from iojoule.meter.drives import MeteredDrive
from iojoule.meter.estimate import DriveModel, Estimate, States
from iojoule.meter.readings import PARTS, Basis, Readings
from iojoule.model.evaluate.bands import Floats
from iojoule.model.evaluate.quantities import NORMAL_90

SUSPENDED = "suspended"
DRIFTED = "drifted"
POWER_LIMITED = "power_limited"

_SUMS = ("joules", "low", "high", *PARTS)
"""Columns of joules since the meter began."""


@dataclass
class _Account:
    """One drive; `row` is its place among the states and the sums."""

    drive: MeteredDrive
    basis: Basis
    row: int
    correction: Correction = field(default_factory=Correction)


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
        self._joules = np.zeros((0, len(_SUMS)))
        self._unmetered = np.zeros(0)
        self._models: dict[tuple[Any, ...], DriveModel] = {}
        self._before: Snapshot | None = None
        self.intervals: Intervals | None = None

    def rebase(self, key: str, basis: Basis) -> None:
        """What the estimate of a drive rests on has changed; its joules go on.

        Another power state was set by a command, which wakes a drive that sleeps.
        """
        account = self._accounts[key]
        if account.basis.power_state != basis.power_state:
            self._states.rest_seconds[account.row] = 0.0
        account.basis = basis

    def step(
        self, now: Snapshot, measured_watts: Mapping[str, tuple[float, float]] | None = None
    ) -> Readings:
        """Account for the time since the last look.

        Args:
            now: The counters.
            measured_watts: Mean power since the last look, and its standard deviation, of drives
                that an instrument measures, by name. It counts in the place of the estimate, and
                corrects it.

        Returns:
            Every drive that is there; the first look has no watts yet.
        """
        before, self._before = self._before, now
        accounts = [self._account_of(drive) for drive in now.drives]
        new = len(self._accounts) - len(self._unmetered)
        self._states = self._states.and_fresh(new)
        self._joules = np.concatenate([self._joules, np.zeros((new, len(_SUMS)))])
        self._unmetered = np.concatenate([self._unmetered, np.zeros(new)])
        readings = Readings.absent(now.drives, [account.basis for account in accounts])
        readings.corrected[:] = [account.correction.has_learnt for account in accounts]
        if before is not None:
            self.intervals = difference(before, now)
            self._account(self.intervals, measured_watts or {}, accounts, readings)
        rows = [account.row for account in accounts]
        joules = self._joules[rows]
        readings.joules[:], readings.joules_low[:], readings.joules_high[:] = joules[:, :3].T
        readings.part_joules[:] = joules[:, 3:]
        readings.unmetered_seconds[:] = self._unmetered[rows]
        return readings

    def _account_of(self, drive: MeteredDrive) -> _Account:
        account = self._accounts.get(drive.key)
        if account is None:
            account = _Account(drive, self._choose(drive), len(self._accounts))
            self._accounts[drive.key] = account
        account.drive = drive
        return account

    def _account(
        self,
        intervals: Intervals,
        measured: Mapping[str, tuple[float, float]],
        accounts: Sequence[_Account],
        readings: Readings,
    ) -> None:
        """Estimate the drives that have an interval, and add what they drew."""
        at = readings.rows(intervals.drives if intervals.seconds > 0 else ())
        rows = np.array([account.row for account in accounts], dtype=np.intp)
        away = np.ones(len(accounts), dtype=bool)
        away[at] = False
        for number in np.flatnonzero(away).tolist():
            problem = intervals.problems.get(accounts[number].drive.name)
            readings.reasons[number] += (problem,) if problem else ()
        self._states.put(rows[away], States.fresh(int(away.sum())))
        unknown = np.ones(len(self._unmetered), dtype=bool)  # also of drives that are not there
        unknown[rows[at]] = False
        self._unmetered[unknown] += intervals.seconds + intervals.suspended_seconds
        if not len(at):
            return
        own = [accounts[number] for number in at.tolist()]
        estimate, expected = self._estimate(intervals, own)
        drawn = _Drawn(intervals, estimate)
        for number, account in enumerate(own):
            watts = measured.get(account.drive.name)
            if watts is not None or account.correction.has_learnt:
                readings.corrected[at[number]] = True
                if drawn.correct(number, account.correction, watts):
                    readings.reasons[at[number]] += (DRIFTED,)
                expected[number] &= watts is None
            if account.basis.power_limited and watts is None:
                readings.reasons[at[number]] += (POWER_LIMITED,)
        if intervals.suspended_seconds:
            self._unmetered[rows[at]] += intervals.suspended_seconds
            for number in at.tolist():
                readings.reasons[number] += (SUSPENDED,)
        low, high = _interval(drawn.watts, drawn.sd, in_ratios=expected)
        of_sums = np.column_stack([drawn.watts, low, high, drawn.parts])
        self._joules[rows[at]] += of_sums * intervals.seconds
        readings.seconds[at], readings.served[at] = intervals.seconds, drawn.served
        readings.watts[at], readings.part_watts[at] = drawn.watts, drawn.parts
        readings.watts_low[at], readings.watts_high[at] = low, high
        readings.command_joules[at], readings.command_load[at] = estimate.joules, estimate.load
        readings.command_core_seconds[at] = estimate.core_seconds

    def _estimate(
        self, intervals: Intervals, accounts: Sequence[_Account]
    ) -> tuple[Estimate, NDArray[np.bool_]]:
        """Of drives that have an interval, those of one model together; and which are expected."""
        groups: dict[tuple[Any, ...], list[int]] = {}
        for number, account in enumerate(accounts):
            basis = account.basis
            key = (id(basis.profile), basis.power_state, basis.settings, basis.sleep)
            groups.setdefault(key, []).append(number)
        estimate = Estimate.nothing(len(accounts))
        expected = np.zeros(len(accounts), dtype=bool)
        for key, numbers in groups.items():
            basis = accounts[numbers[0]].basis
            places = [accounts[number].row for number in numbers]
            states = self._states.take(places)
            estimate.put(numbers, self._model(key, basis).step(intervals.take(numbers), states))
            self._states.put(places, states)
            expected[numbers] = basis.is_expected
        return estimate, expected

    def _model(self, key: tuple[Any, ...], basis: Basis) -> DriveModel:
        if key not in self._models:
            self._models[key] = DriveModel(
                basis.profile,
                power_state=basis.power_state,
                sleep=basis.sleep,
                settings=dict(basis.settings),
            )
        return self._models[key]


class _Drawn:
    """What n drives drew in an interval, as estimated or as an instrument says."""

    def __init__(self, intervals: Intervals, estimate: Estimate) -> None:
        self._seconds, self._suspended = intervals.seconds, intervals.suspended_seconds
        self._estimate, self._uses = estimate, _uses(intervals)
        self.served = intervals.commands > 0
        self.parts = np.column_stack([getattr(estimate, name) for name in PARTS])
        self.watts, self.sd = self.parts.sum(axis=1), estimate.sd.copy()

    def correct(
        self, row: int, correction: Correction, measured: tuple[float, float] | None
    ) -> bool:
        """Let an instrument, or what it taught, count for one drive; whether it has drifted."""
        parts = dict(zip(PARTS, self.parts[row].tolist(), strict=True))
        observed = Observed(
            self._seconds,
            parts,
            tuple(self._uses[row].tolist()),
            served=bool(self.served[row]),
            asleep=bool(self._estimate.asleep[row]),
            own_watts=float(self._estimate.own_watts[row]),
        )
        correction.follow(observed, self._seconds + self._suspended)
        drifted = False
        if measured is not None:
            drifted = correction.learn(*measured, observed, float(self._estimate.profile_sd[row]))
            watts, sd = max(measured[0], 0.0), measured[1]
        else:
            better = correction.corrected(observed)
            watts, sd = better.watts, min(better.sd, float(self.sd[row]))
        self.watts[row], self.sd[row] = watts, sd
        self.parts[row] = list(_scaled(parts, watts).values())
        return drifted


def _interval(watts: Floats, sd: Floats, *, in_ratios: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """The 90 % interval of mean powers; in ratios where it is wide, so that it stays above 0."""
    low, high = np.maximum(watts - NORMAL_90 * sd, 0.0), watts + NORMAL_90 * sd
    rows = in_ratios & (watts > 0)
    middle = watts[rows]
    ratio = np.exp(NORMAL_90 * np.sqrt(np.log1p((sd[rows] / middle) ** 2)))
    low[rows], high[rows] = middle / ratio, middle * ratio
    return low, high


def _scaled(parts: dict[str, float], watts: float) -> dict[str, float]:
    """Parts that add up to the watts: what differs is the requests', idle only where none came."""
    idle = parts["idle"]
    dynamic = sum(part for name, part in parts.items() if name != "idle")
    if dynamic <= 0:
        return {**dict.fromkeys(parts, 0.0), "idle": watts}
    if watts < idle:
        return {name: part * watts / (idle + dynamic) for name, part in parts.items()}
    above = watts - idle
    return {
        name: idle if name == "idle" else part / dynamic * above for name, part in parts.items()
    }


def _uses(intervals: Intervals) -> Floats:
    """Shares of an interval in which reads, and writes, were in flight; together at most 1.

    Shape (n, 2).
    """
    everything, writes = intervals.in_flight_seconds, intervals.write_in_flight_seconds
    scale = 1.0 / np.maximum(everything, intervals.seconds)
    return np.stack([(everything - writes) * scale, writes * scale], axis=1)
