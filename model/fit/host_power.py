"""Fitting the host: watts of its processors and memory, and what its settings do.

Fitting watts at the wall, where two meters of one host may disagree.

Core time of requests from measured CPU time: what a byte costs beyond the request itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares, nnls

from iojoule.datasets.profile import (
    Clock,
    DramPower,
    HostOperation,
    HostPerformance,
    HostPoint,
    HostPower,
    IdleState,
    NumaCost,
    Parameter,
    SystemPower,
)
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Completion, Engine, Evidence
from iojoule.model.evaluate import host_power, host_work, system_power
from iojoule.model.evaluate.bands import Floats
from iojoule.model.evaluate.host_work import PAGE_BYTES
from iojoule.model.evaluate.operating_point import busy_watts_factor
from iojoule.model.fit.export import rounded
from iojoule.model.fit.power import fit_linear
from iojoule.model.recipe import (
    Figure,
    HostAnchor,
    HostOperationRecipe,
    HostPowerRecipe,
    Recipe,
    SystemPowerRecipe,
    parameter,
)

CLOCKED = ("static_share", "voltage_floor", "uncore_share")
"""What runs at several frequencies tell of power, in the order of the fitted vector."""


def _unstated(value: float, sd: float, unit: str) -> Figure:
    return Figure(value=value, sd=sd, unit=unit, source="assumption: any server")


UNSTATED = {
    "idle_watts": _unstated(40.0, 25.0, "W"),
    "package_watts": _unstated(10.0, 8.0, "W"),
    "uncore_watts": _unstated(5.0, 5.0, "W"),
    "core_watts": _unstated(2.0, 2.0, "W"),
    "awake_core_watts": _unstated(0.5, 0.5, "W"),
} | {
    name: Figure(
        value=usual,
        sd=host_power.GAP_LOG_SD * usual,
        unit="s",
        source="intel_idle.c, skx_cstates: exit latency, 11 times for a task that waits for I/O "
        "(menu governor)",
        evidence=Evidence.DATASHEET,
    )
    for name, usual in zip(host_power.THRESHOLDS, host_power.GAPS, strict=True)
}
"""Priors of the parameters that every law has, where a recipe does not say."""

SESSION_SD = Figure(
    value=1.0,
    sd=0.0,
    unit="W",
    source="assumption: CPU watts of one run",
    evidence=Evidence.DATASHEET,
)
"""What a run of a host session errs where the recipe does not say."""


def named(name: str, value: float, sd: float, unit: str, about: tuple[Evidence, str]) -> Parameter:
    """A fitted number as it stands in a profile."""
    return Parameter(
        name=name,
        value=rounded(value)[0],
        sd=rounded(sd)[0],
        unit=unit,
        evidence=about[0],
        source=about[1],
    )


def expected_operation(recipe: HostOperationRecipe | None) -> HostOperation | None:
    """What the host's settings are expected to do, before any measurement speaks."""
    if recipe is None:
        return None

    def carried(section: object) -> dict[str, Parameter]:
        fields = type(section).model_fields  # type: ignore[attr-defined]
        return {
            name: parameter(name, figure)
            for name in fields
            if isinstance(figure := getattr(section, name), Figure)
        }

    clock = recipe.clock
    return HostOperation(
        host_id=recipe.host_id,
        clock=Clock(**carried(clock), powersave_is_dynamic=clock.powersave_is_dynamic)
        if clock is not None
        else None,
        idle_states=[IdleState(name=state.name, **carried(state)) for state in recipe.idle_states],
        numa=NumaCost(**carried(recipe.numa)) if recipe.numa is not None else None,
    )


def fit_host(
    recipe: Recipe, host: HostPerformance, runs: Sequence[Measurement] = ()
) -> tuple[HostPower | None, HostOperation | None]:
    """CPU power and the effect of the host's settings, as far as a recipe knows of them."""
    operation = expected_operation(recipe.host_operation)
    stated = recipe.host_power
    if stated is None:
        return None, operation
    sd = (stated.session_sd or SESSION_SD).value
    anchors = [*stated.anchors, *anchors_of(runs, host, stated.cpu_cores, sd)]
    return fit_host_power(stated.model_copy(update={"anchors": anchors}), operation)


