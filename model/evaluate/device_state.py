"""How writes change the drive: a cache that fills, work that it leaves, and what idling mends.

The state is one number, the host bytes that the cache still holds (`effective_bytes`). Writing
adds to it; background work takes from it while nothing is written, at a pace that the power state
sets. Up to `cached_bytes` the cache takes everything; from there to `transition_bytes` the drive
goes over to collecting; beyond, it takes what collecting leaves. A cache that borrows free cells
shrinks as the drive fills up, down to what the spare flash holds. Where idle time is not stated
none has passed. Where fill is not stated the drive is as empty as the one that was measured, and
how much smaller its cache may be widens the interval.

Random writes to a drive whose cache is full: collecting that recovers, and comes back.

A spell of collecting begins at the collecting rate r0. It recovers with what is written meanwhile:
with x = s b / r0, b bytes into the spell and s the recovery, the rate is r0 (1 + x) if it grows
with the bytes and r0 sqrt(1 + 2 x) if it grows with time. A series cannot tell one from the other,
so a run lies anywhere between (`grown`), all runs meeting where the series ended. All the while the
drive is as busy as it can be, so its watts stay what they are (public series of the 980 PRO: 5.56
and 5.54 W at 147 and 215 MB/s; 5.8 W at 2.2 and at 1.2 GB/s, thesis figure 5.2).

The spell is over where the rate is that at which the cache takes writes again, or after as many
bytes as earlier spells took. Then a share of the cache is free; full speed lasts until that is
full, and the next spell begins. Where nobody saw a second spell, all of this is a guess, and the
interval shows it. What is expected goes over to the mean of all runs with the share of them that
have recovered: nobody knows the phase of a drive that has written for long.

Single seconds differ from the trend by a process that forgets at `correlation_seconds`; so a long
average is known better than a second.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DeviceProfile, WriteState
from iojoule.model.evaluate import device_power, power_limit
from iojoule.model.evaluate.bands import Floats
from iojoule.model.evaluate.frame import RANDOM, Frame

_SPELLS_SEED, _NOISE_SEED = 983, 984

_PASSED = 64

_LEAST_CORRELATION = 0.01
"""Of a step: shorter memories make no difference, and none divides by nothing."""


EXPECTED_FORM = 0.5
"""Half way between growing with bytes and with time."""

NO_RECOVERY = 1.05
"""A spell whose rate would grow by less than this before it is over makes no difference."""


@dataclass(frozen=True)
class Regime:
    """Rate, bytes/s, and watts of every run in one regime; shape (runs,) each."""

    rate: Floats
    watts: Floats


def grown(x: Floats, form: Floats | float) -> Floats:
    """Rate over that at the beginning of a spell; shape as `x`.

    Args:
        x: Recovery times bytes over that rate.
        form: 0 where it grows with the bytes, 1 with time.
    """
    return np.asarray((1.0 - form) * (1.0 + x) + form * np.sqrt(1.0 + 2.0 * x))


def recovery_at(ratio: Floats, form: Floats) -> Floats:
    """The x at which `grown` is the ratio, shape (n,): a quadratic equation in sqrt(1 + 2 x)."""
    free = np.maximum(1.0 - form, 1e-9)
    root = (np.sqrt(form**2 + 2.0 * free * (ratio - 0.5 * free)) - form) / free
    return np.asarray((root**2 - 1.0) / 2.0)


class Collecting:
    """Every run's own spells; arrays of shape (runs,), run 0 the undisturbed one.

    Attributes:
        written: Bytes into the present spell.
        again: Bytes that the cache still takes at full speed after a spell; 0 in a spell.
        spells: How many each run has behind it.
    """

    def __init__(self, state: WriteState, cache_bytes: Floats, spell: Regime, fast: Regime) -> None:
        """Build it at the beginning of a first spell.

        Args:
            state: What the profile knows of writes.
            cache_bytes: Size of each run's cache, shape (runs,).
            spell: At the beginning of a spell.
            fast: At full speed.
        """
        self._known, self._cache = state.long_writes, cache_bytes
        self._spell, self._fast = spell, fast
        known, runs = self._known, len(cache_bytes)
        random = np.random.default_rng(_SPELLS_SEED)
        self._form = random.uniform(size=runs)
        self._form[0] = EXPECTED_FORM
        slope = state.recovery_bytes_per_second_per_byte
        z = random.standard_normal(runs)
        z[0] = 0.0
        self._slope = np.maximum(slope.value + z * slope.sd, 0.0)
        if known is not None and known.seen_bytes.value > 0.0:
            seen = known.seen_bytes.value / spell.rate
            met = grown(self._slope * seen, EXPECTED_FORM)
            self._slope = recovery_at(met, self._form) / seen
        end = fast.rate if known is None else known.recovered_bytes_per_second.value
        self._end = np.maximum(np.minimum(end, fast.rate), spell.rate)
        self.written, self.again = np.zeros(runs), np.zeros(runs)
        self.spells = np.zeros(runs, dtype=np.intp)
        self._noise = np.random.default_rng(_NOISE_SEED)
        self._off: Floats | None = None
        self._deviates: list[Floats] = []
        # of n spells' mean and one more the mean's variance is 1 / (n + 1) of both together
        self._shared = 1.0 if known is None else 1.0 / (1.0 + known.spells_seen)
        self._common = random.standard_normal((runs, 2))

    def begin(self, which: NDArray[np.bool_], past: Floats) -> None:
        """Put some of the runs `past` bytes beyond a full cache, shape (runs,).

        Spells that these bytes have gone through count, as far as `_PASSED` of them: later phases
        are as unknown.
        """
        if not which.any():
            return
        self.written = np.where(which, np.maximum(past, 0.0), self.written)
        self.again = np.where(which, 0.0, self.again)
        for _ in range(_PASSED):
            over = which & (self.again <= 0.0) & (self.written >= self._length())
            if not over.any():
                return
            left = self.written - self._length()
            self.spells = self.spells + over
            room = self._room()
            self.again = np.where(over, np.maximum(room - left, 0.0), self.again)
            self.written = np.where(over, np.maximum(left - room, 0.0), self.written)

    def rates(self, step: float) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Rate, watts and whether it is in a spell in the next `step` seconds, of every run."""
        ahead = self.written + 0.5 * step * self._recovered(self.written)
        spell = self.again <= 0.0
        off, off_watts = self._differences(step)
        rate = np.minimum(self._recovered(ahead) * np.exp(off), self._fast.rate)
        watts = np.maximum(self._spell.watts + off_watts, 0.0)
        return (
            np.where(spell, rate, self._fast.rate),
            np.where(spell, watts, self._fast.watts),
            spell,
        )

    def advance(self, written: Floats) -> None:
        """Take what each run has written in a step: spells end and begin."""
        spell = self.again <= 0.0
        left = self.again - written
        self.written = np.where(spell, self.written + written, np.maximum(-left, 0.0))
        self.again = np.where(spell, 0.0, np.maximum(left, 0.0))
        over = spell & (self.written >= self._length())
        if over.any():
            self.spells = self.spells + over
            self.again = np.where(over, self._room(), self.again)

    def expected(self, values: Floats) -> float:
        """Of the undisturbed run: its own value, and that of those that have recovered once."""
        recovered = self.spells[1:] > 0
        if not recovered.any():
            return float(values[0])
        share = float(recovered.mean())
        return float((1.0 - share) * values[0] + share * values[1:][recovered].mean())

    def _recovered(self, written: Floats) -> Floats:
        """Rate of each run so many bytes into a spell."""
        more = grown(self._slope * written / self._spell.rate, self._form)
        return np.minimum(self._spell.rate * more, self._end)

    def _drawn(self) -> Floats:
        """Normal deviates of length and room of each run's present spell, shape (2, runs)."""
        runs = len(self.spells)
        while len(self._deviates) <= self.spells.max():
            random = np.random.default_rng((_SPELLS_SEED, len(self._deviates)))
            self._deviates.append(random.standard_normal((runs, 2)))
        own = np.array(self._deviates)[self.spells, np.arange(runs)]
        shared = self._shared
        return np.asarray((np.sqrt(shared) * self._common + np.sqrt(1.0 - shared) * own).T)

    def _length(self) -> Floats:
        """Bytes of each run's present spell; infinite where it never ends, as in run 0.

        The expected run stays in its first spell; `expected` has what follows.
        """
        known = self._known
        if known is None:
            return np.full(len(self.spells), np.inf)
        if known.spell_bytes is not None:
            length = known.spell_bytes.value * np.exp(known.spell_bytes.sd * self._drawn()[0])
        else:
            until = recovery_at(self._end / self._spell.rate, self._form)
            with np.errstate(divide="ignore", invalid="ignore"):
                length = until * self._spell.rate / self._slope
            length = np.where(self._slope > 0.0, length, np.inf)
        length = np.where(self._end > NO_RECOVERY * self._spell.rate, length, np.inf)
        length[0] = np.inf
        return np.asarray(length)

    def _room(self) -> Floats:
        """Bytes that the cache takes after each run's present spell."""
        known = self._known
        if known is None:
            return np.zeros(len(self.spells))
        share = known.again_share
        drawn = share.value * np.exp(share.sd * self._drawn()[1])
        return np.asarray(np.minimum(drawn, 1.0) * self._cache)

    def _differences(self, step: float) -> Floats:
        """How far this step's mean rate (log) and watts lie off the trend, shape (2, runs).

        An Ornstein-Uhlenbeck process, averaged over the step: with t the correlation time and
        a = step / t, its variance is that of a point times 2 (a - 1 + exp(-a)) / a^2, and what a
        step leaves of the one before is exp(-a).
        """
        known, runs = self._known, len(self.spells)
        if known is None:
            return np.zeros((2, runs))
        a = step / max(known.correlation_seconds.value, _LEAST_CORRELATION * step)
        decay = np.exp(-a)
        averaged = np.sqrt(2.0 * (a - 1.0 + decay)) / a
        sds = averaged * np.array([known.second_log_sd.value, known.watts_sd.value])
        fresh = self._noise.standard_normal((2, runs))
        fresh[:, 0] = 0.0
        off = fresh if self._off is None else decay * self._off + np.sqrt(1.0 - decay**2) * fresh
        self._off = off
        change = off * sds[:, None]
        change[0, 1:] -= 0.5 * sds[0] ** 2  # so that the mean of its exponential is 1
        return np.asarray(change)


