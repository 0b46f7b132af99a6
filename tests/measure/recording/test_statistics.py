"""Closed forms."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.measure.recording.series import Window
from iojoule.measure.recording.statistics import (
    Sampled,
    batch_standard_error,
    energy_statistics,
    integrate,
    over_windows,
    power_statistics,
)
from iojoule.measure.sensors.protocol import Flag, Kind, Rail, Scope

SECOND = 10**9


def rail(name: str = "12v", kind: Kind = Kind.POWER, **more: float) -> Rail:
    unit = "watts" if kind is Kind.POWER else "joules"
    return Rail(name, unit, kind, Scope.DEVICE, **more)  # type: ignore[arg-type]


def window(times: np.ndarray, *columns: np.ndarray, flags: np.ndarray | None = None) -> Window:
    marks = np.zeros(len(times), np.uint8) if flags is None else flags
    return Window(times.astype(np.int64), np.column_stack(columns).astype(float), marks)


def sampled(times: np.ndarray, watts: np.ndarray) -> Sampled:
    return Sampled(times, watts, np.zeros(len(times), np.uint8))


def every(step_ns: int, seconds: float) -> np.ndarray:
    return np.arange(0, int(seconds * SECOND), step_ns, dtype=np.int64)


def test_independent_values_have_the_usual_standard_error() -> None:
    values = np.random.default_rng(1).normal(5, 2, 40_000)
    assert batch_standard_error(values) == pytest.approx(2 / math.sqrt(40_000), rel=0.2)


@pytest.mark.parametrize("correlation", [0.9, 0.99])
def test_a_first_order_process_has_the_error_of_its_closed_form(correlation: float) -> None:
    # x' = r x + noise: variance of the mean of n is s^2 / n * (1 + r) / (1 - r)
    random, count = np.random.default_rng(2), 200_000
    noise = random.normal(0, math.sqrt(1 - correlation**2), count)
    values = np.empty(count)
    values[0] = random.normal()
    for place in range(1, count):
        values[place] = correlation * values[place - 1] + noise[place]
    expected = math.sqrt((1 + correlation) / (1 - correlation) / count)
    assert batch_standard_error(values) == pytest.approx(expected, rel=0.3)


@pytest.mark.parametrize(("values", "expected"), [([3.0] * 500, 0.0), ([1.0], math.nan)])
def test_the_standard_error_of_a_constant_and_of_one_value(
    values: list[float], expected: float
) -> None:
    assert batch_standard_error(np.array(values)) == pytest.approx(expected, nan_ok=True)


@given(slope=st.floats(-5, 5), start=st.floats(-5, 5), step=st.integers(1, 10**8))
def test_a_ramp_is_integrated_exactly(slope: float, start: float, step: int) -> None:
    times = np.arange(50, dtype=np.int64) * step
    seconds = times * 1e-9
    found = integrate(sampled(times, start + slope * seconds))
    end = seconds[-1]
    assert found.joules == pytest.approx(start * end + slope * end**2 / 2, rel=1e-9, abs=1e-9)
    assert found.gaps == ()


def test_a_gap_is_not_bridged() -> None:
    times = np.concatenate([every(50_000, 1), 2 * SECOND + every(50_000, 1)])
    watts = np.where(times < SECOND, 2.0, 4.0)
    found = integrate(sampled(times, watts))
    assert found.gaps == ((int(times[19_999]), 2 * SECOND),)
    assert found.lost == 20_000
    assert found.joules == pytest.approx(6.0, rel=1e-3)
    assert found.covered_seconds == pytest.approx(2.0)


def test_the_mean_of_a_window_with_a_gap_is_that_of_the_rest() -> None:
    times = np.concatenate([every(50_000, 1), 2 * SECOND + every(50_000, 1)])
    found = power_statistics(window(times, np.full(len(times), 3.0)), (rail(),), 0, 3 * SECOND, "s")
    assert found.mean_watts == pytest.approx(3.0)
    assert found.energy_joules == pytest.approx(9.0)
    assert found.coverage == pytest.approx(2 / 3, rel=1e-3)
    assert (found.samples, found.lost) == (40_000, 20_000)


def test_samples_missing_at_the_ends_are_lost_too() -> None:
    times = SECOND + every(50_000, 1)
    found = power_statistics(window(times, np.ones(len(times))), (rail(),), 0, 3 * SECOND, "s")
    assert found.lost == pytest.approx(40_000, abs=2)
    assert found.coverage == pytest.approx(1 / 3, rel=1e-3)


def test_calibration_is_kept_apart_and_added_over_rails() -> None:
    times = every(50_000, 1)
    rails = (
        rail("a", offset_uncertainty=0.1, gain_uncertainty=0.01),
        rail("b", offset_uncertainty=0.2, gain_uncertainty=0.02),
    )
    columns = (np.full(len(times), 5.0), np.full(len(times), 10.0))
    found = power_statistics(window(times, *columns), rails, 0, SECOND, "s")
    assert found.mean_watts == pytest.approx(15)
    assert found.standard_error_watts == pytest.approx(0, abs=1e-9)
    assert found.calibration_uncertainty_watts == pytest.approx(0.1 + 0.05 + 0.2 + 0.2)
    unknown = power_statistics(window(times, *columns), (rail("a"), rails[1]), 0, SECOND, "s")
    assert unknown.calibration_uncertainty_watts is None


def test_distributions_over_three_widths() -> None:
    times = every(50_000, 12)
    # 9 ms at 1 W, then 1 ms at 11 W: 2 W over 10 ms
    watts = np.where(times % 10_000_000 < 9_000_000, 1.0, 11.0)
    found = power_statistics(window(times, watts), (rail(),), 0, 12 * SECOND, "s")
    assert found.over_1_ms is not None
    assert found.over_1_ms.windows == 12_000
    assert (found.over_1_ms.p50_watts, found.over_1_ms.maximum_watts) == pytest.approx((1, 11))
    assert found.over_10_ms is not None
    assert (found.over_10_ms.p50_watts, found.over_10_ms.maximum_watts) == pytest.approx((2, 2))
    assert found.over_10_s is not None
    assert found.over_10_s.windows == 3
    assert found.over_10_s.maximum_watts == pytest.approx(2)


def test_a_sliding_window_finds_a_burst_between_two_side_by_side() -> None:
    times = every(1_000_000, 20)
    watts = np.where((times >= 5 * SECOND) & (times < 15 * SECOND), 8.0, 0.0)
    sliding = over_windows(sampled(times, watts), 0, 20 * SECOND, 10 * SECOND, slide_ns=SECOND)
    assert sliding is not None
    assert sliding.maximum_watts == pytest.approx(8)


def test_a_slow_sensor_has_no_short_windows() -> None:
    times = every(100_000_000, 12)
    found = power_statistics(window(times, np.ones(len(times))), (rail(),), 0, 12 * SECOND, "s")
    assert (found.over_1_ms, found.over_10_ms) == (None, None)
    assert found.over_10_s is not None


def test_too_few_fresh_readings_have_no_mean_but_a_reason() -> None:
    times = every(500_000_000, 60)
    flags = np.where(np.arange(len(times)) % 5, Flag.STALE, 0).astype(np.uint8)
    found = power_statistics(
        window(times, np.ones(len(times)), flags=flags), (rail(),), 0, 60 * SECOND, "netio:pdu"
    )
    assert (found.mean_watts, found.energy_joules, found.fresh) == (None, None, 24)
    assert "netio:pdu had 24 fresh readings" in (found.reason or "")
    assert "30" in (found.reason or "")


def test_an_instrument_that_hangs_is_not_believed_from_then_on() -> None:
    """An application draws 5 W and then 9 W; the meter stays at its last reading of the 5 W."""
    times, random = every(500_000_000, 200), np.random.default_rng(4)
    watts = np.where(times < 120 * SECOND, 5.0 + random.normal(0, 0.2, len(times)), 5.0)
    flags = np.where(times < 120 * SECOND, 0, Flag.STALE).astype(np.uint8)
    found = power_statistics(
        window(times, watts, flags=flags), (rail(),), 0, 200 * SECOND, "shelly:plug"
    )
    assert found.coverage == pytest.approx(0.6, abs=0.01)
    assert found.mean_watts == pytest.approx(5.0, abs=0.1)


@pytest.mark.parametrize("every_nth", [1, 3, 20])
def test_a_slow_or_coarse_meter_does_not_hang(every_nth: int) -> None:
    times = every(100_000_000, 200)
    regular = np.where(np.arange(len(times)) % every_nth, Flag.STALE, 0).astype(np.uint8)
    by_chance = np.where(
        np.random.default_rng(5).random(len(times)) < 1 / every_nth, 0, Flag.STALE
    ).astype(np.uint8)
    for flags in (regular, by_chance):
        found = power_statistics(
            window(times, np.full(len(times), 45.0), flags=flags), (rail(),), 0, 200 * SECOND, "n"
        )
        assert found.coverage == pytest.approx(1.0)
        assert found.mean_watts == pytest.approx(45.0)


def test_a_counter_that_stands_still_tells_nothing_from_then_on() -> None:
    times = every(100_000_000, 10)
    joules = 3.0 * np.minimum(times, 6 * SECOND) * 1e-9
    flags = np.where(times <= 6 * SECOND, 0, Flag.STALE).astype(np.uint8)
    rails = (rail(kind=Kind.ENERGY),)
    found = energy_statistics(window(times, joules, flags=flags), rails, 0, 10 * SECOND, "rapl")
    assert found.mean_watts == pytest.approx(3.0)
    assert found.coverage == pytest.approx(0.6)
    slow = np.where(np.arange(len(times)) % 10, Flag.STALE, 0).astype(np.uint8)
    stepped = 3.0 * (times // SECOND)
    renewed = energy_statistics(
        window(times, stepped, flags=slow), rails, SECOND + 1, 9 * SECOND - 1, "hwmon:a"
    )
    assert renewed.coverage == 1.0
    still = np.append(0, np.full(len(times) - 1, Flag.STALE)).astype(np.uint8)
    none = energy_statistics(
        window(times, np.full(len(times), 7.0), flags=still), rails, SECOND, 9 * SECOND, "rapl"
    )
    assert none.mean_watts is None
    assert "stands still" in (none.reason or "")


def test_no_samples_at_all() -> None:
    nothing = np.empty(0, np.int64)
    found = power_statistics(window(nothing, np.empty(0)), (rail(),), 0, SECOND, "s")
    assert (found.mean_watts, found.samples, found.coverage) == (None, 0, 0.0)


@given(watts=st.floats(0.1, 500), begin=st.integers(0, 10**9), length=st.integers(10**8, 5 * 10**9))
def test_a_counter_of_constant_power_gives_that_power(
    watts: float, begin: int, length: int
) -> None:
    times = every(100_000_000, 7)
    found = energy_statistics(
        window(times, watts * times * 1e-9), (rail(kind=Kind.ENERGY),), begin, begin + length, "r"
    )
    assert found.mean_watts == pytest.approx(watts, rel=1e-6)
    assert found.energy_joules == pytest.approx(watts * length * 1e-9, rel=1e-6)
    assert found.coverage == pytest.approx(1.0)
    # never more than half the energy of one interval at either end
    assert (found.standard_error_watts or 0) <= watts * 0.1 / (length * 1e-9)


def test_a_counter_is_certain_where_it_was_read_and_least_so_in_between() -> None:
    times = every(SECOND, 11)
    joules = 10.0 * times * 1e-9
    rails = (rail(kind=Kind.ENERGY, resolution=0.0),)
    exact = energy_statistics(window(times, joules), rails, SECOND, 9 * SECOND, "r")
    middle = energy_statistics(
        window(times, joules), rails, SECOND + SECOND // 2, 9 * SECOND + SECOND // 2, "r"
    )
    assert exact.standard_error_watts == 0
    # a uniform distribution over 10 J has a standard deviation of 10 / sqrt(12); two ends
    assert middle.standard_error_watts == pytest.approx(10 / math.sqrt(12) * math.sqrt(2) / 8)


def test_a_counter_that_begins_late_covers_less() -> None:
    times = 2 * SECOND + every(100_000_000, 2)
    found = energy_statistics(
        window(times, 3.0 * times * 1e-9), (rail(kind=Kind.ENERGY),), 0, 4 * SECOND, "r"
    )
    assert found.mean_watts == pytest.approx(3)
    assert found.coverage == pytest.approx(0.475)


def test_a_counter_needs_two_readings() -> None:
    found = energy_statistics(
        window(np.array([5]), np.array([1.0])), (rail(kind=Kind.ENERGY),), 0, SECOND, "r"
    )
    assert found.mean_watts is None
    assert "measure longer" in (found.reason or "")
