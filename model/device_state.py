"""How writes change the drive: a cache that fills, work that it leaves, and what idling mends.

The state is one number, the host bytes that the cache still holds (`effective_bytes`). Writing
adds to it; background work takes from it while nothing is written, at a pace that the power state
sets. Up to `cached_bytes` the cache takes everything; from there to `transition_bytes` the drive
goes over to collecting; beyond, it takes what collecting leaves. A cache that borrows free cells
shrinks as the drive fills up, down to what the spare flash holds. Where idle time is not stated
none has passed. Where fill is not stated the drive is as empty as the one that was measured, and
how much smaller its cache may be widens the interval.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DeviceProfile
from iojoule.model.collecting import EXPECTED_FORM, grown
from iojoule.model.frame import RANDOM, Frame

Floats = NDArray[np.float64]

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
        works = self.known.background if self.known is not None else []
        rows = 1 + max((work.power_state for work in works), default=-1)
        self._seconds = np.full((max(rows, 1), 2), np.nan)
        self._watts = np.full((max(rows, 1), 2), np.nan)
        for work in works:
            self._seconds[work.power_state] = work.seconds_per_byte.value, work.seconds_per_byte.sd
            self._watts[work.power_state] = work.watts_above_idle.value, work.watts_above_idle.sd

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
        if self.known is None:
            return np.zeros(len(frame)), np.zeros(len(frame))
        seconds, log_sd = self.seconds_per_byte(frame)
        watts, watts_sd = self.background_watts(frame)
        one = self.known.background_joules_per_byte
        value = seconds * watts
        with np.errstate(invalid="ignore"):
            sd = value * np.hypot(log_sd, watts_sd / watts)
        unknown = np.isnan(value)
        return np.where(unknown, one.value, value), np.where(unknown, one.sd, sd)

    def background_seconds(self, frame: Frame, written: Floats) -> tuple[Floats, Floats]:
        """Seconds of background work after `written` bytes, and their log sd.

        No more than an empty drive's cache leaves work behind: what is beyond was dealt with while
        it was written. A full drive's smaller cache is no such bound, for what its writes replace
        is to be cleaned too: 60 s of writing left the full 980 PRO 2.7 times the work of 15 s,
        though it had collected on the way (000 5.1.2).
        """
        seconds, log_sd = self.seconds_per_byte(frame)
        if self.known is None:
            return seconds, log_sd
        return seconds * np.minimum(written, self.known.transition_bytes.value), log_sd

    def effective_bytes(self, frame: Frame) -> Floats:
        """Host bytes that count towards the cache: written, less what idle time has folded."""
        written = np.nan_to_num(frame.bytes_written, nan=0.0)
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
        share = np.nan_to_num(frame.fill_fraction, nan=0.0) * (frame.pattern == RANDOM)
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
        derived = np.clip((self.effective_bytes(frame) - full) / (over - full), 0.0, 1.0)
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
