"""How well the parameters are known: a sample of the posterior, and what cannot be told apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

from iojoule.sim.calibration.history import Matched, Target

Floats = NDArray[np.float64]

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
