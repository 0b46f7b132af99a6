"""Gaussian-process regression with a level, slopes and one length per input.

Matern-5/2 covariance with one length per input, plus a constant and a straight line in every
input with wide priors, plus noise (Rasmussen and Williams, Gaussian Processes for Machine
Learning, 2006, 2.7 and 4.2). Lengths, amplitude and noise are the mode of their posterior:
weak priors keep a handful of measurements from pretending to know them.

Configurations as points of the unit cube: every knob that varies, as a number from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import minimize

from iojoule.datasets.schema import Configuration
from iojoule.model.evaluate.bands import Floats

CONSTANT_SD = 3.0
"""Prior of the level, in standard deviations of the values."""
SLOPE_SD = 1.0
"""Prior of the slope across the whole range of an input, likewise."""
LENGTH_PRIOR = (0.0, 1.0)
"""Mean and sd of the log of a length, where an input's range is 1."""
AMPLITUDE_PRIOR = (-0.5, 1.0)
NOISE_PRIOR = (np.log(0.03), 0.7)
"""Mean and sd of the log of the noise, in the units of the values: a few per cent of a log."""
SEARCH_MAX = 300
"""Hyperparameters are searched with so many measurements at the most, spread over all of them:
the time goes with the cube, and more of them change little."""
_JITTER = 1e-8
"""Added to the diagonal, log units squared, against rounding."""
_SQRT5 = np.sqrt(5.0)


@dataclass(frozen=True)
class Hyperparameters:
    """Logs of amplitude and lengths (of scaled values), and of noise in units of the values."""

    amplitude: float
    lengths: tuple[float, ...]
    noise: float

    def as_array(self) -> Floats:
        """Amplitude, lengths, noise."""
        return np.array([self.amplitude, *self.lengths, self.noise])


