"""What is compiled says what the model says row by row, whatever is asked of whichever drive."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import load_shipped_profile, shipped_profiles
from iojoule.recommender import recommend
from iojoule.recommender.answer import Recommendation, Row
from iojoule.recommender.candidates import build_candidates
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.screen import Judge
from iojoule.recommender.screening import screening
from iojoule.recommender.space import Candidates
from iojoule.recommender.workload import WorkloadProfile, parse_workload

DRIVES = tuple(shipped_profiles())
CLOSE = 1e-9
EVERY_ROW = 100_000


@cache
def recommender_of(drive: str) -> Recommender:
    return Recommender(load_shipped_profile(drive))


def asked_of(recommender: Recommender, question: dict[str, Any]) -> tuple[Judge, Candidates]:
    workload = parse_workload(question)
    candidates = build_candidates(
        recommender.profile, recommender.predictor.performance.paths, workload
    )
    return recommender._judge(workload, candidates)[0], candidates


def plain_blocks(judge: Judge, candidates: Candidates) -> Iterator[Any]:
    for frame in candidates.blocks():
        yield judge.screen(frame, len(candidates.states))


def answers(
    recommender: Recommender, asked: WorkloadProfile
) -> tuple[Recommendation, Recommendation]:
    """As it is, and row by row."""
    said = recommender.recommend(asked, rows=EVERY_ROW)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recommend, "judged_blocks", plain_blocks)
        return said, recommender.recommend(asked, rows=EVERY_ROW)


sizes = st.sampled_from([512, 4096, 8192, 65536])


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A drive and a question for it."""
    drive = draw(st.sampled_from(DRIVES))
    profile = recommender_of(drive).profile
    unknown = {
        "device": profile.device_power, "system": profile.system_power,
        "endurance": profile.endurance_bytes_written,
    }  # fmt: skip
    operation = draw(st.sampled_from(["read", "write", "mixed"]))
    useful = draw(sizes)
    workload: dict[str, Any] = {
        "operation": operation, "pattern": draw(st.sampled_from(["random", "sequential"])),
        "useful_request_bytes": useful,
        "request_bytes_coalescible": useful * draw(st.sampled_from([1, 4, 48, 1024])),
    }  # fmt: skip
    if operation == "mixed":
        workload["read_fraction"] = draw(st.floats(0.01, 0.99))
    demand = draw(st.sampled_from([None, 2e6, 8e7, 9e8]))
    if demand is not None:
        workload["demand_bytes_per_second"] = demand * draw(st.floats(0.5, 1.5))
        workload["arrival_process"] = draw(st.sampled_from([None, "poisson", "bursts"]))
    sla: dict[str, Any] = {"confidence": draw(st.floats(0.5, 0.99))}
    for name, low, high in (
        ("throughput_bytes_per_second_min", 1e6, 3e9), ("iops_min", 1e3, 5e5),
        ("latency_mean_ns_max", 2e4, 1e8), ("latency_p50_ns_max", 2e4, 1e7),
        ("latency_p99_ns_max", 1e7, 1e9), ("latency_p999_ns_max", 1e9, 1e10),
        ("endurance_years_min", 1e-2, 1e2), ("device_power_watts_max", 3.0, 9.0),
        ("device_cpu_power_watts_max", 45.0, 90.0), ("system_power_watts_max", 91.0, 300.0),
    ):  # fmt: skip
        asks = draw(st.integers(0, 9)) < 2
        if name == "iops_min" and "throughput_bytes_per_second_min" in sla:
            continue  # one of the two is enough
        if asks and unknown.get(name.split("_")[0], 0) is not None:
            sla[name] = float(np.exp(draw(st.floats(np.log(low), np.log(high)))))
    sla["soft"] = draw(st.lists(st.sampled_from(sorted(sla)), unique=True, max_size=2))
    sla["soft"] = [name for name in sla["soft"] if name.endswith(("_min", "_max"))]
    free = ["request_bytes", "queue_depth", "jobs", "engine", "completion",
            "submission_polling", "scheduler", "power_state"]  # fmt: skip
    state = {
        "device_state": draw(st.sampled_from([None, "fresh", "steady", "collecting"])),
        "host_bytes_written_since_purge": draw(st.sampled_from([None, 1e9, 1.2e11, 1e12])),
        "fill_fraction": draw(st.sampled_from([None, 0.0, 0.6, 1.0])),
    }
    objective = draw(st.sampled_from([None, "watts", "joules_per_useful_gb", "edp"]))
    return drive, {
        "workload": workload, "sla": sla, "state": state,
        "free": {name: "all" for name in free if draw(st.integers(0, 3))},
        "scope": draw(st.sampled_from(["device", "device_cpu", "system"])),
        "objective": objective,
        "max_concurrency": draw(st.sampled_from([None, 64, 700])),
        "percentage_used": draw(st.sampled_from([None, 30.0])),
    }  # fmt: skip


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases())
def test_every_row_is_what_the_model_says(case: tuple[str, dict[str, Any]]) -> None:
    drive, question = case
    try:
        judge, candidates = asked_of(recommender_of(drive), question)
    except InputError:
        return
    screened = screening(judge, candidates)
    if screened is None:
        return
    plain = list(plain_blocks(judge, candidates))
    first = 0
    for block in screened.blocks(rows=5_000):
        rows = slice(first, first + len(block.frame))
        first = rows.stop
        for name in ("costs", "reached", "violations"):
            expected = np.concatenate([getattr(one, name) for one in plain])[rows]
            above = float(name == "violations")  # by how much a ratio of limits exceeds 1
            np.testing.assert_allclose(
                getattr(block, name) + above, expected + above, rtol=CLOSE, err_msg=name
            )
        taken = block.frame.take(slice(2, 9))
        same = np.concatenate([one.frame.request_bytes for one in plain])[rows][2:9]
        assert (taken.request_bytes == same).all()
    assert first == candidates.count