STATED_SD = 0.25
"""Least log sd of the collecting rate where the state was stated and not the bytes written."""

FALLS_FROM = 0.8
"""Share of the transition from which the rate falls; before it the drive folds beside full speed
(980 PRO series: power from second 267 on, throughput from second 290, both settled at 297)."""

SPARE_FRACTION = 0.0995
"""Flash beyond the logical capacity: 1024 GiB of dies in a drive sold as 1 TB of 10^12 bytes, and
likewise for the other sizes, for dies come in powers of two and capacities do not."""

SPARE_LOG_SD = 0.35
"""How far the spare flash's part in the cache may be off: mapping, bad blocks and cleaning may keep
half of it, and sequential writes over old data free blocks as they go, up to half as much again
(1 / (bits - 1) instead of 1 / bits of it); assumption."""

FILLS = np.linspace(0.0, 1.0, 101)
"""How full a drive may be of which it is not said: anything, all alike likely."""


class DeviceState:
    """Evaluates what a profile knows of writes; build once, call often."""

    def __init__(self, profile: DeviceProfile) -> None:
        self.known = profile.write_state
        self._capacity = profile.capacity_bytes
        self.seen_work = profile.work_after_writes
        works = self.known.background if self.known is not None else []
        first = [0, *power_limit.as_first_state(profile)]
        rows = 1 + max((*(work.power_state for work in works), *first))
        self._seconds = np.full((rows, 2), np.nan)
        self._watts = np.full((rows, 2), np.nan)
        for work in works:
            self._seconds[work.power_state] = work.seconds_per_byte.value, work.seconds_per_byte.sd
            self._watts[work.power_state] = work.watts_above_idle.value, work.watts_above_idle.sd
        if self.known is None and self.seen_work is not None:
            joules, watts = self.seen_work.joules_per_byte, self.seen_work.watts_above_idle
            log_sd = float(np.hypot(joules.sd, watts.sd / watts.value))
            self._seconds[first] = joules.value / watts.value, log_sd
            self._watts[first] = watts.value, watts.sd
        self._apply_power_limits(profile)

    def _apply_power_limits(self, profile: DeviceProfile) -> None:
        """Cap the power of background work at the power limit; it takes longer accordingly."""
        power = profile.device_power
        states = [state for state in profile.limit_states if state < len(self._watts)]
        if power is None or not states or power_limit.kept_by_states(profile):
            return
        limit = np.array([profile.limit_states[state] for state in states])
        idle = np.array([power.idle_watts[state].value for state in states])
        base = device_power.base_watts(power, np.array(states))
        watts, watts_sd = self._watts[states].T
        slowed, slowed_sd = power_limit.log_slowed(
            profile, limit, lambda longer: base + (idle + watts - base) * np.exp(-longer)
        )
        share, share_sd = power_limit.share_drawn(profile)
        held = slowed > 0
        seconds, log_sd = self._seconds[states].T
        self._seconds[states] = np.stack([seconds * np.exp(slowed), np.hypot(log_sd, slowed_sd)], 1)
        self._watts[states] = np.stack(
            [
                np.where(held, share * limit - idle, watts),
                np.where(held, share_sd * limit, watts_sd),
            ],
            axis=1,
        )

    def cache_share(self, fill: Floats) -> Floats:
        """Size of the cache over that of an empty drive, by fill; 1 where the fill is unknown.

        Free cells and the spare ones hold one bit each. The fixed part comes out of the spare.
        """
        state = self.known
        if state is None or state.cache is None or self._capacity is None:
            return np.ones_like(fill)
        whole, fixed = state.cache.capacity_bytes.value, state.cache.static_bytes.value
        cells = (1.0 - fill + SPARE_FRACTION) * self._capacity
        share = np.clip(cells / state.cache.bits_per_cell, fixed, whole) / whole
        return np.where(np.isnan(fill), 1.0, share)

    def cache_share_sd(self, fill: Floats) -> Floats:
        """Log sd of that share; none where free cells suffice, all of `FILLS` where unknown."""
        share = self.cache_share(fill)
        spare = SPARE_FRACTION / (1.0 - fill + SPARE_FRACTION)
        known = np.where(share < 1.0, SPARE_LOG_SD * spare, 0.0)
        unknown = np.sqrt(np.mean(np.log(self.cache_share(FILLS)) ** 2))
        return np.where(np.isnan(fill), unknown, known)

    def cache_shares(self, fill: float, random: np.random.Generator, runs: int) -> Floats:
        """The share in many runs over its value; shape (runs,), the first one undisturbed.

        Where the fill is NaN each run has a drive of its own, as full as any.
        """
        if np.isnan(fill):
            shares = self.cache_share(random.uniform(size=runs))
        else:
            doubt = self.cache_share_sd(np.array([fill]))
            shares = np.exp(random.standard_normal(runs) * doubt)
        shares[0] = 1.0
        return shares

    def seconds_per_byte(self, frame: Frame) -> tuple[Floats, Floats]:
        """Background seconds a written byte, and log sd; NaN where the profile does not know."""
        value, sd = _by_state(self._seconds, frame.background_state)
        known = self.known
        if known is None or known.random_factor is None:
            return value, sd
        random = frame.pattern == RANDOM
        factor = known.random_factor
        return (
            value * np.where(random, factor.value, 1.0),
            np.hypot(sd, np.where(random, factor.sd, 0.0)),
        )

    def background_watts(self, frame: Frame) -> tuple[Floats, Floats]:
        """Watts above idle while the drive works on its own behalf, and their sd."""
        return _by_state(self._watts, frame.background_state)

    def write_amplification(self, frame: Frame, spare_fraction: float = SPARE_FRACTION) -> Floats:
        """Flash bytes per host byte; NaN for reads and where the profile knows no cache.

        What the cache takes is written once to single-bit cells and once more when it is folded;
        small random writes to a drive that collects cost what `steady_write_amplification` says
        at the fill (1 where it is not stated), sequential ones only themselves.

        Args:
            frame: The questions.
            spare_fraction: Physical over logical capacity, less 1: 1024 GiB over 1 TB.
        """
        share = self.collecting(frame)
        fill = np.clip(np.nan_to_num(frame.fill_fraction, nan=1.0), 0.01, 1.0)
        steady = np.where(
            frame.pattern == RANDOM, steady_write_amplification(fill, spare_fraction), 1.0
        )
        value = np.exp((1.0 - share) * np.log(2.0) + share * np.log(steady))
        known = (frame.read_fraction < 1.0) & (self.known is not None)
        return np.where(known, value, np.nan)

    def joules_per_byte(self, frame: Frame) -> tuple[Floats, Floats]:
        """Energy of the background work that a written byte causes later, J/B, and its sd.

        From time and watts in the state that the drive is in afterwards; where a profile has no
        background work by power state, the one figure of PS0.
        """
        seconds, log_sd = self.seconds_per_byte(frame)
        watts, watts_sd = self.background_watts(frame)
        value = seconds * watts
        with np.errstate(invalid="ignore"):
            sd = value * np.hypot(log_sd, watts_sd / watts)
        unknown = np.isnan(value)
        at_first, at_first_sd = self._first_joules()
        return np.where(unknown, at_first, value), np.where(unknown, at_first_sd, sd)

    def _first_joules(self) -> tuple[float, float]:
        """J a written byte at PS0, and its sd; 0 where nobody saw any work."""
        if self.known is not None:
            joules = self.known.background_joules_per_byte
            return joules.value, joules.sd
        if self.seen_work is None:
            return 0.0, 0.0
        joules = self.seen_work.joules_per_byte
        return joules.value, joules.value * joules.sd

    @property
    def owed_most(self) -> float:
        """Written bytes that leave work behind at the most; 0 where nobody saw any."""
        if self.known is not None:
            return self.known.transition_bytes.value
        work = self.seen_work
        return 0.0 if work is None else work.most_joules.value / work.joules_per_byte.value

    def background_seconds(self, frame: Frame, written: Floats) -> tuple[Floats, Floats]:
        """Seconds of background work after `written` bytes, and their log sd.

        No more than an empty drive's cache leaves work behind: what is beyond was dealt with while
        it was written. A full drive's smaller cache is no such bound, for what its writes replace
        is to be cleaned too: 60 s of writing left the full 980 PRO 2.7 times the work of 15 s,
        though it had collected on the way (000 5.1.2).
        """
        seconds, log_sd = self.seconds_per_byte(frame)
        if self.known is None and self.seen_work is None:
            return seconds, log_sd
        return seconds * np.minimum(written, self.owed_most), log_sd

    def ran_full(self, held: Floats) -> NDArray[np.bool_]:
        """Whether so many bytes ran the cache full, and left work that begins at once.

        False where no run showed such work (`full_work_joules`); always where all work that was
        seen did so (`WorkAfterWrites`).
        """
        known = self.known
        if known is None or known.full_work_joules is None:
            at_once = known is None and self.seen_work is not None
            return np.full(held.shape, at_once) & (held > 0)
        return np.asarray(held >= known.cached_bytes.value)

    @property
    def full_work(self) -> float:
        """How much more work a byte leaves in a cache that ran full, at least 1.

        `full_work_joules` over what a whole cache leaves otherwise: beside folding, the drive makes
        room for what was written past it.
        """
        known = self.known
        if known is None or known.full_work_joules is None:
            return 1.0
        usual = known.transition_bytes.value * known.background_joules_per_byte.value
        return max(known.full_work_joules.value / usual, 1.0) if usual > 0 else 1.0

    def effective_bytes(self, frame: Frame) -> Floats:
        """Host bytes that count towards the cache: written, less what idle time has folded."""
        written = np.where(np.isnan(frame.bytes_written), 0.0, frame.bytes_written)
        if self.known is None or not (frame.seconds_idle > 0).any():
            return written
        needed, _ = self.background_seconds(frame, written)
        with np.errstate(invalid="ignore", divide="ignore"):
            left = 1.0 - frame.seconds_idle / needed
        return np.asarray(written * np.clip(np.nan_to_num(left, nan=1.0, neginf=0.0), 0.0, 1.0))

    def overwriting(self, frame: Frame) -> tuple[Floats, float]:
        """What a slot waits between random writes to places that hold data, ns, and its log sd.

        A random place holds data with the probability of the fill; where the fill is not stated
        the drive is as empty as the one that was measured.
        """
        added = self.known.overwriting_seconds if self.known is not None else None
        if added is None:
            return np.zeros(len(frame)), 0.0
        fill = np.where(np.isnan(frame.fill_fraction), 0.0, frame.fill_fraction)
        share = fill * (frame.pattern == RANDOM)
        return 1e9 * added.value * share, added.sd

    def collecting(self, frame: Frame) -> Floats:
        """Share of collecting, 0 to 1: as stated, else from the bytes that the cache holds."""
        return self._share(frame, np.ones(len(frame)))

    def slowed(self, frame: Frame) -> tuple[Floats, Floats]:
        """Share of the slow-down, 0 to 1, and how unsure it is by the place of the cliff."""
        early, here, late = (
            np.clip((share - FALLS_FROM) / (1.0 - FALLS_FROM), 0.0, 1.0)
            for share in self._around(frame)
        )
        return here, (early - late) / 2

    def collecting_sd(self, frame: Frame) -> Floats:
        """How unsure that share is: it moves with the place of the cliff."""
        early, _, late = self._around(frame)
        return (early - late) / 2

    def _around(self, frame: Frame) -> tuple[Floats, Floats, Floats]:
        """The share with the cliff one standard deviation earlier, in place, and later.

        A drive whose fill is not stated can only have a smaller cache than the empty one's.
        """
        here = self._share(frame, np.ones(len(frame)))
        if self.known is None or not np.isfinite(frame.bytes_written).any():
            return here, here, here
        sd = self.known.transition_bytes.sd / self.known.transition_bytes.value
        by_fill = self.cache_share_sd(frame.fill_fraction)
        above = np.where(np.isnan(frame.fill_fraction), 0.0, by_fill)
        early, late = np.exp(-np.hypot(sd, by_fill)), np.exp(np.hypot(sd, above))
        return self._share(frame, early), here, self._share(frame, late)

    def _share(self, frame: Frame, scale: Floats) -> Floats:
        state = self.known
        if state is None:
            return np.zeros(len(frame))
        size = self.cache_share(frame.fill_fraction) * scale
        full, over = state.cached_bytes.value * size, state.transition_bytes.value * size
        derived = (self.effective_bytes(frame) - full) / (over - full)
        derived = np.clip(derived, 0.0, 1.0)
        return np.where(np.isfinite(frame.collecting), frame.collecting, derived)

    def collecting_rate(self, frame: Frame) -> tuple[Floats, Floats]:
        """Bytes a second that the drive takes while it collects, and their log sd.

        It recovers with the bytes written beyond the cliff, at most to the rate at which the drive
        has done with collecting; twofold where nobody knows that.
        """
        state = self.known
        if state is None:
            return np.full(len(frame), np.inf), np.zeros(len(frame))
        first = state.collecting_bytes_per_second
        over = state.transition_bytes.value * self.cache_share(frame.fill_fraction)
        past = np.maximum(self.effective_bytes(frame) - over, 0.0)
        x = state.recovery_bytes_per_second_per_byte.value * past / first.value
        known = state.long_writes
        most = 2.0 * first.value if known is None else known.recovered_bytes_per_second.value
        rate = np.minimum(first.value * grown(x, EXPECTED_FORM), most)
        stated = max(first.sd, STATED_SD)
        sd = np.where(np.isfinite(frame.bytes_written), first.sd, stated)
        faster = state.sequential_collecting_bytes_per_second
        if faster is not None:
            sequential = frame.pattern != RANDOM
            rate = np.where(sequential, faster.value, rate)
            sd = np.where(sequential, faster.sd, sd)
        return rate, sd


