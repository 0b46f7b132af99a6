"""What was characterised of a drive reaches its profile."""

from __future__ import annotations

from typing import Any

import pytest

from iojoule.datasets.characteristics import Characteristics, Row, parse_characteristics
from iojoule.datasets.characteristics import Evidence as Rows
from iojoule.datasets.schema import Measurement, from_row
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.fit.background import fit_idle, measured_settle, work_after_writes
from iojoule.model.fit.generic_recipe import (
    characterised_gaps,
    characterised_runs,
    characterised_writes,
    random_collecting,
)
from iojoule.model.fit.power import power_rows
from iojoule.model.fit.write_state import fit_write_state
from iojoule.model.recipe import generic_recipe
from tests.model.known_drive import drive


def found(**answers: dict[str, tuple[float, float, float]]) -> Characteristics:
    def answer(estimates: dict[str, tuple[float, float, float]]) -> dict[str, Any]:
        return {
            "title": "t",
            "purpose": "p",
            "sources": [],
            "status": "answered",
            "estimates": {
                name: {"value": value, "low": low, "high": high, "unit": "1", "method": "m"}
                for name, (value, low, high) in estimates.items()
            },
        }

    document = {
        "schema_version": 1,
        "generator": "g",
        "scale": "quick",
        "began_utc": "2026-01-01",
        "drive": {
            "schema_version": 1,
            "model": "Made Up",
            "capacity_bytes": 10**12,
            "block_bytes": 512,
        },
        "answers": {name.replace("_", "-"): answer(one) for name, one in answers.items()},
    }
    return parse_characteristics(document, "here")


def test_cache_rate_and_background_work_are_measured_evidence() -> None:
    told = found(
        slc_cache={
            "cache_bytes": (2e10, 1.9e10, 2.1e10),
            "write_slow_bytes_per_second": (4e8, 3.9e8, 4.1e8),
        },
        background={
            "background_seconds_per_byte": (3e-10, 2.7e-10, 3.3e-10),
            "background_joules_per_byte": (6e-10, 5e-10, 7e-10),
        },
    )
    writes = characterised_writes(told)
    state = fit_write_state(
        None, generic_recipe("made-up", "Made Up").model_copy(update={"write_state": writes})
    )
    assert state is not None
    assert state.transition_bytes.value == pytest.approx(2e10, rel=1e-3)
    assert state.transition_bytes.evidence is Evidence.MEASURED
    assert state.background_joules_per_byte.value == pytest.approx(6e-10)
    work = state.background[0]
    assert state.random_factor is not None
    after_random = work.seconds_per_byte.value * state.random_factor.value
    assert after_random == pytest.approx(3e-10, rel=0.05)
    assert after_random * work.watts_above_idle.value == pytest.approx(6e-10, rel=1e-4)


def test_joules_and_watts_say_better_how_long_the_work_lasts_than_its_end() -> None:
    told = found(
        slc_cache={
            "cache_bytes": (2e10, 1.9e10, 2.1e10),
            "write_slow_bytes_per_second": (4e8, 3.9e8, 4.1e8),
            "full_work_joules": (30.0, 29.0, 31.0),
        },
        background={
            "background_seconds_per_byte": (1e-11, 0.0, 4e-10),
            "background_joules_per_byte": (6e-10, 5e-10, 7e-10),
            "background_watts": (2.0, 1.9, 2.1),
        },
    )
    recipe = generic_recipe("made-up", "Made Up")
    state = fit_write_state(
        None, recipe.model_copy(update={"write_state": characterised_writes(told)})
    )
    assert state is not None
    assert state.random_factor is not None
    after_random = state.background[0].seconds_per_byte.value * state.random_factor.value
    assert after_random == pytest.approx(3e-10, rel=0.05)
    assert state.full_work_joules is not None
    assert state.full_work_joules.value == 30.0
    assert state.full_work_joules.evidence is Evidence.MEASURED


