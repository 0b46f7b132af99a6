"""What writes do to a drive, whatever the fitted numbers are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.datasets.errors import InputError
from iojoule.model.evaluate.device_state import (
    SPARE_FRACTION,
    SPARE_LOG_SD,
    DeviceState,
    steady_write_amplification,
)
from iojoule.model.evaluate.frame import Frame, make_frame
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.quantities import GAP_QUANTITIES, QUANTITIES
from tests.model.known_drive import (
    CACHE,
    RATE,
    SECONDS_PER_BYTE,
    drive,
    number,
    write_state,
)

PROFILE = drive()
STATE = DeviceState(PROFILE)
PREDICTOR = Predictor(PROFILE)


def frame(rows: int = 1, **columns: Any) -> Frame:
    return make_frame(PROFILE, {"operation": "write", **columns}, rows)[0]


def test_the_cache_takes_everything_up_to_its_size_and_collecting_sets_the_rate_beyond() -> None:
    answer, _ = PREDICTOR.predict_columns(
        {
            "operation": "write",
            "request_bytes": 4096,
            "queue_depth": 32,
            "host_bytes_written_since_purge": [0.0, 0.8 * CACHE, 0.95 * CACHE, 1.5 * CACHE],
        },
        4,
    )
    rate = answer["throughput_bytes_per_second"].value
    assert rate[0] == pytest.approx(rate[1]) == pytest.approx(rate[2])
    assert rate[3] == pytest.approx(RATE, rel=0.02)
    watts = answer["device_power_watts"].value
    assert watts[2] > watts[0], "folding draws power before the rate falls"


def test_left_out_fill_and_idle_time_change_no_value() -> None:
    plain = frame(host_bytes_written_since_purge=1.2 * CACHE)
    said = frame(
        host_bytes_written_since_purge=1.2 * CACHE, fill_fraction=0.0, seconds_since_last_write=0.0
    )
    assert STATE.collecting(plain) == STATE.collecting(said) == 1.0


def test_left_out_fill_widens_what_a_smaller_cache_would_change() -> None:
    asked = {
        "operation": "write",
        "request_bytes": 4096,
        "queue_depth": 32,
        "host_bytes_written_since_purge": 0.9 * CACHE,
    }
    widths = []
    for more in ({}, {"fill_fraction": 0.3}):
        answer, _ = PREDICTOR.predict_columns({**asked, **more}, 1)
        rate = answer["throughput_bytes_per_second"]
        widths.append(rate.high[0] / rate.low[0])
    assert widths[0] > 1.2 * widths[1]
    known = STATE.cache_share_sd(np.array([0.0, 0.5, 1.0]))
    assert known == pytest.approx([0.0, 0.0, SPARE_LOG_SD]), "free cells enough, or none"
    assert 0.0 < STATE.cache_share_sd(np.array([np.nan]))[0] < SPARE_LOG_SD


def test_runs_of_unknown_fill_have_any_cache_from_the_full_drives_to_the_empty_ones() -> None:
    shares = STATE.cache_shares(np.nan, np.random.default_rng(3), 4000)
    smallest = STATE.cache_share(np.array([1.0]))[0]
    assert shares[0] == shares.max() == 1.0
    assert shares.min() == pytest.approx(smallest, rel=0.02)
    # free and spare cells cover it up to a fill at which 3 bits x CACHE are left
    whole = 1.0 - 3 * CACHE / 1e12 + SPARE_FRACTION
    assert np.mean(shares == 1.0) == pytest.approx(whole, abs=0.02)


def test_random_writes_over_data_wait_longer_but_saturate_at_the_same_rate() -> None:
    state = write_state().model_copy(update={"overwriting_seconds": number(1.4e-4, 0.4)})
    predictor = Predictor(PROFILE.model_copy(update={"write_state": state}))
    asked: dict[str, Any] = {
        "operation": ["write", "write", "write", "write", "write", "write", "read", "read"],
        "pattern": ["random"] * 4 + ["sequential"] * 2 + ["random"] * 2,
        "request_bytes": 16384,
        "queue_depth": [1, 1, 1, 1024, 1, 1, 1, 1],
        "fill_fraction": [0.0, 0.5, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0],
    }
    latency = predictor.predict_columns(asked, 8)[0]["latency_mean_ns"]
    empty, half, full, deep, *others = latency.value
    assert half - empty == pytest.approx(7e4, rel=0.05)
    assert full - empty == pytest.approx(1.4e5, rel=0.05)
    assert others[0] == others[1]
    assert others[2] == others[3]
    asked["fill_fraction"] = 0.0
    purged = predictor.predict_columns(asked, 8)[0]["latency_mean_ns"]
    assert deep == pytest.approx(purged.value[3], rel=0.02)
    assert latency.high[2] / latency.value[2] > purged.high[2] / purged.value[2]


def test_reads_pass_while_writes_over_data_wait() -> None:
    state = write_state().model_copy(update={"overwriting_seconds": number(1.4e-4, 0.4)})
    predictor = Predictor(PROFILE.model_copy(update={"write_state": state}))
    asked: dict[str, Any] = {
        "operation": ["read", "mixed", "mixed", "write"],
        "read_fraction": [1.0, 0.9, 0.1, 0.0],
        "pattern": "random",
        "request_bytes": 16384,
        "queue_depth": 1,
    }
    used, purged = (
        predictor.predict_columns({**asked, "fill_fraction": fill}, 4)[0]["latency_mean_ns"].value
        for fill in (1.0, 0.0)
    )
    # few writes are ready when their turn comes; many take as long as writes alone
    assert used[1] == pytest.approx(purged[1])
    assert used[2] == pytest.approx(0.9 * used[3])
    asked["queue_depth"] = 1024
    deep, free = (
        predictor.predict_columns({**asked, "fill_fraction": fill}, 4)[0]["latency_mean_ns"].value
        for fill in (1.0, 0.0)
    )
    assert deep == pytest.approx(free, rel=0.02)


def test_a_full_drive_has_the_cache_that_its_spare_flash_holds() -> None:
    shares = STATE.cache_share(np.array([np.nan, 0.0, 0.7, 0.85, 1.0]))
    spare = SPARE_FRACTION * 1e12
    expected = [1.0, 1.0, 1.0, (0.15e12 + spare) / 3 / CACHE, spare / 3 / CACHE]
    assert shares == pytest.approx(expected)


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_a_fuller_drive_has_no_larger_cache(one: float, other: float) -> None:
    low, high = STATE.cache_share(np.array(sorted((one, other))))
    assert low >= high


@given(written=st.floats(1e6, 3e11), idle=st.floats(0.0, 200.0))
def test_idle_time_folds_the_cache_back_and_no_further(written: float, idle: float) -> None:
    left = STATE.effective_bytes(
        frame(
            pattern="sequential",
            host_bytes_written_since_purge=written,
            seconds_since_last_write=idle,
        )
    )[0]
    needed = min(written, CACHE) * SECONDS_PER_BYTE
    assert left == pytest.approx(written * max(0.0, 1.0 - idle / needed), abs=1.0)


def test_the_same_work_takes_longer_where_the_power_state_is_lower() -> None:
    columns = {"pattern": "sequential", "power_state": [0, 1, 2]}
    seconds, _ = STATE.background_seconds(frame(3, **columns), np.full(3, 1e10))
    assert seconds == pytest.approx([2.0, 20.0, 160.0])
    after = frame(3, **columns, post_write_power_state=0)
    assert STATE.background_seconds(after, np.full(3, 1e10))[0] == pytest.approx([2.0] * 3)


def test_what_does_not_fit_the_cache_leaves_no_work_behind() -> None:
    seconds, _ = STATE.background_seconds(frame(pattern="sequential"), np.array([5 * CACHE]))
    assert seconds == pytest.approx([CACHE * SECONDS_PER_BYTE])
    full = frame(pattern="sequential", fill_fraction=1.0)
    assert STATE.background_seconds(full, np.array([5 * CACHE]))[0] == pytest.approx(seconds)


def test_background_energy_is_seconds_times_watts() -> None:
    asked, _ = make_frame(
        PROFILE,
        {"operation": "write", "pattern": ["sequential", "random"], "burst_bytes": 1e10},
        2,
    )
    answer = PREDICTOR.predict(asked, only=(*QUANTITIES, *GAP_QUANTITIES))
    assert answer["background_seconds"].value == pytest.approx([2.0, 1.6])
    assert answer["background_energy_joules"].value == pytest.approx([4.0, 3.2])


def test_a_point_near_the_cliff_is_less_sure_than_one_far_from_it() -> None:
    unsure = Predictor(drive(sd=0.05))
    answer, _ = unsure.predict_columns(
        {
            "operation": "write",
            "queue_depth": 32,
            "host_bytes_written_since_purge": [0.3 * CACHE, 0.97 * CACHE],
        },
        2,
    )
    least = {"throughput_bytes_per_second": 1.2, "device_power_watts": 1.1}
    for name, ratio in least.items():
        band = answer[name]
        width = (band.high - band.low) / band.value
        assert width[1] > ratio * width[0], name


def test_cleaning_costs_more_the_fuller_the_drive() -> None:
    fill = np.array([0.1, 0.5, 0.8, 1.0])
    found = steady_write_amplification(fill, 0.1)
    assert (np.diff(found) > 0).all()
    assert found[0] == pytest.approx(1.0, abs=1e-3)
    alpha = 1.1 / fill
    assert np.exp(-alpha / found) == pytest.approx(1.0 - 1.0 / found, abs=1e-9)


@pytest.mark.parametrize(
    ("field", "value"),
    [("fill_fraction", 1.2), ("seconds_since_last_write", -1.0), ("burst_bytes", -5.0)],
)
def test_impossible_values_are_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(InputError, match=rf"row 1: {field}"):
        frame(**{field: value})
