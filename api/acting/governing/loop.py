"""The governor's loop: look at the counters, let each drive's law decide, set it, log it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from iojoule.api.acting.governing.actuators import Actuators, require_evidence, settings_of
from iojoule.api.acting.governing.budget import Budget
from iojoule.api.acting.governing.forecast import (
    POWER_BOUND,
    Demand,
    Forecaster,
    Load,
    Predicted,
)
from iojoule.api.acting.governing.groups import BestEffortGroup
from iojoule.api.acting.governing.law import Decision, Law, Observation, Reason, Rules, shares
from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DeviceProfile
from iojoule.measure.campaign.rig import DriveFacts
from iojoule.measure.campaign.settings import wake
from iojoule.measure.drive.block_io import Reading, between, read_counters
from iojoule.measure.drive.nvme import NvmeController
from iojoule.measure.errors import DriveError, HostStateError
from iojoule.measure.host.host_files import PROC, SYSFS
from iojoule.measure.host.journal import HostState
from iojoule.measure.sensors import open_sensor
from iojoule.meter.counters import BlockCounters, Intervals, Snapshot, difference
from iojoule.meter.estimate import DriveModel, States
from iojoule.meter.instrument import Instrument
from iojoule.recommender.sla import Sla

_RATE_STEP, _SIZE_STEPS, _MIX_STEPS = 0.05, 8, 20
"""Loads are rounded up to the next step of 5 % in rate, and to the nearest eighth of an octave in
size and twentieth in the share of reads: a forecast takes some 20 ms, one that is kept none."""

_CACHED = 2048
_LOG_SECONDS = 60.0
"""So often a line is logged although nothing changed."""

CHANGED_BY_OTHERS, FAILED = "changed_by_others", "failed"


@dataclass(frozen=True)
class Governed:
    """One drive that is to be governed.

    Attributes:
        drive: What it is.
        controller: Its NVMe controller; None where it has none.
        profile: What was measured of its model.
        power_states: That may be used; empty for all that were measured.
        schedulers: That may be used beside the present one.
        instrument: A sensor of its power; None: it is estimated.
        best_effort: Folders of control groups that are limited while nothing else helps.
    """

    drive: DriveFacts
    controller: NvmeController | None
    profile: DeviceProfile
    power_states: tuple[int, ...] = ()
    schedulers: tuple[str, ...] = ()
    instrument: str | None = None
    best_effort: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.drive.device.name


@dataclass(frozen=True)
class Options:
    """How drives are governed.

    Attributes:
        sla: What each of them must keep.
        rules: How cautious the law is.
        period_seconds: Between two looks.
        check_seconds: Between two looks at what is in force, while there is I/O.
        pattern: `random` or `sequential`; counters do not tell.
        concurrency: Most requests that the applications keep in flight.
        memory_seconds: The demand of the next period is taken from so long before it.
        proc: Where procfs is mounted; `sysfs` likewise.
    """

    sla: Sla
    rules: Rules = field(default_factory=Rules)
    period_seconds: float = 1.0
    check_seconds: float = 10.0
    pattern: str = "random"
    concurrency: int = 32
    memory_seconds: float = 10.0
    proc: Path = PROC
    sysfs: Path = SYSFS


@dataclass
class Totals:
    """What came of governing one drive.

    Attributes:
        seconds: Governed.
        switches: Done, or, in a dry run, that would have been.
        breaches: Intervals in which a latency was above its bound.
        joules: Estimated or measured.
        saved_joules: Predicted, against leaving it as it was.
    """

    seconds: float = 0.0
    switches: int = 0
    breaches: int = 0
    joules: float = 0.0
    saved_joules: float = 0.0


class _Drive:
    """One drive: its actuators, its forecasts, its law and what it did."""

    def __init__(self, governed: Governed, options: Options, state: HostState | None) -> None:
        require_evidence(governed.profile, governed.drive)
        settings = settings_of(
            governed.profile,
            governed.drive,
            power_states=governed.power_states,
            schedulers=governed.schedulers,
        )
        self.governed, self.options, self.runs = governed, options, state is not None
        self.forecaster = Forecaster(
            governed.profile,
            settings,
            options.sla,
            pattern=options.pattern,
            concurrency=options.concurrency,
        )
        self.at = lru_cache(_CACHED)(self.forecaster.at)
        device = governed.drive.device
        wake(device)
        self.actuators = Actuators(governed.drive, governed.controller, settings, state)
        self.began_in = self.in_force = self.actuators.in_force()
        self.law = Law(options.rules, self.in_force or 0)
        if self.runs and self.in_force is None:
            self.actuators.set(0)
            self.in_force = 0
        self.groups = [BestEffortGroup(one, device, state) for one in governed.best_effort]
        self.limits: dict[str, float | None] = {}
        self.demand = Demand(
            max(round(options.memory_seconds / options.period_seconds), 1),
            hold_seconds=options.rules.hold_off_seconds,
            hold_max_seconds=options.rules.hold_off_max_seconds,
        )
        self.reading: Reading = read_counters(device)
        self.checked_at = -math.inf
        self.began_anew = False  # a reset may have undone what was set; seen in the next interval
        self.totals = Totals()
        self.states = States.fresh(1)
        self.models = {
            one.power_state or 0: DriveModel(governed.profile, power_state=one.power_state or 0)
            for one in settings
        }
        self.last_logged = -math.inf
        self.last_reason: str | None = None
        self.instrument = (
            Instrument(open_sensor(governed.instrument)) if governed.instrument else None
        )

    def predicted(self, load: Load) -> list[Predicted]:
        """Every setting at a load, whose figures are rounded so that forecasts can be kept."""
        rate = load.requests_per_second
        if rate > 0:
            rate = math.exp(math.ceil(math.log(rate) / _RATE_STEP) * _RATE_STEP)
        size = 2.0 ** (round(math.log2(load.request_bytes) * _SIZE_STEPS) / _SIZE_STEPS)
        reads = round(load.read_fraction * _MIX_STEPS) / _MIX_STEPS
        return self.at(Load(rate, size, reads))

    def check(self, now: float) -> bool:
        """Ask what is in force; whether somebody else has changed it."""
        self.checked_at = now
        if self.actuators.limit_watts is not None:
            return False  # the drive chooses its state below a limit
        if self.actuators.is_asleep():
            return False  # it names its sleep; the state that it wakes up to is not known
        self.in_force = self.actuators.in_force()
        changed = self.runs and self.in_force != self.law.setting
        if changed:
            self.actuators.set(self.law.setting, again=True)
            self.in_force = self.law.setting
        return changed

    def put_back(self) -> None:
        """Restore what was in force at first, as far as drive and host let it."""
        self.actuators.put_back()
        for group in self.groups:
            group.put_back()

    def close(self) -> None:
        """Release the instrument."""
        if self.instrument is not None:
            self.instrument.close()


@dataclass(frozen=True)
class _Seen:
    """One drive's interval."""

    seconds: float
    load: Load
    latency_mean_ns: float | None
    requests: int
    watts: float
    is_measured: bool
    observation: Observation
    now_predicted: Predicted | None
    next_predicted: list[Predicted] = field(default_factory=list)


