"""SLAs as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.datasets.errors import InputError
from iojoule.recommender.request import parse_workload
from iojoule.recommender.sla import BOUNDS, QUANTITIES, UNITS, Sla, parse_sla
from tests.errors import having


def test_the_issue_of_the_day() -> None:
    found = parse_sla(
        "read p99 < 2 ms, throughput >= 500 MB/s, device power <= 5 W, endurance >= 5 years"
    )
    assert found.bounds() == {
        "throughput_bytes_per_second_min": 500e6, "latency_p99_ns_max": 2e6,
        "device_power_watts_max": 5.0, "endurance_years_min": 5.0,
    }  # fmt: skip
    assert found.directions == {"latency_p99_ns_max": "read"}
    assert found.confidence == 0.9


@pytest.mark.parametrize(
    ("text", "bound", "value"),
    [
        ("p99.9 latency ≤ 1.5ms", "latency_p999_ns_max", 1.5e6),
        ("mean latency < 80 us", "latency_mean_ns_max", 80e3),
        ("LATENCY <= 80 µs", "latency_mean_ns_max", 80e3),
        ("iops >= 200k", "iops_min", 200e3),
        ("iops >= 200_000", "iops_min", 200e3),
        ("bandwidth >= 2 GiB/s", "throughput_bytes_per_second_min", 2.0**31),
        ("drive+CPU power < 40 W", "device_cpu_power_watts_max", 40.0),
        ("wall power < 0.2 kW", "system_power_watts_max", 200.0),
    ],
)
def test_words_and_units(text: str, bound: str, value: float) -> None:
    assert parse_sla(text).bounds() == {bound: pytest.approx(value)}


def test_soft_bounds_and_own_confidence() -> None:
    found = parse_sla("p99 < 2 ms at 95 %; prefer device power <= 4 W and iops >= 1k @ 99%", 0.8)
    assert found.soft == ("device_power_watts_max",)
    assert found.confidence_of("latency_p99_ns_max") == 0.95
    assert found.confidence_of("iops_min") == 0.99
    assert found.confidence_of("device_power_watts_max") == 0.8


@pytest.mark.parametrize(
    ("text", "word", "said"),
    [
        ("p98 < 2 ms", "p98", "did you mean p99"),
        ("p99 < 2", "2", "needs a unit"),
        ("throughput >= 5 ms", "ms", "needs a unit"),
        ("throughput >= 500 Mb/s", "Mb/s", "bits or bytes"),
        ("p99 > 2 ms", ">", "at most"),
        ("iops <= 5", "<=", "at least"),
        ("p99 = 2 ms", "=", "at most"),
        ("p99 < 2 ms, p99 < 3 ms", "p99", "twice"),
        ("p99 < 2 ms, hello", "hello", "not understood"),
        ("p99 < two ms", "p99 < two ms", "not understood"),
    ],
)
def test_errors_point_at_the_word(text: str, word: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        parse_sla(text)
    first, shown, marks = caught.value.message.splitlines()
    assert repr(word) in first
    under = shown[marks.index("^") : marks.rindex("^") + 1]
    assert under == word


def test_bounds_that_exclude_each_other_are_refused() -> None:
    for text in ("p99 < 1 ms, p50 < 2 ms", "device power <= 9 W, system power <= 8 W",
                 "cpu power <= 30 W, drive + cpu power <= 20 W"):  # fmt: skip
        with pytest.raises(InputError, match=r"is below|is more than"):
            parse_sla(text)
    with pytest.raises(InputError, match="says nothing"):
        parse_sla(" , ")


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = parse_sla(text)
    except InputError:
        return
    assert found.bounds()


def test_every_bound_can_be_said() -> None:
    assert set(QUANTITIES.values()) == set(BOUNDS)
    assert set(Sla.model_fields) >= set(BOUNDS)
    for bound in BOUNDS:
        kind = "latency" if "latency" in bound else "power" if "power" in bound else bound
        assert kind in UNITS


def test_a_workload_profile_takes_the_text() -> None:
    asked = {"workload": {"operation": "read"}, "sla": "read p99 < 2 ms"}
    assert parse_workload(asked).sla.latency_p99_ns_max == 2e6


@pytest.mark.parametrize("operation", ["write", "mixed"])
def test_a_bound_on_what_is_not_predicted_is_refused(operation: str) -> None:
    workload = {"operation": operation}
    if operation == "mixed":
        workload["read_fraction"] = 0.5  # type: ignore[assignment]
    with pytest.raises(InputError, check=having(field="sla.latency_p99_ns_max")):
        parse_workload({"workload": workload, "sla": "read p99 < 2 ms"})
