"""Where a series changes: one change of mean in a series, with its profile-likelihood interval."""

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
LEAST_CHANGE = 0.06
"""A smaller change of the mean, as a fraction, is no change of phase."""


@dataclass(frozen=True)
class Change:
    """A change of the mean.

    Attributes:
        place: Where it lies, in the unit of the places.
        low: Lower end of the 95 % interval of the place.
        high: Upper end.
        before: Mean before it.
        before_error: Its standard error.
        after: Mean after it.
        after_error: Its standard error.
    """

    place: float
    low: float
    high: float
    before: float
    before_error: float
    after: float
    after_error: float


def find_drop(places: Floats, rates: Floats) -> Change | None:
    """The fall of the mean that explains the series best; None where none is beyond chance."""
    change = find_change(places, rates)
    return change if change is not None and change.after < change.before else None


def find_change(places: Floats, values: Floats) -> Change | None:
    """The change of the mean that explains the series best; None where none is beyond chance.

    Least squares over every split. The interval holds all splits whose profile likelihood is
    within chi2(1, 95 %) of the best (n log RSS), widened by one bin, since a change anywhere in
    a bin shows at its end. It must beat the constant by the Bayesian criterion with two further
    parameters, 2 log n, at three times its penalty, because values correlate.

    Args:
        places: End of each bin, growing, shape (n,): bytes written so far. Bins are of equal length
            in time.
        values: Mean rate, or watts, in the bin, shape (n,).
    """
    count = len(values)
    if count < 2 * FEWEST + 1:
        return None
    splits = np.arange(FEWEST, count - FEWEST + 1)
    sums, squares = np.cumsum(values), np.cumsum(values**2)
    left = sums[splits - 1]
    right = sums[-1] - left
    misfit = squares[-1] - left**2 / splits - right**2 / (count - splits)
    # a series without any scatter would have no likelihood
    floor = 1e-6 * squares[-1]
    misfit = np.maximum(misfit, floor)
    whole = max(float(squares[-1] - sums[-1] ** 2 / count), floor)
    best = int(np.argmin(misfit))
    split = int(splits[best])
    before, after = float(values[:split].mean()), float(values[split:].mean())
    # two means, a scatter and the place are estimated: with few bins they flatter the fit
    gain = (count - 4) * float(np.log(whole / misfit[best]))
    if gain < 3 * 2 * np.log(count) or abs(after - before) < LEAST_CHANGE * abs(before):
        return None
    near = count * np.log(misfit / misfit[best]) <= float(chi2.ppf(CONFIDENCE, 1))
    inside = splits[near]
    place = _within(places, values, split, before, after)
    return Change(
        place=place,
        low=min(_end(places, inside.min() - 1), place),
        high=max(_end(places, inside.max() + 1), place),
        before=before,
        before_error=batch_standard_error(values[:split]),
        after=after,
        after_error=batch_standard_error(values[split:]),
    )


def _within(places: Floats, values: Floats, split: int, before: float, after: float) -> float:
    """Where in its bin the change lies: the bins around it hold x before + (n - x) after."""
    first, last = max(split - FEWEST + 1, 0), min(split + FEWEST - 1, len(values))
    held, count = float(values[first:last].sum()), last - first
    bins = min(max((held - count * after) / (before - after), 0.0), float(count))
    return _end(places, first + bins)


def _end(places: Floats, bins: float) -> float:
    """The place after so many bins, whole or not."""
    numbers = np.arange(1, len(places) + 1)
    return float(np.interp(bins, numbers, places))
