"""Latencies at a served rate: how independent errors join."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iojoule.api.application.predictors import Predictors
from iojoule.datasets.profile import load_shipped_profile
from iojoule.model.evaluate.latency import QUANTITIES, _joined
from iojoule.model.evaluate.quantities import NORMAL_90

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


def test_an_unbounded_value_has_the_lower_end_of_a_faster_drive() -> None:
    found = _joined(np.array([np.inf]), np.array([2e5]), -1.0, np.array([0.2]))
    assert found[0] == 2e5


def test_what_is_unbounded_stays_unbounded() -> None:
    value, end = np.array([1e5, np.inf]), np.array([np.inf, np.inf])
    assert np.isinf(_joined(value, end, 1.0, np.array([0.2, 0.2]))).all()
