"""Fitting the power laws: measurements first, published figures and priors where they end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DevicePower, Parameter, StatePower, WriteState
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Evidence, Operation, Pattern, merges_requests
from iojoule.model.evaluate import device_power
from iojoule.model.evaluate.bands import Floats
from iojoule.model.evaluate.frame import make_frame
from iojoule.model.evaluate.performance import PerformanceModel
from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.model.fit.export import rounded
from iojoule.model.recipe import DevicePowerRecipe, Figure, parameter

BLOCK_SECONDS = 15
"""Consecutive seconds of a series are averaged over this many: they are not independent."""


@dataclass(frozen=True)
class PowerRows:
    """Measured watts and the work behind them.

    Attributes:
        x: Regressors of the law, shape (n, 6).
        watts: Mean watts of the drive, shape (n,).
        power_state: Of each row.
        request_bytes: Of each row.
        session: Of each row; runs of one share a day, a host and a sensor.
    """

    x: Floats
    watts: Floats
    power_state: NDArray[np.intp]
    request_bytes: Floats
    session: NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.watts)


def power_rows(
    measurements: Sequence[Measurement],
    max_transfer_bytes: float,
    state: WriteState | None,
    performance: PerformanceModel | None = None,
) -> PowerRows:
    """Regressors and watts of every measurement that states rate and watts of the drive.

    Rows of a series that belong to the transition are left out; the others are averaged over
    blocks. `performance` says how much of the drive's capacity writes use; without it they are
    taken to leave room.
    """
    known = [
        measurement
        for measurement in measurements
        if measurement.observations.device_power_watts and _rate(measurement)
    ]
    if not known:
        none = np.zeros(0)
        return PowerRows(np.zeros((0, 6)), none, none.astype(np.intp), none, none.astype(object))
    rows = _all_rows(known, max_transfer_bytes, performance)
    indices: list[list[int]] = []
    series: dict[float, list[int]] = {0.0: [], 1.0: []}
    for place, run in enumerate(known):
        written = run.state.host_bytes_written_since_purge
        if written is None or state is None or run.workload.operation is Operation.READ:
            indices.append([place])
            rows.x[place, 5] = max(rows.x[place, 5], beyond_cache(run, state))
        elif written < state.cached_bytes.value:
            series[0.0].append(place)
        elif written > state.transition_bytes.value:
            rows.x[place, 5] = 1.0
            series[1.0].append(place)
    for some in series.values():
        last = len(some) - BLOCK_SECONDS + 1
        indices += [some[start : start + BLOCK_SECONDS] for start in range(0, last, BLOCK_SECONDS)]
    first = [block[0] for block in indices]
    return PowerRows(
        np.array([rows.x[block].mean(axis=0) for block in indices]).reshape(-1, 6),
        np.array([rows.watts[block].mean() for block in indices]),
        rows.power_state[first],
        rows.request_bytes[first],
        rows.session[first],
    )


def beyond_cache(run: Measurement, state: WriteState | None) -> float:
    """Share of a run's time in which its cache was full; before it, at rest, it was emptied."""
    written = run.observations.host_bytes_written
    if state is None or not written:
        return 0.0
    beyond = max(1.0 - state.cached_bytes.value / written, 0.0)
    slow = (state.sequential_collecting_bytes_per_second or state.collecting_bytes_per_second).value
    return min(beyond * max(_rate(run) / slow, 1.0), 1.0)


