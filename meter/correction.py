"""What a real instrument teaches the estimate of one drive, and what stays when it is taken away.

An instrument beside the estimate gives pairs of watts. What it shows is written as

    watts = sum of factor x part + use of reads x watts + use of writes x watts,

over the parts of the estimate (idle at rest, asleep, idle between requests, awake, read, write,
background), so that reads teach nothing about writes, nor requests about rest. The watts beside
them are what a drive in use draws more than its profile says: a profile that knows hardly any
joules of a request cannot be mended by a factor. The factors start at 1 with the uncertainty of the
profile in the interval that shows their part first, and are followed by a Kalman filter whose state
walks at random, slowly: drives age and warm up, so what was learnt wears off (Welch and Bishop, An
Introduction to the Kalman Filter, UNC TR 95-041). A workload is wrong by an amount of its own that
lasts as long as it does: that is one more part of the state, a share of the watts, forgotten as the
workload changes or time passes, so that many seconds of one workload teach the factors no more than
it, and many workloads teach them soon. When a drive does what it owes (folding, collecting) is not
known, only about how much that is: joules by which it is ahead of the profile, or behind, are two
more parts of the state, and come back within seconds, so that work at another time than expected is
not taken for more work, or for less.
What single intervals scatter about all that is kept as its own uncertainty.

A drive that changes at once (another firmware, a mode that nobody modelled), or that the profile is
not of, shows as innovations that all lie on one side: a two-sided cumulative sum (Page, Continuous
Inspection Schemes, Biometrika 1954) tells it, and the filter starts anew, sure of nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from iojoule.meter.estimate import WORKLOAD_SHARE
from iojoule.model.evaluate.bands import Floats

FACTOR_SD = {
    "rest": 0.07,
    "asleep": 0.3,
    "idle": 0.07,
    "awake": 0.1,
    "read": 0.1,
    "write": 0.12,
    "background": 0.25,
}
"""Between drives of one model and their environment, by part, where a profile is as sure as
`USUAL_SD`; assumptions. `rest` is idle power without any request, `asleep` that in a state of
sleep, `idle` that between requests."""

USES = ("read", "write")
"""What is in use for whom; the watts of it are as uncertain as the first estimate."""

USUAL_SD = 0.1
"""Relative sd of the watts of a profile that was fitted to the very drive."""

LEAST_SD = 0.01
"""No profile is surer of its watts than that, relative sd; an assumption."""

SHOWN = 0.2
"""Share of an interval's watts, or of its time in use, from which it shows a part (assumption)."""

FACTOR_SD_MOST = 0.8
"""Of a profile that is hardly more than a guess; a factor is no less than 0."""

WALK = 0.0005
"""How far a factor walks in a second, sd: 3 % in an hour; an assumption."""

AHEAD_SECONDS = 10.0
"""How long a drive is ahead of the profile in what it does on its own behalf, or behind
(assumption)."""

AHEAD_SHARE = 1.0
"""Of the watts of such work, sd: an interval may hold all that they can do, or nothing of it."""

WORKLOAD_SECONDS = 30.0
"""How long a workload is wrong by one amount, if it does not change (assumption)."""

WORKLOAD_CHANGE = 0.2
"""Change of the parts, as a share of the larger watts, that makes it another one (assumption)."""

WORKLOADS_BEFORE = 2.0
"""As many workloads as the first guess of that counts for."""

SCATTER_SHARE = 0.05
"""Scatter of single intervals before any was seen, as a share of the watts."""

FORGET = 0.98
"""What an interval leaves of the scatter seen before."""

DRIFT_SLACK = 1.0
"""Of the cumulative sum, in standard deviations: half the shift to be found (Page, 1954)."""

DRIFT_LIMIT = 40.0
"""Where it tells a drift: a quarter of a minute of two fifths too much, 40 s of a fifth."""

USUAL_INNOVATION = 1.5
"""Standard deviations beyond which an innovation counts less (Huber, Robust Estimation of a
Location Parameter, 1964: 1.345 to 1.5)."""

INNOVATION_MOST = 4.0
"""An innovation counts as at most so many standard deviations: one bad sample is no drift."""


@dataclass(frozen=True)
class Corrected:
    """Watts after correction, and their standard deviation."""

    watts: float
    sd: float


