"""Stretches of collecting in made-up runs."""

from __future__ import annotations

import numpy as np
import pytest

from iojoule.model.evaluate.timeline import episodes

STEPS = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5])


def flags(*rows: str) -> np.ndarray:
    return np.array([[one == "#" for one in row] for row in rows])


def test_stretches_are_counted_and_measured() -> None:
    found = episodes(flags("..##...#"), STEPS)
    assert found.pauses.value == 2
    assert found.pause_seconds is not None
    assert found.pause_seconds.value == 2.0, "the last one has not ended"
    assert found.second_start_seconds is not None
    assert found.second_start_seconds.value == 7.0
    assert found.second_seconds is not None
    assert found.second_seconds.value == 0.5


def test_nothing_is_said_of_what_does_not_happen() -> None:
    none = episodes(flags("........", "..##...#"), STEPS)
    assert none.pauses.value == 0
    assert none.pause_seconds is None
    one = episodes(flags("....####"), STEPS)
    assert one.pause_seconds is not None
    assert one.pause_seconds.value == pytest.approx(3.5)
    assert one.second_start_seconds is one.second_seconds is None


def test_runs_without_a_second_stretch_count_as_if_it_came_at_the_end() -> None:
    found = episodes(flags("#.#.....", *["#......."] * 9), STEPS).second_start_seconds
    assert found is not None
    assert (found.value, found.high) == (2.0, 7.5)