def anchors_of(
    runs: Sequence[Measurement], host: HostPerformance, cores: int, sd: float
) -> list[HostAnchor]:
    """CPU power of runs with what the host did at the rate that was measured.

    Args:
        runs: Of one host; those without CPU power and rate are left out.
        host: Core time of the paths.
        cores: Of the host.
        sd: Of one run, W.
    """
    paths = {(p.engine, p.completion, p.submission_polling): p for p in host.paths}
    anchors = []
    for measurement in runs:
        how, seen = measurement.configuration, measurement.observations
        path = paths.get(
            (
                how.engine or Engine.IO_URING,
                how.completion or Completion.INTERRUPT,
                bool(how.submission_polling),
            )
        )
        iops = seen.iops or (seen.throughput_bytes_per_second or 0.0) / how.request_bytes
        if path is None or seen.cpu_power_watts is None or iops <= 0:
            continue
        bytes_ns = host_work.bytes_ns(host, np.array([float(how.request_bytes)]))
        load = host_work.activity(
            host_work.HostCosts(
                request_ns=path.core_time_ns + bytes_ns,
                wakeup_ns=np.array([path.wakeup_ns]),
                copy_ns=np.zeros(1),
                jobs=np.array([float(how.jobs)]),
                cores=np.array([float(cores)]),
                depth=np.array([float(how.queue_depth)]),
                polled=np.array([how.completion is Completion.POLLED]),
                submission_polling=np.array([bool(how.submission_polling)]),
                always=np.array([how.engine is Engine.SPDK]),
                busy_log_sd=np.zeros(1),
            ),
            np.array([iops]),
        )
        anchors.append(
            HostAnchor(
                busy_cores=float(load.busy_cores[0]),
                serving_cores=float(load.serving_cores[0]),
                wakeups_per_second=float(load.wakeups_per_second[0]),
                frequency_hertz=how.cpu_frequency_max_hertz,
                cstate_limit=how.cstate_limit,
                watts=seen.cpu_power_watts,
                sd=sd,
                source=measurement.conditions.session_id or "runs of the host",
            )
        )
    return anchors


def fit_host_power(
    recipe: HostPowerRecipe, operation: HostOperation | None
) -> tuple[HostPower, HostOperation | None]:
    """Fit the CPU-power law, and with it what frequency and sleep states do where they varied.

    The law is linear in its watts; the gaps from which cores sleep, static share, voltage floor
    and the watts of the sleep states are not, so all are fitted together (least squares, bounded,
    priors as further observations).

    Args:
        recipe: Anchors, published or measured, and priors; without a prior of the wake-ups' energy
            the law has no such term.
        operation: What is expected of the settings; None: they must not vary.
    """
    law = _LawFit(recipe, operation)
    fit = law.solve()
    measured = [anchor for anchor in recipe.anchors if anchor.evidence is Evidence.MEASURED]
    evidence = Evidence.MEASURED if measured else Evidence.PUBLISHED
    if measured:
        source = f"least squares over {len(measured)} runs of this host"
    else:
        anchors_by_source = Counter(anchor.source for anchor in recipe.anchors)
        source = "; ".join(
            source if times == 1 else f"{source} ({times} runs)"
            for source, times in anchors_by_source.items()
        )
        source = source or "priors only"
    count = len(fit.names)
    power = HostPower(
        host_id=recipe.host_id,
        scope=recipe.scope,
        parameters=[
            named(
                name,
                fit.values[i],
                fit.sds[i],
                host_power.UNITS[host_power.PARAMETERS.index(name)],
                (evidence, source),
            )
            for i, name in enumerate(fit.names)
        ],
        covariance=[rounded(row) for row in fit.covariance[:count, :count]],
        cpu_cores=recipe.cpu_cores,
        relative_sd=rounded(fit.misfit)[0] if recipe.anchors else 0.0,
        dram=_dram(recipe),
        points=[
            HostPoint(
                busy_cores=rounded(anchor.busy_cores)[0],
                serving_cores=rounded(anchor.serving_cores)[0],
                wakeups_per_second=rounded(anchor.wakeups_per_second)[0],
                watts=anchor.watts,
                answered_watts=rounded(answered)[0],
                source=anchor.source,
            )
            for anchor, answered in zip(recipe.anchors, law.predict(fit.values), strict=True)
        ],
    )
    return power, fit.operation(operation, (evidence, source))


