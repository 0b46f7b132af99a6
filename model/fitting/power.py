"""Fitting the power laws: measurements first, published figures and priors where they end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import statsmodels.api as sm
from numpy.typing import NDArray

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import (
    DevicePower,
    Parameter,
    WriteState,
)
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Evidence, Operation
from iojoule.model import device_power
from iojoule.model.fitting.export import rounded
from iojoule.model.fitting.recipe import (
    DevicePowerRecipe,
    Figure,
)

Floats = NDArray[np.float64]

BLOCK_SECONDS = 15
"""Consecutive seconds of a series are averaged over this many: they are not independent."""


def parameter(name: str, figure: Figure) -> Parameter:
    """Carry a published figure into a profile."""
    return Parameter(
        name=name,
        value=figure.value,
        sd=figure.sd,
        unit=figure.unit,
        evidence=figure.evidence,
        source=figure.source,
    )


def power_rows(
    measurements: list[Measurement], max_transfer_bytes: float, state: WriteState | None
) -> tuple[Floats, Floats]:
    """Regressors and watts of every measurement with device power at PS0.

    Rows of a series that belong to the transition are left out; the others are averaged over
    blocks.
    """
    x: list[Floats] = []
    y: list[float] = []
    series: dict[float, list[tuple[Floats, float]]] = {0.0: [], 1.0: []}
    for one in measurements:
        watts = one.observations.device_power_watts
        if watts is None or (one.configuration.power_state or 0) != 0:
            continue
        row = _regressors(one, max_transfer_bytes)
        written = one.state.host_bytes_written_since_purge
        if written is None or state is None or one.workload.operation is Operation.READ:
            x.append(row)
            y.append(watts)
            continue
        if written < state.cached_bytes.value:
            series[0.0].append((row, watts))
        elif written > state.transition_bytes.value:
            row[5] = 1.0
            series[1.0].append((row, watts))
    for rows in series.values():
        for start in range(0, len(rows) - BLOCK_SECONDS + 1, BLOCK_SECONDS):
            block = rows[start : start + BLOCK_SECONDS]
            x.append(np.mean([row for row, _ in block], axis=0))
            y.append(float(np.mean([watts for _, watts in block])))
    return np.array(x).reshape(-1, 6), np.array(y)


def _regressors(one: Measurement, max_transfer_bytes: float) -> Floats:
    rate = one.observations.throughput_bytes_per_second
    if rate is None:
        rate = (one.observations.iops or 0.0) * one.configuration.request_bytes
    commands = rate / min(one.configuration.request_bytes, max_transfer_bytes)
    reads = {Operation.READ: 1.0, Operation.WRITE: 0.0}.get(
        one.workload.operation, one.workload.read_fraction or 0.0
    )
    collecting = float(one.state.device_state in ("collecting", "steady"))
    written = 1.0 - reads
    folding = collecting * (reads < 1)
    row = (rate * reads, commands * reads, rate * written, commands * written, folding)
    return np.asarray(device_power.regressors(*(np.array([value]) for value in row))[0])


@dataclass(frozen=True)
class LinearFit:
    """Parameters of a non-negative linear law, their covariance and the relative misfit."""

    theta: Floats
    covariance: Floats
    relative_sd: float


def fit_linear(x: Floats, y: Floats, noise: Floats, prior: Floats, prior_sd: Floats) -> LinearFit:
    """Weighted least squares with priors as further observations (Theil and Goldberger 1961).

    Args:
        x: Regressors, shape (n, p); n may be 0.
        y: Watts, shape (n,).
        noise: Standard deviation of each y.
        prior: Centres, shape (p,).
        prior_sd: Their standard deviations, positive.

    A parameter that would be negative is set to zero and the others are fitted again; it keeps
    a standard deviation of half its prior's.
    """
    free = np.ones(len(prior), dtype=bool)
    theta = np.zeros(len(prior))
    covariance = np.zeros((len(prior), len(prior)))
    while free.any():
        design = np.vstack([x[:, free], np.diag(np.ones(free.sum()))])
        target = np.concatenate([y, prior[free]])
        sd = np.concatenate([noise, prior_sd[free]])
        scale = prior_sd[free]  # columns differ by ten orders of magnitude
        result = sm.WLS(target, design * scale, weights=sd**-2.0).fit()
        values = result.params * scale
        if (values >= 0).all():
            theta[free] = values
            covariance[np.ix_(free, free)] = result.normalized_cov_params * np.outer(scale, scale)
            break
        free[np.flatnonzero(free)[int(np.argmin(values / scale))]] = False
    for index in np.flatnonzero(~free):
        covariance[index, index] = (prior_sd[index] / 2) ** 2
    misfit = float(np.std(y / (x @ theta) - 1.0)) if len(y) else 0.0
    return LinearFit(theta, covariance, misfit)


def fit_device_power(
    measurements: list[Measurement],
    recipe: DevicePowerRecipe,
    max_transfer_bytes: float,
    state: WriteState | None,
) -> DevicePower:
    """Fit the device-power law.

    Raises:
        InputError: Neither measurements nor published points say anything about power.
    """
    x, y = power_rows(measurements, max_transfer_bytes, state)
    seen = len(y)
    published = np.array(
        [
            [
                1.0,
                p.read_bytes_per_second,
                p.read_operations_per_second,
                p.write_bytes_per_second,
                p.write_operations_per_second,
                p.collecting,
            ]
            for p in recipe.points
        ]
    ).reshape(-1, 6)
    if seen + len(published) == 0:
        raise InputError(
            "device power: no measurement and no published point; attach a power sensor and "
            "measure, or leave device_power out of the recipe"
        )
    noise = np.concatenate([np.full(seen, recipe.noise_watts), [p.sd for p in recipe.points]])
    names = device_power.PARAMETERS
    fit = fit_linear(
        np.vstack([x, published]),
        np.concatenate([y, [p.watts for p in recipe.points]]),
        noise,
        np.array([recipe.priors[name].value for name in names]),
        np.array([recipe.priors[name].sd for name in names]),
    )
    units = ("W", "J/B", "J", "J/B", "J", "W")
    seen_in = [seen and float(np.abs(x[:, i]).max()) > 0 for i in range(6)]
    published_in = np.abs(published).max(axis=0, initial=0.0) > 0.0
    return DevicePower(
        parameters=[
            Parameter(
                name=name,
                value=rounded(fit.theta[i])[0],
                sd=rounded(float(np.sqrt(fit.covariance[i, i])))[0],
                unit=units[i],
                evidence=Evidence.MEASURED
                if seen_in[i]
                else Evidence.PUBLISHED
                if published_in[i]
                else recipe.priors[name].evidence,
                source=f"weighted least squares over {seen} measurements; prior: "
                + recipe.priors[name].source
                if seen_in[i] or published_in[i]
                else recipe.priors[name].source,
            )
            for i, name in enumerate(names)
        ],
        covariance=[rounded(row) for row in fit.covariance],
        idle_watts=[parameter(f"idle_ps{i}", f) for i, f in enumerate(recipe.idle_watts)],
        cap_watts=list(recipe.cap_watts),
        peak_watts=parameter("peak_watts", recipe.peak_watts),
        measured_read_operations_per_second_max=rounded(
            max((x[:, 2]).max(initial=0.0), 1.0) * 1.05
        )[0],
        measured_bytes_per_second_max=rounded(max(x[:, 1].max(initial=0.0), 1.0) * 1.05)[0],
        relative_sd=rounded(max(fit.relative_sd, 0.005))[0],
        condition=recipe.condition,
    )
