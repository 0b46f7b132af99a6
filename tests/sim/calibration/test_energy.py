"""Joules from watts: found where the data tell them, named where they do not."""

from __future__ import annotations

import numpy as np
import pytest

from iojoule.sim.calibration.energy import fit_energy
from tests.sim.calibration.hidden import PRESET

FIELDS = ("controller_active_watts", "page_read_joules", "link_joules_per_byte")
TRUTH = np.array([2.2, 5e-6, 6e-10])


def test_independent_events_give_their_joules() -> None:
    random = np.random.default_rng(0)
    rates = np.stack([np.ones(40), random.uniform(0, 5e5, 40), random.uniform(0, 3e9, 40)], axis=1)
    fit = fit_energy(PRESET, FIELDS, rates, rates @ TRUTH, np.ones(40))
    assert fit.values == pytest.approx(TRUTH, rel=0.02)
    assert fit.indistinct() == []


def test_events_that_go_together_are_named_and_their_sum_is_right() -> None:
    pages = np.linspace(1e3, 4e5, 40)
    rates = np.stack([np.ones(40), pages, 16384 * pages], axis=1)
    fit = fit_energy(PRESET, FIELDS, rates, rates @ TRUTH, np.ones(40))
    assert fit.watts(rates) == pytest.approx(rates @ TRUTH, rel=0.01)
    named = [names for names, _ in fit.indistinct()]
    assert ["page_read_joules", "link_joules_per_byte"] in named


def test_no_energy_is_negative() -> None:
    rates = np.stack([np.ones(30), np.linspace(0, 5e5, 30), np.linspace(3e9, 0, 30)], axis=1)
    watts = 3.0 - 1e-6 * rates[:, 1]
    assert (fit_energy(PRESET, FIELDS, rates, watts, np.ones(30)).values >= 0).all()
