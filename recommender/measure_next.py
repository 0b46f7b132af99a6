"""What to measure to be surer of a saving, and how sure one would be then.

The energies of the rows err together, by the gradients of `model.evaluate.uncertainty`, so they are
jointly normal: the relative errors have the covariance R C R' + diag(own^2). A measurement of a
row's energy at the same work says what that row errs, up to its own noise, and by the covariance
part of what the others err; the distribution after it follows in closed form and does not depend on
what is read (`Normal.after`). Measured next is what narrows the interval of the saving most, given
what was named before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from iojoule.datasets.links import Interface
from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.recommender.adaptive.normal import Normal
from iojoule.recommender.request import Scope
from iojoule.recommender.response import MeasureNext, Runs, Saving
from iojoule.recommender.rows import LIKELY, Details
from iojoule.recommender.space import configuration_of, knobs

REPEATS = 3
"""Runs of each configuration."""

RUN_RELATIVE_SD = 0.03
"""What the energy of one run errs: as in `model.fit.gaussian_process`, a few per cent of a log."""

MOST_RIVALS = 6
MOST_NAMED = 3

WORTH_IT = 0.1
"""Share by which half the interval has to shrink for another configuration to be named, and by
which a rival has to be better than measuring what is compared: those need no model in between."""

_CAUTION = (1.0, 1.0 + WORTH_IT)
"""Factor on what is hoped of measuring what is compared, and of a rival."""

SURE_SDS = NormalDist().inv_cdf(LIKELY)
"""Standard deviations that a saving must be away from none."""

PLAN = "next.toml"


def measure_next(
    details: Details, today: int, other: int, rivals: Sequence[int], saving: Saving, *, writes: bool
) -> MeasureNext | None:
    """Say which configurations to measure; None where no power is known.

    Args:
        details: The judged rows.
        today: Row of today's configuration.
        other: Row that is compared with it, another configuration.
        rivals: Rows of the front, by rising objective.
        saving: What `other` saves.
        writes: Whether the runs write.
    """
    scope = details.question.scope
    if details.power is None:
        return None
    setting = knobs(details.judged.frame)
    taken = {tuple(setting[row]) for row in (today, other)}
    others = [row for row in rivals if tuple(setting[row]) not in taken][:MOST_RIVALS]
    rows = [today, other, *others]
    known = _Known(rows, 1.0 - saving.percent.value / 100.0, _errors(details, rows))
    runs: list[Runs] = []
    after = known
    for place in _best(known):
        after = after.measuring(place)
        runs.append(
            Runs(
                configuration=configuration_of(details.judged.frame, known.rows[place]),
                role=("today", "candidate")[place] if place < 2 else "rival",
                alone_half_percent=known.measuring(place).half_percent,
                half_percent=after.half_percent,
                proves=after.half_percent <= saving.percent.value * NORMAL_90 / SURE_SDS,
            )
        )
    return MeasureNext(
        saving_percent=saving.percent.value,
        half_percent=known.half_percent,
        runs=runs,
        repeats=REPEATS,
        run_relative_sd=RUN_RELATIVE_SD,
        command=_command(scope, details.layout.profile.interface, writes=writes),
    )


@dataclass(frozen=True)
class _Known:
    """What is known of the energies of rows, the first two of which are compared.

    Attributes:
        rows: Places among the judged rows.
        ratio: Energy of the second row over that of the first, for equal work.
        errors: Relative errors of the rows.
    """

    rows: list[int]
    ratio: float
    errors: Normal

    def measuring(self, place: int) -> _Known:
        """What would be known after the runs of one row."""
        noise = np.array([RUN_RELATIVE_SD / np.sqrt(REPEATS)])
        return replace(self, errors=self.errors.after(place, noise))

    @property
    def half_percent(self) -> float:
        """Half the interval of the saving, percent of today's energy."""
        (first, both), (_, second) = self.errors.covariances[0, :2, :2].tolist()
        spread = max(first - 2.0 * both + second, 0.0) ** 0.5
        return float(100.0 * NORMAL_90 * self.ratio * spread)


def _errors(details: Details, rows: list[int]) -> Normal:
    """Relative errors of the energies of rows."""
    nothing = np.zeros((1, len(rows)))
    return Normal(np.array(rows, dtype=np.intp), nothing, details.relative_errors(rows)[None])


def _best(known: _Known) -> list[int]:
    """Places of the rows to measure, each the best after those before it.

    Where the two rows err alike, neither of them alone says in what they differ: then both are
    tried at once. Empty where that does not help either.
    """
    named = _after(known, [])
    both = known.measuring(0).measuring(1)
    if not named and both.half_percent <= (1.0 - WORTH_IT) * known.half_percent:
        return _after(both, [0, 1])
    return named


def _after(known: _Known, named: list[int]) -> list[int]:
    """Those named, and one after the other what narrows the interval most and is worth it."""
    while left := [place for place in range(len(known.rows)) if place not in named]:
        then = {place: known.measuring(place) for place in left}
        cost = {place: one.half_percent * _CAUTION[place >= 2] for place, one in then.items()}
        best = min(left, key=cost.__getitem__)
        worth_it = then[best].half_percent <= (1.0 - WORTH_IT) * known.half_percent
        if not worth_it or len(named) == MOST_NAMED:
            break
        known, named = then[best], [*named, best]
    return named


def _command(scope: Scope, interface: Interface | None, *, writes: bool) -> str:
    node = "/dev/sdX" if interface in ("sata", "sas") else "/dev/nvmeXn1"
    parts = [f"iojoule measure run --drive {node}", f"--plan {PLAN}", "--power SENSOR"]
    if scope is Scope.DEVICE_CPU:
        parts.append("--rapl-root /sys/class/powercap")
    if writes:
        parts.append("--serial NUMBER")
    return " ".join([*parts, "--out next"])