def _dram(recipe: HostPowerRecipe) -> DramPower | None:
    idle, each = recipe.dram_idle_watts, recipe.dram_joules_per_byte
    if idle is None or each is None:
        return None
    return DramPower(
        idle_watts=parameter("dram_idle_watts", idle),
        joules_per_byte=parameter("dram_joules_per_byte", each),
    )


@dataclass(frozen=True)
class _Solved:
    """The fitted vector: the law's parameters, then static share, voltage floor, sleep states."""

    names: tuple[str, ...]
    values: Floats
    covariance: Floats
    sds: Floats
    misfit: float
    clocked: bool
    states: int

    def operation(
        self, before: HostOperation | None, about: tuple[Evidence, str]
    ) -> HostOperation | None:
        """The expected operation with what the anchors told of it."""
        if before is None:
            return None
        changed: dict[str, object] = {}
        at = len(self.names)
        if before.clock is not None and self.clocked:
            changed["clock"] = before.clock.model_copy(
                update={
                    name: named(name, self.values[at + i], self.sds[at + i], "1", about)
                    for i, name in enumerate(CLOCKED)
                }
            )
        if self.states:
            at += len(CLOCKED) * self.clocked
            changed["idle_states"] = [
                state.model_copy(
                    update={
                        "core_watts": named(
                            "core_watts", self.values[at + i], self.sds[at + i], "W", about
                        )
                    }
                )
                if i < self.states
                else state
                for i, state in enumerate(before.idle_states)
            ]
        return before.model_copy(update=changed)


