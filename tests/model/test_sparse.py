"""The sparse process is the exact one where its inducing rows are all rows, and near it else."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern, WhiteKernel

from iojoule.model.fitting.series import SeriesTrend
from iojoule.model.fitting.sparse import SparseProcess, pivots

NOISE = 1e-3
KERNEL = 0.1 * Matern([1.0, 2.0], nu=1.5) + WhiteKernel(NOISE)


def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    x = rng.uniform(0.0, 4.0, (n, 2))
    return x, 0.3 * np.sin(x[:, 0]) + 0.1 * x[:, 1] + np.sqrt(NOISE) * rng.standard_normal(n)


def test_all_rows_as_inducing_rows_give_the_exact_process() -> None:
    x, y = rows(60)
    at = np.random.default_rng(6).uniform(0.0, 4.0, (30, 2))
    mean, sd = SparseProcess.fit(KERNEL, x, y, NOISE, x).predict(at)
    exact_mean, exact_sd = (
        GaussianProcessRegressor(KERNEL, optimizer=None).fit(x, y).predict(at, True)
    )
    assert mean == pytest.approx(exact_mean, abs=1e-4)
    assert sd == pytest.approx(exact_sd, rel=1e-3)


def test_fewer_inducing_rows_stay_within_the_noise() -> None:
    x, y = rows(900)
    at = np.random.default_rng(6).uniform(0.2, 3.8, (50, 2))
    mean, sd = SparseProcess.fit(KERNEL, x, y, NOISE).predict(at)
    truth = 0.3 * np.sin(at[:, 0]) + 0.1 * at[:, 1]
    assert np.sqrt(np.mean((mean - truth) ** 2)) < np.sqrt(NOISE) / 2
    assert (sd**2 > NOISE).all()


def test_repeated_rows_are_chosen_once() -> None:
    x, _ = rows(20)
    assert len(set(map(tuple, x[pivots(KERNEL, np.vstack([x, x, x]), NOISE) % 20]))) <= 20
    assert len(pivots(KERNEL, np.vstack([x] * 5), NOISE)) <= 20


def test_a_dense_series_is_interpolated_and_a_scattered_one_is_not() -> None:
    where = np.array([[d, 0.0, 12.0] for d in (0.0, 1.0, 3.0, 4.0, 8.0)])
    trend = SeriesTrend.of(where, ["s"] * 5, where[:, 0] * 0.5, 0.0)
    told = trend.at(np.array([[2.0, 0, 12.0], [6.0, 0, 12.0], [9.0, 0, 12.0]]), ["s"] * 3)
    assert told.value[:2] == pytest.approx([1.0, 3.0])
    assert told.weight == pytest.approx([1.0, 0.5, 0.0])
    assert told.step == pytest.approx([1.0, 2.0, 0.0])  # from one neighbour to the next
    between = np.array([[2.0, 0.0, 12.0]])
    noisy = SeriesTrend.of(where, ["s"] * 5, where[:, 0] * 0.5, 0.25)
    assert noisy.at(between, ["s"]).weight[0] < 0.02
    assert trend.at(where[1:2], ["s"]).weight[0] == 0.0  # measured: nothing to interpolate
    assert trend.at(between, ["another"]).weight[0] == 0.0


def test_a_knee_between_neighbours_is_irregular_and_a_power_law_is_not() -> None:
    depth = np.array([0.0, 2.0, 4.0, 6.0, 8.0])
    where = np.stack([depth, np.zeros(5), np.full(5, 12.0)], axis=1)
    knee = np.log(2.0) * np.maximum(depth - 5.0, 0.0)  # flat, then in proportion to the depth
    between = np.array([[d, 0.0, 12.0] for d in (1.0, 5.0, 7.0)])
    line = SeriesTrend.of(where, ["s"] * 5, depth * 0.3, 0.0)
    smooth = line.at(between, ["s"] * 3).irregular
    bend = SeriesTrend.of(where, ["s"] * 5, knee, 0.0)
    bent = bend.at(between, ["s"] * 3).irregular
    assert smooth == pytest.approx(np.zeros(3), abs=1e-12)
    assert bent[1] > 0.05
    assert bent[0] == pytest.approx(0.0, abs=1e-12)
    assert bent[1] > 2 * bent[2]
    known = bend.at(where, ["s"] * 5).irregular
    assert known == pytest.approx(np.zeros(5))  # nothing lies between a row and itself
