"""History matching: emulators of the simulator, the parameters that remain, their posterior.

Also the discrepancy: what the calibrated simulator still misses, a Gaussian process over log2 of
size, depth and jobs and the host. An emulator's output is a quadratic trend in the
parameters plus a Gaussian process on the residuals (Vernon et al., Bayesian Analysis 5(4), 2010,
section 3).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import multivariate_normal, qmc
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from iojoule.model.evaluate.bands import Floats

NOISE = 1e-3
"""Log sd of a short simulation by chance: the start of its estimate."""


KEPT_VARIANCE = 0.9995
"""Principal components are kept until they explain so much of what the trend leaves."""


class Emulator:
    """The simulator's outputs over the unit cube of its parameters.

    The outputs move together, so that few principal components stand for all of them (Higdon et
    al., JASA 103(482), 2008); what the components leave out is added to the variance.

    Args:
        cubes: Design points, shape (n, d).
        outputs: What was simulated there, shape (n, m).
    """

    def __init__(self, cubes: Floats, outputs: Floats) -> None:
        self._squares = len(cubes) > 4 * cubes.shape[1]
        x = self._basis(cubes)
        # ridge-stabilised, for designs that hardly differ in a parameter
        self._trend = np.linalg.solve(x.T @ x + 1e-6 * np.eye(x.shape[1]), x.T @ outputs)
        rest = outputs - x @ self._trend
        scores, sizes, self._loadings = np.linalg.svd(rest, full_matrices=False)
        share = np.cumsum(sizes**2) / max(float(np.sum(sizes**2)), 1e-30)
        kept = min(int(np.searchsorted(share, KEPT_VARIANCE)) + 1, len(sizes))
        self._loadings = self._loadings[:kept]
        self._left_out = np.mean((rest - rest @ self._loadings.T @ self._loadings) ** 2, axis=0)
        columns = (scores * sizes)[:, :kept]
        self._processes = [_process(cubes, columns[:, index]) for index in range(kept)]

    def __call__(self, cubes: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the outputs, each of shape (k, m)."""
        told = [process.predict(cubes, return_std=True) for process in self._processes]
        means = np.stack([mean for mean, _ in told], axis=1)
        variances = np.stack([deviation**2 for _, deviation in told], axis=1)
        mean = self._basis(cubes) @ self._trend + means @ self._loadings
        return mean, np.sqrt(variances @ self._loadings**2 + self._left_out)

    def _basis(self, cubes: Floats) -> Floats:
        """Quadratic without interactions; linear where points are few."""
        centred = 2 * cubes - 1
        parts = [np.ones((len(cubes), 1)), centred]
        if self._squares:
            parts.append(centred**2)
        return np.concatenate(parts, axis=1)


def _process(cubes: Floats, rest: Floats) -> GaussianProcessRegressor:
    scale = max(float(np.std(rest)), NOISE)
    kernel = ConstantKernel(1.0, (1e-2, 1e2)) * RBF(
        np.full(cubes.shape[1], 1.0), (0.1, 20.0)
    ) + WhiteKernel((NOISE / scale) ** 2, (1e-8, 1.0))
    process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
    with warnings.catch_warnings():
        # a parameter without effect on an output has a length at its bound: that is the answer
        warnings.simplefilter("ignore", ConvergenceWarning)
        process.fit(cubes, rest)
    return process


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


DRAWS = 3000
ROUNDS = 8

CORRELATED = 0.8
"""Pairs whose posterior correlation is above this trade off against each other."""

UNKNOWN_SHARE = 0.75
"""A parameter whose posterior sd is above this part of its prior's was not learned."""

PRIOR_SD = 1 / np.sqrt(12)
"""Of a uniform coordinate."""


@dataclass(frozen=True)
class Posterior:
    """A weighted sample over the unit cube.

    Attributes:
        mean: Shape (d,).
        sd: Shape (d,).
        correlation: Shape (d, d).
        draws: Equally likely draws, shape (k, d).
        effective: Effective sample size of the last round.
    """

    mean: Floats
    sd: Floats
    correlation: Floats
    draws: Floats
    effective: float


