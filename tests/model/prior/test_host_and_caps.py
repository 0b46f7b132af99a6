"""What is expected of a host and of caps that nobody measured."""

from __future__ import annotations

import numpy as np
import pytest

from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.profile import DeviceProfile
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.prior.build import build_profile
from iojoule.model.prior.cache import expected_cache
from iojoule.model.prior.facts import facts_of
from iojoule.model.prior.host import CORE_TIME_RATIO, with_expected_host
from iojoule.model.prior.power import READS, with_published_caps


@pytest.fixture(scope="module")
def drive() -> DeviceProfile:
    return build_profile(facts_of(load_catalogue().get("intel-d7-p5510")))


def test_the_wall_draws_more_than_its_parts(drive: DeviceProfile) -> None:
    predictor = Predictor(with_expected_host(drive))
    answer, _ = predictor.predict_columns({"queue_depth": [1, 32]}, rows=2)
    parts = answer["device_power_watts"].value + answer["cpu_power_watts"].value
    assert np.all(answer["system_power_watts"].value > 1.1 * parts)


def test_a_measured_host_stays(drive: DeviceProfile) -> None:
    known = with_expected_host(drive)
    assert with_expected_host(known) is known


def _slowed(profile: DeviceProfile) -> float:
    columns = {"request_bytes": 65536, "queue_depth": 64, "power_state": [0, 2]}
    answer, _ = Predictor(profile).predict_columns(columns, rows=2)
    rates = answer["throughput_bytes_per_second"].value
    return float(rates[1] / rates[0])


def test_caps_of_the_data_centre_leave_reads_alone(drive: DeviceProfile) -> None:
    facts = facts_of(load_catalogue().get("intel-d7-p5510"))
    free = with_published_caps(drive, facts)
    assert _slowed(free) == pytest.approx(1.0, abs=0.1)
    # without two of the findings nothing is left to say it
    assert with_published_caps(drive, facts, list(READS)[:2]) is drive
    named = with_published_caps(drive, facts, ["004-046"]).power_state_effects[0]
    assert "004-046" not in named.latency_factor.source


def test_an_unknown_capacity_widens_the_cache() -> None:
    known, unknown = expected_cache(10**12), expected_cache(None)
    assert known.value == pytest.approx(1.4e11)
    assert unknown.sd / unknown.value > known.sd / known.value


def test_newer_drives_cache_more_than_older_ones_and_all_between() -> None:
    older, newer = expected_cache(10**12, 3), expected_cache(10**12, 4)
    assert older.value < expected_cache(10**12).value < newer.value
    assert newer.value <= 10**12 / 3  # a TLC drive has no more cells
    assert expected_cache(10**12, 0).value == older.value  # another interface


def test_a_desktop_clocks_faster_than_the_host_of_the_paths(drive: DeviceProfile) -> None:
    desktop = with_expected_host(drive)
    for before, now in zip(drive.host.paths, desktop.host.paths, strict=True):
        assert now.core_time_ns == pytest.approx(CORE_TIME_RATIO * before.core_time_ns)
        assert now.added_latency_ns <= before.added_latency_ns
        assert now.relative_sd == before.relative_sd
