"""The drive's power law: what folding adds, what power states change, and that a fit finds it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.datasets.profile import DevicePower, load_shipped_profile
from iojoule.model.evaluate import device_power
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.fit.power import PowerRows, fit_device_power
from iojoule.model.recipe import DevicePowerRecipe, Figure

TRUTH = np.array([2.5, 0.6e-9, 4e-6, 0.8e-9, 3e-6, 2.6])
"""Base, joules of reads and writes by byte and command, background watts at PS0."""

STATES = {1: (2.45, 1.0), 2: (2.4, 0.5)}
"""Base and background watts of the lower states."""

OFFSETS = {"monday": 0.06, "tuesday": -0.05, "another host": 0.0}


def power() -> DevicePower:
    law = load_shipped_profile("samsung-980-pro-1tb").device_power
    assert law is not None
    return law


def at_ps0(rows: int = 1) -> np.ndarray:
    return np.zeros(rows, dtype=np.intp)


@given(load=st.floats(0.0, 3.0), more=st.floats(0.0, 1.0))
def test_fuller_drives_fold_more_up_to_a_share(load: float, more: float) -> None:
    low, high = device_power.folding(np.array([load, load + more]))
    assert 0.0 <= low <= high <= device_power.FOLDING_SHARE


def test_a_lower_state_has_a_base_and_background_of_its_own() -> None:
    law = power()
    idle = device_power.regressors(*(np.zeros(3) for _ in range(5)))
    states = np.arange(3)
    base = device_power.law_watts(law, idle, states)
    assert base[0] == pytest.approx(law.parameters[0].value)
    assert base[1:] == pytest.approx([state.base_watts.value for state in law.states])
    busy = idle.copy()
    busy[:, 5] = 1.0
    more = device_power.law_watts(law, busy, states) - base
    assert more[1:] == pytest.approx([state.background_watts.value for state in law.states])
    assert more[0] > more[1] > more[2] > 0.0


def test_equal_rates_draw_what_their_commands_and_their_load_draw() -> None:
    """Small commands more than large ones; full drives more than half-empty ones (000 5.1, 5.4)."""
    rate, none = np.full(2, 2e9), np.zeros(2)
    reads = device_power.regressors(rate, rate / np.array([16384.0, 524288.0]), none, none, none)
    small, large = device_power.active_value(power(), reads, at_ps0(2))
    assert small > large + 0.3
    load = device_power.folding(np.array([0.5, 1.0]))
    writes = device_power.regressors(none, none, rate, none, load)
    roomy, full = device_power.active_value(power(), writes, at_ps0(2))
    assert full > roomy + 0.5


def rows_of_truth(noise: float) -> PowerRows:
    random = np.random.default_rng(3)
    count = 90
    reads, writes = random.uniform(0, 3e9, count), random.uniform(0, 2e9, count)
    kind = random.integers(0, 2, count)
    size = 2.0 ** random.integers(12, 20, count)
    state = random.integers(0, 3, count)
    background = np.where(kind == 1, random.choice([0.0, 0.3, 1.0], count), 0.0)
    x = device_power.regressors(
        reads * (kind == 0),
        reads * (kind == 0) / size,
        writes * (kind == 1),
        writes * (kind == 1) / size,
        background,
    )
    session = np.array(list(OFFSETS), dtype=object)[random.integers(0, 3, count)]
    watts = x @ TRUTH
    for one, (base, more) in STATES.items():
        low = state == one
        watts[low] += base - TRUTH[0] + (more - TRUTH[5]) * background[low]
    watts += np.array([OFFSETS[name] for name in session])
    return PowerRows(x, watts * (1 + noise * random.standard_normal(count)), state, size, session)


def recipe() -> DevicePowerRecipe:
    def wide(value: float, unit: str) -> Figure:
        return Figure(value=value, sd=value, unit=unit, source="assumption: of this test")

    values = (2.0, 1e-9, 2e-6, 1e-9, 2e-6, 2.0)
    units = ("W", "J/B", "J", "J/B", "J", "W")
    priors = {
        name: wide(value, unit)
        for name, value, unit in zip(device_power.PARAMETERS, values, units, strict=True)
    }
    return DevicePowerRecipe(
        priors=priors,
        idle_watts=[wide(1.5, "W")] * 3,
        cap_watts=[9.0, 8.0, 7.0],
        peak_watts=wide(9.0, "W"),
        condition="of this test",
    )


def test_a_fit_finds_law_states_and_sessions() -> None:
    found = fit_device_power(rows_of_truth(0.01), recipe())
    value = np.array([parameter.value for parameter in found.parameters])
    sd = np.array([parameter.sd for parameter in found.parameters])
    assert (np.abs(value - TRUTH) < 4 * sd + 0.02 * TRUTH).all()
    for state in found.states:
        base, background = STATES[state.power_state]
        assert state.base_watts.value == pytest.approx(base, abs=0.12)
        assert state.background_watts.value == pytest.approx(background, abs=0.12)
    assert 0.03 < found.session_sd_watts < 0.12


def test_rows_of_one_session_say_nothing_of_other_days() -> None:
    rows = rows_of_truth(0.01)
    one = PowerRows(
        rows.x, rows.watts, rows.power_state, rows.request_bytes, np.full(len(rows), "a", object)
    )
    assert fit_device_power(one, recipe()).session_sd_watts == 0.0


def test_deep_sequential_queues_are_merged_and_draw_less() -> None:
    """5.58 W at depth 64 and 4.86 W at 256, at one rate of 3.58 GB/s (000 5.5)."""
    depth, size = np.array([1.0, 64.0, 256.0, 1e6]), np.full(4, 16384.0)
    several = device_power.merged(depth, size, 524288.0, np.full(4, True))
    assert several == pytest.approx([1.0, 1.0, 4.0, 32.0])
    assert (device_power.merged(depth, size, 524288.0, np.full(4, False)) == 1.0).all()
    rate, none = np.full(2, 3.58e9), np.zeros(2)
    x = device_power.regressors(rate, rate / 16384.0 / several[1:3], none, none, none)
    assert device_power.active_value(power(), x, at_ps0(2)) == pytest.approx([5.58, 4.86], rel=0.03)


@pytest.mark.parametrize(
    ("engine", "merges"), [("libaio", True), ("io_uring_cmd", False), ("posixaio", False)]
)
def test_only_requests_that_pass_the_block_layer_together_are_merged(
    engine: str, merges: bool
) -> None:
    columns = {"operation": ["read"] * 2, "pattern": ["sequential"] * 2}
    columns |= {"engine": [engine] * 2, "queue_depth": [64, 256]}
    found, _ = Predictor(load_shipped_profile("samsung-980-pro-1tb")).predict_columns(columns, 2)
    per_request = found.activity.device_x[:, 2] / found["iops"].value
    assert per_request[1] == pytest.approx(per_request[0] * (0.25 if merges else 1.0))
