"""Another price of electricity."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from iojoule.recommender.what_if.changes.kind import Kind, number, one_by_one
from iojoule.recommender.what_if.situation import ProfileOf, Situation


def _apply(situation: Situation, field: str, value: Any, profile_of: ProfileOf) -> Situation:
    return replace(situation, price_per_kwh=number(field, value))


PRICE = Kind(("price",), "price of a kWh in your currency: price=0.30", one_by_one(_apply))
