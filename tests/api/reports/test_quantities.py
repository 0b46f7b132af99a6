import math

import pytest

from iojoule.api.reports.quantities import quantity, size


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("device_power_watts", 3.1, "3.10 W"),
        ("latency_p99_ns", 67937.8, "67.9 µs"),
        ("latency_p99_ns", 999.9, "1.00 µs"),
        ("latency_mean_ns", 2.5e9, "2.50 s"),
        ("throughput_bytes_per_second", 241_161_700.0, "241 MB/s"),
        ("iops", 58_877.0, "58.9 kIOPS"),
        ("iops", 12.0, "12.0 IOPS"),
        ("joules_per_useful_gb", 269.76, "270 J/GB"),
        ("kwh_per_year", -6.45, "-6.45 kWh"),
        ("watts", 0.0, "0 mW"),
        ("percent", 16.4, "16.4 %"),
        ("iops", 1e-30, "0 IOPS"),
    ],
)
def test_a_value_carries_its_unit(field: str, value: float, said: str) -> None:
    assert quantity(field, value) == said


def test_an_interval_is_in_the_unit_of_the_value() -> None:
    assert quantity("latency_p99_ns", 468e3, 125e3, 1753e3) == "468 µs [125, 1753]"
    assert quantity("saving_watts", 0.5, -0.2, 1.2) == "500 mW [-200, 1200]"


def test_what_is_unknown_is_a_dash_and_an_unknown_interval_is_left_out() -> None:
    assert quantity("iops", None) == quantity("iops", math.nan) == "-"
    assert quantity("cpu_power_watts", 3.0, None, None) == "3.00 W"
    assert quantity("cpu_power_watts", 3.0, math.nan, math.nan) == "3.00 W"


def test_request_sizes_are_binary() -> None:
    assert size(4096) == "4 KiB"
    assert size(512) == "512 B"
    assert size(1536) == "1.5 KiB"
    assert size(4 << 20) == "4 MiB"
