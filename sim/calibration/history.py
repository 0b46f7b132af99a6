"""History matching: parameters that the measurements rule out, wave by wave.

The implausibility of a parameter vector at one point is |measured - emulated| over the root of the
variances of emulator, discrepancy and observation; vectors whose largest but one (or two) is above
3 are ruled out (Vernon et al., Bayesian Analysis 5(4), 2010; Pukelsheim's three-sigma rule).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from iojoule.sim.calibration.emulator import Emulator

Floats = NDArray[np.float64]

CUTOFF = 3.0

FORGIVEN = 0.04
"""Share of the points that may be further off: those that the simulator's physics cannot follow."""

CANDIDATES = 8192
"""Points of the cube that a wave looks at."""

FIRST_DISCREPANCY_SD = 0.10
"""Log sd by which a simulated drive is expected to miss its measurements before anything is known:
in the middle of the 8 to 19 % that uncorrected simulators of SSDs err."""

LEAST_DISCREPANCY_SD = 0.02

Simulate = Callable[[Floats], Floats]
"""Takes points of the cube, shape (n, d); returns outputs, shape (n, m)."""


@dataclass(frozen=True)
class Target:
    """What the outputs should be.

    Attributes:
        measured: Log of what was measured, shape (m,).
        observation_sd: Log sd of that, shape (m,).
        features: Where each output stands, shape (m, f): discrepancies of neighbours go together.
    """

    measured: Floats
    observation_sd: Floats
    features: Floats


@dataclass(frozen=True)
class Wave:
    """What one wave found.

    Attributes:
        designs: Simulated in this wave.
        discrepancy_sd: Log sd that the wave allowed for what the simulator misses.
        plausible_share: Part of the cube that is left, estimated by the candidates.
    """

    designs: int
    discrepancy_sd: float
    plausible_share: float


@dataclass(frozen=True)
class Matched:
    """All that was simulated, and the emulator of the last wave.

    Attributes:
        cubes: Every design, shape (n, d).
        outputs: What was simulated there, shape (n, m).
        plausible: A sample of what is not ruled out, shape (k, d).
        discrepancy_sd: Of the last wave.
    """

    cubes: Floats
    outputs: Floats
    emulator: Emulator
    plausible: Floats
    discrepancy_sd: float
    waves: tuple[Wave, ...]


def match(
    target: Target,
    simulate: Simulate,
    start: Floats,
    *,
    waves: int,
    designs: int,
    seed: int = 0,
    told: Callable[[Wave], None] | None = None,
) -> Matched:
    """Run the waves.

    Args:
        target: The measurements.
        simulate: Runs designs; outputs in the order of the target.
        start: The drive as it is, shape (d,): one of the first designs.
        waves: How many.
        designs: Simulated a wave.
        seed: Of everything that is drawn.
        told: Called after each wave.
    """
    dimensions = len(start)
    sampler = qmc.LatinHypercube(dimensions, rng=seed, optimization="random-cd")
    new = np.concatenate([start[None, :], sampler.random(designs - 1)])
    cubes, outputs = np.empty((0, dimensions)), np.empty((0, len(target.measured)))
    found: list[Wave] = []
    deviation = FIRST_DISCREPANCY_SD
    share, plausible = 1.0, new
    for wave in range(waves):
        made = simulate(new)
        usable = np.isfinite(made).all(axis=1)
        cubes = np.concatenate([cubes, new[usable]])
        outputs = np.concatenate([outputs, made[usable]])
        emulator = Emulator(cubes, outputs)
        deviation = min(deviation, _misfit(target, outputs))
        plausible, share = _plausible(
            target, emulator, cubes, outputs, deviation, share, seed + 100 * (wave + 1)
        )
        found.append(Wave(len(new), deviation, share))
        if told is not None:
            told(found[-1])
        new = spread(plausible, designs, seed + wave)
    return Matched(cubes, outputs, emulator, plausible, deviation, tuple(found))


def _misfit(target: Target, outputs: Floats) -> float:
    """Root mean square error of the best design, robust against a few points."""
    errors = np.abs(outputs - target.measured)
    typical = np.quantile(errors, 0.68, axis=1)
    return max(float(typical.min()), LEAST_DISCREPANCY_SD)


def implausibility(
    target: Target, emulator: Emulator, cubes: Floats, discrepancy_sd: float
) -> Floats:
    """The largest but FORGIVEN over the outputs, shape (k,)."""
    mean, deviation = emulator(cubes)
    variance = deviation**2 + discrepancy_sd**2 + target.observation_sd**2
    each = np.abs(mean - target.measured) / np.sqrt(variance)
    forgiven = max(1, round(FORGIVEN * each.shape[1])) if each.shape[1] > 2 else 0
    return np.asarray(np.sort(each, axis=1)[:, -1 - forgiven])


def _plausible(
    target: Target,
    emulator: Emulator,
    cubes: Floats,
    outputs: Floats,
    discrepancy_sd: float,
    share: float,
    seed: int,
) -> tuple[Floats, float]:
    """Candidates that are not ruled out, and the part of the cube that they stand for."""
    dimensions = cubes.shape[1]
    wide = qmc.Sobol(dimensions, rng=seed).random(CANDIDATES)
    worth = implausibility(target, emulator, wide, discrepancy_sd)
    inside = wide[worth < CUTOFF]
    part = len(inside) / len(wide)
    if len(inside) >= 40 * dimensions:
        return inside, part
    # so little of the cube is left that candidates must come from around what fits best
    errors = np.mean((outputs - target.measured) ** 2, axis=1)
    best = cubes[np.argsort(errors)[: max(10, 2 * dimensions)]]
    random = np.random.default_rng(seed)
    best = np.concatenate([best, wide[np.argsort(worth)[: len(best)]], inside])
    around = best[random.integers(len(best), size=CANDIDATES)]
    around = around + random.normal(0, 0.12, around.shape)
    around = around[((around >= 0) & (around <= 1)).all(axis=1)]
    worth = implausibility(target, emulator, around, discrepancy_sd)
    kept = around[worth < CUTOFF]
    least = 20 * dimensions
    if len(kept) < least:
        kept = around[np.argsort(worth)[:least]]
    return kept, min(part, share)


def spread(sample: Floats, count: int, seed: int) -> Floats:
    """`count` of the sample's points, far from each other (greedy maximin)."""
    random = np.random.default_rng(seed)
    if len(sample) <= count:
        return sample
    pool = sample[random.permutation(len(sample))[: 40 * count]]
    chosen = [0]
    distance = np.linalg.norm(pool - pool[0], axis=1)
    while len(chosen) < count:
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.linalg.norm(pool - pool[chosen[-1]], axis=1))
    return pool[chosen]
