"""Configurations as points of the unit cube."""

from typing import Any

import numpy as np
import pytest

from iojoule.datasets.schema import Configuration
from iojoule.model.fit.gaussian_process import coordinates


def of(*changes: dict[str, Any]) -> list[Configuration]:
    base = {"request_bytes": 4096, "engine": "io_uring", "completion": "interrupt"}
    return [Configuration.model_validate({**base, **change}) for change in changes]


def test_depth_counts_requests_in_flight_by_factors() -> None:
    found, names = coordinates(of({"queue_depth": 1}, {"queue_depth": 4, "jobs": 4}))
    assert names == ("queue_depth", "jobs")
    assert found.tolist() == [[0, 0], [1, 1]]
    found, names = coordinates(of({"queue_depth": 4}, {"jobs": 4}, {"queue_depth": 16}))
    assert found[:, 0] == pytest.approx([0, 0, 1])


def test_words_are_switches_and_states_numbers() -> None:
    found, names = coordinates(
        of({"power_state": 0}, {"power_state": 2}, {"power_state": 1, "completion": "polled"})
    )
    assert names == ("completion=polled", "power_state")
    assert found.tolist() == [[0, 0], [0, 1], [1, 0.5]]


def test_what_is_unknown_somewhere_is_a_word() -> None:
    _, names = coordinates(of({"power_state": 0}, {}))
    assert names == ("power_state=None",)


def test_one_configuration_is_a_point() -> None:
    found, names = coordinates(of({}, {}))
    assert np.all(found == 0)
    assert len(names) == 1
