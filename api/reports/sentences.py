"""Sentences about a recommendation: saving, wear, durability, reasons, what to measure next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite

from iojoule.api.reports.configurations import (
    bound,
    knob,
    plain_name,
    ranked,
    same_setting,
    setting,
)
from iojoule.api.reports.document import Table
from iojoule.api.reports.quantities import digits, quantity, size
from iojoule.datasets.schema import Configuration
from iojoule.recommender.factors import Factors
from iojoule.recommender.response import (
    Attribution,
    BoundSlack,
    BoundStep,
    DurabilityAnswer,
    Endurance,
    Estimate,
    MeasureNext,
    PowerCut,
    Recommendation,
    Relaxation,
    Saving,
    Shortfall,
)
from iojoule.recommender.sla import Sla


def durability(found: DurabilityAnswer | None) -> Iterator[str]:
    """What becomes of durability; None: the workload writes nothing."""
    if found is None:
        yield "untouched; file systems stay as they are"
        return
    yield found.reason
    before = found.power_cut_today
    today = f"; today {_power_cut(before)}" if found.weakened and before is not None else ""
    yield f"a power cut takes at most {_power_cut(found.power_cut)}{today}"
    for one in found.options if found.weaker_allowed else ():
        yield f"{one.setting}: at most {_power_cut(one.loses)}; known: {one.known}"


def _power_cut(found: PowerCut) -> str:
    """What a power cut takes, in words."""
    if found.writes == 0.0:
        return "nothing that was acknowledged"
    if found.seconds is None:
        return "what the drive has not written back by itself: nothing bounds it"
    seconds = quantity("seconds", found.seconds)
    if found.writes is None or found.written_bytes is None:
        return f"the writes of {seconds}"
    writes = f"{found.writes:,.0f} write{'' if found.writes == 1 else 's'}"
    return f"{writes}, {size(found.written_bytes)} or those of {seconds}"


def wear(found: Endurance, factors: Factors) -> Iterator[str]:
    """What is written in a year, how long the drive lasts at that, and what that costs."""
    change = found.change_host_bytes_per_year
    yearly = quantity("host_bytes_per_year", found.host_bytes_per_year)
    told = f"the host writes {yearly} a year"
    if change is not None:
        more = quantity("host_bytes_per_year", abs(change))
        than = f"{more} {'more' if change > 0 else 'less'} than" if change else "as much as"
        told += f", {than} today"
    if found.years_left is not None:
        told += f"; the rated endurance lasts {found.years_left:.2g} years"
    yield f"{told}; {found.reason}"
    used = [
        f"{digits(yearly)} {unit} of the drive a year, {change:+.3g} {unit} against today"
        for yearly, change, unit in (
            (found.cost_per_year, found.change_cost_per_year, factors.currency),
            (found.co2_kilograms_per_year, found.change_co2_kilograms_per_year, "kg CO2"),
        )
        if yearly is not None and change is not None
    ]
    if used:
        yield f"it uses up {'; '.join(used)}"


def place(found: Recommendation) -> str:
    """Where today's configuration stands."""
    stands, today = found.current_place, found.current
    if stands is None or today is None:
        return "not stated"
    if stands.on_front:
        return "on the front"
    beaten = "no row of the front beats it in everything"
    if stands.beaten_by:
        better = [found.pareto[index] for index in stands.beaten_by_rows]
        ranks = [
            str(rank)
            for rank, row in enumerate(ranked(found), start=1)
            if any(same_setting(row, one) for one in better)
        ]
        rows = f"row{'' if stands.beaten_by == 1 else 's'}"
        beaten = f"beaten in everything by {stands.beaten_by} {rows} of the front"
        beaten += f" ({', '.join(ranks)})" if ranks else ""
    return beaten if today.meets_sla else f"not shown to keep the SLA; {beaten}"


def saving(saving: Saving, factors: Factors) -> Iterator[str]:
    """What is saved, in money where it has a price, and how sure that is."""
    told = [
        quantity(name, estimate.value, estimate.low, estimate.high) + ending
        for name, ending in (
            ("watts", ""),
            ("joules_per_useful_gb", ""),
            ("kwh_per_year", " a year"),
            ("percent", ""),
        )
        for estimate in [getattr(saving, name)]
    ]
    yield f"{'; '.join(told)}"
    billed = [
        f"{quantity(name, one.value, one.low, one.high)}{unit} a year"
        for name, one, unit in (
            ("cost_per_year", saving.cost_per_year, f" {factors.currency}"),
            ("co2_kilograms_per_year", saving.co2_kilograms_per_year, ""),
        )
        if one is not None
    ]
    if billed:
        yield f"{'; '.join(billed)}"
    yield verdict(saving)


VERDICTS = {
    "proven": "both configurations were measured on this drive model and this kind of host",
    "expected": "predicted, not measured: measure_next says what to measure",
    "measure first": "in expectation only: measure before acting on it",
    "costs more": "it takes more than today's configuration, to keep the bounds",
    "no change": "today's configuration stays",
}
"""What each verdict says."""


def verdict(saving: Saving) -> str:
    """How sure the saving is."""
    said = f"{saving.verdict}: {VERDICTS[saving.verdict]}"
    if saving.verdict in ("no change", "costs more"):
        return said
    return f"{said}; it saves with a probability of {saving.probability:.3g}"


REASONS = {
    "not_shown_to_hold": "No configuration is shown to keep every bound.",
    "demand_exceeds_capacity": "No configuration can serve the demand.",
    "infeasible": "No configuration keeps every bound.",
}
"""Why nothing is recommended, by reason code."""


def why_nothing(found: Recommendation) -> str:
    """Why nothing is recommended; empty where something is."""
    return "" if found.reason_code is None else REASONS[found.reason_code]