def log_likelihood(target: Target, matched: Matched, cubes: Floats) -> Floats:
    """Of the measurements at points of the cube, shape (k,).

    The discrepancy is a Gaussian process over the points (Kennedy and O'Hagan, JRSS B 63(3), 2001),
    half of its variance shared with neighbours within about two octaves.
    """
    mean, deviation = matched.emulator(cubes)
    return gaussian_log_likelihood(target, mean, deviation, matched.discrepancy_sd)


def gaussian_log_likelihood(
    target: Target, outputs: Floats, deviation: Floats, discrepancy_sd: float
) -> Floats:
    """Of the measurements where the simulator says `outputs`, known to `deviation`."""
    covariance = discrepancy_covariance(target.features, discrepancy_sd)
    covariance += np.diag(target.observation_sd**2 + np.mean(deviation**2, axis=0))
    inverse = np.linalg.inv(covariance)
    errors = outputs - target.measured
    return np.asarray(-0.5 * np.einsum("ki,ij,kj->k", errors, inverse, errors))


def discrepancy_covariance(features: Floats, sd: float) -> Floats:
    """Covariance of the discrepancy, shape (m, m)."""
    apart = features[:, None, :] - features[None, :, :]
    near = np.exp(-0.5 * np.sum((apart / 2.0) ** 2, axis=2))
    return np.asarray(0.5 * sd**2 * (near + np.eye(len(features))))


def sample_posterior(target: Target, matched: Matched, seed: int = 0) -> Posterior:
    """Population Monte Carlo: each round draws from a Gaussian around what the last one found."""
    random = np.random.default_rng(seed)
    cubes = matched.plausible
    logs = log_likelihood(target, matched, cubes)
    weights = _weights(logs / _temperature(logs))
    for _ in range(ROUNDS):
        mean = weights @ cubes
        spread = (cubes - mean).T @ ((cubes - mean) * weights[:, None])
        spread = 1.5 * spread + 1e-4 * np.eye(len(mean))
        proposal = multivariate_normal(mean, spread, allow_singular=True)
        drawn = np.reshape(proposal.rvs(DRAWS, random_state=random), (DRAWS, len(mean)))
        inside = ((drawn >= 0) & (drawn <= 1)).all(axis=1)
        if inside.sum() < 50:
            drawn, inside = np.clip(drawn, 0, 1), np.ones(len(drawn), dtype=bool)
        cubes = drawn[inside]
        logs = log_likelihood(target, matched, cubes) - proposal.logpdf(cubes)
        weights = _weights(logs / _temperature(logs))
    mean = weights @ cubes
    spread = (cubes - mean).T @ ((cubes - mean) * weights[:, None])
    sd = np.sqrt(np.maximum(np.diag(spread), 1e-12))
    draws = cubes[random.choice(len(cubes), size=200, p=weights)]
    return Posterior(mean, sd, spread / np.outer(sd, sd), draws, float(1 / np.sum(weights**2)))


def _weights(logs: Floats) -> Floats:
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _temperature(logs: Floats, least: float = 60.0) -> float:
    """1, or as much more as keeps `least` effective draws alive."""
    temperature = 1.0
    for _ in range(40):
        if 1 / np.sum(_weights(logs / temperature) ** 2) >= min(least, len(logs) / 4):
            break
        temperature *= 1.4
    return temperature


def indistinct(posterior: Posterior, names: list[str]) -> list[tuple[list[str], str]]:
    """Parameters that the data cannot tell apart or know nothing of: names, and a sentence."""
    found: list[tuple[list[str], str]] = []
    for index, name in enumerate(names):
        if posterior.sd[index] > UNKNOWN_SHARE * PRIOR_SD:
            found.append(([name], f"{name}: the data say next to nothing about it"))
    for i in range(len(names)):
        for j in range(i):
            r = float(posterior.correlation[i, j])
            if abs(r) > CORRELATED:
                known = "difference" if r > 0 else "sum"
                said = f"trade off (correlation {r:+.2f}): only their {known} is known"
                found.append(([names[j], names[i]], f"{names[j]} and {names[i]} {said}"))
    return found