def _all_rows(
    known: Sequence[Measurement], max_transfer_bytes: float, performance: PerformanceModel | None
) -> PowerRows:
    """Every measurement by itself."""
    rate = np.array([_rate(measurement) for measurement in known])
    size = np.array([float(measurement.configuration.request_bytes) for measurement in known])
    reads = np.array([measurement.workload.share_of_reads for measurement in known])
    sequential = np.array(
        [measurement.workload.pattern is Pattern.SEQUENTIAL for measurement in known]
    )
    depth = np.array([float(measurement.configuration.queue_depth) for measurement in known])
    commands = rate / np.minimum(size, max_transfer_bytes)
    together = np.array([merges_requests(run.configuration.engine) for run in known], dtype=bool)
    commands /= device_power.merged(depth, size, max_transfer_bytes, sequential & together)
    background = np.array(
        [float(measurement.state.device_state in ("collecting", "steady")) for measurement in known]
    )
    background *= reads < 1.0
    if performance is not None:
        load = _write_load(performance, known, (1.0 - reads) * rate / size)
        background = np.maximum(background, device_power.folding(load))
    x = device_power.regressors(
        rate * reads,
        commands * reads,
        rate * (1.0 - reads),
        device_power.write_operations(commands * (1.0 - reads), sequential),
        background,
    )
    conditions = [measurement.conditions for measurement in known]
    return PowerRows(
        np.ascontiguousarray(x),
        np.array(
            [measurement.observations.device_power_watts for measurement in known], dtype=float
        ),
        np.array(
            [measurement.configuration.power_state or 0 for measurement in known], dtype=np.intp
        ),
        size,
        np.array(
            [condition.session for condition in conditions],
            dtype=object,
        ),
    )


def _write_load(
    performance: PerformanceModel, known: Sequence[Measurement], writes_per_second: Floats
) -> Floats:
    """Share of the drive's capacity for writes that each measurement uses."""
    columns: dict[str, list[object]] = {
        name: [getattr(measurement.configuration, name) for measurement in known]
        for name in ("request_bytes", "queue_depth", "jobs")
    }
    columns["pattern"] = [measurement.workload.pattern.value for measurement in known]
    columns["power_state"] = [measurement.configuration.power_state or 0 for measurement in known]
    columns["operation"] = ["write"] * len(known)
    frame, _ = make_frame(performance.profile, columns, len(known))
    points, _ = performance.points(frame)
    return performance.write_load(frame, points, writes_per_second)


def _rate(measurement: Measurement) -> float:
    """Bytes a second, 0 where nobody says."""
    seen = measurement.observations
    rate = seen.throughput_bytes_per_second
    return (
        rate if rate is not None else (seen.iops or 0.0) * measurement.configuration.request_bytes
    )


@dataclass(frozen=True)
class LinearFit:
    """Parameters of a linear law, their covariance and the relative misfit."""

    theta: Floats
    covariance: Floats
    relative_sd: float


def fit_linear(
    x: Floats,
    y: Floats,
    noise: Floats,
    prior: Floats,
    prior_sd: Floats,
    signed: NDArray[np.bool_] | None = None,
) -> LinearFit:
    """Weighted least squares with priors as further observations (Theil and Goldberger 1961).

    Args:
        x: Regressors, shape (n, p); n may be 0.
        y: Watts, shape (n,).
        noise: Standard deviation of each y.
        prior: Centres, shape (p,).
        prior_sd: Their standard deviations, positive.
        signed: Which parameters may be negative, shape (p,); None: none.

    A parameter that would be negative and may not is set to zero and the others are fitted again;
    it keeps a standard deviation of half its prior's.
    """
    free = np.ones(len(prior), dtype=bool)
    signed = np.zeros(len(prior), dtype=bool) if signed is None else signed
    theta = np.zeros(len(prior))
    covariance = np.zeros((len(prior), len(prior)))
    while free.any():
        design = np.vstack([x[:, free], np.diag(np.ones(free.sum()))])
        target = np.concatenate([y, prior[free]])
        sd = np.concatenate([noise, prior_sd[free]])
        scale = prior_sd[free]  # columns differ by ten orders of magnitude
        weight = np.sqrt(sd**-2.0)
        inverse = np.linalg.pinv(weight[:, None] * (design * scale))
        values = (inverse @ (weight * target)) * scale
        possible = (values >= 0) | signed[free]
        if possible.all():
            theta[free] = values
            covariance[np.ix_(free, free)] = (inverse @ inverse.T) * np.outer(scale, scale)
            break
        least = np.where(possible, np.inf, values / scale)
        free[np.flatnonzero(free)[int(np.argmin(least))]] = False
    for index in np.flatnonzero(~free):
        covariance[index, index] = (prior_sd[index] / 2) ** 2
    misfit = float(np.std(y / (x @ theta) - 1.0)) if len(y) else 0.0
    return LinearFit(theta, covariance, misfit)


SESSION_SD = 0.04
"""By how much of itself the base differs between days and hosts of one drive model, before the
sessions are seen; the 980 PRO drew 2.57 and 2.69 W for the same reads in two studies."""

