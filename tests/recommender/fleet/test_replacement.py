"""The replacement rule against the figures that are published with it."""

from __future__ import annotations

from math import isfinite

import pytest
from pydantic import ValidationError

from iojoule.recommender.fleet.replacement import Server, replace


@pytest.mark.parametrize(
    ("servers", "power_ratio"),
    # 001, section 7: 1.4 servers draw 51 % less, 2.2 servers 20 % less
    [(1.4, 0.49), (2.2, 0.80)],
)
def test_the_published_replacements_pay(servers: float, power_ratio: float) -> None:
    old = Server(throughput_bytes_per_second=servers * 1e8, system_power_watts=50.0)
    new = Server(throughput_bytes_per_second=1e8, system_power_watts=50.0 * power_ratio / servers)
    found = replace(old, new)
    assert found.servers == pytest.approx(servers)
    assert found.power_ratio == pytest.approx(power_ratio)
    assert found.pays == "yes"


def test_whole_servers_may_not_pay_where_parts_do() -> None:
    old = Server(throughput_bytes_per_second=110.0, system_power_watts=100.0)
    new = Server(throughput_bytes_per_second=100.0, system_power_watts=80.0)
    found = replace(old, new)
    assert found.pays == "yes"
    assert found.servers_whole == 2
    assert found.power_ratio_whole == pytest.approx(1.6)


def test_an_interval_over_one_proves_nothing() -> None:
    old = Server(
        throughput_bytes_per_second=100.0, throughput_bytes_per_second_low=70.0,
        throughput_bytes_per_second_high=140.0, system_power_watts=100.0,
    )  # fmt: skip
    new = Server(throughput_bytes_per_second=100.0, system_power_watts=90.0)
    found = replace(old, new)
    assert found.pays == "not proven"
    assert found.power_ratio_low < 1.0 < found.power_ratio_high


def test_replacing_back_is_the_reciprocal() -> None:
    one = Server(throughput_bytes_per_second=100.0, system_power_watts=40.0)
    other = Server(throughput_bytes_per_second=30.0, system_power_watts=20.0)
    there, back = replace(one, other), replace(other, one)
    assert there.power_ratio * back.power_ratio == pytest.approx(1.0)


def test_half_an_interval_is_refused() -> None:
    with pytest.raises(ValidationError, match="both ends"):
        Server(throughput_bytes_per_second=1.0, throughput_bytes_per_second_low=0.5,
               system_power_watts=1.0)  # fmt: skip


def test_amounts_whose_quotient_is_no_number_are_refused() -> None:
    for amount in (1e-300, 1e300):
        with pytest.raises(ValidationError):
            Server(throughput_bytes_per_second=amount, system_power_watts=1.0)
    most, least = (
        Server(
            throughput_bytes_per_second=one, throughput_bytes_per_second_low=1e-9,
            throughput_bytes_per_second_high=1e30, system_power_watts=other,
        )
        for one, other in ((1e30, 1e-9), (1e-9, 1e30))
    )  # fmt: skip
    assert isfinite(replace(most, least).power_ratio_high)
