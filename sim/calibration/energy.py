"""Joules of the drive's events from measured watts: linear, non-negative, with a prior.

With the events a second c_k that the simulator counts, P = sum of theta_k c_k: fitting theta is
least squares under theta >= 0, with the drive's own numbers as prior, known to a factor of about
two. Where the data say nothing about a parameter, it stays with its prior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from iojoule.model.evaluate.bands import Floats
from iojoule.sim.calibration.estimate import CORRELATED
from iojoule.sim.device import DeviceConfig

WATTS_SD = 0.02
"""Relative sd of measured watts, and of what a linear law misses of them."""

LEARNED_SHARE = 0.75
"""A parameter whose sd is above this part of its prior's was not learned."""


@dataclass(frozen=True)
class EnergyFit:
    """Energy parameters in the order of `fields`.

    Attributes:
        fields: Fields of the drive's energy options.
        values: In W, J or J a byte.
        sd: Standard deviations.
        correlation: Shape (k, k).
        prior: The drive's own values.
        prior_sd: What they were taken to be known to.
    """

    fields: tuple[str, ...]
    values: Floats
    sd: Floats
    correlation: Floats
    prior: Floats
    prior_sd: Floats

    def watts(self, rates: Floats) -> Floats:
        """Watts at event rates, shape (n, k)."""
        return np.asarray(rates @ self.values)

    def indistinct(self) -> list[tuple[list[str], str]]:
        """What the data cannot tell apart, or know nothing of."""
        found: list[tuple[list[str], str]] = []
        for name, sd, prior in zip(self.fields, self.sd, self.prior_sd, strict=True):
            if sd > LEARNED_SHARE * prior:
                found.append(([name], f"{name}: the data say next to nothing about it"))
        for i, first in enumerate(self.fields):
            for j, second in enumerate(self.fields[:i]):
                r = float(self.correlation[i, j])
                if abs(r) > CORRELATED:
                    found.append(
                        ([second, first], f"{second} and {first} trade off (correlation {r:+.2f})")
                    )
        return found


def own_energy(device: DeviceConfig, fields: Sequence[str]) -> Floats:
    """The drive's own value of each field; watts of an array count as joules of its operation."""
    energy = device.physical.energy
    own = []
    for field in fields:
        value = getattr(energy, field) or 0.0
        one = float(value[1]) if isinstance(value, tuple) else float(value)
        if field == "controller_active_watts":
            one = energy.active_watts
        if field == "link_joules_per_byte":
            one += energy.controller_joules_per_byte or 0.0
        if field == "page_read_joules":
            one += (energy.array_read_watts or 0.0) * device.page_read_ns[1] * 1e-9
        if field == "page_program_joules":
            one += (energy.array_program_watts or 0.0) * device.page_program_ns[1] * 1e-9
        if field == "block_erase_joules":
            one += (energy.array_erase_watts or 0.0) * device.block_erase_ns * 1e-9
        own.append(one)
    return np.array(own)


USUAL_JOULES = {
    "controller_active_watts": 2.0,
    "page_read_joules": 3e-6,
    "page_program_joules": 2e-5,
    "channel_joules_per_byte": 1e-10,
    "link_joules_per_byte": 1e-10,
    "block_erase_joules": 2e-4,
    "controller_joules_per_command": 3e-6,
}
"""Order of magnitude of each, for the width of its prior: a NAND die draws some 25 mA at 3.3 V
while it works (typical of ONFI parts), interfaces some 10 pJ a bit."""


def fit_energy(
    device: DeviceConfig, fields: Sequence[str], rates: Floats, watts: Floats, weights: Floats
) -> EnergyFit:
    """Fit the energy parameters.

    Args:
        device: Whose own numbers are the prior.
        fields: Which to fit, of `runs.ENERGY_FIELDS`.
        rates: Events a second, shape (n, k).
        watts: Measured, shape (n,).
        weights: How many independent measurements each row stands for, at most 1, shape (n,).
    """
    from scipy.optimize import lsq_linear  # here, because workers start sooner without it

    prior = own_energy(device, fields)
    prior_sd = np.maximum(prior, [USUAL_JOULES[name] for name in fields])
    sigma = WATTS_SD * watts / np.sqrt(weights)
    rows = np.concatenate([rates / sigma[:, None], np.diag(1 / prior_sd)])
    aims = np.concatenate([watts / sigma, prior / prior_sd])
    scaled = rows * prior_sd
    found = lsq_linear(scaled, aims, bounds=(0, np.inf))
    covariance = np.linalg.inv(scaled.T @ scaled)
    # what the law misses beyond WATTS_SD widens all
    misfit = float(np.mean(((rates @ (found.x * prior_sd) - watts) / sigma) ** 2))
    sd = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(sd, sd)
    return EnergyFit(
        tuple(fields),
        found.x * prior_sd,
        np.minimum(sd * max(1.0, misfit) ** 0.5, 1.0) * prior_sd,
        correlation,
        prior,
        prior_sd,
    )
