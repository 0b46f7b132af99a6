"""Budgets of many rows: fits of 10^4 in 30 s, of 10^5 in 3 min and 1.5 GB; 10^6 answers in 1.5 s.

Measurements are drawn from the 980 PRO's own profile over sizes, depths, jobs, engines, directions
and patterns, in six sessions, with an error of 2 % a row and 2 % a session.
"""

from __future__ import annotations

import resource
import statistics
import time
from typing import Any

import numpy as np
import pytest

from iojoule.datasets.profile import load_shipped_profile
from iojoule.datasets.schema import Measurement
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.fit.build import fit_profile
from iojoule.model.recipe import generic_recipe

DEVICE = "samsung-980-pro-1tb"


def configurations(rows: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    return {
        "request_bytes": 2 ** rng.integers(12, 21, rows),
        "queue_depth": 2 ** rng.integers(0, 9, rows),
        "jobs": 2 ** rng.integers(0, 5, rows),
        "engine": np.array(["io_uring", "libaio"])[rng.integers(0, 2, rows)],
        "operation": np.array(["read", "write"])[rng.integers(0, 2, rows)],
        "pattern": np.array(["random", "sequential"])[rng.integers(0, 2, rows)],
    }


def measurements(rows: int) -> list[Measurement]:
    asked = configurations(rows)
    said, _ = Predictor(load_shipped_profile(DEVICE)).predict_columns(asked, rows)
    rng = np.random.default_rng(2)
    session = rng.integers(0, 6, rows)
    error = np.exp(0.02 * rng.standard_normal(rows) + 0.02 * rng.standard_normal(6)[session])
    latency = said["latency_mean_ns"].value * error
    tail = np.maximum(
        said["latency_p99_ns"].value * np.exp(0.05 * rng.standard_normal(rows)), latency
    )
    names = ("request_bytes", "queue_depth", "jobs", "engine")
    return [
        Measurement.model_validate(
            {
                "workload": {n: str(asked[n][i]) for n in ("operation", "pattern")},
                "configuration": {n: asked[n][i].item() for n in names},
                "conditions": {"session_id": f"s{session[i]}"},
                "observations": {
                    "iops": float(asked["queue_depth"][i] * asked["jobs"][i] / latency[i] * 1e9),
                    "latency_mean_ns": float(latency[i]),
                    "latency_p99_ns": float(tail[i]),
                    "device_power_watts": float(said["device_power_watts"].value[i]),
                },
            }
        )
        for i in range(rows)
    ]


@pytest.mark.parametrize(("rows", "budget"), [(10_000, 30.0), (100_000, 180.0)])
def test_a_fit_of_many_rows_stays_within_its_budget(rows: int, budget: float) -> None:
    drawn = measurements(rows)
    start = time.perf_counter()
    fit_profile(generic_recipe("many", "Many Rows"), drawn, [])
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nfit {rows:,} rows: {seconds:.1f} s, peak {peak:.0f} MB")
    assert seconds < budget
    assert peak < 1500


def test_a_million_predictions_stay_within_their_budget() -> None:
    rows = 1_000_000
    asked, predictor = configurations(rows), Predictor(load_shipped_profile(DEVICE))
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        predictor.predict_columns(asked, rows)
        seconds.append(time.perf_counter() - start)
    print(f"\npredict {rows:,} rows of numpy columns: median {statistics.median(seconds):.2f} s")
    assert statistics.median(seconds) < 1.5
