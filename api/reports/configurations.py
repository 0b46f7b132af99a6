"""Configurations, knobs, scopes and ranked rows of a recommendation as text."""

from __future__ import annotations

from collections.abc import Sequence

from iojoule.api.reports.quantities import quantity, size
from iojoule.datasets.schema import Configuration
from iojoule.recommender.factors import YEARLY
from iojoule.recommender.request import Free, Scope
from iojoule.recommender.response import Estimate, Recommendation, Row

SCOPE_POWER = {
    Scope.DEVICE: ("device_power_watts", "drive"),
    Scope.DEVICE_CPU: ("device_cpu_power_watts", "drive + CPU"),
    Scope.SYSTEM: ("system_power_watts", "whole system"),
}
"""Scope -> field of a row that holds its power, and its name."""

KNOBS = tuple(Free.model_fields)
"""Fields of a configuration that a recommendation may change."""

OF_HOST = {
    "cpu_governor": "governor",
    "cpu_frequency_max_hertz": "clock at most",
    "cstate_limit": "C-state limit",
}
"""Those of the whole host, in words."""

OF_REST = {
    "link_power_policy": "link power",
    "standby_timer_seconds": "standby after",
}
"""How a SATA drive may rest, in words."""


_ENDS = {"min": "at least", "max": "at most"}


def bound(name: str, limit: float) -> str:
    """A bound of the SLA in words."""
    field, _, end = name.rpartition("_")
    return f"{plain_name(field)} {_ENDS[end]} {quantity(field, limit)}"


def plain_name(field: str) -> str:
    """A field's name without its unit, as people say it: `latency_p99_ns` is p99 latency."""
    words = field
    for unit in ("_bytes_per_second", "_ns", "_watts", "_years"):
        words = words.removesuffix(unit)
    kind, _, level = words.partition("_")
    return f"{level} latency" if kind == "latency" else words.replace("_", " ")


def same_setting(one: Row, other: Row) -> bool:
    """Whether two rows ask the host for the same."""
    return all(
        getattr(one.configuration, name) == getattr(other.configuration, name) for name in KNOBS
    )


def knob(configuration: Configuration, name: str) -> str:
    """One knob of a configuration in a word."""
    value = getattr(configuration, name)
    if name == "request_bytes":
        return size(value)
    if name == "power_state":
        return f"PS{value or 0}"
    if name == "submission_polling":
        return "yes" if value else "no"
    if value is None:
        return "as it is"
    if name == "power_limit_watts":
        return f"{value:g} W" if value else "none"
    if name == "standby_timer_seconds":
        return f"{value:g} s" if value else "never"
    if name == "cpu_frequency_max_hertz":
        return f"{value / 1e9:.3g} GHz"
    return str(value)


def setting(configuration: Configuration) -> str:
    """A configuration in one line."""
    said = (
        f"{size(configuration.request_bytes)} requests, depth {configuration.queue_depth}, "
        f"{configuration.jobs} job{'' if configuration.jobs == 1 else 's'}, {configuration.engine} "
        f"{configuration.completion}, scheduler {configuration.scheduler}, "
        f"PS{configuration.power_state or 0}"
    )
    of_host = [
        f"{words} {knob(configuration, name)}"
        for name, words in (OF_HOST | OF_REST).items()
        if getattr(configuration, name) is not None
    ]
    if configuration.power_limit_watts:
        said += f", limited to {configuration.power_limit_watts:g} W"
    polling = ["SQ polling"] if configuration.submission_polling else []
    return ", ".join([said, *polling, *of_host])


def setting_in_short(configuration: Configuration) -> str:
    """A configuration in two short lines, for a label in a picture."""
    polled = " polled" if configuration.completion == "polled" else ""
    limit = configuration.power_limit_watts
    limited = f", {limit:g} W" if limit else ""
    scheduler = "" if configuration.scheduler in (None, "none") else f", {configuration.scheduler}"
    polled += ", SQ polling" if configuration.submission_polling else ""
    times = "\N{MULTIPLICATION SIGN}"
    return (
        f"{size(configuration.request_bytes)} {times} depth {configuration.queue_depth} {times} "
        f"{configuration.jobs} job{'' if configuration.jobs == 1 else 's'}\n"
        f"{configuration.engine}{polled}{scheduler}, PS{configuration.power_state or 0}{limited}"
    )


HEADINGS = {
    "request_bytes": "request",
    "queue_depth": "depth",
    "submission_polling": "SQ poll",
    "power_state": "state",
    "power_limit_watts": "power limit",
    **OF_HOST,
    **OF_REST,
}
"""Knob -> heading of its column."""


def target(found: Recommendation) -> str:
    """What rows are ranked by, in words."""
    words = {
        "joules_per_useful_gb": "joules per useful GB",
        "edp": "EDP",
        "kwh_per_year": "kWh a year",
        "cost": f"cost ({found.factors.currency})",
        "co2": "CO2",
    }
    return words.get(found.ranked_by, found.ranked_by)


def first_word(found: Recommendation) -> str:
    """What the first row of a ranking is, in words: least of what costs, most of performance."""
    return "highest expected" if found.ranked_by == "performance" else "lowest expected"


def shown(found: Recommendation, most: int) -> list[tuple[str, Row]]:
    """Rows of the front by rank, the recommended one among them, and today's."""
    best = found.recommended
    every = list(enumerate(ranked(found), start=1))
    head = every[:most]
    if best is not None and not any(row is best for _, row in head):
        head = [*every[: most - 1], *(one for one in every if one[1] is best)]
    today = found.current

    def mark(place: int, row: Row) -> str:
        if today is not None and same_setting(row, today):
            return f"{place} today"
        if row is best:
            return f"{place} {first_word(found) if found.action == 'ranking' else 'recommended'}"
        return str(place)

    marked = [(mark(place, row), row) for place, row in head]
    if today is not None and not any(same_setting(row, today) for _, row in head):
        marked.append(("today" if today.meets_sla else "today, misses SLA", today))
    return marked


def ranked(found: Recommendation) -> list[Row]:
    """The front by rank, with the recommended row in its place: of a mere ranking the first."""
    best = found.recommended
    if best is None:
        return list(found.pareto)
    if found.action == "ranking":
        return [best, *(row for row in found.pareto if not same_setting(row, best))]
    if any(same_setting(row, best) for row in found.pareto):
        return [best if same_setting(row, best) else row for row in found.pareto]
    return sorted([best, *found.pareto], key=lambda row: rank_value(found, row))


def is_tied(found: Recommendation) -> bool:
    """Whether a row of the front takes less than the recommended one, too little to matter."""
    best = found.recommended
    if best is None:
        return False
    here = rank_value(found, best)
    return any(rank_value(found, row) < here for row in found.pareto)


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
