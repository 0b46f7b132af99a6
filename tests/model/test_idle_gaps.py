"""Gaps between requests: energy, waiting, and what must be so whatever the numbers are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.datasets.errors import InputError
from iojoule.model.evaluate import idle_gaps
from iojoule.model.evaluate.frame import make_frame
from iojoule.model.evaluate.prediction import Prediction
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.quantities import GAP_QUANTITIES, QUANTITIES
from tests.errors import having
from tests.model.known_drive import SETTLE, WAKE, drive

PREDICTOR = Predictor(drive())
BURST = {"request_bytes": 16384, "queue_depth": 4, "burst_bytes": 8 * 16384}

watts = st.floats(0.1, 5.0)
seconds = st.floats(0.0, 10.0)


def ask(gaps: list[float | None], **columns: Any) -> Prediction:
    asked = {**BURST, "idle_gap_seconds_p50": gaps, **columns}
    frame, _ = make_frame(PREDICTOR.profile, asked, len(gaps))
    return PREDICTOR.predict(frame, only=(*QUANTITIES, *GAP_QUANTITIES))


def levels(awake: float, idle: float, asleep: float, after: float) -> idle_gaps.Levels:
    one = np.ones(1)
    return idle_gaps.Levels(awake * one, idle * one, asleep * one, after * one, 0.0 * one)


@given(st.tuples(watts, watts, watts), seconds, seconds, seconds, st.floats(0.0, 1.0))
def test_the_energy_of_a_gap_is_continuous_and_grows_with_it(
    level: tuple[float, float, float], gap: float, settle: float, after: float, more: float
) -> None:
    asleep, idle, awake = sorted(level)
    at = levels(awake, idle, asleep, after)
    here = idle_gaps.gap_joules(at, np.array([gap]), settle)[0]
    there = idle_gaps.gap_joules(at, np.array([gap + more]), settle)[0]
    assert asleep * more - 1e-9 <= there - here <= awake * more + 1e-9


@given(seconds, seconds)
def test_a_drive_that_never_falls_draws_one_power(gap: float, settle: float) -> None:
    at = levels(2.5, 2.5, 2.5, np.inf)
    assert idle_gaps.gap_joules(at, np.array([gap]), settle) == pytest.approx([2.5 * gap])


def test_awake_a_drive_draws_what_its_law_leaves_without_requests() -> None:
    """The base of the law, as much more or less of it as runs of the configuration showed."""
    frame, _ = make_frame(PREDICTOR.profile, {"power_state": [0, 0, 0, 0]}, 4)
    power = PREDICTOR.profile.device_power
    assert power is not None
    base, idle = power.parameters[0].value, power.idle_watts[0].value
    factor = np.array([1.0, 0.9, 0.01, 2.0])
    at = idle_gaps.levels(PREDICTOR.profile, frame, np.full(4, 1.5 * base), factor)
    assert at is not None
    expected = [base, max(0.9 * base, idle), idle, 1.5 * base]
    assert at.awake == pytest.approx(expected)


def test_the_first_requests_after_a_rest_wait_and_those_after_a_short_pause_do_not() -> None:
    answer = ask([None, 0.005, 0.2])
    mean = answer["latency_mean_ns"].value
    assert mean[1] == pytest.approx(mean[0], rel=1e-3)
    # four of the eight requests of a burst find the drive at rest
    assert mean[2] - mean[0] == pytest.approx(0.5 * WAKE * 1e9, rel=1e-3)
    p99 = answer["latency_p99_ns"].value
    assert p99[2] - p99[0] == pytest.approx(WAKE * 1e9, rel=1e-3)
    in_flight = answer["iops"].value * mean * 1e-9
    assert in_flight == pytest.approx([4.0] * 3), "Little's law"


def test_a_gap_near_the_settle_time_is_the_least_sure() -> None:
    band = ask([0.3 * SETTLE, SETTLE, 10 * SETTLE])["wake_latency_ns"]
    width = band.high - band.low
    assert width[1] > width[0]
    assert width[1] > width[2]


def test_think_time_is_a_gap_where_no_other_is_stated() -> None:
    stated = ask([0.2])["latency_mean_ns"].value
    thought = ask([None], think_time_ns=2e8)["latency_mean_ns"].value
    assert stated == pytest.approx(thought)


def test_longer_gaps_draw_less_on_average_and_end_at_idle_power() -> None:
    answer = ask([0.001, 0.05, 0.5, 5.0, 5e4])
    mean = answer["cycle_power_watts"].value
    assert (np.diff(mean) < 0).all()
    assert mean[-1] == pytest.approx(answer["idle_power_watts"].value[-1], rel=1e-4)


def test_autonomous_transitions_save_power_and_cost_their_exit_latency() -> None:
    without, with_apst = ask([10.0]), ask([10.0], apst_enabled=True)
    assert with_apst["cycle_power_watts"].value < without["cycle_power_watts"].value
    assert with_apst["wake_latency_ns"].value == pytest.approx([9.5e6], rel=1e-3)
    short = ask([0.05], apst_enabled=True)["cycle_power_watts"].value
    assert short == pytest.approx(ask([0.05])["cycle_power_watts"].value), "no rule applies yet"


def test_sleep_power_is_carried_to_no_other_link_policy() -> None:
    with pytest.raises(InputError, check=having(field="aspm_policy")):
        ask([10.0], apst_enabled=True, aspm_policy="enabled")
    ask([10.0], apst_enabled=True, aspm_policy="disabled")
    ask([10.0], aspm_policy="enabled")


def test_a_limit_that_nothing_stands_for_is_refused_and_none_is_none() -> None:
    with pytest.raises(InputError, check=having(field="power_limit_watts")):
        ask([10.0], power_limit_watts=3.5)
    without = ask([10.0], power_limit_watts=0.0)["device_power_watts"].value
    assert without == pytest.approx(ask([10.0])["device_power_watts"].value)


def test_a_long_tail_of_gaps_lets_some_rest() -> None:
    sharp = ask([0.5 * SETTLE])["wake_latency_ns"].value
    spread = ask([0.5 * SETTLE], idle_gap_seconds_p99=[10.0])["wake_latency_ns"].value
    assert spread > 3 * sharp
    with pytest.raises(InputError, check=having(field="idle_gap_seconds_p99")):
        ask([None], idle_gap_seconds_p99=[10.0])


def test_burst_writes_are_charged_the_work_that_they_leave_behind() -> None:
    columns = {"operation": "write", "burst_bytes": 1e9, "pattern": "sequential"}
    answer = ask([60.0], **columns)
    idle = answer["idle_power_watts"].value
    joules = answer["background_energy_joules"].value
    reads = ask([60.0], **{**columns, "operation": "read"})
    assert joules == pytest.approx([0.4])
    extra = (answer["cycle_power_watts"].value - idle) * 60.0
    assert extra > joules
    assert reads["background_energy_joules"].value == pytest.approx([0.0])


@given(
    gap=st.floats(1e-6, 1e9),
    burst=st.none() | st.floats(1.0, 1e15),
    depth=st.sampled_from([1, 4, 256, 65535]),
    size=st.sampled_from([512, 16384, 1 << 20]),
    apst=st.booleans(),
)
def test_no_gap_makes_a_latency_longer_than_the_wait(
    gap: float, burst: float | None, depth: int, size: int, apst: bool
) -> None:
    columns = {
        "request_bytes": size,
        "queue_depth": depth,
        "burst_bytes": burst,
        "apst_enabled": apst,
    }
    awake, _ = PREDICTOR.predict_columns(columns, 1)
    gaps, _ = PREDICTOR.predict_columns({**columns, "idle_gap_seconds_p50": gap}, 1)
    most = 9.5e-3 * (1.0 + 3.0 * idle_gaps.DECLARED_EXIT_LOG_SD) * 1e9 if apst else 3e9 * WAKE
    for name in ("mean", "p50", "p99", "p999"):
        before, after = awake[f"latency_{name}_ns"], gaps[f"latency_{name}_ns"]
        # what the drive itself errs by is a factor of its own part and at most of both
        widest = (before.high / before.value)[0]
        assert after.high[0] <= before.high[0] + widest * most, name
        assert after.value[0] >= before.value[0] * (1 - 1e-9), name