def costs_of(row: Row, said: Recommendation) -> list[float]:
    """What the search compares, to be minimised: objective, capacity and tail."""
    tail = row.latency_p99_ns or row.latency_mean_ns
    costs = [-row.capacity_bytes_per_second.value, tail.value]
    if said.ranked_by != "performance":
        power = getattr(row, f"{said.scope.value}_power_watts").value
        energy = power / row.throughput_bytes_per_second.value
        objectives = {
            "watts": power,
            "joules_per_useful_gb": energy,
            "edp": energy * row.latency_mean_ns.value,
        }
        costs.append(objectives[said.ranked_by])
    return costs


def covers(some: np.ndarray, others: np.ndarray) -> bool:
    """Whether each of the others is no better than one of these, but for rounding."""
    room = 10 * CLOSE * np.abs(others)[:, None]
    return bool((some[None] <= others[:, None] + room).all(axis=2).any(axis=1).all())


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases())
def test_the_answer_is_the_same(case: tuple[str, dict[str, Any]]) -> None:
    drive, question = case
    try:
        said, row_by_row = answers(recommender_of(drive), parse_workload(question))
    except InputError:
        return
    assert said.counts.total == row_by_row.counts.total
    assert said.counts.feasible == row_by_row.counts.feasible
    if said.recommended is None or row_by_row.recommended is None:
        assert said.recommended is row_by_row.recommended
    else:
        np.testing.assert_allclose(
            costs_of(said.recommended, said), costs_of(row_by_row.recommended, said), rtol=CLOSE
        )
    if said.pareto:
        one, other = (
            np.array([costs_of(row, said) for row in each.pareto]) for each in (said, row_by_row)
        )
        assert covers(one, other)
        assert covers(other, one)
    missed = [
        [part.missed_by_percent for miss in one.nearest_misses for part in miss.shortfalls]
        for one in (said, row_by_row)
    ]
    np.testing.assert_allclose(*missed, rtol=1e-6)
