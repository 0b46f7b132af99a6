"""Budgets: 20,000 candidates judged and their Pareto set found in 3 ms, 10^6 in 0.5 s and 400 MB.

Times are of the search: laying the question out, every candidate's latencies, watts and bounds,
what a step of each bound would cost, and the front. What an answer adds is the same for any number
of candidates and has its own budget (`test_recommend.py`). Beside each stands the search that asks
the model row by row, on the same machine in the same minute.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iojoule.datasets.profile import load_shipped_profile
from iojoule.recommender import recommend
from iojoule.recommender.candidates import build_candidates
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.screen import Judge
from iojoule.recommender.space import Candidates
from iojoule.recommender.steps import Steps
from iojoule.recommender.workload import WorkloadProfile, parse_workload

FREE = ("request_bytes", "engine", "completion", "submission_polling", "scheduler", "power_state")
THOUSANDS = {"queue_depth": "all", "jobs": "all"}
MILLION = {"queue_depth": list(range(1, 97)), "jobs": list(range(1, 25))}
PEAK_BYTES = 400e6


def question(number: int, operation: str, free: dict[str, Any]) -> WorkloadProfile:
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
            "free": dict.fromkeys(FREE, "all") | free,
            "sla": {"latency_p99_ns_max": 5e6 + number},
        }
    )


def seconds_of(ask: Callable[[int], tuple[Judge, Candidates]], repeats: int) -> list[float]:
    found = []
    for number in range(repeats):
        judge, candidates = ask(number)
        start = time.perf_counter()
        recommend._search(judge, candidates, Steps(judge))
        found.append(time.perf_counter() - start)
    return found


@pytest.mark.parametrize("operation", ["read", "write", "mixed"])
@pytest.mark.parametrize(
    ("free", "least", "repeats", "budget"),
    [(THOUSANDS, 20_000, 60, 0.003), (MILLION, 1_000_000, 5, 0.5)],
    ids=["20,000", "10^6"],
)
def test_every_candidate_is_judged_in_time(
    monkeypatch: pytest.MonkeyPatch,
    operation: str, free: dict[str, Any], least: int, repeats: int, budget: float,
) -> None:  # fmt: skip
    recommender = Recommender(load_shipped_profile("samsung-980-pro-1tb"))
    paths = recommender.predictor.performance.paths

    def ask(number: int) -> tuple[Judge, Candidates]:
        asked = question(number, operation, free)
        candidates = build_candidates(recommender.profile, paths, asked)
        return recommender._judge(asked, candidates)[0], candidates

    seconds = seconds_of(ask, repeats)
    count = ask(0)[1].count
    with monkeypatch.context() as patch:
        patch.setattr(recommend, "judged_blocks", row_by_row)
        plain = seconds_of(ask, max(repeats // 10, 1))
    print(
        f"\nsearch {operation}: {count:,} candidates, least {min(seconds) * 1e3:.2f} ms, median "
        f"{statistics.median(seconds) * 1e3:.2f} ms; row by row least {min(plain) * 1e3:.1f} ms, "
        f"{min(plain) / min(seconds):.1f} times as long; load {os.getloadavg()[0]:.1f}"
    )
    assert count >= least
    assert min(seconds) <= budget


def row_by_row(judge: Judge, candidates: Candidates) -> Any:
    for frame in candidates.blocks():
        yield judge.screen(frame, len(candidates.states))


def test_a_million_candidates_fit_into_little_memory() -> None:
    program = f"""
import resource, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_screening import MILLION, question
from iojoule.datasets.profile import load_shipped_profile
from iojoule.recommender.recommend import Recommender
answer = Recommender(load_shipped_profile("samsung-980-pro-1tb")).recommend(
    question(1, "mixed", MILLION))
print(answer.counts.total, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    count, peak = map(int, ended.stdout.split())
    print(f"\na process that answers {count:,} candidates: peak {peak / 1e6:.0f} MB")
    assert count >= 1_000_000
    assert peak <= PEAK_BYTES
