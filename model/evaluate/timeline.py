"""What a drive does over time: throughput, watts and background work along a time line of demand.

The drive's state is the bytes that its cache holds (`model.evaluate.device_state`), so a stretch of
writing is one curve over bytes: rate and watts are predicted at many levels of the cache at once,
and time is the integral of bytes over rate. Idling folds the cache back at the pace of the
background work.

A full cache makes the drive collect. Sequential writes it then takes past the cache and folds it
beside them, with the share of its pace that they leave, until it is empty; full speed returns for
as many bytes as at first. (AnandTech, "The Samsung 980 PRO PCIe 4.0 SSD Review", whole-drive fill:
124 GB at the speed of the cache at first and once more on the way, behind PCIe 3.0.) Random writes
leave no such share: in the public series of the 980 PRO the rate recovers slowly, and full speed
does not return in 300 s (`model.evaluate.device_state`).

What comes later changes nothing before: the levels of the curve, the draws and the state depend on
the drive and on what has been asked of it so far, not on the length of a phase or on what follows.

What is uncertain moves a whole stretch at once: the place of the cliff, the rates on both sides of
it, the power of both regimes, and how much work is left behind. So the interval is that of many
runs (`DRAWS`), in each of which every one of these is drawn once.

A SATA drive rests along the time line where its link may sleep or its platters may stop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.errors import InputError
from iojoule.datasets.links import SATA_BYTES_PER_SECOND
from iojoule.datasets.profile import DeviceProfile, Parameter, Standby, WriteState
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.evaluate import device_power
from iojoule.model.evaluate.bands import Floats, Interval
from iojoule.model.evaluate.columns import LINK, STANDBY, check_demand
from iojoule.model.evaluate.device_state import Collecting, Regime, left_after
from iojoule.model.evaluate.equal_work import unlimited_watts
from iojoule.model.evaluate.frame import SEQUENTIAL, Frame, make_frame
from iojoule.model.evaluate.idle_gaps import rests_between
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.quantities import NORMAL_90


@dataclass(frozen=True)
class Episodes:
    """Stretches of collecting, each a pause of the host's full speed.

    Attributes:
        pauses: How many begin.
        pause_seconds: Mean length of those that end in time, else of the one that does not; None
            where none begins.
        second_start_seconds: When the second one begins, None where none does. A run without one
            counts as if it began at the end.
        second_seconds: Length of the second one, as far as it was seen.
    """

    pauses: Interval
    pause_seconds: Interval | None
    second_start_seconds: Interval | None
    second_seconds: Interval | None


def episodes(collecting: NDArray[np.bool_], steps: Floats) -> Episodes:
    """Count and measure the stretches of collecting.

    Args:
        collecting: Of each run and step; shape (runs, steps), the undisturbed run first.
        steps: Seconds of each step.
    """
    ends = np.cumsum(steps)
    episode_counts = np.array([_episode(row, ends) for row in collecting])
    counts, lengths, starts, seconds = episode_counts.T
    starts = np.where(np.isnan(starts), ends[-1], starts)
    second = counts[0] >= 2
    return Episodes(
        pauses=Interval.of(counts[0], counts),
        pause_seconds=_of(lengths) if counts[0] else None,
        second_start_seconds=_of(starts) if second else None,
        second_seconds=_of(seconds) if second else None,
    )


def _of(draws: Floats) -> Interval:
    return Interval.of(float(draws[0]), draws[np.isfinite(draws)])


def _episode(collecting: NDArray[np.bool_], ends: Floats) -> tuple[float, float, float, float]:
    """Count, mean length, start of the second and its length; NaN for what does not happen."""
    edges = np.diff(collecting.astype(int), prepend=0, append=0)
    times = np.concatenate([[0.0], ends])
    starts, stops = times[edges == 1], times[edges == -1]
    if not len(starts):
        return 0.0, np.nan, np.nan, np.nan
    lengths = stops - starts
    over = stops < ends[-1]
    mean = lengths[over].mean() if over.any() else lengths.mean()
    if len(starts) == 1:
        return 1.0, mean, np.nan, np.nan
    return float(len(starts)), mean, starts[1], lengths[1]


BEYOND_BYTES = 1e15
"""More than any time line writes."""


def unchanging(profile: DeviceProfile) -> WriteState:
    """The write state of a disk: no cache whose filling would change anything, no work left over.

    Its own cache holds less than a second of writing, which its surfaces already have behind them.
    """
    link = profile.link_bytes_per_second
    rate = link.value if link is not None else SATA_BYTES_PER_SECOND

    def number(name: str, value: float, unit: str) -> Parameter:
        return Parameter(
            name=name,
            value=value,
            sd=0.0,
            unit=unit,
            evidence=Evidence.DATASHEET,
            source="platters are written in place",
        )

    return WriteState(
        cached_bytes=number("cached_bytes", BEYOND_BYTES, "bytes"),
        transition_bytes=number("transition_bytes", 2.0 * BEYOND_BYTES, "bytes"),
        collecting_bytes_per_second=number("collecting_bytes_per_second", rate, "bytes/s"),
        recovery_bytes_per_second_per_byte=number("recovery_bytes_per_second_per_byte", 0.0, "1/s"),
        background_joules_per_byte=number("background_joules_per_byte", 0.0, "J/B"),
        background_seconds_after_write={},
    )


@dataclass
class Resting:
    """What a drive does in the idle phases of a time line, and what it takes to serve after them.

    Attributes:
        slumber_watts: With the link asleep; None where it stays awake.
        standby: Of a disk; None where its platters go on turning.
        timer_seconds: Until they stop.
        spin_up_left: Seconds that are left until they turn again.
    """

    slumber_watts: float | None
    standby: Standby | None
    timer_seconds: float
    spin_up_left: float = 0.0

    @classmethod
    def of(cls, profile: DeviceProfile, frame: Frame) -> Resting:
        """As the first row's host lets the drive rest."""
        idle, (policy, timer) = profile.idle, frame.host[0, [LINK, STANDBY]]
        asleep = idle is not None and idle.link is not None and policy > 0
        stops = idle is not None and idle.standby is not None and timer > 0
        return cls(
            idle.link.slumber_watts.value if asleep and idle and idle.link else None,
            idle.standby if stops and idle else None,
            float(timer) if stops else np.inf,
        )

    def idle_watts(self, spinning: Floats) -> Floats:
        """Idle power of every run with the link as it is, from that with the link awake."""
        if self.slumber_watts is None:
            return spinning
        return np.minimum(spinning, self.slumber_watts)

    def watts(self, spinning: Floats, quiet_seconds: float, step: float) -> Floats:
        """Mean idle power over a step that begins after some seconds of quiet, by run."""
        if self.standby is None:
            return spinning
        still = float(np.clip((quiet_seconds + step - self.timer_seconds) / step, 0.0, 1.0))
        if still > 0.0:
            self.spin_up_left = self.standby.exit_seconds.value
        stopped = np.minimum(spinning, self.standby.watts.value)
        return np.asarray((1.0 - still) * spinning + still * stopped)

    def spinning_up(self, step: float) -> tuple[float, float]:
        """Share of a step in which the platters get up to speed, and the watts meanwhile."""
        if self.standby is None or self.spin_up_left <= 0.0:
            return 0.0, 0.0
        share = min(self.spin_up_left / step, 1.0)
        self.spin_up_left -= share * step
        return share, self.standby.spin_up_watts.value


