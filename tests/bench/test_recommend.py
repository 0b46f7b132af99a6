"""Budgets: an answer over 20,000 candidates in 20 ms, over 800,000 in 0.4 s, of the shipped example
in 12 ms; a process below 400 MB."""

from __future__ import annotations

import resource
import statistics
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iojoule.datasets.profile import load_shipped_profile
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import WorkloadProfile, parse_workload
from iojoule.recommender.response import Recommendation

CANDIDATES = 20_000
FREE = ("request_bytes", "queue_depth", "jobs", "engine", "completion", "submission_polling",
        "scheduler", "power_state")  # fmt: skip
MEDIAN_SECONDS = 0.020
PEAK_BYTES = 400e6
MANY, MANY_SECONDS = 800_000, 0.4
EXAMPLE_SECONDS = 0.012


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


def median_of(answers: int, ask: Callable[[int], Recommendation]) -> tuple[float, Recommendation]:
    """Median seconds of so many answers after a first one, and the last of them."""
    found, seconds = ask(0), []
    for number in range(1, answers + 1):
        start = time.perf_counter()
        found = ask(number)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), found


def test_the_shipped_example_is_answered_at_once() -> None:
    recommender = Recommender(load_shipped_profile("samsung-980-pro-1tb"))
    example = tomllib.loads(Path("examples/page-reads.toml").read_text(encoding="utf-8"))
    demand = example["workload"]["demand_bytes_per_second"]

    def ask(number: int) -> Recommendation:
        example["workload"]["demand_bytes_per_second"] = demand + number
        return recommender.recommend(parse_workload(example))

    median, _ = median_of(40, ask)
    print(f"\nthe shipped example: median {median * 1e3:.1f} ms")
    assert median <= EXAMPLE_SECONDS


def test_an_answer_over_very_many_candidates() -> None:
    recommender = Recommender(load_shipped_profile("samsung-980-pro-1tb"))
    wide = question(0, "read").model_dump(mode="json", exclude_defaults=True)
    wide["workload"]["request_bytes_coalescible"] = 131072
    wide["concurrency_max"] = "unbounded"
    wide["free"] |= {
        "request_bytes": [4096 << power for power in range(6)],
        "queue_depth": list(range(1, 129)), "jobs": list(range(1, 33)),
        "scheduler": ["none", "kyber"], "power_state": [0, 1],
    }  # fmt: skip

    def ask(number: int) -> Recommendation:
        wide["workload"]["demand_operations_per_second"] = 20_000.0 + number
        return recommender.recommend(parse_workload(wide))

    median, found = median_of(5, ask)
    allowed = MANY_SECONDS * found.counts.total / MANY
    print(f"\n{found.counts.total:,} candidates: median {median:.2f} s, allowed {allowed:.2f} s")
    assert found.counts.total >= MANY
    assert median <= allowed