class _LawFit:
    """The law at the anchors, as residuals of one vector of parameters."""

    def __init__(self, recipe: HostPowerRecipe, operation: HostOperation | None) -> None:
        self.recipe = recipe
        anchors = recipe.anchors
        priors = UNSTATED | recipe.priors
        self.names = tuple(name for name in host_power.PARAMETERS if name in priors)
        self.linear = [i for i, name in enumerate(host_power.LINEAR) if name in priors]
        self.busy = np.array([a.busy_cores for a in anchors])
        self.serving = np.array([a.serving_cores for a in anchors])
        self.woken = np.array([a.wakeups_per_second for a in anchors])
        self.watts = np.array([a.watts for a in anchors])
        self.noise = np.array([a.sd for a in anchors])
        clock = operation.clock if operation else None
        hertz = [a.frequency_hertz for a in anchors]
        self.clock = clock if any(hertz) else None
        reference = clock.reference_hertz.value if clock else 1.0
        self.ratio = np.array([(f or reference) / reference for f in hertz])
        states = operation.idle_states if operation else []
        limits = [a.cstate_limit for a in anchors]
        limited = any(limit is not None for limit in limits)
        self.states = max(len(states) - 1, 0) if limited else 0
        self.limit = np.array([len(states) - 1 if limit is None else limit for limit in limits])
        self.sleeping = np.maximum(recipe.cpu_cores - self.busy, 0.0)
        centres = [(priors[name].value, priors[name].sd) for name in self.names]
        if self.clock is not None:
            centres += [(getattr(self.clock, n).value, getattr(self.clock, n).sd) for n in CLOCKED]
        centres += [
            (state.core_watts.value, state.core_watts.sd) for state in states[: self.states]
        ]
        self.prior, self.prior_sd = np.array(centres).T

    def solve(self) -> _Solved:
        """The most likely parameters and their covariance."""
        high = np.full(len(self.prior), np.inf)
        at = len(self.names)
        if self.clock is not None:
            high[at : at + len(CLOCKED)] = 0.98
        low = np.zeros(len(self.prior))
        for place, name in enumerate(self.names):
            if name in host_power.THRESHOLDS:  # a gap of no time has no logarithm
                low[place] = 0.05 * self.prior[place]
        start = np.clip(self.prior, low + 1e-12, np.minimum(high, 1e9) * 0.999)
        solution = least_squares(
            self.residuals, start, bounds=(low, high), x_scale=self.prior_sd, max_nfev=400
        )
        # columns differ by orders of magnitude: invert them in units of their priors
        slopes = np.asarray(solution.jac) * self.prior_sd
        spread = np.linalg.inv(slopes.T @ slopes)
        return self.solved(solution.x, spread * np.outer(self.prior_sd, self.prior_sd))

    def solved(self, values: Floats, covariance: Floats) -> _Solved:
        """The result, its covariance widened where the runs scatter more than they should."""
        predicted = self.predict(values)
        gap = self.watts - predicted
        spare = max(len(gap) - len(values), 1)
        misfit = 0.0
        if len(gap):  # the surest anchors tell most of the lack of fit
            weight = self.noise**-2.0 / np.sum(self.noise**-2.0)
            relative = np.sum(weight * (gap / np.maximum(predicted, 1e-9)) ** 2)
            misfit = float(np.sqrt(relative * len(gap) / spare))
        measured = any(anchor.evidence is Evidence.MEASURED for anchor in self.recipe.anchors)
        if measured and len(gap):
            chi = float(np.sum((gap / self.noise) ** 2) / spare)
            covariance = covariance * max(chi, 1.0)
        if self.recipe.meter_scale_sd is not None:
            # one error of the meter moves all watts beyond idle alike
            rising = np.zeros(len(values))
            for place, name in enumerate(self.names):
                if name in host_power.LINEAR[1:]:
                    rising[place] = values[place]
            covariance = covariance + self.recipe.meter_scale_sd.value**2 * np.outer(rising, rising)
        return _Solved(
            names=self.names,
            values=values,
            covariance=covariance,
            sds=np.sqrt(np.maximum(np.diag(covariance), 0.0)),
            misfit=misfit,
            clocked=self.clock is not None,
            states=self.states,
        )

    def regressors(self, values: Floats) -> Floats:
        """Regressors of the law's linear parameters, shape (n, k)."""
        scale = uncore = np.ones(len(self.busy))
        if self.clock is not None:
            at = len(self.names)
            moved = self.clock.model_copy(
                update={
                    name: getattr(self.clock, name).model_copy(
                        update={"value": float(values[at + i])}
                    )
                    for i, name in enumerate(CLOCKED)
                }
            )
            scale, _ = busy_watts_factor(moved, self.ratio)
            uncore = 1.0 + moved.uncore_share.value * (scale - 1.0)
        drawn = host_power.Drawn(scale=scale, uncore_scale=uncore)
        deep, shallow = (values[self.names.index(name)] for name in host_power.THRESHOLDS)
        load = host_work.load_of(self.busy, self.serving, self.woken, (deep, shallow))
        return host_power.regressors(load, drawn)[:, self.linear]

    def predict(self, values: Floats) -> Floats:
        """Watts at the anchors."""
        watts = self.regressors(values) @ values[: len(self.linear)]
        if self.states:
            shallow = np.append(values[len(values) - self.states :], 0.0)
            watts = watts + self.sleeping * shallow[np.minimum(self.limit, self.states)]
        return np.asarray(watts)

    def residuals(self, values: Floats) -> Floats:
        """Of the anchors and of the priors, in standard deviations."""
        return np.concatenate(
            [
                (self.predict(values) - self.watts) / self.noise,
                (values - self.prior) / self.prior_sd,
            ]
        )


