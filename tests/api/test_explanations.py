"""Explanations name the facts, and the units are those of the quantities."""

import pytest

from iojoule.api.application.build_profile import expected_profile
from iojoule.api.application.explain import ProfileExplanation, explain_profile
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


@pytest.mark.parametrize(
    ("device", "named"),
    [
        ("intel-660p-1tb", {"factor_qlc", "capacity"}),
        ("samsung-pm1743-u2", {"factor_generation", "factor_datacentre"}),
        ("kingston-dc600m-960gb", {"factor_sata", "random_write_4k_iops_steady"}),
        ("intel-dc-p4500-4tb", {"random_write_4k_iops", "factor_datacentre"}),
    ],
)
def test_what_a_drive_nobody_measured_rests_on_is_facts_and_its_group(
    device: str, named: set[str]
) -> None:
    asked = {"operation": "write", "pattern": "random", "device_state": "steady"}
    found = {
        one.quantity: one for one in explain_profile(expected_profile(device), asked).quantities
    }
    facts = {fact.name for fact in found["iops"].facts}
    assert named <= facts
    assert all(fact.source for one in found.values() for fact in one.facts)
    for quantity in ("iops", "latency_p99_ns", "device_power_watts"):
        assert sum(part.share for part in found[quantity].variance) == pytest.approx(1.0, abs=1e-3)