STATE_SD = 0.05
"""By how much of itself the base of a lower power state differs from that of PS0: idle power of the
980 PRO is the same in PS0, 1 and 2 within 0.3 % (000 5.1)."""

LAW_SD = 0.03
"""Relative sd of what a drive draws beside the law: runs of the 980 PRO in three power states and
six sessions miss it by 1 to 6 % in the median of a session."""

PRIOR_SESSIONS = 4.0
"""Sessions that the assumed spread counts for."""

SESSION_ROWS = 8.0
"""Rows of one session count for this many at most: what is wrong with one is wrong with all."""

ROUNDS = 12
"""Of reweighting: rows far from the law count by their distance, not by its square."""


def fit_device_power(rows: PowerRows, recipe: DevicePowerRecipe) -> DevicePower:
    """Fit the device-power law to runs in all power states, and to what the recipe publishes.

    Each session may lie a little above or below the law (a random effect on the base); a state
    below PS0 has a base and background watts of its own where runs were seen in it.

    Raises:
        InputError: Neither measurements nor published points say anything about power.
    """
    if not len(rows) and not recipe.points:
        raise InputError(
            "device power: no measurement and no published point; attach a power sensor and "
            "measure, or leave device_power out of the recipe"
        )
    problem = _Problem(rows, recipe)
    fit, theta = problem.fit()
    names, units = device_power.PARAMETERS, ("W", "J/B", "J", "J/B", "J", "W")
    own = problem.x[: len(rows)]
    published = problem.x[len(rows) :]
    description = f"weighted least squares over {len(own)} measurements; prior: "
    parameters = []
    for i, name in enumerate(names):
        stated = recipe.priors[name]
        seen, cited = (bool(np.abs(x[:, i]).max(initial=0.0) > 0.0) for x in (own, published))
        parameters.append(
            Parameter(
                name=name,
                value=rounded(theta[i])[0],
                sd=rounded(float(np.sqrt(fit.covariance[i, i])))[0],
                unit=units[i],
                evidence=Evidence.MEASURED
                if seen
                else Evidence.PUBLISHED
                if cited
                else stated.evidence,
                source=(description if seen or cited else "") + stated.source,
            )
        )
    return DevicePower(
        parameters=parameters,
        covariance=[rounded(row) for row in fit.covariance[:6, :6]],
        states=problem.states(fit),
        session_sd_watts=rounded(problem.session_sd(fit))[0],
        idle_watts=[parameter(f"idle_ps{i}", f) for i, f in enumerate(recipe.idle_watts)],
        cap_watts=list(recipe.cap_watts),
        peak_watts=parameter("peak_watts", recipe.peak_watts),
        measured_read_operations_per_second_max=rounded(
            max(rows.x[:, 2].max(initial=0.0), 1.0) * 1.05
        )[0],
        measured_bytes_per_second_max=rounded(max(rows.x[:, [1, 3]].max(initial=0.0), 1.0) * 1.05)[
            0
        ],
        relative_sd=rounded(max(fit.relative_sd, 0.005))[0],
        condition=recipe.condition,
    )


