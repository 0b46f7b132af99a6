"""How sure a change of power is: what both sides err alike cancels.

Two answers of one drive rest on the same law, and answers of two drives on the same host, so their
errors are not apart. With g the gradients by the shared parameters (covariance C) and h the half
widths of the two intervals,

    own_k^2 = (h_k / 1.645)^2 - g_k' C g_k,    var = (g_2 - g_1)' C (g_2 - g_1) + own_1^2 + own_2^2,

and of one configuration of one drive the own errors are one error too: (own_2 - own_1)^2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.vocabulary import Evidence
from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.model.evaluate.uncertainty import Layout
from iojoule.recommender.estimate import Estimate
from iojoule.recommender.what_if.sharing import Serving, gradients_of

Floats = NDArray[np.float64]

OF_HOST = ("cpu", "system")
"""Blocks of parameters that belong to the host."""


def power_change(
    before: Serving,
    after: Serving,
    scope: str,
    watts: tuple[Estimate, Estimate],
    weights: tuple[float, float] = (1.0, 1.0),
) -> Estimate:
    """After less before, with its 90 % interval.

    Args:
        before: How things are.
        after: How they would be.
        scope: Whose power: device, device_cpu or system.
        watts: Power of all drives before and after.
        weights: What each is multiplied by, such as hours times a price.
    """
    base, changed = watts
    value = weights[1] * changed.value - weights[0] * base.value
    same = before.recommender is after.recommender
    same &= before.row.configuration == after.row.configuration
    names = _shared(before.recommender.layout, after.recommender.layout)
    covariance = _block(before.recommender.layout, names)
    one, other = _gradient(before, scope, names), _gradient(after, scope, names)
    own = [
        weight * np.sqrt(max(_sd(told) ** 2 - _variance(gradient, covariance), 0.0))
        for weight, told, gradient in zip(weights, watts, (one, other), strict=True)
    ]
    variance = (own[1] - own[0]) ** 2 if same else own[0] ** 2 + own[1] ** 2
    variance += _variance(weights[1] * other - weights[0] * one, covariance)
    half = NORMAL_90 * float(np.sqrt(variance))
    evidence = weaker(base.evidence, changed.evidence)
    return Estimate(value=value, low=value - half, high=value + half, evidence=evidence)


def weaker(one: Evidence, other: Evidence) -> Evidence:
    """What rests on both; what was simulated says so, although some evidence is weaker."""
    guessed = {Evidence.DATASHEET, Evidence.ASSUMED} & {one, other}
    if Evidence.SIMULATED in (one, other) and not guessed:
        return Evidence.SIMULATED
    return max((one, other), key=list(Evidence).index)


def _sd(told: Estimate) -> float:
    return 0.5 * (told.high - told.low) / NORMAL_90


def _shared(one: Layout, other: Layout) -> list[str]:
    """Blocks of parameters that two profiles have in common."""
    if one.profile.device == other.profile.device:
        return list(one.at)
    if one.profile.host_power is not None and one.profile.host_power == other.profile.host_power:
        return list(OF_HOST)
    return []


def _places(layout: Layout, names: list[str]) -> NDArray[np.intp]:
    ranges = [np.arange(layout.at[name].start, layout.at[name].stop) for name in names]
    return np.concatenate([np.zeros(0, dtype=np.intp), *ranges]).astype(np.intp)


def _block(layout: Layout, names: list[str]) -> Floats:
    places = _places(layout, names)
    return layout.covariance[np.ix_(places, places)]


def _variance(gradient: Floats, covariance: Floats) -> float:
    return max(float(gradient @ covariance @ gradient), 0.0)


def _gradient(serving: Serving, scope: str, names: list[str]) -> Floats:
    """Gradient of the power of all drives by the shared parameters."""
    places = _places(serving.recommender.layout, names)
    return np.asarray(gradients_of(serving)[scope].common[0][places])
