"""Of a drive built otherwise, the simulated ratio knows more than the simulator's own figure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from iojoule.model.evaluate.performance import log_sd
from iojoule.sim.modified_drive import ERRORS
from tests.sim.hidden_builds import BUILDS, Miss, misses

UNSEEN = range(100, 108)
"""Drives that the stated errors were not found from."""

NORMAL_90 = 1.645


def of(found: Sequence[Miss], quantity: str) -> list[Miss]:
    return [each for each in found if each.quantity == quantity]


def errors(found: Sequence[Miss], name: str) -> np.ndarray:
    return np.abs([getattr(each, name) for each in found])


@pytest.mark.slow
def test_a_ratio_errs_less_than_the_absolute_figure() -> None:
    found = list(misses(100, (16,), (4096,), BUILDS[:3]))
    for quantity in ("latency", "watts"):
        some = of(found, quantity)
        assert np.median(errors(some, "ratio")) < 0.5 * np.median(errors(some, "absolute"))


@pytest.mark.soak
def test_stated_intervals_hold_on_drives_that_were_not_looked_at() -> None:
    found = [miss for number in UNSEEN for miss in misses(number, (1, 16, 64, 256), (4096, 131072))]
    for error in ERRORS:
        some = of(found, error.quantity)
        half = NORMAL_90 * log_sd(error, np.array([each.change for each in some]))
        inside = errors(some, "ratio") <= half
        moved = np.abs([each.change for each in some]) > 0.02
        assert np.median(errors(some, "ratio")) < 0.5 * np.median(errors(some, "absolute"))
        assert np.quantile(errors(some, "ratio"), 0.9) < np.quantile(errors(some, "absolute"), 0.9)
        assert inside.mean() >= 0.9
        assert inside[moved].mean() >= 0.85
