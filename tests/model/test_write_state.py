"""Fitting the write state: what a series shows, what figures say where it shows nothing."""

from __future__ import annotations

import numpy as np
import pytest

from iojoule.datasets.profile import WriteState
from iojoule.datasets.vocabulary import Evidence, Operation, Pattern
from iojoule.model.fitting.recipe import (
    AfterWrites,
    CacheSize,
    CollectingRate,
    Figure,
    PowerStateRecipe,
    Recipe,
    WriteStateRecipe,
    generic_recipe,
)
from iojoule.model.fitting.series_checks import measured_cliff
from iojoule.model.fitting.write_state import Series, fit_write_state

FAST, SLOW, CLIFF = 4e8, 1.5e8, 4e10


def series(seconds: int = 300, *, noise: float = 0.01) -> Series:
    """A drive whose power rises for the last tenth of its cache and whose rate then falls."""
    random = np.random.default_rng(3)
    written, rates, watts = 0.0, [], []
    places = []
    for _ in range(seconds):
        places.append(written)
        rate = (FAST if written < CLIFF else SLOW) * np.exp(random.normal(0, noise))
        watts.append((3.0 if written < 0.9 * CLIFF else 5.5) + random.normal(0, noise))
        rates.append(rate)
        written += rate
    return Series(np.array(places), np.array(rates), np.array(watts), 4096.0)


def recipe(told: WriteStateRecipe | None = None, drive_class: str = "unknown") -> Recipe:
    return generic_recipe("made-up", "Made Up").model_copy(
        update={"write_state": told, "drive_class": drive_class, "capacity_bytes": 10**12}
    )


def fitted(told: WriteStateRecipe | None, seen: Series | None = None) -> WriteState:
    found = fit_write_state(seen, recipe(told))
    assert found is not None
    return found


def size(value: float, log_sd: float) -> CacheSize:
    return CacheSize(bytes=value, log_sd=log_sd, source="a figure")


def after(state: int, rate: float, written: float, seconds: float) -> AfterWrites:
    return AfterWrites(
        power_state=state, bytes_written=written, write_bytes_per_second=rate, seconds=seconds,
        log_sd=0.1, source="a figure",
    )  # fmt: skip


def ceiling(state: int, rate: float) -> PowerStateRecipe:
    one = Figure(value=1.0, sd=0.1, unit="1", source="made up")
    return PowerStateRecipe(
        power_state=state, operation=Operation.WRITE, latency_factor=one, tail_factor=one,
        ceiling_bytes_per_second=one.model_copy(update={"value": rate}),
    )  # fmt: skip


RATES = [CollectingRate(pattern=Pattern.SEQUENTIAL, bytes_per_second=5e8, log_sd=0.2, source="f")]


def test_a_series_shows_the_cliff_and_the_rate_beyond_it() -> None:
    found = fitted(None, series())
    assert found.cached_bytes.value == pytest.approx(0.9 * CLIFF, rel=0.02)
    assert found.transition_bytes.value == pytest.approx(CLIFF, rel=0.02)
    assert found.collecting_bytes_per_second.value == pytest.approx(SLOW, rel=0.02)
    assert found.transition_bytes.evidence is Evidence.MEASURED
    assert measured_cliff(series()) == pytest.approx(CLIFF, rel=0.02)


def test_a_rate_seen_for_one_pattern_stands_in_for_the_other_less_surely() -> None:
    random = fitted(None, series())
    sequential = random.sequential_collecting_bytes_per_second
    assert sequential is not None
    assert sequential.value == pytest.approx(2 * random.collecting_bytes_per_second.value)
    assert sequential.sd > 0.5 > random.collecting_bytes_per_second.sd
    told = fitted(WriteStateRecipe(cache=[size(1e11, 0.1)], collecting=RATES))
    seen = told.sequential_collecting_bytes_per_second
    assert seen is not None
    assert seen.value == 5e8
    assert told.collecting_bytes_per_second.value == pytest.approx(2.5e8)
    assert told.collecting_bytes_per_second.sd > 0.5


def test_a_series_without_a_cliff_leaves_nothing_to_say() -> None:
    assert fit_write_state(series(60), recipe()) is None
    assert fit_write_state(None, recipe()) is None


def test_figures_count_by_how_sure_they_are() -> None:
    told = WriteStateRecipe(cache=[size(1e11, 0.1), size(5e10, 0.3)], collecting=RATES)
    found = fitted(told).transition_bytes
    weights = np.array([0.1, 0.3]) ** -2
    expected = np.exp(np.average(np.log([1e11, 5e10]), weights=weights))
    assert found.value == pytest.approx(expected, rel=1e-5)
    assert found.sd / found.value == pytest.approx(weights.sum() ** -0.5, rel=1e-5)
    assert found.evidence is Evidence.PUBLISHED


def test_bytes_written_without_a_cliff_rule_out_a_smaller_cache() -> None:
    told = WriteStateRecipe(cache=[size(2e10, 0.5)], collecting=RATES)
    seen = series(80)  # 32 GB, and the rate has not fallen
    found = fitted(told, seen)
    assert found.transition_bytes.value > seen.bytes_written[-1]
    assert found.transition_bytes.sd < fitted(told).transition_bytes.sd * 1.5


def test_background_work_follows_the_figures_of_each_state() -> None:
    told = WriteStateRecipe(
        cache=[size(1e11, 0.1)], collecting=RATES,
        after_writes=[after(0, 2e9, 3e10, 6.0), after(1, 5e8, 1e10, 20.0)],
    )  # fmt: skip
    work = {one.power_state: one.seconds_per_byte for one in fitted(told).background}
    assert work[0].value == pytest.approx(2e-10, rel=0.05)
    assert work[1].value == pytest.approx(2e-9, rel=0.1)


def test_a_state_without_a_figure_is_foretold_from_how_slowly_it_writes_and_less_sure() -> None:
    every = [after(0, 2e9, 3e10, 6.0), after(1, 5e8, 1e10, 20.0), after(2, 2.5e8, 5e9, 60.0)]
    whole = fitted(WriteStateRecipe(cache=[size(1e11, 0.1)], collecting=RATES, after_writes=every))
    told = WriteStateRecipe(cache=[size(1e11, 0.1)], collecting=RATES, after_writes=every[:2])
    without = fit_write_state(
        None,
        recipe(told).model_copy(update={"power_states": [ceiling(1, 5e8), ceiling(2, 2.5e8)]}),
    )
    assert without is not None
    seen, unseen = whole.background[2].seconds_per_byte, without.background[2].seconds_per_byte
    assert unseen.sd > 2 * seen.sd
    assert abs(np.log(unseen.value / seen.value)) < 1.645 * unseen.sd
    assert unseen.evidence is Evidence.EXTRAPOLATED
