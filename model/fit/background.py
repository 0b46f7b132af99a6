"""Fitting the work that a drive does on its own behalf after writes, by power state.

Fitting what the drive does in gaps: when it settles, what waking costs, what APST brings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from iojoule.datasets.catalogue import Drive, load_catalogue
from iojoule.datasets.errors import UnknownDeviceError
from iojoule.datasets.profile import (
    BackgroundWork,
    DevicePower,
    IdleBehaviour,
    Parameter,
    StateTransition,
    WorkAfterWrites,
)
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Evidence, Pattern
from iojoule.model.evaluate.bands import Floats
from iojoule.model.fit.export import rounded
from iojoule.model.recipe import Figure, IdleRecipe, Recipe, WriteStateRecipe, parameter

BACKGROUND_PRIOR = (-22.2, 1.5)
"""Log seconds of background work per byte at PS0, and its sd: assumption, 0.25 s per GiB within a
factor of four."""

SLOWING_PRIOR = (1.0, 1.0)
"""Exponent of background time over how much less a power state leaves for work: assumption. At 1
the same work takes the same energy above the base in every state."""

LEAST_SHARE = 0.1
"""Of a cap is left for work, whatever the base is said to be: a state that works at all."""

OWN_SD = 0.5
"""Log sd of what a power state does differently from that rule: assumption."""

RANDOM_PRIOR = (0.0, 0.5)
"""Log of background time after random over that after sequential writes: assumption."""

SHARE_OF_RANGE = (0.5, 0.15)
"""Where background power lies between idle and the cap: it jumps between the two (000 5.1.2)."""

ONE_RUN_SD = 0.1
"""Share of the watts of background work that another run may differ by: assumption. Two runs of
the 980 PRO at PS0 differ by 38 %, and their watts within a run by 1 to 10 %."""

_HALF_WAY = "assumption: half way from idle to the cap"


def number(
    name: str, value: float, sd: float, unit: str, source: str, evidence: Evidence
) -> Parameter:
    """A parameter with the digits that a profile keeps."""
    return Parameter(
        name=name,
        value=rounded(value)[0],
        sd=rounded(sd)[0],
        unit=unit,
        evidence=evidence,
        source=source,
    )


@dataclass(frozen=True)
class _Line:
    """Log seconds of background work per byte, linear in `row`; its parameters' covariance."""

    mean: Floats
    covariance: Floats
    slowness: dict[int, float]
    told_apart: bool

    def row(self, state: int, pattern: Pattern) -> Floats:
        """Regressors: level at PS0, slowness of the state, random writes, each state's own.

        Where random writes alone were seen, they say how high the level is and not how far from it.
        """
        own = [float(state == other) for other in self.slowness if other]
        random = float(pattern is Pattern.RANDOM and self.told_apart)
        return np.array([1.0, self.slowness.get(state, 0.0), random, *own])

    def at(self, state: int, pattern: Pattern = Pattern.SEQUENTIAL) -> tuple[float, float]:
        """After writes of a pattern in a state, and its sd."""
        x = self.row(state, pattern)
        return float(x @ self.mean), float(np.sqrt(x @ self.covariance @ x))


def _slowness(stated: WriteStateRecipe, recipe: Recipe) -> dict[int, float]:
    """How much less each power state leaves for work than PS0, as a logarithm.

    A state caps watts, not bytes: what the cap leaves above the power of an awake controller
    pays for the work. A state whose cap is not known counts as PS0 and its own deviation.
    """
    caps = recipe.device_power.cap_watts if recipe.device_power is not None else []
    seen = {run.power_state for run in stated.after_writes}
    return {0: 0.0} | {
        state: max(float(np.log(_for_work(recipe, 0) / _for_work(recipe, state))), 0.0)
        if state < len(caps)
        else 0.0
        for state in sorted({*_states(recipe), *seen} - {0})
    }


def _for_work(recipe: Recipe, state: int) -> float:
    """Watts that the cap of a state leaves above the base."""
    assert recipe.device_power is not None
    cap, base = recipe.device_power.cap_watts[state], recipe.device_power.priors.get("base_watts")
    return max(cap - (base.value if base is not None else 0.0), LEAST_SHARE * cap)