def short(one: Shortfall) -> str:
    """By how much a bound is missed."""
    name = one.bound.removesuffix("_min").removesuffix("_max")
    if one.unknown:
        return f"{plain_name(name)}: not shown to hold, for the cost of a flush is not known"
    if not isfinite(one.missed_by):
        return (
            f"{plain_name(name)}: may grow without bound: the demand may be its whole capacity; "
            f"bound {quantity(name, one.limit)}"
        )
    return (
        f"{plain_name(name)}: reaches {quantity(name, one.reached)}, bound "
        f"{quantity(name, one.limit)}, missed by {quantity(name, one.missed_by)} "
        f"({one.missed_by_percent:.0f} %)"
    )


def sla_bound(sla: Sla, name: str, limit: float) -> str:
    """A bound with its own confidence, and whether it is only preferred."""
    said = bound(name, limit)
    if name in sla.soft:
        said += " preferred"
    own = sla.confidence_of(name)
    return said if own == sla.confidence else f"{said} at {own:.3g}"


def knobs(found: Attribution, today: Configuration, best: Configuration) -> Table:
    """What each changed knob brings of the saving."""
    rows = [
        (
            " + ".join(name.replace("_", " ") for name in one.knobs),
            ", ".join(knob(today, name) for name in one.knobs),
            ", ".join(knob(best, name) for name in one.knobs),
            *(_percent(each) for each in (one.share_percent, one.alone_percent, one.last_percent)),
        )
        for one in found.knobs
    ]
    rows.append(("together", "", "", _percent(found.together_percent), "", ""))
    orders = "1 order" if found.orders == 1 else f"{found.orders:,} orders"
    caption = (
        f"Percent of today's energy. Brings: the fair share (Shapley value, over {orders} of "
        "changing them). Alone: nothing else is changed; last: all others are changed before."
    )
    headings = ("why this one", "today", "then", "brings", "alone", "last")
    return Table.of(headings, rows, caption=caption)


def of_knobs(found: Attribution) -> Iterator[str]:
    """What is behind the shares of the knobs."""
    if found.impossible:
        reasons = "; ".join(f"{count} x {why}" for why, count in found.impossible.items())
        yield f"Configurations in between that cannot exist: {reasons}"
    if found.below_demand:
        yield (
            f"{found.below_demand} in between do not carry the demand: their energy is that of the "
            "work they do"
        )


def _percent(one: Estimate | None) -> str:
    return "cannot be" if one is None else quantity("percent", one.value, one.low, one.high)


def bounds(found: Sequence[BoundSlack], ranked_by: str) -> Table:
    """How far every bound is, and what one step of it costs or brings."""
    rows = []
    for one in found:
        name = "the demand" if one.binds is None else bound(one.bound, one.limit)
        reached, spare = "nothing", "any"
        if one.reached is not None and one.slack_percent is not None:
            reached = f"{quantity(_bounded(one.bound), one.reached)} at {one.confidence:.3g}"
            spare = f"{one.slack_percent:.3g} %"
        steps = (one.looser, one.tighter, one.without)
        rows.append((name, reached, spare, *map(_change, steps)))
    aim = ranked_by.replace("_", " ").replace("gb", "GB").replace("edp", "EDP")
    caption = (
        f"Changes of the least {aim} that any candidate has; below zero is a gain. Another demand "
        "is other work, so it has no step."
    )
    headings = ("bound", "value, at confidence", "left", "10 % looser", "10 % tighter", "without")
    return Table.of(headings, rows, caption=caption)


def of_bounds(found: Sequence[BoundSlack]) -> Iterator[str]:
    """Which bounds bind, and what a step looser would allow."""
    for one in found:
        brings = one.looser
        if brings is None or brings.configuration is None or not one.binds:
            continue
        if (brings.objective_change_percent or 0.0) < -0.005:
            saved = brings.saves_percent
            energy = f", energy {_percent(saved)} less" if saved is not None else ""
            yield (
                f"{plain_name(_bounded(one.bound))} binds: a step looser would allow "
                f"{setting(brings.configuration)}{energy}"
            )


_ROLES = {"today": "today's", "candidate": "the candidate", "rival": "a rival"}


def measure_next(found: MeasureNext) -> tuple[str, tuple[str, ...]]:
    """What to measure to be surer: the question, and the runs in order."""
    asked = (
        f"To be surer of the {found.saving_percent:.3g} %, known to +/- {found.half_percent:.3g}: "
        + ("measure" if found.runs else f"{found.repeats} runs of each would err as much")
    )
    runs = []
    for one in found.runs:
        then = f"then +/- {one.half_percent:.3g}" + (", proven" if one.proves else "")
        runs.append(f"{_ROLES[one.role]}: {setting(one.configuration)}; {then}")
    return asked, tuple(runs)


def _bounded(name: str) -> str:
    """The quantity of a bound; that of the demand is its own."""
    return name.removesuffix("_min").removesuffix("_max")


def _change(step: BoundStep | None) -> str:
    if step is None:
        return "-"
    if step.objective_change_percent is None:
        return "nothing keeps it"
    change = step.objective_change_percent
    return f"{change:+.2f} %" if abs(change) >= 0.005 else "as it is"


def relaxations(found: Sequence[Relaxation]) -> Iterator[str]:
    """What would have to give, alone, where nothing keeps the SLA."""
    if not found:
        yield "no bound makes it feasible alone: several have to give"
    for one in found:
        field = _bounded(one.bound)
        change = "less" if one.needed < one.limit else "more"
        yield (
            f"enough alone: {plain_name(field)} {quantity(field, one.needed)} instead of "
            f"{quantity(field, one.limit)} ({one.by_percent:.3g} % {change}): "
            f"{setting(one.configuration)}"
        )
