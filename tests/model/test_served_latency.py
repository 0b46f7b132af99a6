"""Latencies at a served rate: how independent errors join."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iojoule.api.application.predictors import Predictors
from iojoule.datasets.profile import load_shipped_profile
from iojoule.model.evaluate.latency import PERCENTILES, QUANTITIES, _joined, burst_wait
from iojoule.model.evaluate.prediction import Prediction
from iojoule.model.evaluate.quantities import NORMAL_90
from tests.model.test_write_buffer import buffered

logs = st.floats(0.0, 3.0)


@cache
def predictors() -> Predictors:
    return Predictors(load_shipped_profile("samsung-980-pro-1tb"))


@given(st.sampled_from([-1.5, -1.0, 0.5, 1.0]), logs, logs)
def test_errors_that_do_not_depend_on_each_other_join_as_squares(
    scale: float, profile: float, model: float
) -> None:
    value = np.array([1e5])
    end = value * np.exp(scale * profile)
    found = _joined(value, end, scale, np.array([model / NORMAL_90]))
    far = np.log(found / value)
    assert far == pytest.approx(scale * np.hypot(profile, model))


@given(st.floats(0.5, 2.0), st.sampled_from(["poisson", "linear", "bursts"]))
@settings(max_examples=60, deadline=None)
def test_every_interval_around_capacity_holds_its_value(load: float, process: str) -> None:
    columns = {"operation": ["read"], "queue_depth": [4], "jobs": [2]}
    capacity = predictors().predict_columns(columns, {}, 1)[0]["iops"].value[0]
    columns |= {
        "demand_operations_per_second": [load * capacity],
        "arrival_process": [process],
    }
    found, _ = predictors().predict_columns(columns, {}, 1)
    for name in QUANTITIES:
        low, value, high = (getattr(found[name], end)[0] for end in ("low", "value", "high"))
        assert low <= value <= high, (name, load)
        assert np.isinf(value) == (load >= 1.0)


def in_bursts(requests: float, depth: int, gap: float = 0.01) -> Prediction:
    """Bursts of so many requests, so many seconds apart."""
    columns = {
        "operation": ["read"],
        "queue_depth": [depth],
        "jobs": [32],
        "demand_operations_per_second": [requests / gap],
        "idle_gap_seconds_p50": [gap],
    }
    return predictors().predict_columns(columns, {}, 1)[0]


@pytest.mark.parametrize("name", QUANTITIES)
def test_a_burst_of_one_request_waits_for_no_other(name: str) -> None:
    shallow, deep = (in_bursts(1.0, depth, gap=1.0)[name].value[0] for depth in (1, 256))
    assert deep == pytest.approx(shallow, rel=0.01)


def test_a_burst_smaller_than_a_request_is_one_request() -> None:
    columns = {"operation": ["read"], "queue_depth": [32], "demand_operations_per_second": [10.0]}
    small, one = (
        predictors().predict_columns(columns | {"burst_bytes": [size]}, {}, 1)[0]
        for size in (100.0, 4096.0)
    )
    for name in QUANTITIES:
        assert small[name].value[0] == pytest.approx(one[name].value[0], rel=1e-3), name


@pytest.mark.parametrize("name", QUANTITIES)
@given(st.floats(1.0, 800.0), st.floats(1.0, 10.0))
@settings(max_examples=20, deadline=None)
def test_larger_bursts_answer_later_up_to_a_full_queue(
    name: str, requests: float, more: float
) -> None:
    smaller, larger = (in_bursts(burst, 16)[name] for burst in (requests, requests * more))
    for end in ("low", "value", "high"):
        assert getattr(larger, end)[0] >= getattr(smaller, end)[0] * (1.0 - 1e-4), end


def waits_within(load: float, times: float) -> float:
    """P(wait <= t) of M/D/1, t in service times (A. K. Erlang, 1909)."""
    k = np.arange(int(times) + 1)
    factorials = np.cumprod(np.maximum(k, 1.0))
    terms = (-load * (times - k)) ** k * np.exp(load * (times - k)) / factorials
    return float((1.0 - load) * terms.sum())


@pytest.mark.parametrize("name", ["latency_p99_ns", "latency_p999_ns"])
@pytest.mark.parametrize("load", [0.005, 0.02, 0.1, 0.3, 0.6, 0.8])
def test_a_burst_waits_for_others_as_in_a_queue_with_one_constant_server(
    name: str, load: float
) -> None:
    wait = float(burst_wait(name, np.array([load]))[0])
    share = 1.0 - PERCENTILES[name]
    if wait > 0.0:
        assert 1.0 - waits_within(load, wait) == pytest.approx(share, rel=0.2)
    else:
        assert load <= share


@pytest.mark.parametrize("load", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("depth", [4, 64])
def test_p99_in_bursts_is_that_of_wait_and_service_together(depth: int, load: float) -> None:
    columns = {"operation": ["read"], "queue_depth": [depth]}
    full = predictors().predict_columns(columns, {}, 1)[0]
    iops = full["iops"].value[0]
    columns |= {"demand_operations_per_second": [load * iops], "arrival_process": ["bursts"]}
    found = predictors().predict_columns(columns, {}, 1)[0]
    source = np.random.default_rng(1)
    takes, count = 1e9 * depth / iops, 400_000
    ahead = np.cumsum(takes - source.exponential(takes / load, count))
    waits = ahead - np.minimum.accumulate(np.minimum(ahead, 0.0))
    median, late = (full[name].value[0] for name in ("latency_p50_ns", "latency_p99_ns"))
    own = median * np.exp(source.standard_normal(count) * np.log(late / median) / 2.3263)
    true = np.quantile(waits + own, 0.99)
    assert found["latency_p99_ns"].value[0] == pytest.approx(true, rel=0.12)


@pytest.mark.parametrize("operation", ["read", "write", "mixed"])
def test_a_drive_that_saturates_at_once_lets_nothing_wait_below_its_capacity(
    operation: str,
) -> None:
    profile = load_shipped_profile("samsung-980-pro-1tb")
    columns = {"operation": [operation], "queue_depth": [32], "request_bytes": [65536]}
    if operation == "mixed":
        columns["read_fraction"] = [0.5]
    capacity = predictors().predict_columns(columns, {}, 1)[0]["iops"].value[0]
    columns |= {
        "demand_operations_per_second": [0.5 * capacity],
        "arrival_process": ["poisson"],
    }
    means = []
    for factor in (1.0, 2.0, 4.0):
        surfaces = [
            one.model_copy(update={"sharpness": [factor * k for k in one.sharpness]})
            for one in profile.surfaces
        ]
        sharper = Predictors(profile.model_copy(update={"surfaces": surfaces}))
        found = sharper.predict_columns(columns, {}, 1)[0]
        means.append(found["latency_mean_ns"].value[0])
    assert means[0] > 1.01 * means[1] > 1.01**2 * means[2]


@pytest.mark.parametrize("buffer_bytes", [None, 4e6])
@pytest.mark.parametrize("load", [0.3, 0.9])
def test_one_write_in_a_million_changes_no_latency(buffer_bytes: float | None, load: float) -> None:
    profile = buffered(load_shipped_profile("samsung-980-pro-1tb"), buffer_bytes)
    columns = {
        "operation": ["read", "mixed"],
        "read_fraction": [None, 1.0 - 1e-6],
        "pattern": ["sequential"] * 2,
        "request_bytes": [1 << 20] * 2,
        "queue_depth": [32] * 2,
    }
    capacity = Predictors(profile).predict_columns(columns, {}, 2)[0]["iops"].value[0]
    columns["demand_operations_per_second"] = [load * capacity] * 2
    found, _ = Predictors(profile).predict_columns(columns, {}, 2)
    for name in QUANTITIES:
        for end in ("low", "value", "high"):
            reads, nearly = getattr(found[name], end)
            assert nearly == pytest.approx(reads, rel=0.02), (name, end)


def test_an_unbounded_value_has_the_lower_end_of_a_faster_drive() -> None:
    found = _joined(np.array([np.inf]), np.array([2e5]), -1.0, np.array([0.2]))
    assert found[0] == 2e5


def test_what_is_unbounded_stays_unbounded() -> None:
    value, end = np.array([1e5, np.inf]), np.array([np.inf, np.inf])
    assert np.isinf(_joined(value, end, 1.0, np.array([0.2, 0.2]))).all()
