"""What a real instrument teaches the estimate of one drive, and what stays when it is taken away.

An instrument beside the estimate gives pairs of watts. What it shows is written as

    watts = sum of factor x part,

over the parts of the estimate (idle, awake, read, write, background), so that idle power which is
wrong by a tenth is so in a sleep state too, and reads teach nothing about writes. The factors start
at 1 with the uncertainty of the profile and are followed by a Kalman filter whose state walks at
random, slowly: drives age and warm up, so what was learnt wears off (Welch and Bishop, An
Introduction to the Kalman Filter, UNC TR 95-041). What single intervals scatter about that is kept
as its own uncertainty: another workload is wrong by another amount. A workload lasts, so
neighbouring intervals are wrong alike: each counts for less than an interval of its own.

A drive that changes at once (another firmware, a mode that nobody modelled), or that the profile is
not of, shows as innovations that all lie on one side: a two-sided cumulative sum (Page, Continuous
Inspection Schemes, Biometrika 1954) tells it, and the filter starts anew, sure of nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from iojoule.model.evaluate.bands import Floats

FACTOR_SD = {"idle": 0.07, "awake": 0.1, "read": 0.1, "write": 0.12, "background": 0.25}
"""Between drives of one model and their environment, by part, where a profile is as sure as
`USUAL_SD`; assumptions."""

USUAL_SD = 0.1
"""Relative sd of the watts of a profile that was fitted to the very drive."""

FACTOR_SD_MOST = 0.8
"""Of a profile that is hardly more than a guess; a factor is no less than 0."""

WALK = 0.0005
"""How far a factor walks in a second, sd: 3 % in an hour; an assumption."""

ALIKE_SECONDS = 30.0
"""For how long intervals are wrong alike: a workload lasts longer than an interval (assumption)."""

SCATTER_SHARE = 0.05
"""Scatter of single intervals before any was seen, as a share of the watts."""

FORGET = 0.98
"""What an interval leaves of the scatter seen before."""

DRIFT_SLACK = 1.0
"""Of the cumulative sum, in standard deviations: half the shift to be found (Page, 1954)."""

ALIKE_SHARE = 0.1
"""What a fitted profile is wrong by in a workload, as a share of the watts, sd; an assumption."""

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


class Correction:
    """Of one drive; parts are those of `FACTOR_SD`, in its order."""

    def __init__(self) -> None:
        self._prior: Floats | None = None
        self._factors = np.ones(len(FACTOR_SD))
        self._covariance = np.zeros((len(FACTOR_SD), len(FACTOR_SD)))
        self._scatter = 0.0
        self._seen = 0
        self._sums = [0.0, 0.0]
        self.drifts = 0

    @property
    def has_learnt(self) -> bool:
        """Whether an instrument was ever there."""
        return self._prior is not None

    @property
    def factors(self) -> dict[str, float]:
        """By what each part is multiplied."""
        return dict(zip(FACTOR_SD, map(float, self._factors), strict=True))

    def corrected(self, parts: Mapping[str, float]) -> Corrected:
        """The estimate as corrected, never below 0.

        Args:
            parts: Watts by part, as the profile estimates them.
        """
        x = _vector(parts)
        variance = float(x @ self._covariance @ x) + self._scatter_variance(float(x.sum()))
        return Corrected(max(float(x @ self._factors), 0.0), float(np.sqrt(variance)))

    def pass_time(self, seconds: float) -> None:
        """Let what was learnt wear off for a while, to no more than was unknown at first."""
        if self._prior is not None:
            walk = WALK**2 * seconds * np.eye(len(FACTOR_SD))
            self._covariance = _at_most(self._covariance + walk, self._prior)

    def learn(
        self,
        measured_watts: float,
        measured_sd: float,
        parts: Mapping[str, float],
        sd: float,
        seconds: float,
    ) -> bool:
        """Take one interval in which an instrument was there; returns whether it told a drift.

        Args:
            measured_watts: Mean of the interval by the instrument.
            measured_sd: Standard deviation of that.
            parts: Watts by part, as the profile estimates them.
            sd: Standard deviation of their sum, of which the first tells how sure the profile is.
            seconds: Length of the interval.
        """
        x = _vector(parts)
        watts = float(x.sum())
        if self._prior is None:
            surely = np.array(list(FACTOR_SD.values())) * max(sd / watts, 0.0) / USUAL_SD
            self._prior = np.diag(np.minimum(surely, FACTOR_SD_MOST) ** 2)
            self._covariance = self._prior.copy()
        innovation = measured_watts - float(x @ self._factors)
        scatter = self._scatter_variance(watts)
        noise = scatter * (1.0 + ALIKE_SECONDS / seconds) + measured_sd**2
        expected = float(x @ self._covariance @ x) + noise
        usual = float(x @ self._covariance @ x) + (ALIKE_SHARE * watts) ** 2 + measured_sd**2
        drift = self._drifted(innovation / np.sqrt(usual))
        if drift:
            self._prior = np.eye(len(x)) * FACTOR_SD_MOST**2
            self._covariance = self._prior.copy()
            expected = float(x @ self._covariance @ x) + noise
        # what the profile does not know of (work that begins late) teaches little: Huber's weight
        expected *= max(abs(innovation) / (USUAL_INNOVATION * np.sqrt(expected)), 1.0)
        gain = self._covariance @ x / expected
        self._factors = np.maximum(self._factors + gain * innovation, 0.0)
        self._covariance = self._covariance - np.outer(gain, x @ self._covariance)
        after = measured_watts - float(x @ self._factors)
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


def _vector(parts: Mapping[str, float]) -> Floats:
    return np.array([parts[name] for name in FACTOR_SD])


def _at_most(covariance: Floats, most: Floats) -> Floats:
    """The covariance with no variance above those of a diagonal one, correlations kept."""
    own = np.maximum(np.diag(covariance), np.finfo(float).tiny)
    scale = np.sqrt(np.minimum(np.diag(most) / own, 1.0))
    return np.asarray(covariance * np.outer(scale, scale))