def _states(recipe: Recipe) -> list[int]:
    return sorted({0, *(effect.power_state for effect in recipe.power_states)})


def _range(recipe: Recipe, state: int) -> float:
    """Watts between idle and what the state allows; 1 where nothing is known of the power."""
    power = recipe.device_power
    if power is None or state >= min(len(power.cap_watts), len(power.idle_watts)):
        return 1.0
    top = min(power.cap_watts[state], power.peak_watts.value)
    return max(top - power.idle_watts[state].value, 0.05)


def _fit_line(stated: WriteStateRecipe, recipe: Recipe) -> _Line:
    """Bayesian linear regression with the priors above (conjugate, known noise)."""
    slow = _slowness(stated, recipe)
    priors = [BACKGROUND_PRIOR, SLOWING_PRIOR, RANDOM_PRIOR, *[(0.0, OWN_SD)] * (len(slow) - 1)]
    centres, sds = np.array(priors).T
    told_apart = not stated.after_writes or any(
        run.pattern is not Pattern.RANDOM for run in stated.after_writes
    )
    empty = _Line(centres, np.diag(sds**2), slow, told_apart)
    precision, right = np.diag(sds**-2), centres / sds**2
    for run in stated.after_writes:
        x = empty.row(run.power_state, run.pattern)
        precision += np.outer(x, x) / run.log_sd**2
        right += x * np.log(run.seconds / run.bytes_written) / run.log_sd**2
    covariance = np.linalg.inv(precision)
    return _Line(covariance @ right, covariance, slow, told_apart)


def background_work(stated: WriteStateRecipe, recipe: Recipe) -> list[BackgroundWork]:
    """Seconds a byte and watts of the work after sequential writes, by power state."""
    line = _fit_line(stated, recipe)
    share = stated.background_share
    middle, spread = (share.value, share.sd) if share else SHARE_OF_RANGE
    told_by = "; ".join(run.source for run in stated.after_writes)
    source = told_by or "assumption: as a consumer drive within a factor of four"
    seen = {run.power_state: run.evidence for run in stated.after_writes}
    noise = float(np.mean([run.log_sd for run in stated.after_writes])) if seen else 0.2
    out = []
    for state in line.slowness:
        centre, sd = line.at(state)
        evidence = seen.get(state, Evidence.EXTRAPOLATED if seen else Evidence.DATASHEET)
        watts = middle * _range(recipe, state)
        watts_sd, watts_source = watts * spread / middle, share.source if share else _HALF_WAY
        seen_watts = _seen_watts(stated, state)
        if seen_watts is not None:
            watts, watts_sd, watts_source = seen_watts
        joules = stated.background_joules_per_byte
        if joules is not None and state == 0:
            # joules were seen after the random writes, where there were any
            patterns = {run.pattern for run in stated.after_writes}
            same = Pattern.RANDOM if Pattern.RANDOM in patterns else Pattern.SEQUENTIAL
            watts = joules.value / float(np.exp(line.at(0, same)[0]))
            watts_sd = watts * spread / middle
        out.append(
            BackgroundWork(
                power_state=state,
                seconds_per_byte=number(
                    "seconds_per_byte",
                    float(np.exp(centre)),
                    float(np.hypot(sd, noise)),
                    "s/B, sd of its log",
                    source,
                    evidence,
                ),
                watts_above_idle=number(
                    "watts_above_idle", watts, watts_sd, "W", watts_source, evidence
                ),
            )
        )
    return out


def _seen_watts(stated: WriteStateRecipe, state: int) -> tuple[float, float, str] | None:
    """Watts above idle of the work in a state, weighted by seconds, with sd and sources.

    None where no meter saw any. Runs that differ say how far another may; one alone is worth
    `ONE_RUN_SD` of itself.
    """
    seen = [
        run
        for run in stated.after_writes
        if run.power_state == state and run.watts_above_idle is not None
    ]
    if not seen:
        return None
    watts = np.array([run.watts_above_idle for run in seen], dtype=float)
    seconds = np.array([run.seconds for run in seen])
    mean = float(np.average(watts, weights=seconds))
    spread = float(np.sqrt(np.average((watts - mean) ** 2, weights=seconds)))
    return mean, max(spread, ONE_RUN_SD * mean), "; ".join(run.source for run in seen)


