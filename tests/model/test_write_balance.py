"""Which state a demand leads to, against closed forms and laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.datasets.profile import load_shipped_profile
from iojoule.datasets.schema import YEAR_SECONDS
from iojoule.model.evaluate.background_work import Balance, Inflow, balance, cleared_most
from iojoule.model.evaluate.frame import Frame, make_frame
from tests.model.known_drive import CACHE, SECONDS_PER_BYTE, SETTLE, drive

PROFILE = drive()
PACE = 1.0 / SECONDS_PER_BYTE

rates = st.floats(1e3, 1e10)
requests = st.floats(0.0, 1e6)
spans = st.floats(1.0, 1e9)


def frame(**columns: Any) -> Frame:
    rows = len(columns.get("power_state", [0]))
    asked = {"operation": "write", "pattern": "sequential", **columns}
    return make_frame(PROFILE, asked, rows)[0]


def ask(inflow: Inflow, seconds: float = YEAR_SECONDS, **columns: Any) -> Balance:
    return balance(PROFILE, frame(**columns), inflow, seconds)


def test_the_shipped_drive_is_steady_after_a_year_and_caches_bursts() -> None:
    shipped = load_shipped_profile("samsung-980-pro-1tb")
    row, _ = make_frame(shipped, {"operation": "write", "pattern": "random"}, 1)
    busy = Inflow(30_000 * 0.3 * 8192, requests_per_second=30_000)
    assert balance(shipped, row, busy, YEAR_SECONDS).collecting == [1.0]
    hourly = Inflow(1e9 / 3600, burst_bytes=1e9, gap_seconds=3590.0)
    assert balance(shipped, row, hourly, YEAR_SECONDS).collecting == [0.0]


def test_chance_arrivals_leave_the_drive_alone_for_the_share_of_the_closed_form() -> None:
    rate = 20.0
    gaps = np.random.default_rng(1).exponential(1.0 / rate, 200_000)
    share = np.maximum(gaps - SETTLE, 0.0).sum() / gaps.sum()
    found = ask(Inflow(1e6, requests_per_second=rate)).cleared_bytes_per_second
    assert found / PACE == pytest.approx(share, rel=0.02)


@given(st.sampled_from([512, 4096, 65536, 2**20, 2**24]), st.floats(0.0, 0.99))
def test_what_gaps_keep_up_with_is_what_is_cleared_of_it(size: int, reads: float) -> None:
    asked = frame(operation=["mixed"], request_bytes=[size], read_fraction=[reads])
    if reads == 0.0:
        asked = frame(request_bytes=[size])
    [most] = cleared_most(PROFILE, asked)
    requests = most / (size * (1.0 - reads))
    [cleared] = balance(
        PROFILE, asked, Inflow(most, requests_per_second=requests), YEAR_SECONDS
    ).cleared_bytes_per_second
    assert cleared == pytest.approx(most, rel=1e-9)


def test_thousands_of_requests_a_second_leave_no_time_to_clear() -> None:
    found = ask(Inflow(1e5, requests_per_second=3e3))
    assert found.cleared_bytes_per_second == pytest.approx(0.0, abs=1e-3)
    assert found.collecting == 1.0
    assert found.full_seconds == pytest.approx(CACHE / 1e5)


def test_a_horizon_before_the_cache_is_full_is_not_steady() -> None:
    inflow = Inflow(1e8, requests_per_second=np.inf)
    assert ask(inflow, 0.89 * CACHE / 1e8).collecting == 0.0
    assert ask(inflow, 0.95 * CACHE / 1e8).collecting == pytest.approx(0.5)
    assert ask(inflow, CACHE / 1e8).collecting == pytest.approx(1.0)


def test_bursts_accumulate_only_what_their_gaps_do_not_clear() -> None:
    gap = SETTLE + 1.0  # clears PACE bytes
    cleared = ask(Inflow(1e9, burst_bytes=PACE, gap_seconds=gap))
    assert cleared.collecting == 0.0
    assert cleared.full_seconds == np.inf
    more = ask(Inflow(1e9, burst_bytes=PACE + 1e8, gap_seconds=gap))
    assert more.collecting == 1.0
    assert ask(Inflow(1.0, burst_bytes=1.2 * CACHE, gap_seconds=1e9)).collecting == 1.0


def test_a_lower_power_state_clears_more_slowly_and_fills_where_ps0_does_not() -> None:
    gap = SETTLE + 1.0
    inflow = Inflow(2e8, burst_bytes=0.5 * PACE, gap_seconds=gap)
    assert ask(inflow, power_state=[0, 1]).collecting == pytest.approx([0.0, 1.0])
    back = ask(inflow, power_state=[0, 1], post_write_power_state=0)
    assert back.collecting == pytest.approx([0.0, 0.0])


@given(rates, rates, requests, spans)
def test_more_writing_is_never_less_steady(one: float, two: float, r: float, span: float) -> None:
    low, high = (ask(Inflow(v, r), span).collecting for v in sorted((one, two)))
    assert low <= high


@given(rates, requests, spans, spans)
def test_a_longer_horizon_is_never_less_steady(
    v: float, r: float, one: float, other: float
) -> None:
    inflow = Inflow(v, requests_per_second=r)
    short, long = (ask(inflow, span).collecting for span in sorted((one, other)))
    assert short <= long


@given(rates, st.floats(1e3, 1e12), spans, spans)
def test_longer_gaps_are_never_more_steady(
    v: float, burst: float, one: float, other: float
) -> None:
    gaps = sorted((one, other))
    short, long = (ask(Inflow(v, burst_bytes=burst, gap_seconds=g)).collecting for g in gaps)
    assert short >= long


@given(rates, requests)
def test_shares_are_shares_and_nothing_written_fills_nothing(v: float, r: float) -> None:
    found = ask(Inflow(v, requests_per_second=r))
    assert (found.collecting >= 0.0).all()
    assert (found.collecting <= 1.0).all()
    assert ask(Inflow(0.0, requests_per_second=r)).collecting == 0.0


def test_as_fast_as_possible_is_steady() -> None:
    assert ask(Inflow(np.inf)).collecting == 1.0


def test_a_drive_without_a_cache_has_none_to_fill() -> None:
    bare = PROFILE.model_copy(update={"write_state": None})
    assert balance(bare, frame(), Inflow(np.inf), YEAR_SECONDS).collecting == 0.0


def test_the_share_is_judged_by_the_cache_that_the_fill_leaves() -> None:
    inflow = Inflow(1e6, requests_per_second=np.inf)
    assert ask(inflow, 5e4, fill_fraction=0.0).collecting == 0.0
    assert ask(inflow, 5e4, fill_fraction=1.0).collecting == 1.0