LEAST_POINTS = 6
"""With fewer the residual is not learned: its sd is all that is said."""

NORMAL_90 = 1.645
"""Standard deviations on each side of a 90 % interval."""

APART = 4.0
"""Octaves that stand for running another engine, host, operation or pattern."""


@dataclass(frozen=True)
class Residual:
    """The learned residual of one quantity, in log units.

    Attributes:
        process: None where there were too few points.
        sd: Root mean square of the residual at the points of the fit.
        left_out_sd: Joined with the process' own sd, so that sizes and depths that are left out
            lie within it as often as they should.
        length_octaves: How far it reaches, by feature.
    """

    process: GaussianProcessRegressor | None
    sd: float
    length_octaves: tuple[float, ...]
    left_out_sd: float = 0.0

    def __call__(self, features: Floats) -> tuple[Floats, Floats]:
        """Mean and sd at points, each of shape (k,); far from what was learned the sd is more."""
        if self.process is None:
            return np.zeros(len(features)), np.full(len(features), self.sd)
        mean, deviation = self.process.predict(features, return_std=True)
        deviation = np.hypot(deviation, self.left_out_sd)
        far = np.minimum(1.0, deviation / self.sd)
        return np.asarray(mean), np.hypot(deviation, far**2 * FIRST_DISCREPANCY_SD)


def place_of(features: Sequence[float], group: str, groups: Sequence[str]) -> list[float]:
    """A point's features with the group that it belongs to, as octaves apart."""
    return [*features, *(APART * (group == each) for each in groups)]


def learn(features: Floats, errors: Floats) -> Residual:
    """Learn log(measured / simulated), shape (n,), over features, shape (n, f)."""
    known = np.isfinite(errors)
    features, errors = features[known], errors[known]
    size = float(np.sqrt(np.mean(errors**2))) if len(errors) else 0.3
    if len(errors) < LEAST_POINTS or size < 1e-6:
        return Residual(None, max(size, 0.02), ())
    variance = size**2
    kernel = ConstantKernel(variance, (variance / 20, variance * 20)) * RBF(
        np.full(features.shape[1], 2.0), (0.7, 30.0)
    ) + WhiteKernel(variance / 10, (max(variance / 200, 1e-6), variance * 2))
    process = GaussianProcessRegressor(kernel, random_state=0, n_restarts_optimizer=1)
    with warnings.catch_warnings():
        # what does not matter ends at the bound of its length
        warnings.simplefilter("ignore", ConvergenceWarning)
        process.fit(features, errors)
    lengths = np.atleast_1d(process.kernel_.k1.k2.length_scale)
    left_out_sd = _left_out_sd(process, features, errors)
    return Residual(process, size, tuple(float(one) for one in lengths), left_out_sd)


def _left_out_sd(process: GaussianProcessRegressor, features: Floats, errors: Floats) -> float:
    """What the sd lacks where whole sizes and depths are left out, in nine of ten cases.

    Each group of host and engine is judged by itself, and the worst counts: one that was sampled
    densely must not speak for the others.
    """
    lacking = np.full(len(errors), np.nan)
    for column in (0, 1):
        for value in np.unique(features[:, column]):
            out = features[:, column] == value
            if out.all():
                continue
            kept = GaussianProcessRegressor(process.kernel_, optimizer=None)
            mean, deviation = kept.fit(features[~out], errors[~out]).predict(
                features[out], return_std=True
            )
            needed = (errors[out] - mean) ** 2 / NORMAL_90**2 - deviation**2
            lacking[out] = np.fmax(lacking[out], needed)
    worst = 0.0
    for group in np.unique(features[:, 3:], axis=0):
        own = lacking[(features[:, 3:] == group).all(axis=1)]
        own = own[np.isfinite(own)]
        if len(own) >= LEAST_POINTS:
            worst = max(worst, float(np.quantile(own, 0.9)))
    return float(np.sqrt(worst))
