"""Model terms: what acts on a prediction beside the laws, one line of `TERMS` each.

A term is one module with its formula, its parameters and its uncertainty. It multiplies the power
of the drive's law (`power_factor`), or only adds to the profile (`fit`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

import numpy as np

from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import Measurement
from iojoule.model.evaluate import device_power
from iojoule.model.evaluate.bands import Floats
from iojoule.model.evaluate.performance import PerformanceModel, Rows

PowerFactor = Callable[[PerformanceModel, Rows, Floats, Floats], tuple[Floats, Floats]]
"""Takes and returns the factor on the law's watts and its log sd (NaN: the law's own uncertainty
holds), shape (n,) each; terms are applied in their order."""


@dataclass(frozen=True)
class Term:
    """A model term.

    Attributes:
        name: Of the term.
        power_factor: Its evaluation; None where it does not act on watts.
        fit: `module:function` from a profile and its measurements to the profile with the term,
            imported only for a fit; None where no measurements of a drive tell of it.
    """

    name: str
    power_factor: PowerFactor | None = None
    fit: str | None = None

    def fitted(self, profile: DeviceProfile, measurements: Sequence[Measurement]) -> DeviceProfile:
        """The profile with the term, as far as the measurements tell of it."""
        if self.fit is None:
            return profile
        module, function = self.fit.split(":")
        completed: DeviceProfile = getattr(import_module(module), function)(profile, measurements)
        return completed


def residual_factor(
    model: PerformanceModel, rows: Rows, factor: Floats, sd: Floats
) -> tuple[Floats, Floats]:
    """What runs in several power states showed (`state_residual`).

    A mix has what its reads and its writes show, by their share, except for what mixes showed
    themselves. How far mixing itself is from the law is known by the law's own sd only.
    """
    frame, points, code, x = rows.frame, rows.points, rows.code, rows.x
    n = len(frame)
    tables, power = model.state_residuals, model.profile.device_power
    if not tables or power is None:
        return factor, sd
    fraction = frame.read_fraction
    log_factor, variance, known = np.zeros(n), np.zeros(n), np.zeros(n)
    for operation, share in (("read", fraction), ("write", 1.0 - fraction)):
        for correction in tables.corrections(frame, points, code, operation):
            if "watts" in correction.values:
                weight = share[correction.rows]
                log_factor[correction.rows] += weight * correction.values["watts"]
                variance[correction.rows] += weight * correction.sd("watts") ** 2
                known[correction.rows] += weight
    value, law = device_power.active_watts(power, x, frame.power_state)
    law_variance = (law / value) ** 2
    mixing = 4.0 * fraction * (1.0 - fraction)
    variance = (1.0 - mixing) * (variance + (1.0 - known) * law_variance)
    variance = variance + mixing * law_variance
    mixes = [
        correction
        for correction in tables.corrections(frame, points, code, "mixed")
        if "watts" in correction.values
    ]
    if mixes:
        total, own = tables.mixed_weight(frame, mixes), np.zeros(n)
        log_factor = (1.0 - total) * log_factor
        for correction in mixes:
            log_factor[correction.rows] += correction.weight * correction.values["watts"]
            own[correction.rows] += correction.weight * correction.sd("watts")
        variance = (1.0 - total) * variance + total * own**2
        known = known + total
    return factor * np.exp(log_factor), np.where(known > 0.0, np.sqrt(variance), sd)


def rebuilt_factor(
    model: PerformanceModel, rows: Rows, factor: Floats, sd: Floats
) -> tuple[Floats, Floats]:
    """Simulated ratios of a drive that is built otherwise (`performance.Ratios`)."""
    power = model.profile.device_power
    if not model.rebuilt or power is None:
        return factor, sd
    more, more_sd = model.rebuilt.watts(rows.frame, rows.points)
    value, law = device_power.active_watts(power, rows.x, rows.frame.power_state)
    factor = factor * np.exp(more)
    return factor, np.hypot(np.where(np.isfinite(sd), sd, law / value), more_sd)


TERMS = (
    Term("residuals", residual_factor, "iojoule.model.fit.state_residual:with_state_residuals"),
    Term("modified drive", rebuilt_factor),
    Term("write buffer", fit="iojoule.model.fit.write_state:with_write_buffer"),
)
"""In the order in which they are fitted and applied."""
