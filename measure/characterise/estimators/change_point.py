"""Where a rate drops: one change of mean in a series, with its profile-likelihood interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from iojoule.datasets.characteristics import CONFIDENCE
from iojoule.measure.recording.statistics import batch_standard_error

Floats = NDArray[np.float64]

FEWEST = 4
"""Bins on either side of a change."""
LEAST_DROP = 0.08
"""A smaller fall of the mean, as a fraction, is no change of phase."""


@dataclass(frozen=True)
class Drop:
    """A fall of the mean.

    Attributes:
        place: Where it lies, in the unit of the places.
        low: Lower end of the 95 % interval of the place.
        high: Upper end.
        before: Mean rate before it.
        before_error: Its standard error.
        after: Mean rate after it.
        after_error: Its standard error.
    """

    place: float
    low: float
    high: float
    before: float
    before_error: float
    after: float
    after_error: float


def find_drop(places: Floats, rates: Floats) -> Drop | None:
    """The fall of the mean that explains the series best; None where none is beyond chance.

    Least squares over every split. The interval holds all splits whose profile likelihood is
    within chi2(1, 95 %) of the best (n log RSS), widened by one bin, since a change anywhere in
    a bin shows at its end. It must beat the constant by the Bayesian criterion with two further
    parameters, 2 log n, at three times its penalty, because rates correlate.

    Args:
        places: End of each bin, growing, shape (n,): bytes written so far.
        rates: Mean rate in the bin, shape (n,).
    """
    count = len(rates)
    if count < 2 * FEWEST + 1:
        return None
    splits = np.arange(FEWEST, count - FEWEST + 1)
    sums, squares = np.cumsum(rates), np.cumsum(rates**2)
    left = sums[splits - 1]
    right = sums[-1] - left
    misfit = squares[-1] - left**2 / splits - right**2 / (count - splits)
    # a series without any scatter would have no likelihood
    floor = 1e-6 * squares[-1]
    misfit = np.maximum(misfit, floor)
    whole = max(float(squares[-1] - sums[-1] ** 2 / count), floor)
    best = int(np.argmin(misfit))
    split = int(splits[best])
    before, after = float(rates[:split].mean()), float(rates[split:].mean())
    gain = count * float(np.log(whole / misfit[best]))
    if gain < 3 * 2 * np.log(count) or after > (1 - LEAST_DROP) * before:
        return None
    near = count * np.log(misfit / misfit[best]) <= float(chi2.ppf(CONFIDENCE, 1))
    inside = splits[near]
    width = float(np.median(np.diff(places)))
    place = _within(places, rates, split, before, after)
    return Drop(
        place=place,
        low=min(float(places[inside.min() - 1]), place) - width,
        high=max(float(places[inside.max() - 1]), place) + width,
        before=before,
        before_error=batch_standard_error(rates[:split]),
        after=after,
        after_error=batch_standard_error(rates[split:]),
    )


def _within(places: Floats, rates: Floats, split: int, before: float, after: float) -> float:
    """Where in its bin the change lies: what the bins around it hold tells how long each rate ran.

    Bins are of equal length in time, so that n of them with x before the change hold
    x before + (n - x) after.
    """
    first, last = max(split - FEWEST + 1, 1), min(split + FEWEST - 1, len(rates))
    held, count = float(rates[first:last].sum()), last - first
    fast = min(max((held - count * after) / (before - after), 0.0), float(count))
    # a bin's growth of the places over its rate is its length
    step = float(np.median(np.diff(places) / np.maximum(rates[1:], 1e-12)))
    return float(places[first - 1]) + fast * before * step
