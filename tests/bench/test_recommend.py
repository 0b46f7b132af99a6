"""Budgets: an answer over 20,000 candidates in 20 ms, a process below 400 MB."""

from __future__ import annotations

import resource
import statistics
import time
from typing import Any

import pytest

from iojoule.datasets.profile import load_shipped_profile
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.workload import WorkloadProfile, parse_workload

CANDIDATES = 20_000
FREE = ("request_bytes", "queue_depth", "jobs", "engine", "completion", "submission_polling",
        "scheduler", "power_state")  # fmt: skip
MEDIAN_SECONDS = 0.020
PEAK_BYTES = 400e6


def question(number: int, operation: str) -> WorkloadProfile:
    """Every question is another one, so that no answer can be kept from before."""
    workload: dict[str, Any] = {
        "operation": operation, "pattern": "random", "useful_request_bytes": 4096,
        "request_bytes_coalescible": 65536, "demand_operations_per_second": 20_000.0 + number,
    }  # fmt: skip
    if operation == "mixed":
        workload["read_fraction"] = 0.7
    return parse_workload(
        {
            "workload": workload,
            "current": {"queue_depth": 32, "jobs": 4},
            "free": dict.fromkeys(FREE, "all"),
            "concurrency_max": 65536,
            "sla": {"latency_p99_ns_max": 5e6 + number},
        }
    )


@pytest.mark.parametrize("operation", ["read", "mixed"])
def test_an_answer_over_every_candidate_is_quick(operation: str) -> None:
    recommender = Recommender(load_shipped_profile("samsung-980-pro-1tb"))
    recommender.recommend(question(0, operation))
    seconds = []
    for number in range(1, 41):
        asked = question(number, operation)
        start = time.perf_counter()
        answer = recommender.recommend(asked)
        seconds.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    median = statistics.median(seconds)
    print(
        f"\nrecommend {operation}: {answer.counts.total:,} candidates, "
        f"median {median * 1e3:.1f} ms, least {min(seconds) * 1e3:.1f} ms, "
        f"most {max(seconds) * 1e3:.1f} ms, peak {peak / 1e6:.0f} MB"
    )
    assert answer.counts.total >= CANDIDATES
    assert median <= MEDIAN_SECONDS
    assert peak <= PEAK_BYTES