LEAST_RUNS = 3
"""Fewer runs do not tell what writes leave behind."""


def work_after_writes(measurements: Sequence[Measurement]) -> WorkAfterWrites | None:
    """What writes at PS0 left behind, where a meter watched each run until idle power was back.

    Joules for a byte are those of all runs over all their bytes, watts likewise over the time until
    idle was back: what one run does not do, as its work waits, the next may do for it. None with
    fewer than `LEAST_RUNS` or where none left anything.
    """
    seen = [
        (left.host_bytes_written, left.background_energy_joules, left.background_seconds)
        for run in measurements
        if not run.configuration.power_state
        for left in [run.observations]
        if left.host_bytes_written and left.background_energy_joules is not None
    ]
    if len(seen) < LEAST_RUNS:
        return None
    written, joules, seconds = np.array(seen, dtype=float).T
    if not joules.any():
        return None
    byte = float(joules.sum() / written.sum())
    # standard error of a ratio of sums (Cochran, Sampling Techniques, 1977, 6.3)
    spread = np.sqrt(len(seen) / (len(seen) - 1.0) * ((joules - byte * written) ** 2).sum())
    watts, most = float(joules.sum() / seconds[joules > 0].sum()), float(joules.max())
    source = f"background energy of {len(seen)} runs"
    return WorkAfterWrites(
        joules_per_byte=number(
            "joules_per_byte",
            byte,
            float(spread / joules.sum()),
            "J/B, sd of its log",
            source,
            Evidence.MEASURED,
        ),
        watts_above_idle=number(
            "watts_above_idle", watts, ONE_RUN_SD * watts, "W", source, Evidence.MEASURED
        ),
        most_joules=number("most_joules", most, ONE_RUN_SD * most, "J", source, Evidence.MEASURED),
    )


def random_factor(stated: WriteStateRecipe, recipe: Recipe) -> Parameter:
    """Background time after random writes over that after sequential ones."""
    line = _fit_line(stated, recipe)
    seen = [run for run in stated.after_writes if run.pattern is Pattern.RANDOM]
    return number(
        "random_factor",
        float(np.exp(line.mean[2])),
        float(np.sqrt(line.covariance[2, 2])),
        "1, sd of its log",
        "; ".join(run.source for run in seen) or "assumption: as after sequential writes",
        Evidence.PUBLISHED if seen else Evidence.DATASHEET,
    )


def after_write(work: BackgroundWork, stated: WriteStateRecipe) -> Parameter:
    """Seconds after the bytes of the state's own published run, else after one GiB."""
    own = [run.bytes_written for run in stated.after_writes if run.power_state == work.power_state]
    written = own[0] if own else float(1 << 30)
    seconds = work.seconds_per_byte.value * written
    return number(
        "background_seconds_after_write",
        seconds,
        seconds * work.seconds_per_byte.sd,
        "s",
        f"after {written:.4g} bytes: {work.seconds_per_byte.source}",
        work.seconds_per_byte.evidence,
    )


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
    stated = recipe.idle or IdleRecipe()
    transitions = _transitions(recipe.device)
    if recipe.idle is None and not transitions:
        return None
    return IdleBehaviour(
        settle_seconds=_settle(stated),
        wake_seconds=_wake(stated),
        apst_idle_seconds=parameter("apst_idle_seconds", stated.apst_idle_seconds)
        if stated.apst_idle_seconds
        else None,
        apst_state=stated.apst_state,
        apst_share=_apst_share(stated, recipe) if stated.apst_state is not None else None,
        transitions=transitions,
        aspm_policy=stated.aspm_policy,
    )


