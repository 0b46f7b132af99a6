"""Random writes to a drive whose cache is full: collecting that recovers, and comes back.

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

from iojoule.datasets.profile import WriteState

Floats = NDArray[np.float64]

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
        kept = np.exp(-a)
        averaged = np.sqrt(2.0 * (a - 1.0 + kept)) / a
        sds = averaged * np.array([known.second_log_sd.value, known.watts_sd.value])
        fresh = self._noise.standard_normal((2, runs))
        fresh[:, 0] = 0.0
        off = fresh if self._off is None else kept * self._off + np.sqrt(1.0 - kept**2) * fresh
        self._off = off
        found = off * sds[:, None]
        found[0, 1:] -= 0.5 * sds[0] ** 2  # so that the mean of its exponential is 1
        return np.asarray(found)
