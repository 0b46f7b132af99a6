"""Which changed knob brings how much of a saving: from weights to estimates with intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.vocabulary import Evidence
from iojoule.model.evaluate.bands import EVIDENCE
from iojoule.recommender.answer import Saving
from iojoule.recommender.attribution import Between, alone, last
from iojoule.recommender.reasons import Attribution, KnobEffect
from iojoule.recommender.rows import Details, over
from iojoule.recommender.space import configuration_of

Floats = NDArray[np.float64]


def attribution(
    details: Details, between: Between, today: int, best: int, rows: Sequence[int], saving: Saving
) -> Attribution | None:
    """Say what each player brings.

    Args:
        details: The judged rows.
        between: What lies between the two configurations.
        today: Row of today's configuration.
        best: Row of the recommended one.
        rows: Rows of `between.frame`.
        saving: Of the recommended configuration against today's.
    """
    players = len(between.players)
    row_of = np.full(1 << players, -1, dtype=np.intp)
    row_of[0], row_of[-1], row_of[between.sets] = today, best, rows
    exists = row_of >= 0
    first, first_known = alone(players, exists)
    final, final_known = last(players, exists)
    weights = _by_row(
        np.concatenate([between.weights, first, final]), row_of, len(details.judged.frame)
    )
    found = details.sums(weights, today)
    if found is None:
        return None
    codes = details.evidence_codes(details.question.scope.value)
    words = [Evidence(EVIDENCE[int(codes[used].max(initial=0))]) for used in weights != 0]
    percent = over(found, "percent", 1.0, words)
    joules = over(found, "joules_per_byte", 1e9, words)
    settings = [configuration_of(details.judged.frame, row) for row in (today, best)]
    effects = [
        KnobEffect(
            knobs=list(names),
            before={name: getattr(settings[0], name) for name in names},
            after={name: getattr(settings[1], name) for name in names},
            share_percent=percent[place],
            share_joules_per_useful_gb=joules[place],
            alone_percent=percent[players + place] if first_known[place] else None,
            last_percent=percent[2 * players + place] if final_known[place] else None,
        )
        for place, names in enumerate(between.players)
    ]
    demand = details.question.demand.bytes_per_second
    served = details.judged.work.served_bytes[list(rows)]
    return Attribution(
        knobs=sorted(effects, key=lambda one: -one.share_percent.value),
        together_percent=saving.percent,
        orders=between.orders,
        impossible=between.impossible,
        below_demand=0 if demand is None else int((served < demand * (1.0 - 1e-9)).sum()),
    )


def _by_row(by_mask: Floats, row_of: NDArray[np.intp], count: int) -> Floats:
    """Weights by judged row; what does not exist has none."""
    weights = np.zeros((len(by_mask), count))
    there = row_of >= 0
    weights[:, row_of[there]] = by_mask[:, there]
    return weights
