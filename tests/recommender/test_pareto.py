"""The front is exact, ties are broken the same way every time, near misses are the nearest."""

from __future__ import annotations

import moocore
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from iojoule.model.evaluate.columns import as_reference, habits_of
from iojoule.model.evaluate.frame import Frame
from iojoule.recommender import pareto

costs_of = npst.arrays(
    np.float64,
    st.tuples(st.integers(1, 60), st.just(3)),
    elements=st.integers(0, 6).map(float),
)


def frame_of(rows: int, seed: int = 0) -> Frame:
    random = np.random.default_rng(seed)
    zeros = np.zeros(rows, dtype=np.intp)
    return Frame(
        np.ones(rows), zeros, np.full(rows, 4096.0), 2.0 ** random.integers(0, 9, rows),
        2.0 ** random.integers(0, 6, rows), random.integers(2, 4, rows), zeros,
        np.zeros(rows, dtype=bool), random.integers(0, 2, rows), random.integers(0, 3, rows),
        np.full(rows, np.nan), np.full(rows, np.nan), np.full(rows, np.nan),
        background_state=zeros,
        cores=np.full(rows, np.inf),
        host=as_reference(rows), **habits_of({}, rows, 4096),
    )  # fmt: skip


def beaten(costs: np.ndarray, row: int) -> bool:
    others = np.delete(costs, row, axis=0)
    return bool(((others <= costs[row]).all(axis=1) & (others < costs[row]).any(axis=1)).any())


@settings(deadline=None)
@given(
    costs=npst.arrays(np.float64, st.integers(1, 9), elements=st.floats(1e-30, 1e30)),
    noise=st.integers(-9, 9),
)
def test_what_is_equal_but_for_rounding_errors_is_equal(costs: np.ndarray, noise: int) -> None:
    resolved = pareto.without_rounding_errors(costs)
    assert resolved == pytest.approx(costs, rel=1e-9)
    assert (pareto.without_rounding_errors(resolved) == resolved).all()
    # some last bits more or less, as another order of additions makes them
    shifted = resolved + noise * np.spacing(resolved)
    assert (pareto.without_rounding_errors(shifted) == resolved).all()


def test_what_is_infinite_stays_so() -> None:
    kept = np.array([np.inf, -np.inf, 0.0])
    assert (pareto.without_rounding_errors(kept) == kept).all()


@settings(deadline=None)
@given(costs=costs_of, seed=st.integers(0, 5))
def test_the_front_is_what_brute_force_finds(costs: np.ndarray, seed: int) -> None:
    frame = frame_of(len(costs), seed)
    found = pareto.front(costs, frame)
    expected = {tuple(costs[row]) for row in range(len(costs)) if not beaten(costs, row)}
    assert {tuple(row) for row in costs[found]} == expected
    assert len(found) == len(expected), "equal costs are shown once"


@settings(deadline=None)
@given(
    costs=npst.arrays(
        np.float64,
        st.tuples(st.integers(0, 80), st.integers(1, 5)),
        elements=st.one_of(st.integers(-3, 3).map(float), st.floats(-1e300, 1e300)),
    )
)
def test_the_first_of_equal_rows_that_none_beats_is_not_dominated(costs: np.ndarray) -> None:
    first = np.array(
        [not (costs[:row] == costs[row]).all(axis=1).any() for row in range(len(costs))], dtype=bool
    )
    best = np.array([not beaten(costs, row) for row in range(len(costs))], dtype=bool)
    assert (pareto.non_dominated(costs) == (best & first)).all()


@pytest.mark.parametrize("shape", ["sphere", "line", "cloud", "steps", "copies"])
def test_many_points_have_the_front_that_another_algorithm_finds(shape: str) -> None:
    random = np.random.default_rng(7)
    costs = np.abs(random.standard_normal((20_000, 3)))
    if shape == "sphere":  # every point is on the front
        costs = -costs / np.linalg.norm(costs, axis=1, keepdims=True)
    elif shape == "line":
        costs = np.stack([costs[:, 0], -costs[:, 0], np.round(costs[:, 1], 1)], axis=1)
    elif shape == "steps":
        costs = np.round(costs * 5)
    elif shape == "copies":
        costs = costs[random.integers(0, 300, len(costs))]
    assert (pareto.non_dominated(costs) == moocore.is_nondominated(costs)).all()


