"""Budgets: an answer takes a few times as long as predicting its candidates once, and that as long
as so many cube roots, as machines differ by more than versions do; a process below 400 MB."""

from __future__ import annotations

import resource
import statistics
import time
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iojoule.datasets.profile import load_shipped_profile
from iojoule.recommender.candidates import build_candidates
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import WorkloadProfile, parse_workload

CANDIDATES, MANY, FEW = 20_000, 800_000, 10
FREE = ("request_bytes", "queue_depth", "jobs", "engine", "completion", "submission_polling",
        "scheduler", "power_state")  # fmt: skip
PEAK_BYTES = 400e6
RATIO_MAX, FEW_RATIO_MAX, ROOTS_MAX = 3.0, 12.0, 1200.0


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


Asked = Callable[[int], WorkloadProfile]


def seconds_of(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def predicted(recommender: Recommender, workload: WorkloadProfile) -> None:
    """All candidates of a question, once."""
    predictor = recommender.predictor
    for _, frame in build_candidates(
        recommender.profile, predictor.performance.paths, workload
    ).blocks():
        predictor.predict(frame)


def check(ask: Asked, answers: int, candidates: int, most: float) -> None:
    """Hold the median of some answers against predicting the candidates, one after the other."""
    recommender = Recommender(load_shipped_profile("samsung-980-pro-1tb"))
    found = recommender.recommend(ask(0)).counts.total
    assert found >= candidates
    roots = np.linspace(0.1, 1.0, found)
    ratios, each, seconds = [], [], []
    for number in range(1, answers + 1):
        workload = ask(number)
        seconds.append(seconds_of(partial(recommender.recommend, workload)))
        once = seconds_of(partial(predicted, recommender, workload))
        ratios.append(seconds[-1] / once)
        each.append(once / seconds_of(partial(np.cbrt, roots)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    ratio, passes = statistics.median(ratios), statistics.median(each)
    print(
        f"\n{found:,} candidates: median {statistics.median(seconds) * 1e3:.1f} ms, {ratio:.1f} "
        f"times predicting them, which takes {passes:.0f} cube roots each, peak {peak / 1e6:.0f} MB"
    )
    assert ratio <= most
    assert passes <= ROOTS_MAX or found < CANDIDATES
    assert peak <= PEAK_BYTES or found >= MANY


@pytest.mark.parametrize("operation", ["read", "mixed"])
def test_an_answer_over_every_candidate_is_quick(operation: str) -> None:
    check(lambda number: question(number, operation), 40, CANDIDATES, RATIO_MAX)


def test_the_shipped_example_is_answered_at_once() -> None:
    example = tomllib.loads(Path("examples/page-reads.toml").read_text(encoding="utf-8"))
    demand = example["workload"]["demand_bytes_per_second"]

    def ask(number: int) -> WorkloadProfile:
        example["workload"]["demand_bytes_per_second"] = demand + number
        return parse_workload(example)

    check(ask, 40, FEW, FEW_RATIO_MAX)


def test_an_answer_over_very_many_candidates() -> None:
    wide = question(0, "read").model_dump(mode="json", exclude_defaults=True)
    wide["workload"]["request_bytes_coalescible"] = 131072
    wide["concurrency_max"] = "unbounded"
    wide["free"] |= {
        "request_bytes": [4096 << power for power in range(6)],
        "queue_depth": list(range(1, 129)), "jobs": list(range(1, 33)),
        "scheduler": ["none", "kyber"], "power_state": [0, 1],
    }  # fmt: skip

    def ask(number: int) -> WorkloadProfile:
        wide["workload"]["demand_operations_per_second"] = 20_000.0 + number
        return parse_workload(wide)

    check(ask, 5, MANY, RATIO_MAX)
