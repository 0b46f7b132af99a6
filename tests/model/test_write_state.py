"""Fitting the write state: what a series shows, what figures say where it shows nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from iojoule.datasets.profile import BackgroundWork, WriteState
from iojoule.datasets.vocabulary import Evidence, Operation, Pattern
from iojoule.model.fit.hold_out import measured_cliff
from iojoule.model.fit.write_state import Series, fit_write_state
from iojoule.model.recipe import (
    AfterWrites,
    CacheSize,
    CollectingRate,
    DevicePowerRecipe,
    Figure,
    Overwriting,
    PowerStateRecipe,
    Recipe,
    WriteStateRecipe,
    generic_recipe,
)

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


def after(state: int, written: float, seconds: float) -> AfterWrites:
    return AfterWrites(
        power_state=state, bytes_written=written, seconds=seconds, log_sd=0.1, source="a figure"
    )


def watts(value: float) -> Figure:
    return Figure(value=value, sd=0.1, unit="W", source="made up")


CAPPED = DevicePowerRecipe(
    priors={"base_watts": watts(2.0)},
    idle_watts=[watts(1.0)] * 3,
    cap_watts=[8.0, 4.0, 2.5],
    peak_watts=watts(6.0),
    condition="made up",
)
"""Caps that leave 6, 2 and 0.5 W above the base."""


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


def test_what_overwriting_costs_is_known_from_figures_alone() -> None:
    known: dict[str, Any] = {"cache": [size(1e11, 0.1)], "collecting": RATES}
    figures = [
        Overwriting(seconds=seconds, log_sd=0.4, source="made up") for seconds in (1e-4, 4e-4)
    ]
    told = WriteStateRecipe(**known, overwriting=figures)
    added = fitted(told).overwriting_seconds
    assert added is not None
    assert added.value == pytest.approx(2e-4)
    assert added.sd == 0.4
    assert fitted(WriteStateRecipe(**known)).overwriting_seconds is None


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


def of_capped(*seen: AfterWrites) -> list[BackgroundWork]:
    told = WriteStateRecipe(cache=[size(1e11, 0.1)], collecting=RATES, after_writes=list(seen))
    effects = [
        PowerStateRecipe(
            power_state=state,
            operation=Operation.WRITE,
            ceiling_bytes_per_second=one,
            latency_factor=one,
            tail_factor=one,
        )
        for state, one in ((1, watts(1.0)), (2, watts(1.0)))
    ]
    known = recipe(told).model_copy(update={"device_power": CAPPED, "power_states": effects})
    found = fit_write_state(None, known)
    assert found is not None
    return found.background


def test_background_work_follows_the_figures_of_each_state() -> None:
    first, second, _ = (one.seconds_per_byte for one in of_capped(after(0, 3e10, 6), SLOW_WORK))
    assert first.value == pytest.approx(2e-10, rel=0.05)
    assert second.value == pytest.approx(1.8e-9, rel=0.05)


SLOW_WORK = after(1, 1e10, 18.0)


def test_a_state_without_a_figure_is_foretold_from_what_its_cap_leaves_and_less_sure() -> None:
    # the work of a byte takes the inverse square of the watts above the base
    every = [after(0, 3e10, 6.0), SLOW_WORK, after(2, 5e9, 144.0)]
    seen, unseen = (of_capped(*some)[2].seconds_per_byte for some in (every, every[:2]))
    assert unseen.sd > 2 * seen.sd
    assert abs(np.log(unseen.value / seen.value)) < 1.645 * unseen.sd
    assert unseen.evidence is Evidence.EXTRAPOLATED
    # nothing seen below PS0: the same energy takes as much longer as there are fewer watts
    first, *rest = (one.seconds_per_byte.value for one in of_capped(every[0]))
    assert rest == pytest.approx([3 * first, 12 * first])


def test_watts_of_the_work_are_those_that_a_meter_saw() -> None:
    def seen(state: int, seconds: float, watts_above_idle: float) -> AfterWrites:
        return after(state, 3e10, seconds).model_copy(update={"watts_above_idle": watts_above_idle})

    first, second, third = (
        one.watts_above_idle for one in of_capped(seen(0, 6, 2.0), seen(0, 18, 4.0), SLOW_WORK)
    )
    assert first.value == pytest.approx(3.5), "weighted by seconds: the energy is theirs"
    assert first.sd == pytest.approx(np.sqrt(0.75))
    assert first.evidence is Evidence.PUBLISHED
    assert second.sd / second.value > 0.2
    assert third.evidence is Evidence.ASSUMED
    one = of_capped(seen(1, 6, 1.5))[1].watts_above_idle
    assert (one.value, one.sd) == (pytest.approx(1.5), pytest.approx(0.15))
