"""Other prices: of electricity, and any of the workload profile's factors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from iojoule.datasets.errors import InputError
from iojoule.recommender.factors import stated_factors
from iojoule.recommender.what_if.changes.kind import Kind, number
from iojoule.recommender.what_if.situation import ProfileOf, Situation
from iojoule.recommender.workload_fields import with_fields


def _apply(situation: Situation, values: Mapping[str, Any], profile_of: ProfileOf) -> Situation:
    known = situation.workload.factors
    stated: dict[str, Any] = {}
    for field, value in sorted(values.items()):
        if field != "price":
            stated[field] = value
        elif isinstance(value, str):
            stated |= {f"factors.{name}": one for name, one in stated_factors(value).items()}
        elif known.currency is None:
            raise InputError(
                f"price: {value!r} has no currency; write it as 0.30EUR/kWh", field="price"
            )
        else:
            stated["factors.electricity_price_per_kwh"] = number("price", value)
    return replace(situation, workload=with_fields(situation.workload, stated, "change"))


PRICE = Kind(
    ("price", "factors."),
    "price of electricity, or another factor: price=0.30EUR/kWh, factors.drive_price=120",
    _apply,
)
