"""What a paper may ask of device state and gaps, answered by a drive of round numbers."""

from __future__ import annotations

from typing import Any

import pytest

from iojoule.model.evaluate.predictor import Predictor
from iojoule.recommender.validation.finding_estimates import Estimate, UnansweredError
from iojoule.recommender.validation.finding_facts import STATE_ANSWERS
from tests.model.known_drive import CACHE, SECONDS_PER_BYTE, WAKE, drive

PREDICTOR = Predictor(drive())
WRITES = {
    "operation": "write", "pattern": "sequential", "request_bytes": 1 << 20, "queue_depth": 32
}  # fmt: skip
GAPS = {"operation": "read", "request_bytes": 16384, "queue_depth": 4, "burst_bytes": 131072}


def ask(quantity: str, **point: Any) -> Estimate:
    return STATE_ANSWERS[quantity](PREDICTOR, [point])


def test_background_seconds_follow_the_bytes_of_a_burst_or_of_a_run() -> None:
    assert ask("background_seconds", **WRITES, burst_bytes=1e10).value == pytest.approx(2.0)
    run = ask("background_seconds", **WRITES, elapsed_seconds=3600)
    assert run.value == pytest.approx(CACHE * SECONDS_PER_BYTE)


def test_a_run_past_the_cache_is_slower_than_one_within_it() -> None:
    within = ask("mean_throughput_bytes_per_second", **WRITES, elapsed_seconds=10)
    past = ask("mean_throughput_bytes_per_second", **WRITES, elapsed_seconds=600)
    assert past.value < 0.8 * within.value
    written = ask("bytes_written", **WRITES, elapsed_seconds=600)
    assert written.value == pytest.approx(600 * past.value)


def test_collecting_comes_back_in_a_run_that_is_long_enough() -> None:
    names = (
        "collecting_pauses", "collecting_pause_seconds", "second_collecting_start_seconds",
        "second_collecting_seconds",
    )  # fmt: skip
    pauses, length, start, second = (ask(n, **WRITES, elapsed_seconds=300).value for n in names)
    assert pauses >= 2
    assert length == pytest.approx(second, rel=0.2)
    assert start > length
    for name in names[2:]:
        with pytest.raises(UnansweredError, match="comes back"):
            ask(name, **WRITES, elapsed_seconds=20)


def test_gaps_too_short_to_settle_draw_more_than_long_ones() -> None:
    short = ask("gap_power_watts", **GAPS, think_time_ns=5_000_000)
    long = ask("gap_power_watts", **GAPS, think_time_ns=5_000_000_000)
    power = PREDICTOR.profile.device_power
    assert power is not None
    assert short.value == pytest.approx(power.parameters[0].value, rel=1e-3)
    assert long.value == pytest.approx(power.idle_watts[0].value, rel=0.02)
    assert ask("wake_latency_ns", **GAPS, think_time_ns=10**9).value == pytest.approx(1e9 * WAKE)


def test_what_is_not_stated_is_not_answered() -> None:
    with pytest.raises(UnansweredError):
        ask("wake_latency_ns", **GAPS)
    with pytest.raises(UnansweredError):
        ask("background_seconds", **{**WRITES, "operation": "read"}, burst_bytes=1e10)