def _transitions(device: str) -> list[StateTransition]:
    try:
        drive: Drive = load_catalogue().get(device)
    except UnknownDeviceError:
        return []
    return [
        StateTransition(
            power_state=level.index,
            operational=level.operational,
            entry_seconds=_seconds(level.entry_latency_us),
            exit_seconds=_seconds(level.exit_latency_us),
        )
        for level in sorted(drive.power_states, key=lambda state: state.index)
    ]


def _seconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else rounded(microseconds * 1e-6)[0]


def _settle(stated: IdleRecipe) -> Parameter:
    """Posterior median and log sd on a grid: gaps without rest bound it below, others above.

    Where the time at idle power was seen, the rest of the gap is the settle time or more.
    """
    grid = np.linspace(np.log(1e-4), np.log(10.0), 2001)
    centre, sd = SETTLE_PRIOR
    density = -0.5 * ((grid - centre) / sd) ** 2
    for gap in stated.gaps:
        above = (grid - np.log(gap.seconds)) / BOUND_LOG_SD
        if gap.idle_seconds == 0:
            density += log_ndtr(above)
        else:
            density += log_ndtr(-above)
            awake = np.log(max(gap.seconds - gap.idle_seconds, 1e-4))
            density += -0.5 * ((grid - awake) / 0.3) ** 2
    weight = np.exp(density - density.max())
    weight /= weight.sum()
    low, middle, high = np.interp((0.16, 0.5, 0.84), np.cumsum(weight), grid)
    return _parameter(
        "settle_seconds",
        float(np.exp(middle)),
        float(high - low) / 2,
        "s, sd of its log",
        "; ".join(dict.fromkeys(gap.source for gap in stated.gaps)),
    )


def measured_settle(idle: IdleBehaviour, joules: Figure, power: DevicePower) -> IdleBehaviour:
    """With the settle time for which an awake drive draws these joules above idle.

    Unchanged where the fit tells no power of being awake.
    """
    awake = power.parameters[0].value - power.idle_watts[0].value
    if awake <= 0 or joules.value <= 0:
        return idle
    awake_sd = np.hypot(power.parameters[0].sd, power.idle_watts[0].sd)
    log_sd = float(np.hypot(joules.sd / joules.value, awake_sd / awake))
    settle = number(
        "settle_seconds",
        joules.value / awake,
        min(log_sd, SETTLE_PRIOR[1]),
        "s, sd of its log",
        joules.source,
        joules.evidence,
    )
    return idle.model_copy(update={"settle_seconds": settle})


def _wake(stated: IdleRecipe) -> Parameter:
    centres = [WAKE_PRIOR[0], *(np.log(wake.seconds) for wake in stated.wakes)]
    weights = np.array([WAKE_PRIOR[1], *(wake.log_sd for wake in stated.wakes)]) ** -2.0
    return _parameter(
        "wake_seconds",
        float(np.exp(np.average(centres, weights=weights))),
        float(weights.sum() ** -0.5),
        "s, sd of its log",
        "; ".join(wake.source for wake in stated.wakes),
    )


def _apst_share(stated: IdleRecipe, recipe: Recipe) -> Parameter:
    """What is left of the promised saving, from runs with and without APST.

    ratio = 1 - share (P_idle - P_sleep) (gap - apst time) / (P period): the rest of the power is
    the same in both runs.
    """
    power = recipe.device_power
    centres, weights = [SHARE_PRIOR[0]], [SHARE_PRIOR[1] ** -2.0]
    state, after = stated.apst_state or 0, stated.apst_idle_seconds
    if power is not None and after is not None and state < len(power.idle_watts):
        drop = power.idle_watts[0].value - power.idle_watts[state].value
        for seen in stated.apst_seen if drop > 0 else ():
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
        "; ".join(sight.source for sight in stated.apst_seen),
    )


def _parameter(name: str, value: float, sd: float, unit: str, source: str) -> Parameter:
    cited = source or "assumption: as the one drive whose gaps were looked at (000 5.9)"
    evidence = Evidence.PUBLISHED if source else Evidence.DATASHEET
    return number(name, value, sd, unit, cited, evidence)
