"""Monotone interpolation of many series at once is SciPy's of each."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import PchipInterpolator

from iojoule.model.fit.residual import between, four_points

VALUES = st.floats(-20.0, 20.0).map(lambda value: round(value, 3))


@given(st.data(), st.integers(2, 9))
def test_it_is_the_curve_of_scipy(data: st.DataObject, count: int) -> None:
    steps = data.draw(st.lists(st.floats(0.2, 4.0), min_size=count, max_size=count))
    x = np.cumsum(steps)
    y = np.array(data.draw(st.lists(VALUES, min_size=count, max_size=count)))
    at = np.linspace(x[0], x[-1], 23)[1:-1]
    upper = np.clip(np.searchsorted(x, at, side="right"), 1, count - 1)
    found = between(*four_points(x, y, upper), at)
    np.testing.assert_allclose(found, PchipInterpolator(x, y)(at), rtol=1e-9, atol=1e-9)
