"""The power law as it is handed out: the profile's own, with the measurements it was fitted to."""

import csv

import numpy as np
import pytest

from iojoule.api.application.profiles import profile_of
from iojoule.api.power_laws import power_law
from iojoule.datasets.profile import load_shipped_profile
from tests.reference_data import PUBLIC_DATA, needs_public_data

DEVICE = "samsung-980-pro-1tb"


def test_a_line_is_the_law_at_the_rates_of_one_command_size() -> None:
    profile = load_shipped_profile(DEVICE)
    power, law = profile.device_power, power_law(profile).law
    assert power is not None
    assert law is not None
    value = {one.name: one.value for one in power.parameters}
    kinds = [(one.operation, one.request_bytes, one.collecting) for one in law.lines]
    assert kinds == [
        ("read", 4096, False), ("read", 131072, False),
        ("write", 4096, False), ("write", 4096, True), ("write", 131072, False),
    ]  # fmt: skip
    for line in law.lines:
        for point in line.points:
            rate = point.bytes_per_second
            assert point.operations_per_second == pytest.approx(rate / line.request_bytes)
            expected = (
                value["base_watts"]
                + value[f"{line.operation}_joules_per_byte"] * rate
                + value[f"{line.operation}_joules_per_operation"] * rate / line.request_bytes
                + value["background_watts"] * line.collecting
            )
            assert point.device_power_watts == pytest.approx(
                min(expected, power.peak_watts.value, power.cap_watts[0])
            )
            assert point.device_power_watts_low < point.device_power_watts
            assert point.device_power_watts_high > point.device_power_watts


def test_the_law_misses_its_measurements_by_as_much_as_it_says() -> None:
    law = power_law(load_shipped_profile(DEVICE)).law
    assert law is not None
    assert len(law.measurements) == law.measurements_total == 135
    base, per_byte, per_operation = (one.value for one in law.parameters[:3])
    reads = [one for one in law.measurements if one.operation == "read"]
    missed = [
        np.log(
            one.device_power_watts
            / (base + per_byte * one.bytes_per_second + per_operation * one.operations_per_second)
        )
        for one in reads
    ]
    assert np.std(missed) == pytest.approx(law.relative_sd, rel=0.5)


SWEEP_ROWS, SWEEP_WATTS = 65, 256.009
"""Rows of the public sweep of request sizes and the sum of their watts (PowerSensor3 results)."""
OF_FIGURES = 12
"""Further reads that the profile keeps, from figures 5.5 and 5.7 of the thesis."""


def watts_of_reads() -> list[float]:
    law = power_law(load_shipped_profile(DEVICE)).law
    assert law is not None
    return sorted(one.device_power_watts for one in law.measurements if one.operation == "read")


def test_the_measurements_are_as_many_as_the_source_has() -> None:
    watts = watts_of_reads()
    assert len(watts) == SWEEP_ROWS + OF_FIGURES
    # reads of the sweep draw 2.5 to 4.4 W; residuals are kept to 1e-4
    assert sum(watts[:OF_FIGURES]) < sum(watts) - SWEEP_WATTS < sum(watts[-OF_FIGURES:])


@needs_public_data
def test_the_measurements_are_those_of_the_source() -> None:
    path = PUBLIC_DATA / "980pro_randread_power_by_request_size.csv"
    with path.open(newline="") as stream:
        measured = [float(row["power_W"]) for row in csv.DictReader(stream)]
    assert len(measured) == SWEEP_ROWS
    assert sum(measured) == pytest.approx(SWEEP_WATTS, abs=1e-3)
    shown = watts_of_reads()
    assert all(any(one == pytest.approx(watts, rel=2e-4) for one in shown) for watts in measured)


def test_where_nobody_measured_it_says_so() -> None:
    shipped = load_shipped_profile("wd-zn540")
    unknown = power_law(shipped.model_copy(update={"device_power": None}))
    assert unknown.law is None
    assert unknown.note is not None
    assert "power sensor" in unknown.note
    for profile in (profile_of("crucial-p3-plus-4tb"), shipped):
        expected = power_law(profile)
        assert expected.law is not None
        assert not expected.law.measurements
        assert {one.evidence.value for one in expected.law.lines} == {"datasheet"}