CACHE = {
    "cache_bytes": (2e10, 1.9e10, 2.1e10),
    "cache_bytes_by_power": (1.5e10, 1.4e10, 1.6e10),
    "write_fast_bytes_per_second": (2e9, 1.9e9, 2.1e9),
    "write_slow_bytes_per_second": (4e8, 3.9e8, 4.1e8),
}


def written(rate: float, host_bytes: float, **fields: Any) -> Measurement:
    """A run of random writes."""
    row = {
        "operation": "write",
        "pattern": "random",
        "request_bytes": 65536,
        "queue_depth": 8,
        "power_state": 0,
        "throughput_bytes_per_second": rate,
        "device_power_watts": 5.0,
        "host_bytes_written": host_bytes,
    }
    return from_row(row | fields, where="here")


def test_the_watts_tell_from_where_a_drive_folds_beside_writes() -> None:
    writes = characterised_writes(found(slc_cache=CACHE))
    recipe = generic_recipe("made-up", "Made Up").model_copy(update={"write_state": writes})
    state = fit_write_state(None, recipe)
    assert state is not None
    assert state.cached_bytes.value == pytest.approx(1.5e10)
    assert state.transition_bytes.value == pytest.approx(2e10, rel=1e-3)


@pytest.mark.parametrize("slow", [3e8, 8e8])
def test_runs_past_the_cache_tell_the_rate_of_random_writes(slow: float) -> None:
    """10 s in the cache, and 50 s past it."""
    total = 2e10 + 50.0 * slow
    past, within = written(total / 60.0, total), written(2e9, 1e10)
    less = written(total / 60.0, total, demand_operations_per_second=100.0)
    told = found(slc_cache=CACHE)
    rate = random_collecting(told, [within, past, less])
    assert rate is not None
    assert rate.bytes_per_second == pytest.approx(slow)
    assert random_collecting(told, [within]) is None
    assert random_collecting(found(), [past]) is None


def test_a_run_past_the_cache_is_counted_as_collecting_for_that_time() -> None:
    writes = characterised_writes(found(slc_cache=CACHE))
    recipe = generic_recipe("made-up", "Made Up").model_copy(update={"write_state": writes})
    state = fit_write_state(None, recipe)
    # 7.5 s at 2 GB/s in the cache, 30 s at 0.4 GB/s past it
    rows = [written(2.7e10 / 37.5, 2.7e10), written(2e9, 1e10)]
    shares = power_rows(rows, 131072.0, state).x[:, 5]
    assert shares == pytest.approx([30.0 / 37.5, 0.0])


@pytest.mark.parametrize(("host_bytes", "runs"), [(1e10, 1), (4e10, 0)])
def test_the_fill_of_the_cache_is_a_run_where_no_other_shows_what_follows(
    host_bytes: float, runs: int
) -> None:
    told = found(slc_cache=CACHE | {"write_slow_watts": (6.0, 5.9, 6.1)})
    answer = told.answers["slc-cache"]
    fill = Row(label="fill 0", values={"request_bytes": 131072.0, "queue_depth": 32.0})
    answers = {"slc-cache": answer.model_copy(update={"evidence": Rows(rows=(fill,))})}
    told = told.model_copy(update={"answers": answers})
    own = characterised_runs(told, [written(1e9, host_bytes)])
    assert len(own) == runs
    for run in own:
        rows = power_rows([run], 131072.0, None)
        assert rows.x[0, 5] == 1.0
        assert rows.x[0, 3] == pytest.approx(4e8)
        assert rows.watts[0] == 6.0


def test_a_drive_that_does_nothing_after_writes_has_no_background_work() -> None:
    told = found(
        slc_cache={
            "cache_bytes": (2e10, 1.9e10, 2.1e10),
            "write_slow_bytes_per_second": (4e8, 3.9e8, 4.1e8),
        },
        background={"background_joules_per_byte": (0.0, 0.0, 2e-11)},
    )
    writes = characterised_writes(told)
    recipe = generic_recipe("made-up", "Made Up").model_copy(update={"write_state": writes})
    state = fit_write_state(None, recipe)
    assert state is not None
    assert state.background_joules_per_byte.value == 0.0
    assert state.background[0].watts_above_idle.value == 0.0


