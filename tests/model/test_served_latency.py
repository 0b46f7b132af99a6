"""Latencies at a served rate: how independent errors join."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.model.evaluate.latency import _joined
from iojoule.model.evaluate.quantities import NORMAL_90

logs = st.floats(0.0, 3.0)


@given(st.sampled_from([-1.5, -1.0, 0.5, 1.0]), logs, logs)
def test_errors_that_do_not_depend_on_each_other_join_as_squares(
    scale: float, profile: float, model: float
) -> None:
    value = np.array([1e5])
    end = value * np.exp(scale * profile)
    found = _joined(value, end, scale, np.array([model / NORMAL_90]))
    far = np.log(found / value)
    assert far == pytest.approx(scale * np.hypot(profile, model))


def test_what_is_unbounded_stays_unbounded() -> None:
    value, end = np.array([1e5, np.inf]), np.array([np.inf, np.inf])
    assert np.isinf(_joined(value, end, 1.0, np.array([0.2, 0.2]))).all()