FLOOR_PRIOR = Figure(
    value=50.0, sd=30.0, unit="W", source="assumption: board, fans, disks and a supply's own"
)

LEAST_SLOPE = 1.0
"""What is saved behind a supply is saved at its wall, and more: no fitted slope is below."""


def meters_disagree(recipe: SystemPowerRecipe, power: SystemPower) -> str | None:
    """The gap of a host whose wall meter sees less than the watts behind the supply; else None."""
    free = _free_slope(recipe)
    if free is None or free >= LEAST_SLOPE:
        return None
    return (
        f"CPU and wall power of {recipe.host_id}: two meters disagree; where CPU and drive draw "
        f"1 W more, the wall meter shows {free:.2f} W more, and a supply cannot give more than it "
        f"takes. The law takes {power.slope.value:.2f} +- {power.slope.sd:.2f}, so savings at the "
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


FEWEST_SIZES = 3
"""Request sizes of a session that tell a byte's cost from a request's."""

_SCALE = np.array([1e-6, 1e-6, 1e-11])


def core_seconds_per_byte(measurements: Sequence[Measurement]) -> Parameter | None:
    """Core time of a byte beyond the first page; None where CPU time was not measured over sizes.

    Interrupt-driven rows only: who polls is busy whatever the size. Non-negative least squares of
    the core time of a request over a constant, the share of requests that wake a core and the
    bytes, relative errors, constant and wake-up by session (a host is not equally fast every day).
    The sd is that of a jackknife over request sizes.
    """
    sessions: dict[str, list[Floats]] = defaultdict(list)
    for measurement in measurements:
        row = _row(measurement)
        if row is not None:
            sessions[
                f"{measurement.conditions.host_id} {measurement.conditions.session_id}"
            ].append(row)
    informative = {
        name: np.array(rows)
        for name, rows in sessions.items()
        if len({row[1] for row in rows}) >= FEWEST_SIZES
    }
    if not informative:
        return None
    sizes = np.unique(np.concatenate([rows[:, 1] for rows in informative.values()]))
    value = _slope(informative, None)
    left = np.array([_slope(informative, size) for size in sizes])
    sd = float(np.sqrt((len(sizes) - 1) / len(sizes) * np.sum((left - left.mean()) ** 2)))
    runs = sum(len(rows) for rows in informative.values())
    return Parameter(
        name="core_seconds_per_byte",
        value=rounded(value)[0],
        sd=rounded(max(sd, 0.1 * value))[0],
        unit="s/B",
        evidence=Evidence.MEASURED,
        source=f"CPU time of {runs} runs of {len(sizes)} request sizes",
    )


def _slope(sessions: dict[str, Floats], without: float | None) -> float:
    """Seconds a byte, with one size left out."""
    design, target = [], []
    for place, rows in enumerate(sessions.values()):
        for woken, moved, each in rows[rows[:, 1] != without]:
            line = np.zeros(2 * len(sessions) + 1)
            line[2 * place], line[2 * place + 1], line[-1] = _SCALE * (1.0, woken, moved)
            design.append(line / each)
            target.append(1.0)
    slopes, _ = nnls(np.array(design), np.array(target))
    return float(slopes[-1] * _SCALE[2])


def _row(measurement: Measurement) -> Floats | None:
    """Share of requests that wake a core, bytes beyond the first page, core seconds a request."""
    seen, how = measurement.observations, measurement.configuration
    if not seen.cpu_utilisation or not seen.iops or how.submission_polling:
        return None
    if how.completion is Completion.POLLED:
        return None
    woken = 1.0 - min(seen.cpu_utilisation / how.jobs, 1.0) * min(how.queue_depth - 1, 1)
    if seen.context_switches_per_second is not None:
        woken = min(seen.context_switches_per_second / seen.iops, 1.0)
    moved = max(how.request_bytes - PAGE_BYTES, 0.0)
    return np.array([woken, moved, seen.cpu_utilisation / seen.iops])