class Governor:
    """Governs drives of this host; use it in a `with` statement.

    Args:
        drives: Which.
        options: How.
        budget: What all of them may draw together.
        state: The journal that restores what is set; None for a dry run.
        log: Takes a record of each decision that changes something, and one a minute.
        say: Told of changes in words.

    Raises:
        NoProfileError, UnsafeDriveError: A profile does not carry the drive.
        InputError: There is nothing to choose from, the SLA cannot be kept by it, or two of the
            drives are namespaces of one.
        DriveError: A drive does not answer.
    """

    def __init__(
        self,
        drives: Sequence[Governed],
        options: Options,
        budget: Budget,
        state: HostState | None,
        log: Callable[[dict[str, Any]], None],
        say: Callable[[str], None],
    ) -> None:
        self.options, self._budget, self._log, self._say = options, budget, log, say
        self._stack = ExitStack()
        self._drives: dict[str, _Drive] = {}
        self.gone: dict[str, Totals] = {}
        names = [one.name for one in drives]
        try:
            self._counters = BlockCounters(options.proc, options.sysfs, also=names, only=names)
            self._stack.callback(self._counters.close)
            self._before = self._counters.read()
            there = _keys(self._before)
            self._keys = {name: there[name] for name in names if name in there}
            _require_different(names, self._keys)
            for one in drives:
                self._drives[one.name] = drive = _Drive(one, options, state)
                self._stack.callback(drive.close)
            self._before = self._counters.read()
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> Governor:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def totals(self) -> dict[str, Totals]:
        """By drive, also of those that are gone."""
        return self.gone | {name: drive.totals for name, drive in self._drives.items()}

    def run(self, seconds: float | None = None) -> None:
        """Govern for so long, or until a signal.

        Raises:
            DriveError: The last drive has vanished.
        """
        step, begin, beat = self.options.period_seconds, time.monotonic(), 0
        while seconds is None or (beat + 0.5) * step < seconds:
            beat = max(beat + 1, int((time.monotonic() - begin) / step))
            time.sleep(max(begin + beat * step - time.monotonic(), 0.0))
            self.step()

    def step(self) -> dict[str, Decision]:
        """Look once, decide and set; by drive."""
        now = self._counters.read()
        intervals = difference(self._before, now)
        self._before = now
        self._drop(now)
        place = {name: row for row, one in enumerate(intervals.drives) for name in one.devices}
        seen = {}
        for name, drive in list(self._drives.items()):
            with self._alone(name):
                if name in place:
                    seen[name] = self._look(drive, intervals, place[name], now.monotonic_seconds)
                else:  # its counters began anew
                    drive.reading = read_counters(drive.governed.drive.device)
                    drive.began_anew = True
        budget = self._budget.watts()
        watts = self._divide(budget, seen)
        decisions = {}
        for name, one in seen.items():
            with self._alone(name):
                decisions[name] = self._decide(self._drives[name], one, watts[name])
        return decisions

    @contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        """Let a failure end the governing of one drive, whose settings are restored at once."""
        try:
            yield
        except (DriveError, HostStateError) as error:
            drive = self._drives.pop(name)
            self.gone[name] = drive.totals
            del self._keys[name]
            self._say(f"{name}: it is no longer governed: {error.message}")
            self._record(drive, {"reason": FAILED, "message": error.message})
            drive.put_back()
            if not self._drives:
                raise

    def _drop(self, now: Snapshot) -> None:
        """Leave drives that are gone, also where another one has taken their name."""
        there = _keys(now)
        for name in [name for name, key in self._keys.items() if there.get(name) != key]:
            self._say(f"{name}: has vanished; it is no longer governed")
            del self._keys[name]
            self.gone[name] = self._drives.pop(name).totals
        if not self._drives:
            raise DriveError("every governed drive has vanished")

    def _look(self, drive: _Drive, intervals: Intervals, row: int, now: float) -> _Seen:
        before, reading = drive.reading, read_counters(drive.governed.drive.device)
        window, drive.reading = between(before, reading), reading
        reads, writes = intervals.read_commands[row], intervals.write_commands[row]
        moved = intervals.read_bytes[row] + intervals.write_bytes[row]
        load = drive.demand.load(intervals.seconds, float(reads), float(writes), float(moved))
        if intervals.suspended_seconds or drive.began_anew:
            drive.began_anew = False
            drive.actuators.renew_limit()
            self._check(drive, now)
        elif load.requests_per_second > 0 and (
            now - drive.checked_at >= self.options.check_seconds
        ):
            self._check(drive, now)
        here = drive.law.setting if drive.runs else drive.in_force
        predicted = drive.predicted(load)
        present = predicted[here] if here is not None else None
        watts, measured = self._watts(drive, intervals, row, here)
        mean = window.latency_mean_ns
        if not window.requests and not before.in_flight:
            mean = None  # what waits has come within the interval
        share = None
        if mean is not None:
            share = drive.forecaster.measured_share(mean, present or predicted[0])
        full = present is not None and present.forecast.capacity <= load.requests_per_second
        drive.demand.add(load, now, is_late=full or (share or 0.0) > 1.0)
        sleeps = intervals.drives[row].sleeps_by_itself
        return _Seen(
            seconds=intervals.seconds,
            load=load,
            latency_mean_ns=mean,
            requests=window.requests,
            watts=watts,
            is_measured=measured,
            observation=Observation(
                at_seconds=now,
                requests=window.requests,
                latency_share=share,
                predicted_share=present.latency_share if present else None,
                watts=watts if measured else None,
                predicted_watts=present.forecast.watts if present else None,
                may_sleep=bool(sleeps) and load.requests_per_second == 0,
                is_throttled=any(limit is not None for limit in drive.limits.values()),
            ),
            now_predicted=present,
            next_predicted=drive.predicted(drive.demand.next()),
        )

    def _check(self, drive: _Drive, now: float) -> None:
        wrong = drive.law.setting
        if drive.check(now):
            self._say(f"{drive.governed.name}: somebody else changed its settings; set again")
            self._record(drive, {"reason": CHANGED_BY_OTHERS, "setting": _name(drive, wrong)})

    def _watts(
        self, drive: _Drive, intervals: Intervals, row: int, here: int | None
    ) -> tuple[float, bool]:
        """Mean power of the interval, and whether an instrument measured it."""
        setting = drive.actuators.settings[here or 0]
        estimate = drive.models[setting.power_state or 0].step(intervals.take([row]), drive.states)
        if drive.instrument is not None:
            measured = drive.instrument.watts(intervals.seconds)
            if measured is not None:
                return measured[0], True
        return float(estimate.watts[0]), False

    def _divide(self, budget: float | None, seen: dict[str, _Seen]) -> dict[str, float | None]:
        """The budget of each drive: its share of the host's, and what the SLA allows it."""
        own = self.options.sla.bounds().get(POWER_BOUND)
        if budget is None or not seen:
            return dict.fromkeys(seen, own)
        floors, needs = [], []
        for name, one in seen.items():
            factor = math.exp(self._drives[name].law.log_watts_correction)
            bounds = [each.forecast.watts_bound * factor for each in one.next_predicted]
            keeping = [
                bound
                for bound, each in zip(bounds, one.next_predicted, strict=True)
                if each.forecast.latency_share <= 1.0
            ]
            floors.append(min(bounds))
            needs.append(min(keeping, default=max(bounds)))
        parts = shares(budget, floors, needs)
        return {
            name: part if own is None else min(part, own)
            for name, part in zip(seen, parts, strict=True)
        }

    def _decide(self, drive: _Drive, seen: _Seen, budget: float | None) -> Decision:
        before = drive.law.setting
        forecasts = [one.forecast for one in seen.next_predicted]
        decision = drive.law.decide(seen.observation, forecasts, budget)
        now = seen.observation.at_seconds
        if decision.limit_watts is None:  # below a limit a drive refuses states above it
            drive.actuators.limit(None, decision.setting)
        if decision.switched:
            drive.actuators.set(decision.setting)
            drive.totals.switches += 1
        elif decision.reason is Reason.BREACH:
            self._check(drive, now)  # the safest setting is said to be in force already: is it?
        if decision.limit_watts is not None:
            drive.actuators.limit(decision.limit_watts, decision.setting)
        self._throttle(drive, seen, decision)
        if drive.runs:
            drive.in_force = decision.setting
        totals = drive.totals
        totals.seconds += seen.seconds
        totals.joules += seen.watts * seen.seconds
        totals.breaches += seen.observation.is_breach
        self._count_saving(drive, seen, before)
        if (
            decision.switched
            or decision.reason != drive.last_reason
            or now - drive.last_logged >= _LOG_SECONDS
        ):
            self._record(drive, self._fields(drive, seen, decision, before, budget))
            drive.last_logged, drive.last_reason = now, decision.reason
        if decision.switched:
            verb = "switched" if drive.runs else "would switch"
            self._say(
                f"{drive.governed.name}: {verb} from {_name(drive, before)} to "
                f"{_name(drive, decision.setting)}: {decision.reason}"
            )
        return decision

    def _throttle(self, drive: _Drive, seen: _Seen, decision: Decision) -> None:
        """Limit best-effort groups while no setting keeps SLA and budget."""
        missed = seen.observation.is_breach and not decision.switched
        pressed = missed or decision.limit_watts is not None
        for group in drive.groups:
            limit = group.decide(
                seen.observation.at_seconds,
                seen.seconds,
                is_pressed=pressed,
                of_drive=seen.load.requests_per_second * seen.load.request_bytes,
            )
            name = str(group.folder)
            if limit != drive.limits.get(name):
                drive.last_reason = None  # log it
                shown = "no limit" if limit is None else f"{limit / 1e6:.4g} MB/s"
                self._say(f"{drive.governed.name}: {name}: {shown}")
            drive.limits[name] = limit

    def _count_saving(self, drive: _Drive, seen: _Seen, here: int) -> None:
        if drive.began_in is None:
            return
        at_load = drive.predicted(seen.load)
        saved = at_load[drive.began_in].forecast.watts - at_load[here].forecast.watts
        drive.totals.saved_joules += saved * seen.seconds

    def _fields(
        self, drive: _Drive, seen: _Seen, decision: Decision, before: int, budget: float | None
    ) -> dict[str, Any]:
        expected = drive.demand.next()
        return {
            "reason": decision.reason.value,
            "setting": _name(drive, decision.setting),
            "before": _name(drive, before),
            "is_set": drive.runs,
            "keeps_sla": decision.keeps,
            "switches_left": decision.switches_left,
            "hold_off_seconds": round(decision.hold_off_seconds, 3),
            "budget_watts": _figure(budget),
            "limit_watts": _figure(drive.actuators.limit_watts),
            "best_effort_bytes_per_second": {
                name: _figure(limit) for name, limit in drive.limits.items()
            },
            "measured": {
                "requests_per_second": _figure(seen.load.requests_per_second),
                "request_bytes": _figure(seen.load.request_bytes),
                "read_fraction": _figure(seen.load.read_fraction),
                "latency_mean_ns": _figure(seen.latency_mean_ns),
                "latency_over_bound": _figure(seen.observation.latency_share),
                "watts": _figure(seen.watts),
                "watts_are": "measured" if seen.is_measured else "estimated",
            },
            "predicted": {
                "requests_per_second": _figure(expected.requests_per_second),
                "latency_correction": _figure(math.exp(drive.law.log_latency_correction)),
                "watts_correction": _figure(math.exp(drive.law.log_watts_correction)),
                "settings": {
                    _name(drive, place): {
                        "watts": _figure(one.forecast.watts),
                        "watts_bound": _figure(one.forecast.watts_bound),
                        "latency_mean_ns": _figure(one.latency_mean_ns),
                        "latency_over_bound": _figure(one.forecast.latency_share),
                    }
                    for place, one in enumerate(seen.next_predicted)
                },
            },
        }

    def _record(self, drive: _Drive, fields: dict[str, Any]) -> None:
        self._log(
            {
                "time_utc": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "device": drive.governed.name,
                "serial": drive.governed.drive.serial,
                **fields,
            }
        )


def summary(name: str, totals: Totals) -> dict[str, Any]:
    """What came of governing a drive, as a record."""
    return {"device": name, **{key: _figure(value) for key, value in asdict(totals).items()}}


def _keys(seen: Snapshot) -> dict[str, str]:
    """Which drive each block device is of."""
    return {name: drive.key for drive in seen.drives for name in drive.devices}


def _require_different(names: Sequence[str], keys: dict[str, str]) -> None:
    """Refuse two block devices of one drive: it has one budget and one power state."""
    known: dict[str, str] = {}
    for name in names:
        key = keys.get(name, name)
        if key in known:
            raise InputError(f"--drive: {known[key]} and {name} are one drive; keep one of them")
        known[key] = name


def _name(drive: _Drive, place: int) -> str:
    return str(drive.actuators.settings[place])


def _figure(value: float | None) -> float | None:
    """To six digits; None for what is unknown or infinite, which JSON has no number for."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.6g}")
