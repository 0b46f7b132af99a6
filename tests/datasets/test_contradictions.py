"""Facts that cannot all be true are refused by their places; the shipped catalogue has none."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from iojoule.datasets.catalogue import (
    Drive,
    Fact,
    PowerState,
    check_consistent,
    contradictions_of,
    load_catalogue,
)
from iojoule.datasets.errors import InputError


def drive(*facts: tuple[str, float, str], **changes: Any) -> Drive:
    """A PCIe 4.0 drive with those facts as well."""
    given = [("pcie_generation", 4, "count"), ("pcie_lanes", 4, "count"), *facts]
    fields: dict[str, Any] = {
        "id": "acme-one",
        "model": "Acme One",
        "vendor": "Acme",
        "interface": "nvme",
        "drive_class": "datacentre",
        "drive_class_source": "made up",
        "facts": tuple(
            Fact.model_validate({"metric": m, "value": v, "unit": u, "source": "made up"})
            for m, v, u in given
        ),
    }
    return Drive.model_validate(fields | changes)


def place(one: Drive) -> str:
    with pytest.raises(InputError) as refused:
        check_consistent(one, "facts.toml")
    assert refused.value.field is not None
    return refused.value.field


STATE = PowerState(index=0, max_power_watts=8.0, operational=True, source="made up")


@pytest.mark.parametrize(
    "facts",
    [
        [("idle_power", 9.0, "W"), ("active_power_read", 8.0, "W")],
        [("random_write_4k_iops_steady", 3e5, "IOPS"), ("random_write_4k_iops_burst", 2e5, "IOPS")],
        [
            ("sequential_write_throughput_steady", 3e9, "bytes/s"),
            ("sequential_write_throughput_max", 2e9, "bytes/s"),
        ],
        [("sequential_read_throughput", 8.2e9, "bytes/s")],
        [("random_read_4k_iops", 2.1e6, "IOPS")],
        [("sequential_read_throughput", 8200, "MB/s")],
        [("sleep_power", 3.0, "W"), ("idle_power", 2.0, "W")],
        [("active_power_write", 26.0, "W"), ("max_power", 25.0, "W")],
        [("random_read_4k_qd1_iops", 9e4, "IOPS"), ("random_read_4k_iops_max", 8e4, "IOPS")],
        [
            ("operating_temperature_min", 80, "celsius"),
            ("operating_temperature_max", 70, "celsius"),
        ],
    ],
)
def test_the_later_fact_s_place_is_named(facts: list[tuple[str, float, str]]) -> None:
    assert place(drive(*facts)) == "facts[2].value"


def test_a_consumer_s_unlabelled_write_rate_is_that_of_a_burst() -> None:
    facts = [("random_write_4k_iops_steady", 3e5, "IOPS"), ("random_write_4k_iops", 2e5, "IOPS")]
    assert place(drive(*facts, drive_class="consumer")) == "facts[2].value"
    check_consistent(drive(*facts), "a data-centre sheet rates steady writes")


def test_a_sata_drive_has_neither_nvme_states_nor_a_pcie_generation() -> None:
    assert place(drive(interface="sata")) == "facts[0].value"
    with pytest.raises(ValidationError, match="power_states"):
        drive(interface="sata", facts=(), power_states=(STATE,))


def test_active_power_is_below_the_declared_cap() -> None:
    one = drive(("active_power_read", 8.5, "W"), power_states=(STATE,))
    assert place(one) == "facts[2].value"


def test_an_unknown_generation_is_refused() -> None:
    unknown = Fact(metric="pcie_generation", value=9, unit="count", source="made up")
    assert place(drive(facts=(unknown,))) == "facts[0].value"


def test_what_a_figure_of_its_own_meter_says_contradicts_nothing() -> None:
    check_consistent(drive(("measured_sequential_read_throughput", 9e9, "bytes/s")), "x")


@pytest.mark.parametrize("one", list(load_catalogue()), ids=lambda one: one.id)
def test_no_shipped_drive_contradicts_itself(one: Drive) -> None:
    assert list(contradictions_of(one)) == []
