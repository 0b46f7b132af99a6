"""The clock against simulated devices whose true times are known; no real time passes."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from iojoule.measure.sensors.device_clock import DeviceClock

Keep = Callable[[NDArray[np.int64]], NDArray[np.bool_]]
ORIGIN_NS = 10**12
READ_US = 40_000


class Simulation:
    """Frames that leave a device in batches and are read every 40 ms."""

    def __init__(
        self,
        keep: Keep,
        *,
        seconds: float = 4.0,
        period_us: float = 50.0,
        drift: float = 0.0,
        late_share: float = 0.0,
        seed: int = 1,
    ) -> None:
        random = np.random.default_rng(seed)
        count = int(seconds * 1e6 / period_us)
        numbers = np.arange(count)
        device = np.floor(numbers * period_us).astype(np.int64) + 12_345
        batches = np.cumsum(random.uniform(7500, 9500, int(seconds * 140) + 5)) + 12_345
        late = random.exponential(15_000, len(batches)) * (random.random(len(batches)) < late_share)
        sent = np.maximum.accumulate(batches + random.exponential(100, len(batches)) + late)
        arrivals = sent[np.searchsorted(batches, device)] * (1 + drift)
        kept = keep(numbers)
        self.device, self.arrivals, self.drift = device[kept], arrivals[kept], drift
        self.sent = int(numbers[kept][-1]) + 1 - int(numbers[kept][0])
        self.times_us, self.lost = self._run(period_us)

    def _run(self, nominal_us: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        clock = DeviceClock(1024, nominal_us)
        taken = []
        done = 0
        while done < len(self.device):
            until = np.searchsorted(self.arrivals, self.arrivals[done] + READ_US)
            part = slice(done, until)
            stamps = (self.device[part] % 1024).astype(np.uint16)
            clock.add(stamps, (self.arrivals[part] * 1e3).astype(np.int64) + ORIGIN_NS)
            taken.append(clock.take())
            done = int(until)
        taken.append(clock.take(everything=True))
        times = np.concatenate([each.monotonic_ns for each in taken])
        return (times - ORIGIN_NS) / 1e3, np.concatenate([each.lost_before for each in taken])

    @property
    def errors_us(self) -> NDArray[np.float64]:
        return self.times_us - self.device * (1 + self.drift)


def everything(numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    return numbers >= 0


@pytest.mark.parametrize("late_share", [0.0, 0.1, 0.5])
def test_times_carry_no_jitter_of_the_arrival(late_share: float) -> None:
    simulation = Simulation(everything, late_share=late_share)
    assert simulation.lost.sum() == 0
    assert np.abs(simulation.errors_us).max() < 200
    assert np.diff(simulation.times_us) == pytest.approx(50, abs=0.1)


@pytest.mark.parametrize(
    ("dropped", "out_of"), [(1, 10), (20, 500), (40, 2000), (777, 4000), (5000, 20_000)]
)
def test_every_lost_frame_is_counted_also_beyond_a_wrap(dropped: int, out_of: int) -> None:
    simulation = Simulation(lambda numbers: numbers % out_of >= dropped)
    assert simulation.lost.sum() + len(simulation.times_us) == simulation.sent
    assert np.abs(simulation.errors_us).max() < 200


def test_random_losses_are_counted() -> None:
    simulation = Simulation(lambda n: np.random.default_rng(3).random(len(n)) > 0.02)
    assert simulation.lost.sum() + len(simulation.times_us) == simulation.sent


@settings(max_examples=30)
@given(gaps=st.tuples(*[st.integers(0, 4000)] * 3), seed=st.integers(0, 99))
def test_gaps_of_any_length_are_counted(gaps: tuple[int, ...], seed: int) -> None:
    def keep(numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        kept = numbers >= 0
        for place, gap in zip((10_000, 30_000, 50_000), gaps, strict=True):
            kept &= (numbers < place) | (numbers >= place + gap)
        return kept

    simulation = Simulation(keep, late_share=0.05, seed=seed)
    assert simulation.lost.sum() == sum(gaps)


def test_a_gap_that_no_stamp_shows_is_found() -> None:
    # 512 frames at 50 us are exactly 25 wraps
    simulation = Simulation(lambda numbers: (numbers < 20_000) | (numbers >= 20_512))
    assert simulation.lost.sum() == 512
    assert np.abs(simulation.errors_us[-20_000:]).max() < 200


@pytest.mark.parametrize("drift", [5e-5, -5e-5])
def test_drift_is_followed(drift: float) -> None:
    simulation = Simulation(everything, seconds=40, drift=drift)
    assert simulation.lost.sum() == 0
    assert np.abs(simulation.errors_us[-200_000:]).max() < 300


@pytest.mark.parametrize("period_us", [57.142857, 29.3])
def test_other_boards_have_other_periods(period_us: float) -> None:
    simulation = Simulation(lambda numbers: numbers % 500 >= 7, period_us=period_us)
    assert simulation.lost.sum() + len(simulation.times_us) == simulation.sent


def test_few_frames_are_released_at_the_end() -> None:
    clock = DeviceClock(1024, 50.0)
    clock.add(np.array([1000, 26, 76], np.uint16), np.full(3, ORIGIN_NS))
    assert len(clock.take().monotonic_ns) == 0
    timed = clock.take(everything=True)
    assert np.diff(timed.monotonic_ns).tolist() == [50_000, 50_000]
    assert len(clock.take(everything=True).monotonic_ns) == 0
