"""What a year costs: closed forms, and what no factor may change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from iojoule.datasets.errors import InputError
from iojoule.recommender.factors import Factors, stated_factors
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import WorkloadProfile
from iojoule.recommender.response import Recommendation
from tests.errors import having

Ask = Callable[..., WorkloadProfile]

DEMAND = {"demand_operations_per_second": 20_000.0}
TODAY = {"queue_depth": 32, "jobs": 4}
POWER = {
    "electricity_price_per_kwh": 0.30, "currency": "EUR", "power_usage_effectiveness": 1.4,
    "grid_carbon_grams_per_kwh": 380.0,
}  # fmt: skip
DRIVE = {"drive_price": 120.0, "drive_carbon_kilograms": 50.0}
RATED_BYTES = 6e14
YEAR_SECONDS = 365.25 * 86400


def answered(
    recommender: Recommender, ask: Ask, workload: dict[str, Any], **parts: Any
) -> Recommendation:
    cached = {"device_state": "cached"}
    return recommender.recommend(ask(workload, current=TODAY, state=cached, **parts))


@pytest.mark.parametrize("workload", [DEMAND, {}])
def test_without_wear_every_figure_of_a_year_is_energy_times_a_factor(
    recommender: Recommender, ask: Ask, workload: dict[str, Any]
) -> None:
    found = answered(recommender, ask, workload, factors=POWER)
    assert found.saving is not None
    for one in (found.saving, found.current, *found.pareto):
        energy, cost, carbon = one.kwh_per_year, one.cost_per_year, one.co2_kilograms_per_year
        assert energy is not None
        assert cost is not None
        assert carbon is not None
        for end in ("value", "low", "high"):
            kwh = getattr(energy, end)
            assert getattr(cost, end) == pytest.approx(kwh * 1.4 * 0.30)
            assert getattr(carbon, end) == pytest.approx(kwh * 1.4 * 0.380)


def test_kwh_of_a_year_are_watts_for_a_year_of_the_demand(
    recommender: Recommender, ask: Ask
) -> None:
    found = answered(recommender, ask, DEMAND)
    for row in found.pareto:
        assert row.device_cpu_power_watts is not None
        assert row.kwh_per_year is not None
        assert row.kwh_per_year.value == pytest.approx(row.device_cpu_power_watts.value * 8.766)


@pytest.mark.parametrize("workload", [DEMAND, {}])
@pytest.mark.parametrize("objective", ["kwh_per_year", "cost", "co2"])
@pytest.mark.parametrize("operation", ["read", "write"])
def test_a_price_alone_changes_no_recommendation(
    recommender: Recommender, ask: Ask, workload: dict[str, Any], objective: str, operation: str
) -> None:
    """What the work itself writes is the same in every configuration, so its price is no reason."""
    work = workload | {"operation": operation}
    usual = answered(recommender, ask, work)
    by_money = answered(recommender, ask, work, objective=objective, factors=POWER | DRIVE)
    assert by_money.recommended is not None
    assert usual.recommended is not None
    assert by_money.recommended.configuration == usual.recommended.configuration
    assert by_money.ranked_by == objective


def test_wear_costs_the_drive_spread_over_its_rating(recommender: Recommender, ask: Ask) -> None:
    writing = DEMAND | {"operation": "write"}
    found = answered(recommender, ask, writing, factors=POWER | DRIVE)
    bare = answered(recommender, ask, writing, factors=POWER)
    written = 20_000 * 4096 * YEAR_SECONDS
    assert found.endurance is not None
    assert found.endurance.cost_per_year == pytest.approx(120.0 * written / RATED_BYTES)
    assert found.endurance.co2_kilograms_per_year == pytest.approx(50.0 * written / RATED_BYTES)
    assert found.endurance.change_cost_per_year == 0.0
    for with_wear, without in zip(found.pareto, bare.pareto, strict=True):
        assert with_wear.cost_per_year is not None
        assert without.cost_per_year is not None
        assert with_wear.cost_per_year.value - without.cost_per_year.value == pytest.approx(
            120.0 * written / RATED_BYTES
        )
    assert bare.endurance is not None
    assert bare.endurance.cost_per_year is None


def test_bytes_that_are_written_for_nothing_cost_money(recommender: Recommender, ask: Ask) -> None:
    """Today writes 16 KiB where 4 KiB are useful: three quarters of its wear is spared."""
    wasteful = {
        "current": TODAY | {"request_bytes": 16384}, "free": {"request_bytes": "all"},
        "state": {"device_state": "cached"},
    }  # fmt: skip
    writing = DEMAND | {"operation": "write"}
    savings = []
    for factors in (POWER, POWER | DRIVE):
        found = recommender.recommend(
            ask(writing, **wasteful, factors=factors, objective="cost", least_saving_percent=0.5)
        )
        assert found.recommended is not None
        assert found.saving is not None
        assert found.recommended.configuration.request_bytes == 4096
        savings.append(found.saving)
    spared = 120.0 * 3 * 20_000 * 4096 * YEAR_SECONDS / RATED_BYTES
    plain, worn = (one.cost_per_year for one in savings)
    assert plain is not None
    assert worn is not None
    for end in ("value", "low", "high"):
        assert getattr(worn, end) - getattr(plain, end) == pytest.approx(spared)
    assert savings[0].kwh_per_year == savings[1].kwh_per_year
    # the wear is sure, whatever the watts
    assert savings[1].probability >= savings[0].probability


@pytest.mark.parametrize(
    ("objective", "factors", "named"),
    [
        ("cost", {}, "factors.electricity_price_per_kwh"),
        ("cost", {"grid_carbon_grams_per_kwh": 380.0}, "factors.electricity_price_per_kwh"),
        ("co2", {"electricity_price_per_kwh": 0.3, "currency": "EUR"},
         "factors.grid_carbon_grams_per_kwh"),
    ],
)  # fmt: skip
def test_a_missing_factor_is_named_and_none_is_assumed(
    recommender: Recommender, ask: Ask, objective: str, factors: dict[str, Any], named: str
) -> None:
    with pytest.raises(InputError, match=named) as caught:
        answered(recommender, ask, DEMAND, objective=objective, factors=factors)
    assert caught.value.field == named


def test_what_is_not_stated_is_not_answered(recommender: Recommender, ask: Ask) -> None:
    found = answered(recommender, ask, DEMAND)
    assert found.saving is not None
    assert found.saving.cost_per_year is None
    assert found.saving.co2_kilograms_per_year is None


def test_a_drive_without_a_rating_has_no_price_of_wear(
    make_profile: Callable[..., Any], ask: Ask
) -> None:
    unrated = Recommender(make_profile(endurance_bytes_written=None))
    with pytest.raises(InputError, check=having(field="factors.drive_price")):
        answered(unrated, ask, DEMAND | {"operation": "write"}, factors=POWER | DRIVE)
    assert answered(unrated, ask, DEMAND, factors=POWER | DRIVE).saving is not None  # only reads


def test_a_price_needs_a_currency(ask: Ask) -> None:
    with pytest.raises(InputError, check=having(field="factors")):
        ask(DEMAND, factors={"electricity_price_per_kwh": 0.3})


def test_amounts_as_people_write_them() -> None:
    found = stated_factors("300 EUR/MWh", "0.38kg/kWh", 1.4, "120EUR", "50 kg")
    stated = Factors.model_validate(found)
    assert stated.electricity_price_per_kwh == pytest.approx(0.3)
    assert stated.currency == "EUR"
    assert stated.grid_carbon_grams_per_kwh == pytest.approx(380.0)
    assert stated.drive_price == 120.0
    assert stated.drive_carbon_kilograms == 50.0
    assert stated_factors() == {}


@pytest.mark.parametrize(
    ("amounts", "said"),
    [
        ({"price": "0.30"}, "write it as 0.30EUR/kWh"),
        ({"price": "0.30EUR"}, "write it as 0.30EUR/kWh"),
        ({"price": "0.30euro/kWh"}, "currency"),
        ({"carbon": "380W/kWh"}, "is no mass"),
        ({"drive_price": "120EUR/kWh"}, "write it as 120EUR"),
        ({"price": "0.30EUR/kWh", "drive_price": "120USD"}, "one currency"),
    ],
)
def test_amounts_that_are_none_are_refused(amounts: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        stated_factors(**amounts)
