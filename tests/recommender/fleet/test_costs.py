"""A plan's year in kWh, money and CO2."""

from __future__ import annotations

import pytest

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DeviceProfile, load_shipped_profile
from tests.errors import having
from tests.recommender.fleet.test_planner import DEVICE, plan, stated

POWER = {
    "electricity_price_per_kwh": 0.30, "currency": "EUR", "power_usage_effectiveness": 1.5,
    "grid_carbon_grams_per_kwh": 400.0,
}  # fmt: skip


@pytest.fixture(scope="module")
def profile() -> DeviceProfile:
    return load_shipped_profile(DEVICE)


def test_a_year_is_the_watts_of_the_plan_times_the_factors(profile: DeviceProfile) -> None:
    found = plan(stated(factors=POWER), profile)
    costs = found.costs
    assert costs is not None
    assert costs.kwh_per_year == pytest.approx(8.766 * found.expected_watts)
    assert costs.kwh_per_year_bound == pytest.approx(8.766 * found.bound_watts)
    assert costs.cost_per_year == pytest.approx(costs.kwh_per_year * 1.5 * 0.30)
    assert costs.co2_kilograms_per_year == pytest.approx(costs.kwh_per_year * 1.5 * 0.4)
    assert costs.drives_worn_per_year == 0.0  # it only reads
    bare = plan(stated(), profile).costs
    assert bare is not None
    assert bare.cost_per_year is None
    assert bare.kwh_per_year == costs.kwh_per_year


def test_what_is_written_wears_drives(profile: DeviceProfile) -> None:
    data = stated(factors=POWER | {"drive_price": 120.0})
    data["classes"][0]["workload"] = {"workload": {"operation": "mixed", "read_fraction": 0.75}}
    data["classes"][0]["demand_bytes_per_second"] = 1e9
    costs = plan(data, profile).costs
    assert costs is not None
    assert profile.endurance_bytes_written is not None
    written = 0.25 * 1e9 * 365.25 * 86400
    worn = written / profile.endurance_bytes_written.value
    assert costs.drives_worn_per_year == pytest.approx(worn, rel=1e-6)
    assert costs.cost_per_year == pytest.approx(costs.kwh_per_year * 0.45 + worn * 120.0)


def test_wear_without_a_rating_has_no_price(profile: DeviceProfile) -> None:
    data = stated(factors=POWER | {"drive_price": 120.0})
    data["classes"][0]["workload"] = {"workload": {"operation": "write"}}
    data["classes"][0]["demand_bytes_per_second"] = 1e9
    with pytest.raises(InputError, check=having(field="factors.drive_price")):
        plan(data, profile.model_copy(update={"endurance_bytes_written": None}))