class GaussianProcess:
    """A fitted Gaussian process.

    Args:
        inputs: Shape (n, d), each column about 0 to 1.
        values: Shape (n,).
        start: Hyperparameters to begin the search at, for instance those of fewer data.
        least_sd: Least amplitude of the smooth part, in the units of the values: for residuals of
            a law that was fitted to the same values, which are smaller than elsewhere.
        extent: Shape (n,), by which everything but the noise is multiplied: for values that vanish
            where it is 0. Few values then say nothing of their level, which is 0.
    """

    def __init__(
        self,
        inputs: Floats,
        values: Floats,
        start: Hyperparameters | None = None,
        least_sd: float = 0.0,
        extent: Floats | None = None,
    ) -> None:
        self._x = inputs
        self._extent = np.ones(len(values)) if extent is None else extent
        self._level = float(values.mean()) if extent is None else 0.0
        spread = values.std() if extent is None else np.hypot(values, least_sd).max()
        self._scale = max(float(spread), 1e-3)
        self._y = (values - self._level) / self._scale
        noise_prior = (NOISE_PRIOR[0] - np.log(self._scale), NOISE_PRIOR[1])
        step = -(-len(values) // SEARCH_MAX)
        search = _Search(
            inputs[::step],
            self._y[::step],
            noise_prior,
            least_sd / self._scale,
            self._extent[::step],
        )
        theta = search.mode(start, self._scale)
        self._theta = theta
        self.hyperparameters = Hyperparameters(
            float(theta[0]), tuple(theta[1:-1].tolist()), float(theta[-1] + np.log(self._scale))
        )
        covariance = self._prior(inputs, inputs) * np.outer(self._extent, self._extent)
        covariance[np.diag_indices_from(covariance)] += np.exp(2 * theta[-1]) + _JITTER
        self._factor = cho_factor(covariance, lower=True)
        self._alpha = cho_solve(self._factor, self._y)

    @property
    def noise(self) -> float:
        """Standard deviation of one measurement, in the units of the values."""
        return float(np.exp(self.hyperparameters.noise))

    def posterior(self, inputs: Floats) -> tuple[Floats, Floats]:
        """Mean, shape (m,), and covariance, shape (m, m), of the noise-free values."""
        mean, half = self._seen(inputs)
        own = self._prior(inputs, inputs) - half.T @ half
        return mean, self._scale**2 * own

    def marginal(self, inputs: Floats, extent: Floats | float = 1.0) -> tuple[Floats, Floats]:
        """Mean and variance of the noise-free values at extents, each of shape (m,)."""
        mean, half = self._seen(inputs, extent)
        own = np.exp(2 * self._theta[0]) + CONSTANT_SD**2
        own = own + SLOPE_SD**2 * ((inputs - 0.5) ** 2).sum(axis=1)
        own = own * np.square(extent)
        return mean, self._scale**2 * (own - (half**2).sum(axis=0))

    def _prior(self, a: Floats, b: Floats) -> Floats:
        smooth = _matern(_distance(a, b, np.exp(self._theta[1:-1])))
        return np.asarray(np.exp(2 * self._theta[0]) * smooth + _linear(a, b))

    def _seen(self, inputs: Floats, extent: Floats | float = 1.0) -> tuple[Floats, Floats]:
        """Mean, and the factor whose square the data take off the prior covariance."""
        here = np.broadcast_to(extent, len(inputs))
        cross = self._prior(inputs, self._x) * np.outer(here, self._extent)
        half = solve_triangular(self._factor[0], cross.T, lower=True)
        return self._level + self._scale * (cross @ self._alpha), half

    def surprise(self) -> float:
        """Root mean square of the leave-one-out errors over their predicted sd; 1 is as stated.

        Rasmussen and Williams, equations 5.10 to 5.12.
        """
        inverse = np.diag(cho_solve(self._factor, np.eye(len(self._y))))
        return float(np.sqrt(np.mean(self._alpha**2 / inverse)))


def unexplained(seen: Floats, targets: Floats, length: float) -> Floats:
    """Share of the variance of a Matern process that values at `seen` leave at `targets`.

    Args:
        seen: Shape (n, d).
        targets: Shape (m, d).
        length: Of every input.

    Returns:
        Shape (m,), about 0 at what was seen and 1 far from it.
    """
    lengths = np.full(seen.shape[1], length)
    covariance = _matern(_distance(seen, seen, lengths))
    covariance[np.diag_indices_from(covariance)] += 1e-3
    factor = cho_factor(covariance, lower=True)[0]
    half = solve_triangular(factor, _matern(_distance(seen, targets, lengths)), lower=True)
    return np.asarray(np.clip(1.0 - (half**2).sum(axis=0), 0.0, 1.0))


class _Search:
    """The posterior density of the hyperparameters, and its mode."""

    def __init__(
        self,
        x: Floats,
        y: Floats,
        noise_prior: tuple[float, float],
        least: float = 0.0,
        extent: Floats | None = None,
    ) -> None:
        self._y = y
        by = np.ones(len(y)) if extent is None else extent
        self._extent = np.outer(by, by)
        self._linear = _linear(x, x) * self._extent
        self._squares = (x[:, None, :] - x[None, :, :]) ** 2
        d = x.shape[1]
        priors = [AMPLITUDE_PRIOR, *[LENGTH_PRIOR] * d, noise_prior]
        self._centre, self._width = np.array(priors).T
        low = float(np.log(np.clip(least, np.exp(-3.0), np.exp(3.0))))
        self._bounds = [(low, 3.0), *[(-3.5, 4.0)] * d, (np.log(1e-4), np.log(0.7))]

    def mode(self, start: Hyperparameters | None, scale: float) -> Floats:
        """Amplitude, lengths and noise, all of scaled values."""
        begin = self._centre
        if start is not None and len(start.lengths) == len(begin) - 2:
            begin = start.as_array()
            begin[-1] -= np.log(scale)
        lows, highs = np.array(self._bounds).T
        solution = minimize(
            self._loss,
            np.clip(begin, lows, highs),
            jac=True,
            method="L-BFGS-B",
            bounds=self._bounds,
            options={"maxiter": 60},
        )
        return np.asarray(solution.x, dtype=float)

    def _covariance(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        lengths = np.exp(theta[1:-1])
        distance = np.sqrt(self._squares @ lengths**-2.0)
        smooth = np.exp(2 * theta[0]) * _matern(distance) * self._extent
        total = smooth + self._linear
        total[np.diag_indices_from(total)] += np.exp(2 * theta[-1]) + _JITTER
        return total, smooth, distance

    def _loss(self, theta: Floats) -> tuple[float, Floats]:
        """Negative log posterior density and its gradient."""
        total, smooth, distance = self._covariance(theta)
        factor = cho_factor(total, lower=True)
        alpha = cho_solve(factor, self._y)
        inverse = cho_solve(factor, np.eye(len(alpha)))
        weight = inverse - np.outer(alpha, alpha)  # gradient is half its product with dK
        loss = 0.5 * self._y @ alpha + np.log(np.diag(factor[0])).sum()
        gradient = np.empty_like(theta)
        gradient[0] = np.sum(weight * smooth)
        slope = np.exp(2 * theta[0]) * (5 / 3) * (1 + _SQRT5 * distance)
        slope *= np.exp(-_SQRT5 * distance) * weight * self._extent
        gradient[1:-1] = (
            0.5 * np.einsum("ij,ijd->d", slope, self._squares) * np.exp(-2 * theta[1:-1])
        )
        gradient[-1] = np.exp(2 * theta[-1]) * np.trace(weight)
        off = (theta - self._centre) / self._width
        return float(loss + 0.5 * off @ off), gradient + off / self._width


def _distance(a: Floats, b: Floats, lengths: Floats) -> Floats:
    a, b = a / lengths, b / lengths
    squares = (a**2).sum(1)[:, None] + (b**2).sum(1)[None, :] - 2 * a @ b.T
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))


