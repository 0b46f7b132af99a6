"""Explanations name the facts, and the units are those of the quantities."""

import pytest

from iojoule.api.explanations import ProfileExplanation, explain_profile
from iojoule.datasets.profile import load_shipped_profile


@pytest.fixture(scope="module")
def explained() -> ProfileExplanation:
    profile = load_shipped_profile("samsung-980-pro-1tb")
    return explain_profile(profile, {"queue_depth": "16", "power_state": "1"})


def test_units_are_those_of_the_quantities(explained: ProfileExplanation) -> None:
    units = {one.quantity: one.unit for one in explained.quantities}
    assert units["throughput_bytes_per_second"] == "bytes/s"
    assert units["context_switches_per_second"] == "1/s"
    assert units["cpu_joules_per_operation"] == "J"
    assert units["device_power_watts"] == "W"
    assert units["latency_p99_ns"] == "ns"


def test_facts_are_those_that_the_quantity_rests_on(explained: ProfileExplanation) -> None:
    facts = {one.quantity: {fact.name for fact in one.facts} for one in explained.quantities}
    assert "random reads" in facts["latency_mean_ns"]
    assert any("ceiling" in name for name in facts["latency_mean_ns"])  # of the power state
    assert "read_joules_per_byte" in facts["device_power_watts"]
    assert "write_joules_per_byte" not in facts["device_power_watts"]
    assert {"core_time_ns", "idle_watts"} <= facts["cpu_power_watts"]
    assert facts["device_power_watts"] <= facts["system_power_watts"]


def test_every_line_says_what_carries_it(explained: ProfileExplanation) -> None:
    for one in explained.quantities:
        assert one.carried
        parts = one.carried.split("; ")
        assert len(parts) == len(set(parts))
