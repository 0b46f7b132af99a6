from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from iojoule.datasets.schema import from_row
from iojoule.model.evaluate.prediction import Prediction
from iojoule.model.fit.contributions import LARGEST_SHOWN, agreement


def test_errors_coverage_and_width_are_those_of_the_closed_form() -> None:
    truth = np.full(20, 100.0)
    value = np.array([110.0] * 10 + [200.0] * 10)
    band = SimpleNamespace(value=value, low=value / 1.5, high=value * 1.5)
    rows = [
        from_row({"operation": "read", "request_bytes": 4096, "device_power_watts": watts})
        for watts in truth
    ]
    predicted = Prediction(cast(Any, {"device_power_watts": band}), np.zeros(20), cast(Any, None))
    (one,), largest = agreement(rows, list(range(1, 21)), predicted)
    assert (one.quantity, one.rows) == ("device_power_watts", 20)
    assert one.median_error == one.bias == pytest.approx(0.55)
    assert one.covered == 0.5
    assert one.width == pytest.approx(2.25)
    assert [each.run for each in largest] == list(range(11, 11 + LARGEST_SHOWN))


def test_nothing_predicted_is_nothing_compared() -> None:
    assert agreement([], [], None) == ((), ())