class _Problem:
    """The design of the law: six shared columns, two a lower state, one a session."""

    def __init__(self, rows: PowerRows, recipe: DevicePowerRecipe) -> None:
        self.rows, self.recipe = rows, recipe
        points = [
            (
                1.0,
                p.read_bytes_per_second,
                p.read_operations_per_second,
                p.write_bytes_per_second,
                p.write_operations_per_second,
                p.collecting,
            )
            for p in recipe.points
        ]
        self.x = np.vstack([rows.x, np.array(points).reshape(-1, 6)])
        self.watts = np.concatenate([rows.watts, [p.watts for p in recipe.points]])
        state = np.concatenate([rows.power_state, np.zeros(len(points), dtype=np.intp)])
        self.low = [int(number) for number in np.unique(state) if number > 0]
        names = sorted(set(rows.session))
        self.sessions = names if len(names) > 1 else []
        base = recipe.priors["base_watts"].value
        columns, prior, sd = [self.x.copy()], [], []
        for name in device_power.PARAMETERS:
            prior.append(recipe.priors[name].value)
            sd.append(recipe.priors[name].sd)
        for number in self.low:
            here = state == number
            columns[0][here, 5] = 0.0  # its background watts are its own
            columns.append(np.stack([here, np.where(here, self.x[:, 5], 0.0)], axis=1))
            background = self._background(number)
            prior += [0.0, background.value]
            sd += [STATE_SD * base, background.sd]
        own = np.hypot(recipe.noise_watts, LAW_SD * rows.watts)
        self.noise = np.concatenate([own, [p.sd for p in recipe.points]])
        for name in self.sessions:
            same = np.zeros(len(state))
            same[: len(rows)] = rows.session == name
            columns.append(same[:, None])
            prior.append(0.0)
            sd.append(SESSION_SD * base)
            self.noise[same > 0] *= np.sqrt(max(same.sum() / SESSION_ROWS, 1.0))
        self.design = np.hstack(columns)
        self.prior, self.sd = np.array(prior), np.array(sd)

    def fit(self) -> tuple[LinearFit, Floats]:
        """The fit, and the shared parameters."""
        signed = np.ones(len(self.prior), dtype=bool)
        signed[:6] = False
        signed[7 : 6 + 2 * len(self.low) : 2] = False
        noise = self.noise
        for _ in range(ROUNDS):
            fit = fit_linear(self.design, self.watts, noise, self.prior, self.sd, signed)
            missed = (self.watts - self.design @ fit.theta) / self.noise
            noise = self.noise * (1.0 + missed**2) ** 0.25
        return replace(fit, relative_sd=self._misfit(fit)), fit.theta[:6]

    def _misfit(self, fit: LinearFit) -> float:
        """Relative sd of which 90 % of the rows lie inside 1.645, sessions counting alike."""
        rows = self.rows
        if not len(rows):
            return 0.0
        law = (self.design @ fit.theta)[: len(rows)]
        missed = np.abs(rows.watts / law - 1.0)
        _, session, count = np.unique(
            rows.session.astype(str), return_inverse=True, return_counts=True
        )
        order = np.argsort(missed)
        share = np.cumsum((1.0 / count[session])[order])
        inside = np.searchsorted(share, 0.9 * share[-1])
        return float(missed[order][min(inside, len(rows) - 1)] / NORMAL_90)

    def states(self, fit: LinearFit) -> list[StatePower]:
        """Base and background watts of the lower states that runs were seen in."""
        out = []
        for place, state in enumerate(self.low):
            at = 6 + 2 * place
            sd = np.sqrt(np.diag(fit.covariance)[at : at + 2])
            runs = int((self.rows.power_state == state).sum())
            source = f"{runs} measurements in power state {state}"
            seen = bool((self.design[:, at + 1] > 0.05).any())
            out.append(
                StatePower(
                    power_state=state,
                    base_watts=_fitted("base_watts", fit.theta[0] + fit.theta[at], sd[0], source),
                    background_watts=_fitted("background_watts", fit.theta[at + 1], sd[1], source)
                    if seen
                    else parameter("background_watts", self._background(state)),
                )
            )
        return out

    def session_sd(self, fit: LinearFit) -> float:
        """Spread of the base between sessions, shrunk to what is assumed; 0 with one session."""
        if not self.sessions:
            return 0.0
        offsets = fit.theta[-len(self.sessions) :]
        assumed = SESSION_SD * self.recipe.priors["base_watts"].value
        total = PRIOR_SESSIONS * assumed**2 + float((offsets**2).sum())
        return float(np.sqrt(total / (PRIOR_SESSIONS + len(offsets) - 1)))

    def _background(self, state: int) -> Figure:
        """Background watts that are expected of a state: what its cap leaves above the base."""
        stated = self.recipe.state_background_watts.get(state)
        if stated is not None:
            return stated
        most = self.recipe.priors["background_watts"]
        room = self.recipe.cap_watts[state] - self.recipe.priors["base_watts"].value
        value = float(np.clip(0.7 * room, 0.1 * most.value, most.value))
        return Figure(value=value, sd=0.5 * value, unit="W", source="assumption: up to the cap")


def _fitted(name: str, value: float, sd: float, source: str) -> Parameter:
    return Parameter(
        name=name,
        value=rounded(value)[0],
        sd=rounded(sd)[0],
        unit="W",
        evidence=Evidence.MEASURED,
        source=source,
    )
