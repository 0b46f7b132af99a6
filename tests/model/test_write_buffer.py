"""Runs below full speed tell how large the write buffer is, and nothing of full speed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from iojoule.datasets.profile import DeviceProfile, Parameter
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.evaluate.demanded import at_demands, demands
from iojoule.model.evaluate.frame import make_frame
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.fit.build import fit_profile
from iojoule.model.fit.write_state import RUNS_MIN, with_write_buffer
from iojoule.model.recipe import generic_recipe

MIB = 1 << 20
SIZES, CAPACITY, DEPTH = (4096, 16384, 65536), (150e3, 40e3, 10e3), 32
LOADS = (0.4, 0.6, 0.8)
HOST = {"engine": "io_uring", "completion": "interrupt", "scheduler": "none"}
QUEUE = HOST | {"queue_depth": DEPTH}


@pytest.fixture(scope="module")
def full_speed() -> list[Measurement]:
    """Random writes: 20 us until the flash is busy, then the whole queue waits for it."""
    runs = []
    for size, capacity in zip(SIZES, CAPACITY, strict=True):
        for depth in (1, 2, 4, 8, 16, 32, 64):
            mean = float(np.hypot(20e3, depth / capacity * 1e9))
            runs.append(
                Measurement.model_validate(
                    {
                        "workload": {"operation": "write", "pattern": "random"},
                        "configuration": {"request_bytes": size, "queue_depth": depth, **HOST},
                        "conditions": {"device_model": "truth", "session_id": "one"},
                        "observations": {
                            "iops": depth / mean * 1e9,
                            "latency_mean_ns": mean,
                            "latency_p50_ns": 20e3 if depth == 1 else 0.9 * mean,
                            "latency_p99_ns": 1.5 * mean,
                        },
                    }
                )
            )
    return runs


@pytest.fixture(scope="module")
def profile(full_speed: list[Measurement]) -> DeviceProfile:
    return fit_profile(generic_recipe("truth", "Truth"), full_speed, [])


def buffered(profile: DeviceProfile, size: float | None) -> DeviceProfile:
    told = size and Parameter(
        name="write_buffer_bytes",
        value=size,
        sd=0.1,
        unit="bytes",
        evidence=Evidence.ASSUMED,
        source="this test",
    )
    return profile.model_copy(update={"write_buffer_bytes": told or None})


def answers(
    profile: DeviceProfile, rows: list[dict[str, Any]], end: str = "value"
) -> dict[str, Any]:
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    frame, _ = make_frame(profile, columns, len(rows))
    predictor = Predictor(profile)
    told = at_demands(predictor, frame, predictor.predict(frame), demands(frame, columns))
    return {
        name: getattr(told[name], end) for name in ("latency_mean_ns", "latency_p99_ns", "iops")
    }


def paced(profile: DeviceProfile, loads: tuple[float, ...] = LOADS) -> list[Measurement]:
    """What a drive with the profile's buffer shows of Poisson arrivals, 5 % of noise on it."""
    grid = [
        {
            "operation": "write",
            "pattern": "random",
            "request_bytes": size,
            "queue_depth": DEPTH,
            **HOST,
        }
        for size in SIZES
        for _ in loads
    ]
    columns = {name: [row[name] for row in grid] for name in grid[0]}
    most, _ = Predictor(profile).predict_columns(columns, len(grid))
    rates = np.tile(loads, len(SIZES)) * most["iops"].value
    asked = [
        row | {"demand_operations_per_second": float(rate), "arrival_process": "poisson"}
        for row, rate in zip(grid, rates, strict=True)
    ]
    seen = answers(profile, asked)
    source = np.random.default_rng(5)
    noise = np.exp(0.05 * source.standard_normal(len(grid)))
    return [
        Measurement.model_validate(
            {
                "workload": {
                    key: row[key]
                    for key in (
                        "operation",
                        "pattern",
                        "arrival_process",
                        "demand_operations_per_second",
                    )
                },
                "configuration": {"request_bytes": row["request_bytes"], **QUEUE},
                "observations": {
                    "iops": seen["iops"][place],
                    "latency_mean_ns": seen["latency_mean_ns"][place] * noise[place],
                    "latency_p99_ns": seen["latency_p99_ns"][place] * noise[place],
                },
            }
        )
        for place, row in enumerate(asked)
    ]


@pytest.mark.parametrize("size", [MIB / 2, 4 * MIB])
def test_the_buffer_is_found_from_runs_below_full_speed(profile: DeviceProfile, size: int) -> None:
    found = with_write_buffer(profile, paced(buffered(profile, size))).write_buffer_bytes
    assert found is not None
    assert found.evidence is Evidence.MEASURED
    assert found.value < 4 * size  # larger ones may be as likely: then it is the least of them
    assert abs(np.log(found.value / size)) < 3 * found.sd


def test_what_a_buffer_would_not_explain_better_is_none(profile: DeviceProfile) -> None:
    assert with_write_buffer(profile, paced(profile)).write_buffer_bytes is None


def test_a_few_runs_are_chance_and_full_speed_says_nothing(
    profile: DeviceProfile, full_speed: list[Measurement]
) -> None:
    runs = paced(buffered(profile, MIB))
    assert with_write_buffer(profile, runs[: RUNS_MIN - 1]).write_buffer_bytes is None
    assert with_write_buffer(profile, full_speed) == profile


def test_runs_that_were_held_back_are_no_part_of_a_surface(
    profile: DeviceProfile, full_speed: list[Measurement]
) -> None:
    runs = paced(profile, (0.1, 0.3))
    again = fit_profile(generic_recipe("truth", "Truth"), [*full_speed, *runs], [])
    assert again.surfaces == profile.surfaces
    assert not any(run.at_full_speed for run in runs)
    assert all(measurement.at_full_speed for measurement in full_speed)


def test_with_a_buffer_writes_answer_sooner_and_the_queue_still_fills(
    profile: DeviceProfile,
) -> None:
    rates = [0.3, 0.6, 0.9]
    runs = paced(profile, tuple(rates))
    rows = [
        {
            "operation": "write",
            "pattern": "random",
            "request_bytes": 4096,
            "queue_depth": DEPTH,
            "demand_operations_per_second": run.workload.demand_operations_per_second,
            "arrival_process": "poisson",
        }
        for run in runs[: len(rates)]
    ]
    without, small, large = (
        answers(buffered(profile, size), rows)["latency_p99_ns"] for size in (None, MIB, 64 * MIB)
    )
    assert (large <= 1.01 * small).all()
    assert (small < without).all()
    for one in (without, small, large):
        assert (np.diff(one) > 0).all()


def test_where_nobody_knows_the_buffer_intervals_reach_from_none_to_one_that_is_never_full(
    profile: DeviceProfile,
) -> None:
    rows = [
        {
            "operation": "write",
            "pattern": "random",
            "request_bytes": 65536,
            **QUEUE,
            "demand_operations_per_second": rate,
            "arrival_process": "poisson",
        }
        for rate in (3000.0, 6000.0)
    ]
    unknown, small, large = (buffered(profile, size) for size in (None, 1.0, 1e12))
    for name in ("latency_mean_ns", "latency_p99_ns"):
        low, value, high = (answers(unknown, rows, end)[name] for end in ("low", "value", "high"))
        assert (low <= answers(large, rows)[name]).all()
        assert (value >= answers(small, rows)[name]).all()
        assert (high > value).all()
