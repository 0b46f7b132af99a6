"""Why an answer is what it is: what each knob brings, what each bound costs, what to measure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iojoule.api.documents.content import Table
from iojoule.api.words.configurations import bound, knob, plain_name, setting
from iojoule.api.words.quantities import quantity
from iojoule.datasets.schema import Configuration
from iojoule.recommender.estimate import Estimate
from iojoule.recommender.reasons import Attribution, BoundSlack, BoundStep, MeasureNext, Relaxation


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
    headings = ("bound", "held against it", "left", "10 % looser", "10 % tighter", "without")
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