@settings(deadline=None)
@given(costs=costs_of, seed=st.integers(0, 5))
def test_the_simplest_of_equals_stands_for_them(costs: np.ndarray, seed: int) -> None:
    frame = frame_of(len(costs), seed)
    order = pareto.simplest_first(frame)
    rank = np.empty(len(order), dtype=int)
    rank[order] = np.arange(len(order))
    for row in pareto.front(costs, frame):
        equals = np.flatnonzero((costs == costs[row]).all(axis=1))
        assert rank[row] == rank[equals].min()


def test_fewer_jobs_come_before_less_depth_before_no_scheduler() -> None:
    frame = frame_of(200, 3)
    order = pareto.simplest_first(frame)
    keys = [(frame.jobs[row], frame.queue_depth[row], frame.scheduler[row] > 0) for row in order]
    assert keys == sorted(keys)


@settings(deadline=None)
@given(costs=costs_of, most=st.integers(2, 20))
def test_thinning_keeps_the_ends(costs: np.ndarray, most: int) -> None:
    kept = pareto.thin(costs, most)
    assert len(kept) == min(most, len(costs))
    assert len(set(kept.tolist())) == len(kept)
    assert costs[kept[0], 0] == costs[:, 0].min()
    assert costs[kept[-1], 0] == costs[:, 0].max()


@settings(deadline=None)
@given(costs=costs_of)
def test_the_nearest_miss_misses_by_the_least(costs: np.ndarray) -> None:
    violations = costs + 0.5
    rows = pareto.nearest(violations, 5)
    assert len(rows) == min(5, len(costs))
    assert len(set(rows.tolist())) == len(rows)
    worst = violations.max(axis=1)
    assert worst[rows[0]] == worst.min()
    assert (np.diff(worst[rows]) >= 0).all()


def test_within_one_percent_evidence_then_simplicity_wins() -> None:
    frame = frame_of(4, 1)
    evidence = np.array([3, 1, 3, 0])
    objective = np.array([100.0, 100.5, 100.9, 102.0])
    nobody = np.array([], dtype=np.intp)
    assert pareto.choose(objective, evidence.__getitem__, nobody, frame, 0.01) == 1
    alike = np.array([3, 3, 3, 3])
    simplest = min([0, 1, 2], key=lambda row: pareto.simplest_first(frame).tolist().index(row))
    assert pareto.choose(objective, alike.__getitem__, nobody, frame, 0.01) == simplest


def test_today_stays_unless_the_change_saves_enough() -> None:
    frame = frame_of(4, 1)
    evidence = np.array([3, 1, 3, 0])
    objective = np.array([100.0, 100.5, 100.9, 104.0])
    today = np.array([3])
    assert pareto.choose(objective, evidence.__getitem__, today, frame, 0.05) == 3
    others_save_less = pareto.choose(objective, evidence.__getitem__, today, frame, 0.035)
    assert others_save_less == 0
    assert pareto.choose(objective, evidence.__getitem__, today, frame, 0.02) == 1
    assert pareto.choose(objective, evidence.__getitem__, np.array([2]), frame, 0.0) == 1
    assert pareto.choose(objective, evidence.__getitem__, np.array([0]), frame, 0.0) == 0


@settings(deadline=None)
@given(costs=costs_of)
def test_whoever_is_beaten_is_not_on_the_front(costs: np.ndarray) -> None:
    for row in range(len(costs)):
        better = pareto.beating(costs, costs[row])
        unbeaten = not ((costs <= costs[row]).all(axis=1) & (costs < costs[row]).any(axis=1)).any()
        assert (len(better) == 0) == unbeaten
        assert all(costs[one].sum() < costs[row].sum() for one in better)
