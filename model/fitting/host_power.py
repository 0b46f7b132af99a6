"""Fitting the host: watts of its processors, memory and wall, and what its settings do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from iojoule.datasets.profile import (
    Clock,
    DramPower,
    HostOperation,
    HostPower,
    IdleState,
    NumaCost,
    Parameter,
    SystemPower,
)
from iojoule.datasets.vocabulary import Evidence
from iojoule.model import host_power, system_power
from iojoule.model.fitting.export import rounded
from iojoule.model.fitting.power import fit_linear, parameter
from iojoule.model.fitting.recipe import (
    Figure,
    HostAnchor,
    HostOperationRecipe,
    HostPowerRecipe,
    Recipe,
    SystemPowerRecipe,
)
from iojoule.model.operating_point import busy_watts_factor

Floats = NDArray[np.float64]

CLOCKED = ("static_share", "voltage_floor", "uncore_share")
"""What runs at several frequencies tell of power, in the order of the fitted vector."""

FLOOR_PRIOR = Figure(
    value=50.0, sd=30.0, unit="W", source="assumption: board, fans, disks and a supply's own"
)


def _unstated(value: float, sd: float, unit: str) -> Figure:
    return Figure(value=value, sd=sd, unit=unit, source="assumption: any server")


UNSTATED = {
    "idle_watts": _unstated(40.0, 25.0, "W"),
    "uncore_watts": _unstated(15.0, 10.0, "W"),
    "core_watts": _unstated(2.0, 2.0, "W"),
    "job_watts": _unstated(0.5, 0.5, "W"),
}
"""Priors of the parameters that every law has, where a recipe does not say."""


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
        idle_states=[IdleState(name=one.name, **carried(one)) for one in recipe.idle_states],
        numa=NumaCost(**carried(recipe.numa)) if recipe.numa is not None else None,
    )


def fit_host(recipe: Recipe) -> tuple[HostPower | None, HostOperation | None]:
    """CPU power and the effect of the host's settings, as far as a recipe knows of them."""
    operation = expected_operation(recipe.host_operation)
    if recipe.host_power is None:
        return None, operation
    return fit_host_power(recipe.host_power, operation)


