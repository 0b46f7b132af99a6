"""Fitting watts at the wall, where two meters of one host may disagree."""

from __future__ import annotations

import numpy as np

from iojoule.datasets.profile import SystemPower
from iojoule.datasets.vocabulary import Evidence
from iojoule.model import system_power
from iojoule.model.fitting.export import rounded
from iojoule.model.fitting.host_power import named
from iojoule.model.fitting.power import fit_linear
from iojoule.model.fitting.recipe import Figure, SystemPowerRecipe

FLOOR_PRIOR = Figure(
    value=50.0, sd=30.0, unit="W", source="assumption: board, fans, disks and a supply's own"
)

LEAST_SLOPE = 1.0
"""What is saved behind a supply is saved at its wall, and more: no fitted slope is below."""


def meters_disagree(recipe: SystemPowerRecipe, found: SystemPower) -> str | None:
    """The gap of a host whose wall meter sees less than the watts behind the supply; else None."""
    free = _free_slope(recipe)
    if free is None or free >= LEAST_SLOPE:
        return None
    return (
        f"CPU and wall power of {recipe.host_id}: two meters disagree; where CPU and drive draw "
        f"1 W more, the wall meter shows {free:.2f} W more, and a supply cannot give more than it "
        f"takes. The law takes {found.slope.value:.2f} +- {found.slope.sd:.2f}, so savings at the "
        "wall are that unsure; a calibrated meter would tell (iojoule measure host)"
    )


def _free_slope(recipe: SystemPowerRecipe) -> float | None:
    """Slope of the anchors alone, weighted by their precision; None where they have none."""
    parts = np.array([anchor.parts_watts for anchor in recipe.anchors])
    wall = np.array([anchor.wall_watts for anchor in recipe.anchors])
    weight = np.array([anchor.sd**-2.0 for anchor in recipe.anchors])
    if len(parts) < 2:
        return None
    away = parts - np.average(parts, weights=weight)
    spread = float(np.sum(weight * away**2))
    return float(np.sum(weight * away * wall)) / spread if spread > 0 else None


def fit_system_power(recipe: SystemPowerRecipe) -> SystemPower:
    """Fit wall power over the parts: floor, slope and, with its prior, the square.

    The slope is at least 1, for a supply gives no more than it takes. Where the anchors alone say
    less, the meters behind and before the supply disagree: of two observations that are d apart,
    each as good as the other, the mean errs by d / 2, and so does the slope. It turns about the
    middle of the anchors.
    """
    parts = np.array([anchor.parts_watts for anchor in recipe.anchors])
    wall = np.array([anchor.wall_watts for anchor in recipe.anchors])
    noise = np.array([anchor.sd for anchor in recipe.anchors])
    priors = [recipe.floor_prior or FLOOR_PRIOR, recipe.slope_prior]
    if recipe.quadratic_prior is not None:
        priors.append(recipe.quadratic_prior)
    centres = np.array([prior.value for prior in priors])
    sds = np.array([prior.sd for prior in priors])
    x = system_power.regressors(parts)[:, : len(priors)]
    fit = fit_linear(x, wall, noise, centres, sds)
    theta, relative_sd = fit.theta, recipe.relative_sd
    covariance = np.zeros((3, 3))
    covariance[: len(priors), : len(priors)] = fit.covariance
    free = _free_slope(recipe)
    if free is not None and free < LEAST_SLOPE:
        slope = max(float(centres[1]), LEAST_SLOPE)
        middle = float(np.average(parts, weights=noise**-2.0))
        floor = float(np.average(wall, weights=noise**-2.0)) - slope * middle
        theta = np.array([max(floor, 0.0), slope, 0.0])[: len(priors)]
        half = 0.5 * (slope - free)
        turn = np.array([-middle, 1.0, 0.0])
        covariance = half**2 * np.outer(turn, turn)
        covariance[0, 0] += float(np.sum(noise**-2.0)) ** -1
        gap = wall - x @ theta
        relative_sd = max(relative_sd, float(np.sqrt(np.mean((gap / wall) ** 2))))
    evidence = Evidence.MEASURED
    if any(anchor.evidence is not Evidence.MEASURED for anchor in recipe.anchors):
        evidence = Evidence.PUBLISHED
    source = "; ".join(dict.fromkeys(anchor.source for anchor in recipe.anchors)) or "priors only"
    floor_watts, slope_of, *bend = (
        named(name, theta[i], float(np.sqrt(covariance[i, i])), unit, (evidence, source))
        for i, (name, unit) in enumerate(
            (("floor_watts", "W"), ("slope", "1"), ("quadratic", "1/W"))[: len(priors)]
        )
    )
    return SystemPower(
        host_id=recipe.host_id,
        floor_watts=floor_watts,
        slope=slope_of,
        relative_sd=rounded(relative_sd)[0],
        quadratic=bend[0] if bend else None,
        covariance=[rounded(row) for row in covariance],
    )