DRAWS = 400
"""Runs drawn for the intervals, always the same ones."""

LEVELS = 160
"""Levels of the cache at which a stretch of writing is predicted."""

STEPS_MAX = 100_000
"""More steps than this are refused."""


@dataclass(frozen=True)
class Phase:
    """A stretch of demand.

    Attributes:
        seconds: How long.
        write: Whether the host writes; else nothing is asked of the drive.
        bytes_per_second: What the host writes a second, None for as fast as possible.
    """

    seconds: float
    write: bool
    bytes_per_second: float | None = None


@dataclass(frozen=True)
class Trajectory:
    """What happened; arrays over time have shape (steps,).

    Attributes:
        seconds: Middle of each step, and `step_seconds` its length.
        bytes_per_second: Written by the host.
        watts: Mean power of the drive, with `watts_low` and `watts_high`.
        cache_bytes: Host bytes that the cache holds at the end of each step.
        background: Share of each step in which the drive works on its own behalf.
        collecting: Whether it does so beside the host's writes.
        bytes_written: By the host, in all.
        energy_joules: Of the drive, in all.
        joules_per_byte: Of the drive for what the host wrote, NaN where it wrote nothing.
        cliff_bytes: Bytes in the cache at which the rate has fallen, None where the time line
            does not reach it (as far as the undisturbed run goes).
        episodes: How often collecting comes and goes.
        background_seconds: Work left at the end of the time line.
        background_energy_joules: What that work will take on top of idle power.
    """

    seconds: Floats
    step_seconds: Floats
    bytes_per_second: Floats
    watts: Floats
    watts_low: Floats
    watts_high: Floats
    cache_bytes: Floats
    background: Floats
    collecting: NDArray[np.bool_]
    bytes_written: Interval
    energy_joules: Interval
    joules_per_byte: Interval
    cliff_bytes: Interval | None
    episodes: Episodes
    background_seconds: Interval
    background_energy_joules: Interval


