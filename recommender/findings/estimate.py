"""A quantity at one setting: its value, and how its logarithm follows what settings share.

Numerator and denominator of a ratio share the drive, the host, the power laws, the engine and,
where it rests on few figures, the surface (`model.evaluate.uncertainty`). With gradients g of the
logarithms by the shared parameters (covariance C) and an own part each,

    var(log a/b) = (g_a - g_b)' C (g_a - g_b) + own_a^2 + own_b^2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.model.evaluate.uncertainty import Layout
from iojoule.recommender.findings.judge import Spread

Floats = NDArray[np.float64]

LEAST = 1e-12
"""Stands for nothing where a logarithm is taken."""


@dataclass(frozen=True)
class Estimate:
    """One quantity at one setting.

    Attributes:
        value: In SI units, latencies in ns.
        shared: Gradient of the logarithm by the layout's parameters; None where nothing is shared.
        own: Standard deviation of the logarithm that is the setting's own.
        evidence: Code of the weakest evidence (`model.evaluate.performance.EVIDENCE`).
        layout: Of the parameters.
    """

    value: float
    shared: Floats | None
    own: float
    evidence: int
    layout: Layout | None = None

    def spread(self) -> Spread:
        """The value and its interval."""
        half = NORMAL_90 * float(np.sqrt(self._shared_variance(1.0) + self.own**2))
        return Spread(self.value, self.value * np.exp(-half), self.value * np.exp(half))

    def _shared_variance(self, weight: float) -> float:
        return _variance(self.layout, self.shared, weight)


def ratio(a: Estimate, b: Estimate) -> Spread:
    """`a` over `b`, what they share taken out."""
    value = a.value / max(b.value, LEAST)
    half = NORMAL_90 * float(np.sqrt(_joint(a, b, 1.0, 1.0)))
    return Spread(value, value * np.exp(-half), value * np.exp(half))


def difference(a: Estimate, b: Estimate) -> Spread:
    """`a` less `b`, what they share taken out."""
    value = a.value - b.value
    half = NORMAL_90 * float(np.sqrt(_joint(a, b, a.value, b.value)))
    return Spread(value, value - half, value + half)


def _joint(a: Estimate, b: Estimate, weight_a: float, weight_b: float) -> float:
    own = (weight_a * a.own) ** 2 + (weight_b * b.own) ** 2
    if a.layout is not b.layout or a.shared is None or b.shared is None:
        apart = _variance(a.layout, a.shared, weight_a) + _variance(b.layout, b.shared, weight_b)
        return apart + own
    return _variance(a.layout, weight_a * a.shared - weight_b * b.shared, 1.0) + own


def _variance(layout: Layout | None, shared: Floats | None, weight: float) -> float:
    if layout is None or shared is None:
        return 0.0
    return max(float(shared @ layout.covariance @ shared), 0.0) * weight**2
