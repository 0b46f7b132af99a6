"""One number from several findings: each by itself, so that any one of them can be left out.

Figures of the same number are weighted by their precision, as independent estimates. The figures
of one paper share its host and its methods, so the mean is never surer than the surest of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from iojoule.model.fitting.recipe.sourced import Figure


def pool(figures: Sequence[Figure]) -> Figure:
    """Their mean by precision; its deviation is that of the surest."""
    weights = np.array([one.sd**-2.0 for one in figures])
    values = np.array([one.value for one in figures])
    return Figure(
        value=float(f"{(weights * values).sum() / weights.sum():.7g}"),
        sd=min(one.sd for one in figures),
        unit=figures[0].unit,
        evidence=figures[0].evidence,
        source="; ".join(one.source for one in figures),
        facts=sorted({fact for one in figures for fact in one.facts}),
    )