def follow(
    predictor: Predictor,
    columns: Mapping[str, Any],
    phases: Sequence[Phase],
    *,
    step_seconds: float = 1.0,
) -> Trajectory:
    """Follow a drive along a time line.

    Args:
        predictor: Of the drive.
        columns: The writing configuration: single values of any columns of `make_frame`. The drive
            begins with `host_bytes_written_since_purge` (0 where left out).
        phases: What is asked of it, in order.
        step_seconds: Length of a step; the last of a phase may be shorter.

    Raises:
        InputError: The profile does not know the drive's power or what writes do to its state, a
            rate is above its link, or the time line is empty or too long; says which.
    """
    profile = predictor.profile
    if profile.is_disk and profile.write_state is None:
        profile = profile.model_copy(update={"write_state": unchanging(profile)})
        predictor = Predictor(profile)
    if profile.device_power is None or profile.write_state is None:
        raise InputError(
            f"{profile.model_name}: a time line needs the power of the drive and its write state, "
            "which this profile does not have: measure writes over time with a power meter"
        )
    for phase in phases:
        if phase.bytes_per_second is not None:
            check_demand(profile, "bytes_per_second", phase.bytes_per_second, 0.0)
    lengths = [_steps(phase.seconds, step_seconds) for phase in phases]
    count = sum(len(length) for length in lengths)
    if not count or count > STEPS_MAX:
        raise InputError(
            f"a time line of {count:,} steps: it must have at least one and at most "
            f"{STEPS_MAX:,}; choose another step_seconds",
            field="step_seconds",
        )
    runs = _Runs(predictor, dict(columns))
    parts = [
        runs.write(phase, steps) if phase.write else runs.idle(steps)
        for phase, steps in zip(phases, lengths, strict=True)
    ]
    return runs.story(np.concatenate(lengths), parts)


def _steps(seconds: float, step: float) -> Floats:
    if not (seconds > 0 and step > 0 and seconds / step <= STEPS_MAX):
        raise InputError(
            f"a phase of {seconds} s in steps of {step} s: both must be above 0, and at most "
            f"{STEPS_MAX:,} steps are followed",
            field="seconds",
        )
    whole = int(np.ceil(seconds / step - 1e-9))
    steps = np.full(whole, step)
    steps[-1] = seconds - step * (whole - 1)
    return steps


@dataclass(frozen=True)
class _Part:
    """A phase in every run: shape (runs, steps)."""

    rate: Floats
    watts: Floats
    cache: Floats
    background: Floats
    collecting: NDArray[np.bool_]