def _matern(distance: Floats) -> Floats:
    scaled = _SQRT5 * distance
    return np.asarray((1 + scaled + scaled**2 / 3) * np.exp(-scaled))


def _linear(a: Floats, b: Floats) -> Floats:
    """Covariance of a level and of a straight line in every input."""
    return np.asarray(CONSTANT_SD**2 + SLOPE_SD**2 * (a - 0.5) @ (b - 0.5).T)


_DOUBLED = ("request_bytes", "queue_depth", "jobs", "cpu_frequency_max_hertz")
"""Knobs whose effect goes by factors: their log counts."""


def coordinates(configurations: Sequence[Configuration]) -> tuple[Floats, tuple[str, ...]]:
    """Coordinates, shape (n, d), and their names; what is the same everywhere is left out.

    Queue depth enters as requests in flight (depth x jobs): throughput and latency follow them,
    and what jobs change besides is the host's. Words become one switch each, but for the first.
    """
    rows = [configuration.model_dump(mode="json") for configuration in configurations]
    columns: dict[str, Floats] = {}
    for name in Configuration.model_fields:
        values = [row[name] for row in rows]
        if len(set(values)) < 2 and name != "queue_depth":
            continue
        if name in _DOUBLED and None not in values:
            columns[name] = np.log2(np.array(values, dtype=float))
        elif all(isinstance(value, int | float) for value in values):
            columns[name] = np.array(values, dtype=float)
        else:
            words = sorted({str(value) for value in values})
            for word in words[1:]:
                columns[f"{name}={word}"] = np.array([float(str(v) == word) for v in values])
    columns["queue_depth"] = columns["queue_depth"] + np.log2([float(row["jobs"]) for row in rows])
    varied = {name: column for name, column in columns.items() if np.ptp(column) > 0}
    if not varied:
        return np.zeros((len(rows), 1)), ("nothing",)
    scaled = [(column - column.min()) / np.ptp(column) for column in varied.values()]
    return np.stack(scaled, axis=1), tuple(varied)
