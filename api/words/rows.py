"""Which rows of an answer are shown, in which order, and by which of their knobs."""

from __future__ import annotations

from collections.abc import Sequence

from iojoule.api.words.configurations import (
    KNOBS,
    OF_HOST,
    OF_REST,
    SCOPE_POWER,
    knob,
    same_setting,
)
from iojoule.datasets.schema import Configuration
from iojoule.recommender.answer import Recommendation, Row
from iojoule.recommender.estimate import Estimate
from iojoule.recommender.factors import YEARLY

HEADINGS = {
    "request_bytes": "request",
    "queue_depth": "depth",
    "submission_polling": "SQ poll",
    "power_state": "state",
    **OF_HOST,
    **OF_REST,
}
"""Knob -> heading of its column."""


def target(found: Recommendation) -> str:
    """What rows are ranked by, in words."""
    words = {
        "joules_per_useful_gb": "joules per useful GB", "edp": "EDP", "kwh_per_year": "kWh a year",
        "cost": f"cost ({found.factors.currency})", "co2": "CO2",
    }  # fmt: skip
    return words.get(found.ranked_by, found.ranked_by)


def shown(found: Recommendation, most: int) -> list[tuple[str, Row]]:
    """Rows of the front by rank, the recommended one among them, and today's."""
    best = found.recommended
    every = list(enumerate(ranked(found), start=1))
    head = every[:most]
    if best is not None and not any(row is best for _, row in head):
        head = [*every[: most - 1], *(one for one in every if one[1] is best)]
    word = "lowest expected" if found.action == "ranking" else "recommended"
    marked = [(f"{place} {word}" if row is best else str(place), row) for place, row in head]
    today = found.current
    if today is not None and (best is None or not same_setting(today, best)):
        marked.append(("today" if today.meets_sla else "today, misses SLA", today))
    return marked


def ranked(found: Recommendation) -> list[Row]:
    """The front by rank, with the recommended row in its place."""
    best = found.recommended
    if best is None:
        return list(found.pareto)
    if any(same_setting(row, best) for row in found.pareto):
        return [best if same_setting(row, best) else row for row in found.pareto]
    return sorted([best, *found.pareto], key=lambda row: rank_value(found, row))


def rank_value(found: Recommendation, row: Row) -> float:
    """What rows are ranked by: the objective, or less capacity where power is unknown."""
    name = {
        "watts": SCOPE_POWER[found.scope][0],
        "joules_per_useful_gb": "joules_per_useful_gb",
        "edp": "edp_joule_seconds",
        **{str(one.value): name for one, name in YEARLY.items()},
    }.get(found.ranked_by)
    estimate: Estimate | None = getattr(row, name) if name else None
    return -row.capacity_bytes_per_second.value if estimate is None else estimate.value


def split_knobs(configurations: Sequence[Configuration]) -> tuple[str, list[str]]:
    """What all rows share, in words, and the knobs in which they differ; nothing of no rows."""
    if not configurations:
        return "", []
    varying = [name for name in KNOBS if len({getattr(one, name) for one in configurations}) > 1]
    fixed = ", ".join(
        f"{HEADINGS.get(name, name)} {knob(configurations[0], name)}"
        for name in KNOBS
        if name not in varying and getattr(configurations[0], name) is not None
    )
    return fixed, varying


def evidence(row: Row, power: str) -> str:
    """What a row rests on: performance, and power where that is another."""
    watts: Estimate | None = getattr(row, power)
    of_power = "none" if watts is None else watts.evidence.value
    performance = row.capacity_bytes_per_second.evidence.value
    return performance if of_power == performance else f"{performance} / {of_power}"
