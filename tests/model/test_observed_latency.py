"""A measured latency beside predicted ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.datasets.profile import load_shipped_profile
from iojoule.model.evaluate.bands import MEASURED
from iojoule.model.evaluate.equal_work import Demand, work_of
from iojoule.model.evaluate.frame import Frame, make_frame
from iojoule.model.evaluate.latency import Arrivals, ServedLatency, alone_of
from iojoule.model.evaluate.observed_latency import (
    MEASURED_SD,
    ORDER,
    OTHER_SETTING,
    OTHER_SLOTS,
    ObservedLatency,
    likeness,
)
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.quantities import NORMAL_90

MEAN, P50, P99, P999 = ORDER
ROWS: dict[str, Any] = {
    "operation": "read",
    "pattern": "random",
    "request_bytes": [4096, 4096, 4096, 4096, 8192, 16384],
    "queue_depth": [32, 16, 32, 64, 32, 8],
    "jobs": [2, 4, 2, 1, 2, 1],
    "power_state": [0, 0, 1, 0, 0, 1],
    "engine": ["io_uring", "io_uring", "io_uring", "libaio", "io_uring", "libaio"],
}
"""The first row is the measured one."""


@pytest.fixture(scope="module")
def drive() -> tuple[Frame, ServedLatency]:
    profile = load_shipped_profile("samsung-980-pro-1tb")
    frame, _ = make_frame(profile, ROWS, 6)
    predictor = Predictor(profile)
    demand = Demand(4096.0 * 10e3, 4096.0, 4096.0, arrivals=Arrivals.POISSON)
    alone = predictor.predict(alone_of(frame))
    return frame, work_of(frame, predictor.predict(frame), demand, alone).latencies


def seen(frame: Frame, latencies: ServedLatency, **times: float) -> ServedLatency:
    """With latencies measured so many times as long as they are predicted of the first row."""
    bands = {
        name: replace(band, **{end: getattr(band, end)[:1] for end in ("value", "low", "high")})
        for name in ORDER
        for band in [latencies.band(name)]
    }
    measured = {name: each * float(bands[name].value[0]) for name, each in times.items()}
    observed = ObservedLatency(measured, bands, frame.take(slice(1)), open_loop=True)
    return replace(latencies, observed=observed.beside(frame))


def test_what_was_measured_is_known(drive: tuple[Frame, ServedLatency]) -> None:
    frame, latencies = drive
    with_it = seen(frame, latencies, **{P99: 1.7})
    before, band = latencies.band(P99), with_it.band(P99)
    width = np.exp(NORMAL_90 * MEASURED_SD)
    expected = 1.7 * before.value[0]
    assert (band.value[0], band.low[0], band.high[0]) == pytest.approx(
        (expected, expected / width, expected * width)
    )
    assert band.evidence[0] == MEASURED
    assert (band.evidence[1:] == before.evidence[1:]).all()


@pytest.mark.parametrize("name", ORDER)
def test_a_measurement_that_agrees_moves_nothing_and_makes_likes_surer(
    drive: tuple[Frame, ServedLatency], name: str
) -> None:
    frame, latencies = drive
    with_it = seen(frame, latencies, **{name: 1.0})
    for other in ORDER:
        before, band = latencies.band(other), with_it.band(other)
        np.testing.assert_allclose(band.value, before.value, rtol=1e-9)
        assert (band.high / band.low <= before.high / before.low * (1 + 1e-9)).all()
    before, band = latencies.band(name), with_it.band(name)
    left = np.log(band.high / band.low)[1:] / np.log(before.high / before.low)[1:]
    alike = likeness(frame, frame.take(slice(1)), open_loop=True)[1:]
    np.testing.assert_allclose(left, np.sqrt(1 - alike**2), rtol=1e-6)


def test_what_differs_in_less_is_more_alike(drive: tuple[Frame, ServedLatency]) -> None:
    frame, _ = drive
    first = frame.take(slice(1))
    alike = likeness(frame, first, open_loop=True)
    assert alike[0] == 1.0
    expected = [
        OTHER_SLOTS,
        OTHER_SETTING,
        OTHER_SLOTS * OTHER_SETTING,
        OTHER_SETTING,
        OTHER_SLOTS * OTHER_SETTING**4,
    ]
    np.testing.assert_allclose(alike[1:], expected)
    # bursts fill the queue: an octave of it is as much as one of the size
    full = likeness(frame, first, open_loop=False)
    np.testing.assert_allclose(full / alike, [1, 1, 1, 1, 1, OTHER_SETTING**3])


@given(st.floats(0.05, 20.0), st.floats(1.0, 2.0), st.sampled_from(ORDER))
def test_longer_measurements_make_nothing_shorter(
    drive: tuple[Frame, ServedLatency], times: float, more: float, name: str
) -> None:
    frame, latencies = drive
    less, longer = (seen(frame, latencies, **{name: each}) for each in (times, times * more))
    for other in ORDER:
        for scale in (-1.0, 0.0, 1.0):
            assert (longer.at(other, scale) >= less.at(other, scale) * (1 - 1e-9)).all()


@given(st.dictionaries(st.sampled_from(ORDER), st.floats(0.1, 10.0), min_size=1))
def test_percentiles_and_ends_stay_in_order(
    drive: tuple[Frame, ServedLatency], times: dict[str, float]
) -> None:
    frame, latencies = drive
    values = np.sort([latencies.at(name)[0] * each for name, each in times.items()])
    stated = dict(zip([name for name in ORDER if name in times], values, strict=True))
    with_it = seen(
        frame, latencies, **{name: ns / latencies.at(name)[0] for name, ns in stated.items()}
    )
    bands = {name: with_it.band(name) for name in ORDER}
    for name, band in bands.items():
        assert (band.low <= band.value).all()
        assert (band.value <= band.high).all()
        if name in stated:
            assert band.value[0] == pytest.approx(stated[name])
    for lower, upper in ((P50, P99), (P99, P999), (MEAN, P999)):
        for end in ("value", "low", "high"):
            low, high = (getattr(bands[name], end) for name in (lower, upper))
            assert (low <= high * (1 + 1e-9)).all()


def test_a_measurement_outside_the_interval_makes_others_less_sure(
    drive: tuple[Frame, ServedLatency],
) -> None:
    """What the profile does not know of this host, it does not know of the next configuration."""
    frame, latencies = drive
    before = latencies.band(P99)
    for times, end in ((8.0, "high"), (1 / 8.0, "low")):
        band = seen(frame, latencies, **{P99: times}).band(P99)
        left, right = (
            np.abs(np.log(getattr(each, end) / each.value))[1:] for each in (before, band)
        )
        assert (right > left).all()
    outside = seen(frame, latencies, **{P99: 8.0}).observed
    assert outside is not None
    assert set(outside.outside) == {P99}
    inside = seen(frame, latencies, **{P99: 1.05}).observed
    assert inside is not None
    assert not inside.outside
