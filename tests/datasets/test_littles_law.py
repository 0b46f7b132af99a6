"""The quality gate: warns above 3 %, refuses above 8 %."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.datasets.errors import DataQualityError
from iojoule.datasets.littles_law import check_littles_law, littles_ratios
from iojoule.datasets.store import Dataset, Provenance


def runs(ratios: list[float], **more: list[Any]) -> Dataset:
    count = len(ratios)
    columns: dict[str, list[Any]] = {
        "operation": ["read"] * count,
        "request_bytes": [4096] * count,
        "queue_depth": [8] * count,
        "jobs": [2] * count,
        "iops": [ratio * 16 * 1e4 for ratio in ratios],
        "latency_mean_ns": [1e5] * count,
    }
    return Dataset.from_columns({**columns, **more}, Provenance(importer="test"))


def check(dataset: Dataset) -> list[str]:
    return check_littles_law(dataset, Path("/data/runs.csv"), lambda index: f"line {index + 2}")


@given(st.lists(st.floats(0.5, 2.0), min_size=1, max_size=20))
def test_the_ratio_and_the_verdict_follow_the_distance(ratios: list[float]) -> None:
    dataset = runs(ratios)
    np.testing.assert_allclose(littles_ratios(dataset), ratios, rtol=1e-9)
    worst = max(abs(ratio - 1) for ratio in ratios)
    if worst > 0.0801:
        with pytest.raises(DataQualityError):
            check(dataset)
    elif worst < 0.0799:
        assert bool(check(dataset)) == (worst > 0.03) or abs(worst - 0.03) < 1e-9


def test_the_refusal_names_the_worst_row_and_the_usual_causes() -> None:
    with pytest.raises(DataQualityError) as caught:
        check(runs([1.0, 0.9, 0.5]))
    message = caught.value.message
    assert message.startswith("/data/runs.csv, line 4: ")
    assert "= 0.500 (the worst of 2 rows)" in message
    for cause in ("think time", "rate limit", "depth", "ramp", "sqthread_poll"):
        assert cause in message


def test_warnings_count_the_rows_and_bear_no_folder() -> None:
    (warning,) = check(runs([0.95, 1.0, 1.05, 0.96, 0.96]))
    assert warning.startswith("runs.csv: line 2, line 4, line 5 and 1 more: ")
    assert "between 0.950 and 1.050" in warning


@pytest.mark.parametrize(
    "field",
    [
        "demand_bytes_per_second",
        "demand_operations_per_second",
        "think_time_ns",
        "flush_every_writes",
    ],
)
def test_a_run_that_is_held_back_is_not_asked(field: str) -> None:
    assert check(runs([0.2], **{field: [1000.0]})) == []


def test_unknown_latency_or_throughput_is_not_asked() -> None:
    assert check(runs([0.2, 1.0], latency_mean_ns=[None, 1e5])) == []
    assert np.isnan(littles_ratios(runs([1.0], iops=[None])))