class _Runs:
    """The undisturbed run and the drawn ones, side by side; run 0 is the undisturbed one."""

    def __init__(self, predictor: Predictor, columns: dict[str, Any]) -> None:
        self.predictor, self.columns = predictor, columns
        state, power = predictor.profile.write_state, predictor.profile.device_power
        assert state is not None
        assert power is not None
        self.power = power
        draws = np.random.default_rng(980).standard_normal((DRAWS + 1, 6))
        draws[0] = 0.0
        place = state.transition_bytes
        self.fast, self.slow, self.fast_watts, self.slow_watts, self.work = draws[:, 1:].T
        columns_of_writes = {**columns, "operation": "write"}
        frame, _ = make_frame(predictor.profile, columns_of_writes, 1)
        model = predictor.performance.state
        by_fill = model.cache_shares(
            float(frame.fill_fraction[0]), np.random.default_rng(981), DRAWS + 1
        )
        self.stretch = by_fill * np.exp(draws[:, 0] * place.sd / place.value)  # of the cache
        self.over = float(place.value * model.cache_share(frame.fill_fraction)[0])
        seconds, log_sd = model.seconds_per_byte(frame)
        self.pace = self._pace(columns_of_writes)
        watts, _ = model.background_watts(frame)
        joules, joules_sd = model.joules_per_byte(frame)
        self.seconds_per_byte = float(np.nan_to_num(seconds)[0]) * np.exp(
            self.work * float(np.nan_to_num(log_sd)[0])
        )
        self.background_watts = float(np.nan_to_num(watts)[0])
        limited = frame.power_limit_watts > 0  # in every run, however much more it would draw
        limits = device_power.limit_watts(power, frame.power_state)
        self.most_watts = float(np.where(limited, limits, np.inf)[0])
        self.joules_per_byte = np.maximum(joules[0] + self.work * joules_sd[0], 0.0)
        self.request_bytes = float(frame.request_bytes[0])
        idle, idle_sd = device_power.idle_watts(power, frame.background_state)
        self.rest = Resting.of(predictor.profile, frame)
        awake = np.maximum(idle[0] + self.fast_watts * idle_sd[0], 0.0)
        self.idle_watts = self.rest.idle_watts(awake)
        began = columns.get("host_bytes_written_since_purge") or 0.0
        self.cache = np.full(DRAWS + 1, float(began))
        self.most = place.value * np.exp(draws[:, 0] * place.sd / place.value)
        self.owed = np.minimum(self.cache, self.most)
        self.state = model
        self.full = model.ran_full(self.cache / self.stretch)
        self.collecting = np.zeros(DRAWS + 1, dtype=bool)
        self.long_writes = state.long_writes
        self.level, self.rate, self.watts, self.cliff = self._curves()
        # where collecting begins: at the end of the fall, or in its middle where it comes and goes
        emptied = self.pace.any() and self.cliff is not None
        self.brim = self.cliff if emptied and self.cliff is not None else self.over
        self.spells: Collecting | None = None
        if not self.pace.any() and self.cliff is not None:
            full = np.full(DRAWS + 1, self.over)
            watts = self._at(full, self.level, self.watts)
            if self.long_writes is not None and frame.power_state[0] == 0:
                seen = self.long_writes.spell_watts
                watts = seen.value + self.slow_watts * seen.sd
            self.spells = Collecting(
                state,
                self.over * self.stretch,
                Regime(self._at(full, self.level, self.rate), watts),
                Regime(self.rate[:, 0], self.watts[:, 0]),
            )
            past = self.cache - self.brim * self.stretch
            self.collecting = past >= 0.0
            self.spells.begin(self.collecting, past)

    def write(self, phase: Phase, steps: Floats) -> _Part:
        """Write for a while: every run follows its own curve of rate over bytes."""
        level, rate, watts = self.level, self.rate, self.watts
        rates, powers, caches, collecting = [], [], [], []
        for step in steps:
            place = self.cache / self.stretch
            # half a step ahead, so that a fall within the step counts for its share
            ahead = place + 0.5 * step * self._at(place, level, rate) / self.stretch
            before = self.collecting
            self.collecting = before | (ahead >= self.brim)
            if self.pace.any():
                ahead = np.where(self.collecting, self.over, ahead)
            now = self._at(ahead, level, rate)
            power = self._at(ahead, level, watts)
            shown = self.collecting
            if self.spells is not None and self.collecting.any():
                past = self.cache - self.brim * self.stretch
                self.spells.begin(self.collecting & ~before, past)
                own, own_power, spell = self.spells.rates(step)
                now = np.where(self.collecting, own, now)
                power = np.where(self.collecting, own_power, power)
                shown = self.collecting & spell
                now[0], power[0] = self.spells.expected(now), self.spells.expected(power)
            if phase.bytes_per_second is not None:
                busy = np.minimum(phase.bytes_per_second / now, 1.0)
                now = busy * now
                rests = rests_between(now / self.request_bytes)
                awake = np.maximum(np.minimum(self.awake_watts, power), self.idle_watts)
                gap = rests * self.idle_watts + (1.0 - rests) * awake
                free = power * np.interp(ahead, level, self.strain)
                power = np.minimum(busy * free + (1.0 - busy) * gap, power)
            starting, watts_up = self.rest.spinning_up(step)
            now = (1.0 - starting) * now
            power = (1.0 - starting) * power + starting * watts_up
            if self.spells is not None and self.collecting.any():
                self.spells.advance(np.where(self.collecting, step * now, 0.0))
            self.owed = np.minimum(self.owed + step * now, self.most)
            collecting.append(shown)
            self._fill(step, now, now / rate[:, 0])
            self.full |= self.state.ran_full(self.cache / self.stretch)
            rates.append(now)
            powers.append(power)
            caches.append(self._held())
        flags = np.array(collecting).T
        return _Part(
            np.array(rates).T, np.array(powers).T, np.array(caches).T, flags.astype(float), flags
        )

    def _more(self) -> Floats:
        """How much more work a byte is that is owed, in every run."""
        return np.where(self.full, self.state.full_work, 1.0)

    def _held(self) -> Floats:
        """Bytes in the cache: what is written beside collecting does not go through it."""
        if self.spells is None:
            return self.cache
        return np.asarray(np.minimum(self.cache, self.brim * self.stretch) - self.spells.again)

    def _fill(self, step: float, rate: Floats, busy: Floats) -> None:
        """Let the cache take a step's bytes, or fold it beside them; `busy`: the host's share."""
        if not self.pace.any():
            self.cache = self.cache + step * rate
            return
        full = self.brim * self.stretch
        folded = np.minimum(self.cache, full) - step * self.pace * (1.0 - busy)
        self.cache = np.where(self.collecting, np.maximum(folded, 0.0), self.cache + step * rate)
        self.collecting = self.collecting & (folded > 0.0)

    def _pace(self, columns: dict[str, Any]) -> Floats:
        """Bytes a second that the drive folds in the writing state, were it left alone; 0 for none.

        Only for sequential writes; shape (runs,).
        """
        there = {**columns, "post_write_power_state": None}
        frame, _ = make_frame(self.predictor.profile, there, 1)
        seconds, log_sd = self.predictor.performance.state.seconds_per_byte(frame)
        if frame.pattern[0] != SEQUENTIAL or not seconds[0] > 0:
            return np.zeros(DRAWS + 1)
        return np.asarray(np.exp(-self.work * log_sd[0]) / seconds[0])

    def _at(self, place: Floats, level: Floats, values: Floats) -> Floats:
        """Each run's own curve at its place; shape (runs,)."""
        slot = np.clip(np.searchsorted(level, place) - 1, 0, len(level) - 2)
        share = (place - level[slot]) / (level[slot + 1] - level[slot])
        share = np.clip(share, 0.0, 1.0)
        run = np.arange(len(place))
        return np.asarray(values[run, slot] * (1.0 - share) + values[run, slot + 1] * share)

    def _curves(self) -> tuple[Floats, Floats, Floats, float | None]:
        """Levels of the cache, rate and watts of every run at each, and the level of the cliff.

        Levels of shape (levels,), rate and watts (runs, levels); no cliff where no level has one.
        Sets what a rate below the highest needs besides: the watts awake between writes, and how
        many times the watts a limit keeps from being drawn at full speed (`strain`, (levels,)).
        """
        level = self._levels()
        columns = {
            **self.columns,
            "operation": "write",
            "host_bytes_written_since_purge": level,
            "seconds_since_last_write": None,
        }
        prediction, _ = self.predictor.predict_columns(columns, len(level))
        rate = prediction["throughput_bytes_per_second"]
        watts = prediction["device_power_watts"]
        frame, _ = make_frame(self.predictor.profile, columns, len(level))
        base = device_power.base_watts(self.power, frame.power_state)
        self.awake_watts = float((prediction.activity.awake_factor * base)[0])
        self.strain = unlimited_watts(self.predictor.profile, frame, prediction)[0] / watts.value
        slowed, _ = self.predictor.performance.state.slowed(frame)
        # uncertainty of the cliff's place moves the curve and must not widen it too
        steady = np.where(slowed < 0.5, 0, len(level) - 1)
        rate_sd = np.log(rate.high / rate.value)[steady] / NORMAL_90
        watts_sd = ((watts.high - watts.value) / NORMAL_90)[steady]
        if self.long_writes is not None and not self.pace.any():
            # what a series showed of collecting owes nothing to the surface of the cache's rates
            _, own = self.predictor.performance.state.collecting_rate(frame)
            between = self.predictor.profile.between_drives_relative_sd.value
            rate_sd = np.where(slowed < 0.5, rate_sd, np.hypot(own, between))
        fallen = np.flatnonzero(slowed >= 0.5)
        faster = np.where(slowed < 0.5, self.fast[:, None], self.slow[:, None])
        hotter = np.where(slowed < 0.5, self.fast_watts[:, None], self.slow_watts[:, None])
        return (
            level,
            rate.value * np.exp(faster * rate_sd),
            np.maximum(watts.value + hotter * watts_sd, 0.0),
            float(level[fallen[0]]) if len(fallen) else None,
        )

    def _levels(self) -> Floats:
        """From empty to where the rate has recovered (`DeviceState.collecting_rate`).

        Beyond it stays as it is there. Levels are closest around the cliff, where the rate falls.
        """
        state = self.predictor.profile.write_state
        assert state is not None
        first = state.collecting_bytes_per_second.value
        recovery = state.recovery_bytes_per_second_per_byte.value
        recovered = self.over + (first / recovery if recovery > 0 else 0.0)
        top = max(1.2 * self.over, recovered)
        around = self.over * np.linspace(0.85, 1.1, LEVELS // 2)
        beyond = np.linspace(1.1 * self.over, top, LEVELS // 4)
        before = np.linspace(0.0, 0.85 * self.over, LEVELS // 4)
        return np.unique(np.concatenate([before, around, beyond, [self.over, recovered]]))

    def idle(self, steps: Floats) -> _Part:
        """Fold the cache back, and do what else is owed."""
        watts, caches, background = [], [], []
        self.collecting = np.zeros(DRAWS + 1, dtype=bool)
        quiet = 0.0
        state = self.predictor.profile.write_state
        delay = state.background_delay_seconds if state is not None else None
        waits = np.where(self.full, 0.0, delay.value if delay is not None else 0.0)
        self.cache = self._held()
        for step in steps:
            idle = self.rest.watts(self.idle_watts, quiet, step)
            quiet += step
            working = np.clip(quiet - waits, 0.0, step)
            more = self._more()
            needed = more * self.seconds_per_byte * self.owed
            busy = np.minimum(needed, working) / step
            left = left_after(self.owed, working, more * self.seconds_per_byte)
            done = more * self.owed * (1.0 - left)
            self.full &= left > 0.0
            watts.append(idle + done * self.joules_per_byte / step)
            self.cache, self.owed = self.cache * left, self.owed * left
            caches.append(self.cache)
            background.append(busy)
        rate = np.zeros((DRAWS + 1, len(steps)))
        return _Part(
            rate, np.array(watts).T, np.array(caches).T, np.array(background).T, rate > 0.0
        )

    def story(self, steps: Floats, parts: Sequence[_Part]) -> Trajectory:
        """Put the phases together."""
        rate, watts, cache, background, collecting = (
            np.concatenate([getattr(part, name) for part in parts], axis=1)
            for name in ("rate", "watts", "cache", "background", "collecting")
        )
        watts = np.minimum(watts, self.most_watts)
        written, energy = rate @ steps, watts @ steps
        owed = self._more() * self.owed
        work, joules = owed * self.seconds_per_byte, owed * self.joules_per_byte
        low, high = np.quantile(watts, (0.05, 0.95), axis=0)
        fell = self.cliff is not None and cache[0].max() >= self.cliff
        return Trajectory(
            seconds=np.cumsum(steps) - steps / 2,
            step_seconds=steps,
            bytes_per_second=rate[0],
            watts=watts[0],
            watts_low=np.minimum(low, watts[0]),
            watts_high=np.maximum(high, watts[0]),
            cache_bytes=cache[0],
            background=background[0],
            collecting=collecting[0],
            bytes_written=Interval.of(float(written[0]), written),
            energy_joules=Interval.of(float(energy[0]), energy),
            joules_per_byte=_per_byte(energy, written),
            cliff_bytes=Interval.of(self.cliff, self.cliff * self.stretch)
            if fell and self.cliff is not None
            else None,
            episodes=episodes(collecting, steps),
            background_seconds=Interval.of(float(work[0]), work),
            background_energy_joules=Interval.of(float(joules[0]), joules),
        )


def _per_byte(energy: Floats, written: Floats) -> Interval:
    """Joules for a byte in every run, the undisturbed one first."""
    if not written.all():
        return Interval(np.nan, np.nan, np.nan)
    every = energy / written
    return Interval.of(float(every[0]), every)
