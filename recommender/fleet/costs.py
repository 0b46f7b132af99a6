"""What a plan would cost if it ran for a year: energy, money and CO2 by the fleet's factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import YEAR_SECONDS
from iojoule.recommender.factors import JOULES_A_KWH, rated_bytes
from iojoule.recommender.fleet.document import Fleet
from iojoule.recommender.fleet.plan import Assignment, GroupPlan, Part, YearlyCosts


def costs_of(
    fleet: Fleet,
    profiles: Mapping[str, DeviceProfile],
    groups: Sequence[GroupPlan],
    expected_watts: float,
    bound_watts: float,
) -> YearlyCosts:
    """Of the whole fleet, bases included, and of the wear of every drive that writes.

    Args:
        fleet: Its factors and classes.
        profiles: By device; their rated endurance spreads what a drive costs.
        groups: What the drives do.
        expected_watts: Mean power as predicted.
        bound_watts: Its one-sided bound.

    Raises:
        InputError: A drive's price is stated, and a drive that writes has no endurance rating.
    """
    factors = fleet.factors
    kwh, most = (one * YEAR_SECONDS / JOULES_A_KWH for one in (expected_watts, bound_watts))
    worn = 0.0  # in drives: shares of their ratings, summed
    if factors.drive_price is not None or factors.drive_carbon_kilograms is not None:
        for group in groups:
            written = sum(_written(fleet, one) for one in group.assignments) * YEAR_SECONDS
            if written > 0.0:
                worn += written / rated_bytes(profiles[group.device], "factors.drive_price")
    found: dict[str, float | None] = {}
    for name, per_kwh, drive in (
        ("cost_per_year", factors.electricity_price_per_kwh, factors.drive_price),
        ("co2_kilograms_per_year", factors.grid_carbon_kilograms_per_kwh,
         factors.drive_carbon_kilograms),
    ):  # fmt: skip
        for ending, energy in (("", kwh), ("_bound", most)):
            found[name + ending] = (
                None
                if per_kwh is None
                else energy * factors.overhead * per_kwh + worn * (drive or 0.0)
            )
    return YearlyCosts.model_validate(
        {
            "kwh_per_year": kwh, "kwh_per_year_bound": most, "currency": factors.currency,
            "drives_worn_per_year": worn, **found,
        }
    )  # fmt: skip


def _written(fleet: Fleet, one: Assignment) -> float:
    """Host bytes a second that the drives of an assignment write."""
    if one.workload_class is None:
        return 0.0
    asked = next(item.workload for item in fleet.classes if item.name == one.workload_class)
    share = {Part.READS: 0.0, Part.WRITES: 1.0}.get(one.part or Part.ALL, 1.0 - asked.read_fraction)
    return one.drives * one.load_bytes_per_second * share
