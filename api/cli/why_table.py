"""Why an answer is what it is: what each knob brings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from iojoule.api.answer_words import knob
from iojoule.api.cli import console
from iojoule.api.quantities import quantity
from iojoule.datasets.schema import Configuration
from iojoule.recommender.answer import Attribution, Estimate


def attribution(found: Attribution, today: Configuration, best: Configuration) -> Iterator[Any]:
    """What each changed knob brings of the saving."""
    table = console.new_table(["why this one", "today", "then", "brings", "alone", "last"])
    for one in found.knobs:
        table.add_row(
            " + ".join(name.replace("_", " ") for name in one.knobs),
            ", ".join(knob(today, name) for name in one.knobs),
            ", ".join(knob(best, name) for name in one.knobs),
            *(_percent(each) for each in (one.share_percent, one.alone_percent, one.last_percent)),
        )
    together = _percent(found.together_percent)
    table.add_row("together", "", "", together, "", "")
    orders = "1 order" if found.orders == 1 else f"{found.orders:,} orders"
    table.caption = (
        f"Percent of today's energy. Brings: the fair share (Shapley value, over {orders} of "
        "changing them). Alone: nothing else is changed; last: all others are changed before."
    )
    yield table
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
