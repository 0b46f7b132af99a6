"""Mixes of reads and writes: they tend to the pure operations, and percentiles are a mixture's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iojoule.model.evaluate.mixes import ABOVE, MOST_APART, extent, percentile
from iojoule.model.evaluate.prediction import Prediction
from iojoule.model.evaluate.predictor import Predictor
from tests.model.known_drive import drive

PREDICTOR = Predictor(drive(0.05))

logs = st.floats(8.0, 25.0)
fractions = st.floats(0.0, 1.0)
shapes = st.floats(0.3, 40.0)
levels = st.sampled_from(sorted(ABOVE.values()))


def mixture(q: float, fraction: float, read: float, write: float, shape: float) -> float:
    found, _ = percentile(
        q, np.array([fraction]), (np.array([read]), np.array([write])), np.array([shape])
    )
    return float(found[0])


def above(q: float, at: float, log_percentile: float, shape: float) -> float:
    """Share of a log-logistic distribution above exp(at), by its percentile."""
    return 1.0 / (1.0 + (1.0 / q - 1.0) * np.exp(shape * (at - log_percentile)))


@given(levels, fractions, logs, logs, st.floats(0.3, 3.0))
def test_the_percentile_solves_the_mixture(
    q: float, fraction: float, read: float, write: float, shape: float
) -> None:
    at = mixture(q, fraction, read, write, shape)
    shares = fraction * above(q, at, read, shape) + (1 - fraction) * above(q, at, write, shape)
    assert shares == pytest.approx(q, rel=1e-6)


@given(levels, logs, logs, shapes)
def test_one_direction_alone_has_its_own_percentile(
    q: float, read: float, write: float, shape: float
) -> None:
    assert mixture(q, 1.0, read, write, shape) == pytest.approx(read, abs=1e-9)
    assert mixture(q, 0.0, read, write, shape) == pytest.approx(write, abs=1e-9)
    assert mixture(q, 0.3, read, read, shape) == pytest.approx(read, abs=1e-9)


@given(levels, fractions, fractions, logs, logs, shapes)
def test_more_of_the_slower_direction_is_never_faster(
    q: float, one: float, other: float, read: float, write: float, shape: float
) -> None:
    few, many = (
        mixture(q, 1.0 - share, read, max(read, write), shape) for share in sorted((one, other))
    )
    assert few <= many + 1e-9
    assert read - 1e-9 <= few <= max(read, write) + 1e-9


@given(logs, st.floats(0.0, 20.0), shapes)
def test_requests_rarer_than_the_share_above_hardly_move_a_percentile(
    read: float, slower: float, shape: float
) -> None:
    least = min(shape, MOST_APART / max(slower, 1e-9))
    assert mixture(0.01, 1.0 - 1e-6, read, read + slower, shape) - read < 1.1e-4 / least


def predicted(fraction: list[float], **columns: Any) -> Prediction:
    words = ["write" if f == 0.0 else "read" if f == 1.0 else "mixed" for f in fraction]
    asked = {"operation": words, "read_fraction": fraction, **columns}
    return PREDICTOR.predict_columns(asked, len(fraction))[0]


@settings(max_examples=40, deadline=None)
@given(
    pattern=st.sampled_from(["random", "sequential"]),
    size=st.sampled_from([512, 4096, 16384, 131072, 1 << 20]),
    depth=st.sampled_from([1, 4, 32, 256]),
    state=st.sampled_from([0, 1, 2]),
    fill=st.sampled_from([0.0, 0.5, 1.0]),
    device_state=st.sampled_from(["cached", "collecting"]),
)
def test_a_request_in_a_million_changes_no_quantity(
    pattern: str, size: int, depth: int, state: int, fill: float, device_state: str
) -> None:
    answer = predicted(
        [1.0, 1.0 - 1e-9, 1e-9, 0.0],
        pattern=pattern,
        request_bytes=size,
        queue_depth=depth,
        power_state=state,
        fill_fraction=fill,
        device_state=device_state,
    )
    for name, band in answer.bands.items():
        for values in (band.value, band.low, band.high):
            assert values[1] == pytest.approx(values[0], rel=1e-4, nan_ok=True), name
            assert values[2] == pytest.approx(values[3], rel=1e-4, nan_ok=True), name


@settings(max_examples=20, deadline=None)
@given(
    pattern=st.sampled_from(["random", "sequential"]),
    size=st.sampled_from([4096, 65536]),
    depth=st.sampled_from([1, 16]),
)
def test_percentiles_keep_their_order_at_every_share(pattern: str, size: int, depth: int) -> None:
    share = np.linspace(0.0, 1.0, 101).tolist()
    answer = predicted(share, pattern=pattern, request_bytes=size, queue_depth=depth)
    p50, p99, p999 = (answer[f"latency_{name}_ns"].value for name in ("p50", "p99", "p999"))
    assert (p50 <= p99).all()
    assert (p99 <= p999).all()


@settings(max_examples=20, deadline=None)
@given(
    pattern=st.sampled_from(["random", "sequential"]),
    share=st.floats(0.01, 0.99),
    depth=st.sampled_from([1, 4, 64]),
)
def test_a_mix_takes_its_turns_and_longer_by_its_factor(
    pattern: str, share: float, depth: int
) -> None:
    effect = next(one for one in PREDICTOR.profile.mixed if one.pattern == pattern)
    factor = effect.latency_factor.value
    answer = predicted(
        [1.0, share, 0.0],
        pattern=pattern,
        request_bytes=16384,
        queue_depth=depth,
        device_state="cached",
    )
    latency = answer["latency_mean_ns"].value
    reads, writes = share * latency[0], (1 - share) * latency[2]
    far = float(extent(share, depth, pattern == "random"))
    if pattern == "random":
        assert latency[1] == pytest.approx(reads * (1 + (factor - 1) * far) + writes, rel=1e-6)
    else:
        assert latency[1] == pytest.approx((reads + writes) * factor**far, rel=1e-6)
    assert (answer["latency_mean_ns"].high >= latency).all()


def test_the_factor_counts_where_it_was_seen() -> None:
    assert float(extent(0.7, 4, False)) == pytest.approx(1.0)
    published = np.array([1.37, 1.027])  # 27 % and 2.6 % less throughput, 000 5.7
    found = 1.37 ** extent(np.array([0.7, 0.3]), 4, False)
    assert found == pytest.approx(published, rel=0.01)


@given(st.floats(1.0, 1e4), st.booleans())
def test_sharing_costs_nothing_where_nothing_is_shared(in_flight: float, random: bool) -> None:
    ends = extent(np.array([0.0, 1.0]), in_flight, random)
    assert ends[1] == pytest.approx(0.0, abs=1e-12)
    assert random or ends[0] == pytest.approx(0.0, abs=1e-12)


def test_few_writes_hold_up_more_reads_the_more_are_in_flight() -> None:
    few = extent(0.95, np.array([1.0, 4.0, 16.0, 64.0, 256.0]), True)
    assert (np.diff(few) > 0).all()
    assert few[-1] < 1.0
