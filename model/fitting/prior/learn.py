"""Learning the prior: group effects, offsets of kinds of facts, and the spread of drives.

A hierarchical linear model with missing data (Little and Rubin, Statistical Analysis with Missing
Data, chapter 11; Gelman et al., Bayesian Data Analysis, chapters 15 and 18). Drive d has the log
quantities x_d = E g_d + u_d, u_d ~ N(0, S); what is known of it is y = H x + offset + noise. Given
S the effects E and the offsets are Gaussian (generalised least squares with their stated priors);
S has an inverse-Wishart prior around the stated spread and is found by expectation maximisation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule import __version__
from iojoule.datasets.catalogue import Fact, load_catalogue
from iojoule.model.prior.document import (
    EFFECTS,
    Assumptions,
    LearnedPrior,
    LearnedSource,
    load_assumptions,
)
from iojoule.model.prior.facts import OWN_METRICS, DriveFacts, Observation, facts_of
from iojoule.model.prior.posterior import (
    design,
    expected_group,
    possible_groups,
    spread_scale,
)

Floats = NDArray[np.float64]

ROUNDS = 60
SETTLED = 2e-3
"""Expectation maximisation ends after so many rounds, or when no variance or covariance (log units
squared) moves by more than this."""

DIGITS = 5
"""Significant digits of the shipped numbers."""


def catalogue_drives() -> list[DriveFacts]:
    """Every real drive of the catalogue with what others may learn from it; disks teach no SSD."""
    return [
        facts_of(drive.model_copy(update={"facts": _shared(drive.facts)}))
        for drive in load_catalogue()
        if drive.drive_class != "emulated" and drive.medium != "disk"
    ]


def _shared(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    return tuple(fact for fact in facts if fact.metric not in OWN_METRICS)


def learn(drives: Sequence[DriveFacts], rounds: int = ROUNDS) -> LearnedPrior:
    """Learn the prior from drives; one without observations tells nothing.

    Drives that do not say their group count with each group's share at first, then again as the
    prior that was learned so assigns them by their facts.

    Args:
        drives: What is known of each.
        rounds: Of expectation maximisation at the most.
    """
    told = [drive for drive in drives if drive.observations]
    first = _learned(told, {}, rounds)
    unsaid = [drive for drive in told if len(possible_groups(drive)) > 1]
    if rounds == 1 or not unsaid:
        return first
    groups = {drive.device: expected_group(first, drive) for drive in unsaid}
    return _learned(told, groups, rounds)


def _learned(told: Sequence[DriveFacts], groups: Mapping[str, Floats], rounds: int) -> LearnedPrior:
    """Learn with the groups of some drives given as regressors of EFFECTS."""
    problem = _Problem(load_assumptions(), told, groups)
    spread = problem.stated_spread
    for _ in range(rounds):
        before, spread = spread, problem.improved(spread)
        if np.max(np.abs(spread - before)) < SETTLED:
            break
    mean, covariance = problem.effects(spread)
    count, width = len(problem.names), len(EFFECTS)
    blocks = [
        covariance[q * width : (q + 1) * width, q * width : (q + 1) * width] for q in range(count)
    ]
    kinds = count * width + np.arange(len(problem.kinds))
    return LearnedPrior(
        schema_version=1,
        generator=f"iojoule {__version__}",
        quantities=problem.names,
        effects=_rounded(mean[: count * width].reshape(count, width)),
        effect_covariance=[_rounded(block) for block in blocks],
        spread=_rounded(spread),
        offsets={
            kind: (_digits(mean[place]), _digits(float(np.sqrt(covariance[place, place]))))
            for kind, place in zip(problem.kinds, kinds, strict=True)
        },
        drives=problem.told_by(),
        sources=_sources(told),
    )


@dataclass(frozen=True)
class _Drive:
    """One drive: regressors of all effects and offsets, quantities, log values, noise.

    `h` is in units of the learned spread: the design times the spread of the drive's group.
    """

    regressors: Floats
    h: Floats
    y: Floats
    noise: Floats


class _Problem:
    """The drives as matrices, and the stated priors."""

    def __init__(
        self,
        assumed: Assumptions,
        drives: Sequence[DriveFacts],
        groups: Mapping[str, Floats],
    ) -> None:
        self.groups = groups
        self.names = list(assumed.quantities)
        self.kinds = list(assumed.kinds)
        self.drives = [self._drive(drive) for drive in drives]
        self.stated_spread = _stated_spread(assumed)
        self.weight = assumed.spread_drives
        centre, sd = [], []
        for one in assumed.quantities.values():
            added = [getattr(one, name) for name in EFFECTS[1:]]
            centre += [np.log(one.centre), *added]
            sd += [assumed.centre_sd, *[one.effect_sd or assumed.effect_sd] * len(added)]
        centre += [kind.offset for kind in assumed.kinds.values()]
        sd += [max(kind.offset_sd, 1e-6) for kind in assumed.kinds.values()]
        self.prior_mean, self.prior_precision = np.array(centre), np.diag(np.array(sd) ** -2.0)

    def _drive(self, drive: DriveFacts) -> _Drive:
        h = design(self.names, drive.observations)
        # of a drive that does not say its group every group is as likely as its share, or, once
        # a prior is learned, as its facts make it
        group = self.groups.get(drive.device)
        if group is None:
            options = possible_groups(drive)
            group = sum((share * one for one, share in options), np.zeros(len(EFFECTS)))
        kinds = np.zeros((len(h), len(self.kinds)))
        for row, one in enumerate(drive.observations):
            kinds[row, self.kinds.index(one.kind)] = 1.0
        return _Drive(
            np.hstack([np.kron(h, group), kinds]),
            h * spread_scale(self.names, group),
            np.array([one.log_value for one in drive.observations]),
            np.diag([one.sd**2 for one in drive.observations]),
        )

    def effects(self, spread: Floats) -> tuple[Floats, Floats]:
        """Mean and covariance of effects and offsets, given the spread."""
        precision = self.prior_precision.copy()
        pull = precision @ self.prior_mean
        for one in self.drives:
            total = one.h @ spread @ one.h.T + one.noise
            weighted = np.linalg.solve(total, one.regressors)
            precision += one.regressors.T @ weighted
            pull += weighted.T @ one.y
        covariance = np.linalg.inv(precision)
        return np.asarray(covariance @ pull), np.asarray(covariance)

    def improved(self, spread: Floats) -> Floats:
        """One round of expectation maximisation."""
        mean, covariance = self.effects(spread)
        scatter = self.weight * self.stated_spread
        for one in self.drives:
            total = one.h @ spread @ one.h.T + one.noise
            gain = np.linalg.solve(total, one.h @ spread).T
            moved = gain @ (one.y - one.regressors @ mean)
            leverage = gain @ one.regressors
            left = spread - gain @ one.h @ spread + leverage @ covariance @ leverage.T
            scatter += left + np.outer(moved, moved)
        found = scatter / (self.weight + len(self.drives))
        return np.asarray(0.5 * (found + found.T))

    def told_by(self) -> list[int]:
        """How many drives tell of each quantity."""
        told = np.array([(drive.h != 0).any(axis=0) for drive in self.drives])
        return [int(count) for count in told.sum(axis=0)]


def _stated_spread(assumed: Assumptions) -> Floats:
    """Covariance of drives as stated: common causes by their loadings, the rest alone."""
    sd = np.array([one.sd for one in assumed.quantities.values()])
    loadings = np.array([one.loadings for one in assumed.quantities.values()])
    correlation = loadings @ loadings.T
    np.fill_diagonal(correlation, 1.0)
    return np.asarray(correlation * np.outer(sd, sd))


def _sources(drives: Sequence[DriveFacts]) -> list[LearnedSource]:
    figures: Counter[str] = Counter()
    owners: dict[str, set[str]] = {}
    for drive in drives:
        for one in drive.observations:
            name = _family(one)
            figures[name] += 1
            owners.setdefault(name, set()).add(drive.device)
    return [
        LearnedSource(name=name, drives=len(owners[name]), figures=count)
        for name, count in sorted(figures.items())
    ]


def _family(one: Observation) -> str:
    """Where a figure comes from, in one word or two."""
    if one.kind == "fitted":
        return one.fact.source
    if one.kind.startswith("linear_cost"):
        return "iocost-benchmarks (Apache-2.0)"
    if one.fact.name in ("max_power_ps0", "declared_active_power_ps0", "declared_idle_power_ps0"):
        return "power-state descriptors"
    return "published measurements" if one.measured else "data sheets"


def _rounded(values: Floats) -> list[list[float]]:
    return [[_digits(value) for value in row] for row in values]


def _digits(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
