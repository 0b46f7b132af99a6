"""What a real instrument teaches the estimate of one drive, and what stays when it is taken away.

An instrument beside the estimate gives pairs of watts. What it shows is written as

    watts = idle + bias + slope (estimate - idle),

bias and slope starting at 0 and 1 with the uncertainty of the profile, and followed by a Kalman
filter whose state walks at random, slowly: drives age and warm up, so what was learnt wears off
(Welch and Bishop, An Introduction to the Kalman Filter, UNC TR 95-041). What single intervals
scatter about that is kept as its own uncertainty: another workload is wrong by another amount.

A drive that changes at once (another firmware, a mode that nobody modelled) shows as innovations
that all lie on one side: a two-sided cumulative sum (Page, Continuous Inspection Schemes,
Biometrika 1954) tells it, and the filter starts anew from the prior, around what it knew.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BIAS_SD_WATTS = 0.3
"""Between drives of one model and their environment; an assumption where a profile has no other."""

SLOPE_SD = 0.25
"""Of the dynamic watts of a drive that was not measured itself; an assumption."""

WALK_WATTS = 0.002
"""How far the bias walks in a second, sd: 0.12 W in an hour; an assumption."""

WALK_SLOPE = 0.0005
"""How far the slope walks in a second, sd: 3 % in an hour; an assumption."""

SCATTER_SHARE = 0.05
"""Scatter of single intervals before any was seen, as a share of the watts."""

FORGET = 0.98
"""What an interval leaves of the scatter seen before."""

DRIFT_SLACK = 0.5
"""Of the cumulative sum, in standard deviations: half the shift to be found (Page, 1954)."""

DRIFT_LIMIT = 10.0
"""Where it tells a drift: with independent innovations, once in years of seconds."""

INNOVATION_MOST = 4.0
"""An innovation counts as at most so many standard deviations: one bad sample is no drift."""


@dataclass(frozen=True)
class Corrected:
    """Watts after correction, and their standard deviation."""

    watts: float
    sd: float


class Correction:
    """Of one drive.

    Args:
        bias_sd_watts: How far its idle power may be off.
        slope_sd: How far its dynamic watts may be off, as a share.
    """

    def __init__(self, bias_sd_watts: float = BIAS_SD_WATTS, slope_sd: float = SLOPE_SD) -> None:
        self._prior = np.diag([bias_sd_watts**2, slope_sd**2])
        self._mean = np.array([0.0, 1.0])
        self._covariance = self._prior.copy()
        self._scatter = 0.0
        self._seen = 0
        self._sums = [0.0, 0.0]
        self.drifts = 0

    @property
    def has_learnt(self) -> bool:
        """Whether an instrument was ever there."""
        return self._seen > 0

    @property
    def bias_watts(self) -> float:
        """What is added to the estimate."""
        return float(self._mean[0])

    @property
    def slope(self) -> float:
        """By what the dynamic watts are multiplied."""
        return float(self._mean[1])

    def corrected(self, watts: float, idle_watts: float) -> Corrected:
        """The estimate as corrected, never below 0.

        Args:
            watts: As the profile estimates them.
            idle_watts: What of them is drawn without any request.
        """
        x = np.array([1.0, watts - idle_watts])
        value = float(idle_watts + x @ self._mean)
        variance = float(x @ self._covariance @ x) + self._scatter_variance(watts)
        return Corrected(max(value, 0.0), float(np.sqrt(variance)))

    def pass_time(self, seconds: float) -> None:
        """Let what was learnt wear off for a while, to no more than was unknown at first."""
        walk = np.diag([WALK_WATTS**2, WALK_SLOPE**2]) * seconds
        self._covariance = _at_most(self._covariance + walk, self._prior)

    def learn(self, measured_watts: float, watts: float, idle_watts: float, sd: float) -> bool:
        """Take one interval in which an instrument was there; returns whether it told a drift.

        Args:
            measured_watts: Mean of the interval by the instrument.
            watts: As the profile estimates them.
            idle_watts: What of them is drawn without any request.
            sd: Standard deviation of the instrument's mean.
        """
        x = np.array([1.0, watts - idle_watts])
        innovation = measured_watts - float(idle_watts + x @ self._mean)
        noise = self._scatter_variance(watts) + sd**2
        expected = float(x @ self._covariance @ x) + noise
        drift = self._drifted(innovation / np.sqrt(expected))
        if drift:
            self._covariance = self._prior.copy()
            expected = float(x @ self._covariance @ x) + noise
        gain = self._covariance @ x / expected
        self._mean = self._mean + gain * innovation
        self._covariance = self._covariance - np.outer(gain, x @ self._covariance)
        after = measured_watts - float(idle_watts + x @ self._mean)
        self._seen += 1
        weight = max(1.0 - FORGET, 1.0 / self._seen)
        self._scatter += weight * (after**2 - self._scatter)
        return drift

    def _scatter_variance(self, watts: float) -> float:
        """Of a single interval about the line."""
        first = (SCATTER_SHARE * watts) ** 2
        share = 1.0 / (1.0 + self._seen)
        return share * first + (1.0 - share) * self._scatter

    def _drifted(self, innovation: float) -> bool:
        step = float(np.clip(innovation, -INNOVATION_MOST, INNOVATION_MOST))
        if not self._seen:
            return False
        self._sums = [
            max(total + sign * step - DRIFT_SLACK, 0.0)
            for total, sign in zip(self._sums, (1.0, -1.0), strict=True)
        ]
        if max(self._sums) < DRIFT_LIMIT:
            return False
        self._sums, self._seen = [0.0, 0.0], 0
        self.drifts += 1
        return True


def _at_most(covariance: NDArray[np.float64], most: NDArray[np.float64]) -> NDArray[np.float64]:
    """The covariance with no variance above those of a diagonal one, correlations kept."""
    scale = np.sqrt(np.minimum(np.diag(most) / np.diag(covariance), 1.0))
    return np.asarray(covariance * np.outer(scale, scale))
