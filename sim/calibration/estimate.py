"""The parameters that fit best, and how well they are known: Gauss-Newton on simulated designs.

With measured logs y, outputs f(x) of the simulator over the unit cube of its parameters, the
covariance C of what it misses and of chance, and the drive as it is x0, the estimate minimises

    (y - f(x))' C^-1 (y - f(x)) + |x - x0|^2 / PRIOR_SD^2,   0 <= x <= 1.

Slopes of f are forward differences, mended by each design that is simulated (Broyden's update);
steps are bounded (Nocedal and Wright, Numerical Optimization, 2006, chapters 10 and 11). The
posterior is Gaussian with the curvature at the estimate (Laplace's approximation), where slopes are
measured once more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from iojoule.model.evaluate.bands import Floats

FIRST_DISCREPANCY_SD = 0.10
"""Log sd by which a simulated drive is expected to miss its measurements before anything is known:
in the middle of the 8 to 19 % that uncorrected simulators of SSDs err."""

LEAST_DISCREPANCY_SD = 0.02

PRIOR_SD = 1 / np.sqrt(12)
"""Of a uniform coordinate."""

DIFFERENCE = 0.06
"""Part of a parameter's range over which its slope is measured: far more than chance moves f."""

STEPS = 4
"""At most so many steps with the slopes of one round."""

REACHES = (0.6, 0.2)
"""How far a step may go in any parameter, as parts of its range: both are tried at once."""

SETTLED = 0.1
"""A step that gains less ends its round: a factor of 1.05 in likelihood."""

Simulate = Callable[[Floats], Floats]
"""Takes points of the cube, shape (n, d); returns outputs, shape (n, m), NaN where it cannot."""


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


class Fit:
    """The misfit of designs to a target, and the steps that lessen it.

    Args:
        target: The measurements.
        start: The drive as it is, shape (d,).
        discrepancy_sd: Log sd of what the simulator misses, half of its variance shared with
            neighbours within about two octaves (Kennedy and O'Hagan, JRSS B 63(3), 2001).
    """

    def __init__(self, target: Target, start: Floats, discrepancy_sd: float) -> None:
        self.target, self.start = target, start
        covariance = discrepancy_covariance(target.features, discrepancy_sd)
        covariance += np.diag(target.observation_sd**2)
        self._whitening = np.linalg.inv(np.linalg.cholesky(covariance))

    def misfits(self, cubes: Floats, outputs: Floats) -> Floats:
        """What is minimised, at designs, shape (n,)."""
        errors = (outputs - self.target.measured) @ self._whitening.T
        away = (cubes - self.start) / PRIOR_SD
        return np.asarray(np.sum(errors**2, axis=1) + np.sum(away**2, axis=1))

    def step(self, cube: Floats, outputs: Floats, slopes: Floats, reach: float) -> Floats:
        """The best point of the cube within `reach`, if outputs go on along their slopes."""
        from scipy.optimize import lsq_linear  # here, as in `search`

        rows = np.concatenate([self._whitening @ slopes, np.eye(len(cube)) / PRIOR_SD])
        aims = np.concatenate(
            [self._whitening @ (self.target.measured - outputs), (self.start - cube) / PRIOR_SD]
        )
        # a bound may not be empty where a coordinate stands at its end
        low, high = np.maximum(-cube, -reach) - 1e-9, np.minimum(1 - cube, reach) + 1e-9
        return np.clip(cube + lsq_linear(rows, aims, bounds=(low, high)).x, 0.0, 1.0)

    def curvature(self, slopes: Floats) -> Floats:
        """Inverse covariance of the parameters, shape (d, d)."""
        rows = self._whitening @ slopes
        return np.asarray(rows.T @ rows + np.eye(len(self.start)) / PRIOR_SD**2)


def discrepancy_covariance(features: Floats, sd: float) -> Floats:
    """Covariance of the discrepancy, shape (m, m)."""
    apart = features[:, None, :] - features[None, :, :]
    near = np.exp(-0.5 * np.sum((apart / 2.0) ** 2, axis=2))
    return np.asarray(0.5 * sd**2 * (near + np.eye(len(features))))


@dataclass(frozen=True)
class Estimate:
    """Where the search ended.

    Attributes:
        cube: The best design, shape (d,).
        outputs: What was simulated there, shape (m,).
        slopes: Of the outputs there, as measured, shape (m, d).
        discrepancy_sd: Log sd that is allowed for what the simulator misses.
        designs: Simulated in all.
    """

    cube: Floats
    outputs: Floats
    slopes: Floats
    discrepancy_sd: float
    designs: int


def search(
    target: Target,
    simulate: Simulate,
    start: Floats,
    *,
    rounds: int,
    designs: int,
    seed: int = 0,
) -> Estimate:
    """Find the estimate.

    Args:
        target: The measurements.
        simulate: Runs designs; outputs in the order of the target.
        start: The drive as it is, shape (d,): one of the first designs.
        rounds: Each measures the slopes anew.
        designs: Spread over the cube at first; the best is where the rounds begin.
        seed: Of the first designs.

    Raises:
        Whatever `simulate` raises; one that returns no usable design at all should.
    """
    from scipy.stats import qmc  # here, because workers start sooner without it

    tried = _Tried(target, simulate, start)
    spread_out = qmc.LatinHypercube(len(start), rng=seed).random(max(designs - 1, 0))
    tried.simulate(np.concatenate([start[None, :], spread_out]))
    slopes = np.zeros((len(target.measured), len(start)))
    for _ in range(rounds):
        slopes = tried.slopes(slopes)
        reaches = np.array(REACHES)
        for _ in range(STEPS):
            gained = tried.step(slopes, reaches)
            if gained < SETTLED:
                if reaches[-1] < DIFFERENCE:
                    break
                reaches = reaches / 3
    best = tried.best
    # mended slopes lead on, but credit what one parameter did to all that moved with it
    slopes = tried.slopes(slopes)
    return Estimate(
        tried.cubes[best], tried.outputs[best], slopes, tried.discrepancy_sd, tried.designs
    )