def test_the_wake_up_is_what_was_timed() -> None:
    told = found(idle={"wake_seconds_ps0": (2e-4, 1.8e-4, 2.2e-4)})
    gaps = characterised_gaps(told)
    behaviour = fit_idle(generic_recipe("made-up", "Made Up").model_copy(update={"idle": gaps}))
    assert behaviour is not None
    assert behaviour.wake_seconds.value == pytest.approx(2e-4, rel=0.02)
    assert behaviour.settle_seconds.evidence is Evidence.ASSUMED


def test_the_settle_time_is_joules_over_the_watts_of_an_awake_drive() -> None:
    told = found(settle={"settle_joules": (0.07, 0.06, 0.08)})
    gaps = characterised_gaps(told)
    assert gaps is not None
    assert gaps.settle_joules is not None
    behaviour = fit_idle(generic_recipe("made-up", "Made Up").model_copy(update={"idle": gaps}))
    power = drive().device_power
    assert behaviour is not None
    assert power is not None
    awake = power.parameters[0].value - power.idle_watts[0].value
    settled = measured_settle(behaviour, gaps.settle_joules, power).settle_seconds
    assert settled.value == pytest.approx(0.07 / awake, rel=1e-3)
    assert settled.evidence is Evidence.MEASURED


def test_a_settle_time_too_short_to_be_seen_is_within_its_bound() -> None:
    told = found(settle={"settle_joules": (0.0, 0.0, 7e-4)})
    answer = told.answers["settle"]
    unseen = answer.estimates["settle_joules"].model_copy(update={"value": None, "reason": "r"})
    told.answers["settle"] = answer.model_copy(update={"estimates": {"settle_joules": unseen}})
    gaps = characterised_gaps(told)
    assert gaps is not None
    assert gaps.settle_joules is not None
    assert gaps.settle_joules.value == pytest.approx(3.5e-4)


def left_behind(*runs: tuple[float, float, float]) -> list[Measurement]:
    """Writes of so many bytes, J and seconds until idle was back."""
    return [
        from_row(
            {
                "operation": "write",
                "pattern": "random",
                "request_bytes": 4096,
                "queue_depth": 1,
                "host_bytes_written": written,
                "background_energy_joules": joules,
                "background_seconds": seconds,
            },
            where="here",
        )
        for written, joules, seconds in runs
    ]


def test_what_runs_left_behind_is_joules_for_a_byte_at_once_and_at_most_what_was_seen() -> None:
    work = work_after_writes(left_behind((1e9, 2.0, 1.0), (2e9, 4.0, 2.0), (3e9, 6.0, 3.0)))
    assert work is not None
    assert work.joules_per_byte.value == pytest.approx(2e-9)
    assert work.joules_per_byte.sd == pytest.approx(0.0, abs=1e-6)
    assert work.watts_above_idle.value == pytest.approx(2.0)
    assert work.most_joules.value == 6.0
    assert work.joules_per_byte.evidence is Evidence.MEASURED


def test_runs_that_disagree_make_it_unsure() -> None:
    work = work_after_writes(left_behind((1e9, 0.0, 1.0), (1e9, 4.0, 2.0), (1e9, 8.0, 4.0)))
    assert work is not None
    assert work.joules_per_byte.value == pytest.approx(4e-9)
    assert work.joules_per_byte.sd > 0.3


@pytest.mark.parametrize("runs", [[], [(1e9, 2.0, 1.0)] * 2, [(1e9, 0.0, 1.0)] * 5])
def test_too_few_runs_or_none_that_left_anything_say_nothing(
    runs: list[tuple[float, float, float]],
) -> None:
    assert work_after_writes(left_behind(*runs)) is None


def test_nothing_found_says_nothing() -> None:
    assert characterised_writes(found()) is None
    assert characterised_gaps(found()) is None
