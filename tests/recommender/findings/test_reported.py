"""CPU time and load as the thesis' tool reports them."""

from __future__ import annotations

import pytest

from iojoule.recommender.validation.finding_estimates import cpu_seconds, load_percent

HOST_CORES = 20


def test_load_is_the_mean_busy_share_of_one_node() -> None:
    more = load_percent(2.0, HOST_CORES) - load_percent(1.0, HOST_CORES)
    assert more == pytest.approx(10.0)  # one of ten CPUs
    assert load_percent(0.0, HOST_CORES) > 0.0  # the tool itself runs there


def test_a_finding_does_not_help_itself() -> None:
    alone = load_percent(0.0, HOST_CORES, ["000-136"])
    assert alone < load_percent(0.0, HOST_CORES) < load_percent(0.0, HOST_CORES, ["000-135"])
    assert cpu_seconds(1.0, 60.0, ["000-133"]) > cpu_seconds(1.0, 60.0, ["000-134"])


def test_cpu_time_is_in_proportion_to_cores_and_seconds() -> None:
    assert cpu_seconds(2.0, 60.0) == pytest.approx(4.0 * cpu_seconds(1.0, 30.0))
    assert cpu_seconds(1.0, 60.0) < 60.0