@dataclass(frozen=True)
class Observed:
    """One interval, as the profile sees it.

    Attributes:
        seconds: Its length.
        parts: Watts by part of the estimate.
        uses: Share of time in which reads, and writes, were in flight.
        served: Whether the drive completed a command.
        asleep: Whether it is in a state of sleep.
        own_watts: What work on its own behalf draws, where there may be any; else 0.
    """

    seconds: float
    parts: Mapping[str, float]
    uses: tuple[float, float]
    served: bool
    asleep: bool = False
    own_watts: float = 0.0

    def elements(self) -> Floats:
        """What one of each element of the correction's state adds to the watts."""
        idle = self.parts["idle"]
        own = {**self.parts, "rest": 0.0, "asleep": 0.0, "idle": 0.0}
        own["idle" if self.served else "asleep" if self.asleep else "rest"] = idle
        ahead = 1.0 / self.seconds
        return np.array([*(own[name] for name in FACTOR_SD), *self.uses, ahead, -ahead, self.watts])

    @property
    def watts(self) -> float:
        """Of the profile."""
        return sum(self.parts.values())


_USES = slice(len(FACTOR_SD), len(FACTOR_SD) + len(USES))
_AHEAD, _WAS_AHEAD, _WORKLOAD = range(_USES.stop, _USES.stop + 3)
_SIZE = _WORKLOAD + 1
_LASTING = slice(0, _AHEAD)
"""Of the state: what wears off slowly."""