class _Tried:
    """All designs that could be simulated."""

    def __init__(self, target: Target, simulate: Simulate, start: Floats) -> None:
        self._target, self._simulate, self._start = target, simulate, start
        self.cubes = np.empty((0, len(start)))
        self.outputs = np.empty((0, len(target.measured)))
        self.designs = 0
        self.discrepancy_sd = FIRST_DISCREPANCY_SD
        self.fit = Fit(target, start, self.discrepancy_sd)

    @property
    def best(self) -> int:
        """Place of the design that fits best."""
        return int(np.argmin(self.fit.misfits(self.cubes, self.outputs)))

    def simulate(self, cubes: Floats) -> Floats:
        """Outputs of new designs; what the simulator misses is judged anew."""
        made = self._simulate(cubes)
        self.designs += len(cubes)
        usable = np.isfinite(made).all(axis=1)
        self.cubes = np.concatenate([self.cubes, cubes[usable]])
        self.outputs = np.concatenate([self.outputs, made[usable]])
        self.discrepancy_sd = min(self.discrepancy_sd, misfit_sd(self._target, self.outputs))
        self.fit = Fit(self._target, self._start, self.discrepancy_sd)
        return made

    def slopes(self, before: Floats) -> Floats:
        """Forward differences at the best design; where one cannot be simulated, as before."""
        best = self.best
        cube, outputs = self.cubes[best], self.outputs[best]
        by = np.where(cube < 0.5, DIFFERENCE, -DIFFERENCE)
        made = self.simulate(cube + np.diag(by))
        slopes = ((made - outputs) / by[:, None]).T
        return np.where(np.isfinite(slopes), slopes, before)

    def step(self, slopes: Floats, reaches: Floats) -> float:
        """Try steps from the best design and mend the slopes, in place; how much was gained."""
        best = self.best
        cube, outputs = self.cubes[best], self.outputs[best]
        steps = np.array([self.fit.step(cube, outputs, slopes, reach) for reach in reaches])
        if np.allclose(steps[0], steps[-1], atol=1e-3):
            steps = steps[:1]
        made = self.simulate(steps)
        for there, seen in zip(steps, made, strict=True):
            move = there - cube
            if np.isfinite(seen).all() and move @ move > 1e-12:
                slopes += np.outer(seen - outputs - slopes @ move, move) / (move @ move)
        before = self.fit.misfits(cube[None, :], outputs[None, :])[0]
        return float(before - self.fit.misfits(self.cubes, self.outputs).min())


def misfit_sd(target: Target, outputs: Floats) -> float:
    """Root mean square error of the best design, robust against a few points."""
    errors = np.abs(outputs - target.measured)
    typical = np.quantile(errors, 0.68, axis=1)
    return max(float(typical.min()), LEAST_DISCREPANCY_SD)


DRAWS = 200

CORRELATED = 0.8
"""Pairs whose posterior correlation is above this trade off against each other."""

UNKNOWN_SHARE = 0.75
"""A parameter whose posterior sd is above this part of its prior's was not learned."""


@dataclass(frozen=True)
class Posterior:
    """How well the parameters are known.

    Attributes:
        sd: Shape (d,).
        correlation: Shape (d, d).
        draws: Equally likely points of the cube, shape (k, d).
    """

    sd: Floats
    correlation: Floats
    draws: Floats


def posterior(fit: Fit, estimate: Estimate, seed: int = 0) -> Posterior:
    """The posterior around an estimate; draws beyond the cube's sides are put on them."""
    covariance = np.linalg.inv(fit.curvature(estimate.slopes))
    sd = np.sqrt(np.diag(covariance))
    drawn = np.random.default_rng(seed).multivariate_normal(estimate.cube, covariance, DRAWS)
    return Posterior(sd, covariance / np.outer(sd, sd), np.clip(drawn, 0.0, 1.0))


def indistinct(known: Posterior, names: list[str]) -> list[tuple[list[str], str]]:
    """Parameters that the data cannot tell apart or know nothing of: names, and a sentence."""
    found: list[tuple[list[str], str]] = []
    for index, name in enumerate(names):
        if known.sd[index] > UNKNOWN_SHARE * PRIOR_SD:
            found.append(([name], f"{name}: the data say next to nothing about it"))
    for i in range(len(names)):
        for j in range(i):
            r = float(known.correlation[i, j])
            if abs(r) > CORRELATED:
                said = "difference" if r > 0 else "sum"
                told = f"trade off (correlation {r:+.2f}): only their {said} is known"
                found.append(([names[j], names[i]], f"{names[j]} and {names[i]} {told}"))
    return found
