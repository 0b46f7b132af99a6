"""The synthetic day has the statistics that its docstring states."""

from __future__ import annotations

import numpy as np
import pytest

from iojoule.datasets.errors import InputError
from iojoule.datasets.traces.day import SyntheticDay
from iojoule.datasets.traces.read import Batch

SPACE = 1 << 40


@pytest.fixture(scope="module")
def day() -> Batch:
    batches = list(SyntheticDay(SPACE, requests=3_000_000, seed=7).batches())
    return Batch(*map(np.concatenate, zip(*batches, strict=True)))


def test_it_lasts_a_day_and_has_the_requests_asked_for(day: Batch) -> None:
    assert len(day.arrival_ns) == pytest.approx(3_000_000, rel=0.03)
    assert (np.diff(day.arrival_ns) >= 0).all()
    assert 86_000e9 < day.arrival_ns[-1] < 86_400e9


def test_sizes_and_mix_are_those_of_the_traces(day: Batch) -> None:
    assert day.is_write.mean() == pytest.approx(0.75, abs=0.02)
    assert day.size_bytes.mean() == pytest.approx(33_700, rel=0.03)
    assert (day.size_bytes[day.is_write] <= 16 << 10).mean() == pytest.approx(0.75, abs=0.02)


def test_volumes_differ_by_decades_and_burst(day: Batch) -> None:
    requests = np.sort(np.bincount(day.volume, minlength=1000))[::-1]
    assert 0.45 < requests[:100].sum() / requests.sum() < 0.75
    busiest = int(np.bincount(day.volume).argmax())
    arrivals = day.arrival_ns[day.volume == busiest]
    gaps = np.diff(arrivals)
    assert gaps.std() / gaps.mean() > 2
    peak = np.bincount(arrivals // 10**9).max()
    assert peak / (len(arrivals) / 86_400) > 10


def test_each_volume_stays_in_a_range_of_its_own(day: Batch) -> None:
    low = np.full(1000, SPACE)
    high = np.zeros(1000, dtype=np.int64)
    np.minimum.at(low, day.volume, day.offset_bytes)
    np.maximum.at(high, day.volume, day.offset_bytes + day.size_bytes)
    used = np.flatnonzero(high)
    order = used[np.argsort(low[used])]
    assert (high[order][:-1] <= low[order][1:]).all()
    assert high.max() <= SPACE


def test_a_seed_makes_the_same_day_and_another_one_another() -> None:
    first, again, other = (
        next(SyntheticDay(SPACE, requests=10**7, seed=seed).batches()) for seed in (1, 1, 2)
    )
    assert all((one == same).all() for one, same in zip(first, again, strict=True))
    assert (first.offset_bytes != other.offset_bytes[: len(first.offset_bytes)]).any()


def test_volumes_that_do_not_fit_the_drive_are_refused() -> None:
    with pytest.raises(InputError, match="fewer volumes"):
        SyntheticDay(1 << 20, volumes=1000)


def test_at_a_scale_the_rates_stay_and_seconds_and_addresses_are_fewer() -> None:
    whole = SyntheticDay(SPACE, requests=3_000_000, seed=7)
    model = SyntheticDay(SPACE // 16, requests=3_000_000, seed=7, scale=16)
    drawn = Batch(*map(np.concatenate, zip(*model.batches(), strict=True)))
    assert len(drawn.arrival_ns) == pytest.approx(3_000_000 / 16, rel=0.1)
    assert 86_000e9 < 16 * drawn.arrival_ns[-1] < 86_400e9
    assert (drawn.offset_bytes + drawn.size_bytes).max() <= SPACE // 16
    assert drawn.size_bytes.mean() == pytest.approx(33_700, rel=0.05)
    # the day's load has its peak at 14 h
    hours = np.bincount(drawn.arrival_ns // 225_000_000_000, minlength=24)
    assert hours[11:17].sum() > 1.5 * (hours[:3].sum() + hours[21:].sum())
    assert 1 < whole.busiest_second() / model.busiest_second() < 5


def test_the_busiest_second_is_that_of_the_requests(day: Batch) -> None:
    drawn = np.bincount(day.arrival_ns // 10**9).max()
    told = SyntheticDay(SPACE, requests=3_000_000, seed=7).busiest_second()
    # bursts are drawn anew, and requests around them by chance
    assert drawn / 2 < told < 2 * drawn


@pytest.mark.parametrize("scale", [0.5, 3000.0])
def test_a_scale_that_cannot_be_is_refused(scale: float) -> None:
    with pytest.raises(InputError, match="scale"):
        SyntheticDay(int(SPACE / scale), scale=scale)
