"""Which bound binds, what one step of it costs or brings, and which one to relax."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.vocabulary import Evidence
from iojoule.model.evaluate.bands import EVIDENCE
from iojoule.recommender.estimate import Estimate
from iojoule.recommender.reasons import BoundSlack, BoundStep, Relaxation
from iojoule.recommender.rows import Details, over
from iojoule.recommender.screen import DEMAND
from iojoule.recommender.sla import Sla
from iojoule.recommender.space import configuration_of, knobs
from iojoule.recommender.steps import STEP, WAYS, Least, Steps, Way

Floats = NDArray[np.float64]

NOTICEABLE_PERCENT = 0.1
"""A bound whose absence would bring less has no price: no profile tells so little apart."""


def rows_of(steps: Steps) -> list[Least]:
    """What an answer judges for the steps: the least as it is, then that by bound and way."""
    if steps.now is None:
        return []
    return [steps.now, *(one for key, one in steps.least.items() if key[1] != "now")]


def slacks(
    details: Details, steps: Steps, sla: Sla, best: int, rows: Sequence[int]
) -> list[BoundSlack]:
    """How the recommended row stands to every bound.

    Args:
        details: The judged rows.
        steps: What was found under other bounds.
        sla: The bounds.
        best: Row of the recommended configuration.
        rows: Rows of `rows_of(steps)`.
    """
    keys = [key for key in steps.least if key[1] != "now"]
    settings = knobs(details.judged.frame)
    now = best if (settings[rows[0]] == settings[best]).all() else rows[0]
    saved = dict(zip(keys, _saved(details, settings, now, rows[1:]), strict=True))
    found = []
    for column, (name, limit) in enumerate(steps.limits.items()):
        reached = float(details.judged.reached[best, column])
        spare = 1.0 - reached / limit if name.endswith("_max") else reached / limit - 1.0
        ways: dict[Way, BoundStep] = {}
        if name != DEMAND:
            ways = {way: _step(steps, name, way, saved.get((name, way))) for way in WAYS}
        change = ways["without"].objective_change_percent if ways else None
        found.append(
            BoundSlack(
                bound=name,
                limit=limit,
                confidence=sla.confidence_of(name),
                preferred=bool(steps.soft[column]),
                reached=reached if np.isfinite(reached) else None,
                slack_percent=100.0 * spare if np.isfinite(spare) else None,
                binds=None if change is None else change < -NOTICEABLE_PERCENT,
                looser=ways.get("looser"),
                tighter=ways.get("tighter"),
                without=ways.get("without"),
            )
        )
    return found


def _step(steps: Steps, name: str, way: Way, saved: Estimate | None) -> BoundStep:
    looser = STEP if name.endswith("_max") else 1.0 / STEP
    factor = looser if way == "looser" else 1.0 / looser
    limit = None if way == "without" else steps.limits[name] * factor
    least, before = steps.least.get((name, way)), steps.now
    if least is None or before is None:
        return BoundStep(
            limit=limit, configuration=None, objective_change_percent=None, saves_percent=None
        )
    return BoundStep(
        limit=limit,
        configuration=configuration_of(least.frame, 0),
        objective_change_percent=100.0 * (least.objective / before.objective - 1.0),
        saves_percent=saved,
    )


def _saved(
    details: Details, settings: Floats, now: int, others: Sequence[int]
) -> list[Estimate] | list[None]:
    """Energy that each row saves against another, percent."""
    places = np.array(others, dtype=np.intp)
    weights = np.zeros((len(places), len(settings)))
    differ = np.flatnonzero((settings[places] != settings[now]).any(axis=1))
    weights[differ, now] = 1.0  # one configuration errs as itself
    weights[differ, places[differ]] = -1.0
    found = details.sums(weights, now)
    if found is None:
        return [None] * len(places)
    codes = details.evidence_codes(details.question.scope.value)
    words = [Evidence(EVIDENCE[int(code)]) for code in np.maximum(codes[places], codes[now])]
    return over(found, "percent", 1.0, words)


def relaxations(steps: Steps) -> list[Relaxation]:
    """Bounds of which one alone, relaxed, lets something keep all the others."""
    found = []
    for name, near in steps.nearest.items():
        if near.ratio <= 1.0 or not np.isfinite(near.ratio):
            continue
        limit = steps.limits[name]
        found.append(
            Relaxation(
                bound=name,
                limit=limit,
                needed=near.reached,
                by_percent=100.0 * abs(near.reached / limit - 1.0),
                configuration=configuration_of(near.frame, 0),
            )
        )
    return sorted(found, key=lambda one: one.by_percent)