def left_after(
    owed_bytes: Floats, seconds: Floats | float, seconds_per_byte: Floats | float
) -> Floats:
    """Share of the owed work that is left after so much quiet time, 0 to 1; shape as broadcast.

    Args:
        owed_bytes: Written bytes whose background work is to be done.
        seconds: Quiet time.
        seconds_per_byte: Of background work a written byte; 0 where none is known: nothing is done.
    """
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        left = np.nan_to_num(1.0 - seconds / (seconds_per_byte * owed_bytes), nan=1.0, neginf=0.0)
    return np.asarray(np.clip(left, 0.0, 1.0))


def _by_state(table: Floats, state: NDArray[np.intp]) -> tuple[Floats, Floats]:
    inside = state < len(table)
    value, sd = table[np.where(inside, state, 0)].T
    return np.where(inside, value, np.nan), np.where(inside, sd, np.nan)


def steady_write_amplification(fill: Floats, spare_fraction: float) -> Floats:
    """Flash bytes per host byte of small random writes in the long run, shape as `fill`.

    Cleaning in the order of writing, uniform writes: a block that is cleaned again after T writes
    still holds exp(-T / used) of its pages, hence exp(-alpha / A) = 1 - 1 / A with alpha physical
    over used capacity (Desnoyers, Analytic Models of SSD Write Performance, ACM TOS 2014). Greedy
    cleaning needs less.

    Args:
        fill: Share of the logical capacity that holds data, above 0 and at most 1.
        spare_fraction: Physical over logical capacity, less 1; above 0.
    """
    alpha = np.asarray((1.0 + spare_fraction) / fill)
    # A solves exp(-alpha / A) = 1 - 1 / A; bisection, for the left side crosses once above 1
    low, high = np.full_like(alpha, 1.0), np.full_like(alpha, 1e6)
    for _ in range(60):
        middle = np.sqrt(low * high)
        more = np.exp(-alpha / middle) > 1.0 - 1.0 / middle
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return np.asarray(np.sqrt(low * high))