class Correction:
    """Of one drive.

    The state are the factors of `FACTOR_SD`, the watts of `USES`, the joules by which the drive is,
    and was an interval ago, ahead in its own work, and the share of the watts by which the present
    workload is wrong beside them.
    """

    def __init__(self) -> None:
        self._prior: Floats | None = None
        self._state = np.zeros(_SIZE)
        self._state[: len(FACTOR_SD)] = 1.0
        self._covariance = np.zeros((_SIZE, _SIZE))
        self._workload_share = 0.0
        self._workloads = WORKLOADS_BEFORE
        self._anew = 1.0
        self._before = np.zeros(_SIZE)
        self._scatter = 0.0
        self._seen = 0
        self._sums = [0.0, 0.0]

    @property
    def has_learnt(self) -> bool:
        """Whether an instrument was ever there."""
        return self._prior is not None

    @property
    def factors(self) -> dict[str, float]:
        """By what each part is multiplied."""
        return dict(zip(FACTOR_SD, map(float, self._state), strict=False))

    def corrected(self, interval: Observed) -> Corrected:
        """The estimate as corrected, never below 0."""
        x = interval.elements()
        variance = float(x @ self._covariance @ x) + self._scatter_variance(interval.watts)
        return Corrected(max(float(x @ self._state), 0.0), float(np.sqrt(variance)))

    def follow(self, interval: Observed, seconds: float) -> None:
        """Let what was learnt wear off, to no more than was unknown at first.

        Args:
            interval: What is estimated next.
            seconds: Since this was last called.
        """
        if self._prior is None:
            return
        x, before = interval.elements(), self._before
        moved = float(np.abs(x - before)[_LASTING].sum()) / max(x[-1], before[-1], 1e-12)
        self._before = x
        kept = float(np.exp(-seconds / WORKLOAD_SECONDS - moved / WORKLOAD_CHANGE))
        self._anew = 1.0 - kept**2
        step = np.eye(_SIZE)
        step[_WORKLOAD, _WORKLOAD] = kept
        step[_AHEAD, _AHEAD] = np.exp(-seconds / AHEAD_SECONDS)
        step[_WAS_AHEAD, [_AHEAD, _WAS_AHEAD]] = 1.0, 0.0
        self._state = step @ self._state
        self._covariance = step @ self._covariance @ step.T
        self._covariance[_WORKLOAD, _WORKLOAD] += self._anew * self._workload_share**2
        self._covariance[_AHEAD, _AHEAD] += (
            AHEAD_SHARE * interval.own_watts * interval.seconds
        ) ** 2
        lasting = np.arange(_SIZE)[_LASTING]
        self._covariance[lasting, lasting] += WALK**2 * seconds
        self._covariance = _at_most(self._covariance, self._prior)

    def learn(
        self, measured_watts: float, measured_sd: float, interval: Observed, sd: float
    ) -> bool:
        """Take one interval in which an instrument was there; returns whether it told a drift.

        Args:
            measured_watts: Mean of the interval by the instrument.
            measured_sd: Standard deviation of that.
            interval: As the profile sees it.
            sd: Standard deviation of its watts. It tells how sure the profile is of the parts that
                this interval is the first to show.
        """
        x, watts = interval.elements(), interval.watts
        self._before = x
        self._begin(max(sd / watts, LEAST_SD) / USUAL_SD, watts, x)
        innovation = measured_watts - float(x @ self._state)
        noise = self._scatter_variance(watts) + measured_sd**2
        expected = float(x @ self._covariance @ x) + noise
        drift = self._drifted(*self._without_workload(measured_watts, measured_sd, x))
        if drift:
            self._prior = None
            self._begin(FACTOR_SD_MOST / min(FACTOR_SD.values()), watts)
            expected = float(x @ self._covariance @ x) + noise
        # what the profile does not know of (work that begins late) teaches little: Huber's weight
        expected *= max(abs(innovation) / (USUAL_INNOVATION * np.sqrt(expected)), 1.0)
        gain = self._covariance @ x / expected
        self._state = self._state + gain * innovation
        factors = slice(0, len(FACTOR_SD))
        self._state[factors] = np.maximum(self._state[factors], 0.0)
        self._covariance = self._covariance - np.outer(gain, x @ self._covariance)
        self._workloads += self._anew
        of_workload = (measured_watts - float(x[:-1] @ self._state[:-1])) / watts
        spread = of_workload**2 - self._workload_share**2
        self._workload_share = float(
            np.sqrt(self._workload_share**2 + self._anew / self._workloads * spread)
        )
        after = measured_watts - float(x @ self._state)
        self._seen += 1
        weight = max(1.0 - FORGET, 1.0 / self._seen)
        self._scatter += weight * (after**2 - self._scatter)
        return drift

    def _without_workload(
        self, measured_watts: float, measured_sd: float, x: Floats
    ) -> tuple[float, float]:
        """How far a workload is from what the factors say, and its standard deviation."""
        factors, watts = x[:-1], float(x[-1])
        away = measured_watts - float(factors @ self._state[:-1])
        variance = float(factors @ self._covariance[:-1, :-1] @ factors)
        own = (self._workload_share * watts) ** 2 + measured_sd**2
        return away, float(np.sqrt(variance + own))

    def _begin(self, unsure: float, watts: float, x: Floats | None = None) -> None:
        """Know as little as a profile that is `unsure` times as uncertain as a fitted one.

        Of the parts that an interval shows and none did before; of all without an interval.
        """
        shown = np.ones(_SIZE, dtype=bool)
        shown[[_AHEAD, _WAS_AHEAD]] = False
        if x is not None:
            shown[: len(FACTOR_SD)] = x[: len(FACTOR_SD)] >= SHOWN * watts
            shown[_USES] = x[_USES] >= SHOWN
        if self._prior is None:
            self._prior, self._covariance = np.zeros((2, _SIZE, _SIZE))
            self._workload_share = WORKLOAD_SHARE * unsure**0.5
        factors = np.minimum(np.array(list(FACTOR_SD.values())) * unsure, FACTOR_SD_MOST)
        uses = np.full(len(USES), USUAL_SD * unsure * watts)
        sds = np.concatenate([factors, uses, np.zeros(2), [self._workload_share]])
        fresh = np.flatnonzero(shown & (np.diag(self._prior) == 0.0))
        self._prior[fresh, fresh] = self._covariance[fresh, fresh] = sds[fresh] ** 2

    def _scatter_variance(self, watts: float) -> float:
        """Of a single interval about the line."""
        first = (SCATTER_SHARE * watts) ** 2
        share = 1.0 / (1.0 + self._seen)
        return share * first + (1.0 - share) * self._scatter

    def _drifted(self, away: float, sd: float) -> bool:
        step = float(np.clip(away / sd, -INNOVATION_MOST, INNOVATION_MOST))
        if not self._seen:
            return False
        self._sums = [
            max(total + sign * step - DRIFT_SLACK, 0.0)
            for total, sign in zip(self._sums, (1.0, -1.0), strict=True)
        ]
        if max(self._sums) < DRIFT_LIMIT:
            return False
        self._sums, self._seen = [0.0, 0.0], 0
        return True


def _at_most(covariance: Floats, most: Floats) -> Floats:
    """The covariance with no variance above those of a diagonal one, correlations kept.

    Joules ahead of the profile have no such bound: they come back by themselves.
    """
    own = np.diag(covariance)
    above = own > np.diag(most)
    above[[_AHEAD, _WAS_AHEAD]] = False
    scale = np.ones(_SIZE)
    scale[above] = np.sqrt(np.diag(most)[above] / own[above])
    return np.asarray(covariance * np.outer(scale, scale))
