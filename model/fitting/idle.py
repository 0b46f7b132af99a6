"""Fitting what the drive does in gaps: when it settles, what waking costs, what APST brings."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from iojoule.datasets.catalogue import Drive, load_catalogue
from iojoule.datasets.errors import UnknownDeviceError
from iojoule.datasets.profile import IdleBehaviour, Parameter, StateTransition
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.fitting.background import number
from iojoule.model.fitting.export import rounded
from iojoule.model.fitting.recipe import IdleRecipe, Recipe
from iojoule.model.fitting.recipe.sourced import parameter

SETTLE_PRIOR = (np.log(0.05), 0.6)
"""Log seconds that a drive stays awake after a request, and its sd: assumption, between the 30 ms
that are too short and the 100 ms that are enough for one drive (000 5.9 F13)."""

WAKE_PRIOR = (np.log(1e-4), 0.7)
"""Log seconds of the wake-up from idle in an operational state, and its sd: assumption."""

BOUND_LOG_SD = 0.1
"""How sharply a gap in which the drive did or did not rest bounds the settle time."""

SHARE_PRIOR = (0.5, 0.3)
"""Share of the difference between idle and sleep power that a gap under a second brings."""


def fit_idle(recipe: Recipe) -> IdleBehaviour | None:
    """The drive's behaviour in gaps; None where neither recipe nor catalogue say anything.

    A drive that has a power-state table and nothing else gets the priors, marked as datasheet.
    """
    told = recipe.idle or IdleRecipe()
    transitions = _transitions(recipe.device)
    if recipe.idle is None and not transitions:
        return None
    return IdleBehaviour(
        settle_seconds=_settle(told),
        wake_seconds=_wake(told),
        apst_idle_seconds=parameter("apst_idle_seconds", told.apst_idle_seconds)
        if told.apst_idle_seconds
        else None,
        apst_state=told.apst_state,
        apst_share=_apst_share(told, recipe) if told.apst_state is not None else None,
        transitions=transitions,
        aspm_policy=told.aspm_policy,
    )


def _transitions(device: str) -> list[StateTransition]:
    try:
        drive: Drive = load_catalogue().get(device)
    except UnknownDeviceError:
        return []
    return [
        StateTransition(
            power_state=one.index,
            operational=one.operational,
            entry_seconds=_seconds(one.entry_latency_us),
            exit_seconds=_seconds(one.exit_latency_us),
        )
        for one in sorted(drive.power_states, key=lambda state: state.index)
    ]


def _seconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else rounded(microseconds * 1e-6)[0]


def _settle(told: IdleRecipe) -> Parameter:
    """Posterior median and log sd on a grid: gaps without rest bound it below, others above.

    Where the time at idle power was seen, the rest of the gap is the settle time or more.
    """
    grid = np.linspace(np.log(1e-4), np.log(10.0), 2001)
    density = norm.logpdf(grid, *SETTLE_PRIOR)
    for gap in told.gaps:
        if gap.idle_seconds == 0:
            density += norm.logcdf(grid, np.log(gap.seconds), BOUND_LOG_SD)
        else:
            density += norm.logsf(grid, np.log(gap.seconds), BOUND_LOG_SD)
            awake = np.log(max(gap.seconds - gap.idle_seconds, 1e-4))
            density += norm.logpdf(grid, awake, 0.3)
    weight = np.exp(density - density.max())
    weight /= weight.sum()
    low, middle, high = np.interp((0.16, 0.5, 0.84), np.cumsum(weight), grid)
    return _parameter(
        "settle_seconds",
        float(np.exp(middle)),
        float(high - low) / 2,
        "s, sd of its log",
        "; ".join(dict.fromkeys(gap.source for gap in told.gaps)),
    )


def _wake(told: IdleRecipe) -> Parameter:
    centres = [WAKE_PRIOR[0], *(np.log(one.seconds) for one in told.wakes)]
    weights = np.array([WAKE_PRIOR[1], *(one.log_sd for one in told.wakes)]) ** -2.0
    return _parameter(
        "wake_seconds",
        float(np.exp(np.average(centres, weights=weights))),
        float(weights.sum() ** -0.5),
        "s, sd of its log",
        "; ".join(one.source for one in told.wakes),
    )


def _apst_share(told: IdleRecipe, recipe: Recipe) -> Parameter:
    """What is left of the promised saving, from runs with and without APST.

    ratio = 1 - share (P_idle - P_sleep) (gap - apst time) / (P period): the rest of the power is
    the same in both runs.
    """
    power = recipe.device_power
    centres, weights = [SHARE_PRIOR[0]], [SHARE_PRIOR[1] ** -2.0]
    state, after = told.apst_state or 0, told.apst_idle_seconds
    if power is not None and after is not None and state < len(power.idle_watts):
        drop = power.idle_watts[0].value - power.idle_watts[state].value
        for seen in told.apst_seen if drop > 0 else ():
            asleep = max(seen.gap_seconds - after.value, 0.0) / seen.period_seconds
            per_share = drop * asleep / seen.power_watts
            if per_share > 0:
                centres.append((1.0 - seen.power_ratio) / per_share)
                weights.append((seen.sd / per_share) ** -2.0)
    value = float(np.clip(np.average(centres, weights=weights), 0.0, 1.0))
    return _parameter(
        "apst_share",
        value,
        float(np.sum(weights) ** -0.5),
        "1",
        "; ".join(one.source for one in told.apst_seen),
    )


def _parameter(name: str, value: float, sd: float, unit: str, source: str) -> Parameter:
    said = source or "assumption: as the one drive whose gaps were looked at (000 5.9)"
    evidence = Evidence.PUBLISHED if source else Evidence.DATASHEET
    return number(name, value, sd, unit, said, evidence)
