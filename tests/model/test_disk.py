"""The mechanics of a disk against closed forms, and against what data sheets state beside them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.model.prior import disk_facts as disk


def test_the_mean_of_the_seek_curve_is_the_stated_average() -> None:
    random = np.random.default_rng(1)
    apart = np.abs(random.random(400_000) - random.random(400_000))
    track, average = 0.001, 0.012
    curve = track + (average - track) / disk.MEAN_ROOT * np.sqrt(apart)
    assert curve.mean() == pytest.approx(average, rel=2e-3)


def test_the_curve_meets_a_stated_full_stroke() -> None:
    """Hitachi Travelstar 5K320: 1 ms to the next track, 12 ms on average, 20 ms for all."""
    full = 0.001 + (0.012 - 0.001) / disk.MEAN_ROOT
    assert full == pytest.approx(0.020, rel=0.1)


def test_a_whole_disk_is_read_at_the_mean_rate_over_its_bytes() -> None:
    inner, outer = disk.INNER_OVER_OUTER, 1.0
    radius = np.linspace(inner, outer, 100_001)
    seconds = np.trapezoid(radius / radius) / np.trapezoid(radius)
    assert 1.0 / seconds == pytest.approx(disk.MEAN_OVER_OUTER, rel=1e-4)


@given(st.floats(0.0005, 0.003), st.floats(0.004, 0.02), st.floats(4200.0, 15000.0))
def test_quantiles_lie_between_the_shortest_and_the_longest(
    track: float, average: float, rpm: float
) -> None:
    low, mid, high = disk.positioning_quantiles(track, average, rpm, np.array([0.001, 0.5, 0.999]))
    full = track + (average - track) / disk.MEAN_ROOT
    assert track <= low <= mid <= high <= full + 2 * disk.rotation_seconds(rpm)
    assert mid == pytest.approx(average + disk.rotation_seconds(rpm), rel=0.12)


def test_queueing_stops_at_what_a_sata_drive_takes() -> None:
    share = disk.queued_share(np.array([1.0, 2.0, 32.0, 64.0]))
    assert share[0] == 1.0
    assert share[1] < 1.0
    assert share[2] == share[3] == pytest.approx(0.5)


def test_half_a_revolution() -> None:
    assert disk.rotation_seconds(7200.0) == pytest.approx(0.00417, rel=1e-2)