def fit_host_power(
    recipe: HostPowerRecipe, operation: HostOperation | None
) -> tuple[HostPower, HostOperation | None]:
    """Fit the CPU-power law, and with it what frequency and sleep states do where they varied.

    The law is linear in its own parameters; static share, voltage floor and the watts of the sleep
    states are not, so all are fitted together (least squares, bounded, priors as further
    observations).

    Args:
        recipe: Anchors, published or measured, and priors; without a prior of the wake-ups' energy
            the law has no such term.
        operation: What is expected of the settings; None: they must not vary.
    """
    fit = _LawFit(recipe, operation).solve()
    measured = [one for one in recipe.anchors if one.evidence is Evidence.MEASURED]
    evidence = Evidence.MEASURED if measured else Evidence.PUBLISHED
    if measured:
        source = f"least squares over {len(measured)} runs of this host"
    else:
        source = "; ".join(anchor.source for anchor in recipe.anchors) or "priors only"
    count = len(fit.names)
    power = HostPower(
        host_id=recipe.host_id,
        scope=recipe.scope,
        parameters=[
            named(name, fit.values[i], fit.sds[i], host_power.UNITS[i], (evidence, source))
            for i, name in enumerate(fit.names)
        ],
        covariance=[rounded(row) for row in fit.covariance[:count, :count]],
        engine_factors=_factors(recipe, fit),
        scheduler_factors={k: parameter(k, f) for k, f in sorted(recipe.scheduler_factors.items())},
        cpu_cores=recipe.cpu_cores,
        relative_sd=rounded(fit.misfit)[0] if measured else 0.0,
        dram=_dram(recipe),
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


def _factors(recipe: HostPowerRecipe, fit: _Solved) -> dict[str, Parameter]:
    """Relative dynamic power of the paths: what the anchors say over what the law does."""
    found = {key: parameter(key, figure) for key, figure in sorted(recipe.engine_factors.items())}
    rows: dict[str, list[tuple[float, float, float]]] = {}
    for anchor, dynamic, predicted in zip(
        recipe.anchors, fit.dynamic_watts, fit.predicted, strict=True
    ):
        if anchor.evidence is Evidence.MEASURED and anchor.engine is not None and dynamic > 0:
            other = predicted - _factor(anchor, recipe) * dynamic
            rows.setdefault(f"{anchor.engine}/{anchor.completion}", []).append(
                (dynamic, anchor.watts - other, anchor.sd)
            )
    for key, seen in sorted(rows.items()):
        prior = recipe.engine_factors.get(key)
        centre, sd = (prior.value, max(prior.sd, 1e-3)) if prior else (1.0, 0.3)
        dynamic, watts, noise = (np.array(column) for column in zip(*seen, strict=True))
        noise = np.hypot(noise, fit.misfit * watts)
        precision = float((dynamic**2 / noise**2).sum()) + sd**-2
        value = (float((dynamic * watts / noise**2).sum()) + centre / sd**2) / precision
        about = (Evidence.MEASURED, f"{len(seen)} runs of this host")
        found[key] = named(key, max(value, 0.05), precision**-0.5, "1", about)
    return found


@dataclass(frozen=True)
class _Solved:
    """The fitted vector: the law's parameters, then static share, voltage floor, sleep states."""

    names: tuple[str, ...]
    values: Floats
    covariance: Floats
    sds: Floats
    misfit: float
    dynamic_watts: Floats
    predicted: Floats
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


def _factor(anchor: HostAnchor, recipe: HostPowerRecipe) -> float:
    if anchor.engine is None:
        return 1.0
    known = recipe.engine_factors.get(f"{anchor.engine}/{anchor.completion}")
    return known.value if known else 1.0


def _factor_sd(anchor: HostAnchor, recipe: HostPowerRecipe) -> float:
    if anchor.engine is None:
        return 0.0
    known = recipe.engine_factors.get(f"{anchor.engine}/{anchor.completion}")
    return known.sd if known else 0.3


class _LawFit:
    """The law at the anchors, as residuals of one vector of parameters."""

    def __init__(self, recipe: HostPowerRecipe, operation: HostOperation | None) -> None:
        self.recipe = recipe
        anchors = recipe.anchors
        priors = UNSTATED | recipe.priors
        self.names = tuple(name for name in host_power.PARAMETERS if name in priors)
        self.busy = np.array([a.busy_cores for a in anchors])
        self.active = np.array([a.active_cores for a in anchors])
        self.woken = np.array([a.wakeups_per_second for a in anchors])
        self.factor = np.array([_factor(a, recipe) for a in anchors])
        self.watts = np.array([a.watts for a in anchors])
        self.noise = np.array([a.sd for a in anchors])
        if any(a.engine is None for a in anchors):
            # plain loads tell the law; what an engine does beyond it is found afterwards
            unsure = np.array([_factor_sd(a, recipe) for a in anchors])
            above = self.watts - self.watts.min()
            self.noise = np.hypot(self.noise, unsure * above)
        clock = operation.clock if operation else None
        hertz = [a.frequency_hertz for a in anchors]
        self.clock = clock if any(hertz) else None
        reference = clock.reference_hertz.value if clock else 1.0
        self.ratio = np.array([(f or reference) / reference for f in hertz])
        states = operation.idle_states if operation else []
        limits = [a.cstate_limit for a in anchors]
        limited = any(limit is not None for limit in limits)
        self.states = max(len(states) - 1, 0) if limited else 0
        self.limit = np.array([len(states) - 1 if one is None else one for one in limits])
        self.sleeping = np.maximum(recipe.cpu_cores - self.busy, 0.0)
        centres = [(priors[name].value, priors[name].sd) for name in self.names]
        if self.clock is not None:
            centres += [(getattr(self.clock, n).value, getattr(self.clock, n).sd) for n in CLOCKED]
        centres += [(one.core_watts.value, one.core_watts.sd) for one in states[: self.states]]
        self.prior, self.prior_sd = np.array(centres).T

    def solve(self) -> _Solved:
        """The most likely parameters and their covariance."""
        if self.clock is None and not self.states:
            x = self.regressors(self.prior)
            fit = fit_linear(x, self.watts, self.noise, self.prior, self.prior_sd)
            return self.solved(fit.theta, fit.covariance)
        high = np.full(len(self.prior), np.inf)
        at = len(self.names)
        if self.clock is not None:
            high[at : at + len(CLOCKED)] = 0.98
        start = np.clip(self.prior, 1e-9, np.minimum(high, 1e9) * 0.999)
        found = least_squares(
            self.residuals, start, bounds=(0.0, high), x_scale=self.prior_sd, max_nfev=400
        )
        # columns differ by orders of magnitude: invert them in units of their priors
        slopes = np.asarray(found.jac) * self.prior_sd
        spread = np.linalg.inv(slopes.T @ slopes)
        return self.solved(found.x, spread * np.outer(self.prior_sd, self.prior_sd))

    def solved(self, values: Floats, covariance: Floats) -> _Solved:
        """The result, its covariance widened where the runs scatter more than they should."""
        predicted = self.predict(values)
        gap = self.watts - predicted
        spare = max(len(gap) - len(values), 1)
        misfit = float(np.sqrt(np.sum((gap / np.maximum(predicted, 1e-9)) ** 2) / spare))
        measured = any(one.evidence is Evidence.MEASURED for one in self.recipe.anchors)
        if measured and len(gap):
            chi = float(np.sum((gap / self.noise) ** 2) / spare)
            covariance = covariance * max(chi, 1.0)
        theta = values[: len(self.names)]
        plain = self.regressors(values)[:, 1:4] / self.factor[:, None]
        return _Solved(
            names=self.names,
            values=values,
            covariance=covariance,
            sds=np.sqrt(np.maximum(np.diag(covariance), 0.0)),
            misfit=misfit,
            dynamic_watts=plain @ theta[1:4],
            predicted=predicted,
            clocked=self.clock is not None,
            states=self.states,
        )

    def regressors(self, values: Floats) -> Floats:
        """Regressors of the law's own parameters, shape (n, k)."""
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
        drawn = host_power.Drawn(wakeups_per_second=self.woken, scale=scale, uncore_scale=uncore)
        full = host_power.regressors(self.busy, self.active, self.factor, drawn)
        return full[:, [host_power.PARAMETERS.index(name) for name in self.names]]

    def predict(self, values: Floats) -> Floats:
        """Watts at the anchors."""
        watts = self.regressors(values) @ values[: len(self.names)]
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


def fit_system_power(recipe: SystemPowerRecipe) -> SystemPower:
    """Fit wall power over the parts: floor, slope and, with its prior, the square."""
    parts = np.array([anchor.parts_watts for anchor in recipe.anchors])
    wall = np.array([anchor.wall_watts for anchor in recipe.anchors])
    priors = [recipe.floor_prior or FLOOR_PRIOR, recipe.slope_prior]
    if recipe.quadratic_prior is not None:
        priors.append(recipe.quadratic_prior)
    fit = fit_linear(
        system_power.regressors(parts)[:, : len(priors)],
        wall,
        np.array([anchor.sd for anchor in recipe.anchors]),
        np.array([prior.value for prior in priors]),
        np.array([prior.sd for prior in priors]),
    )
    evidence = Evidence.MEASURED
    if any(anchor.evidence is not Evidence.MEASURED for anchor in recipe.anchors):
        evidence = Evidence.PUBLISHED
    source = "; ".join(dict.fromkeys(anchor.source for anchor in recipe.anchors)) or "priors only"
    covariance = np.zeros((3, 3))
    covariance[: len(priors), : len(priors)] = fit.covariance
    floor, slope, *bend = (
        named(name, fit.theta[i], float(np.sqrt(fit.covariance[i, i])), unit, (evidence, source))
        for i, (name, unit) in enumerate(
            (("floor_watts", "W"), ("slope", "1"), ("quadratic", "1/W"))[: len(priors)]
        )
    )
    return SystemPower(
        host_id=recipe.host_id,
        floor_watts=floor,
        slope=slope,
        relative_sd=recipe.relative_sd,
        quadratic=bend[0] if bend else None,
        covariance=[rounded(row) for row in covariance],
    )
