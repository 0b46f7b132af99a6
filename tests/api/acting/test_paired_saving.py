"""What pairs prove, against noise as meters and drives have it."""

import math
from statistics import fmean

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from iojoule.api.acting.paired_saving import FEWEST_PAIRS, Pair, Saving, Trial

TRIAL = Trial()


class Meter:
    """Joules per byte of runs one after the other, on a simulated clock.

    A run is 30 s of watts at 1 Hz, whose noise remembers (first order, half a minute), on a drift
    of temperature, on a walk of the room, and now and then with somebody else's background work.
    """

    def __init__(self, seed: int, saving: float = 0.0, drift: float = 2e-5) -> None:
        self.source = np.random.default_rng(seed)
        self.saving, self.drift = saving, drift
        self.seconds, self.noise, self.walk = 0, 0.0, 0.0

    def run(self, after: bool) -> float:
        watts = []
        for _ in range(30):
            self.seconds += 1
            self.noise = 0.967 * self.noise + self.source.normal(0, 0.003)
            self.walk += self.source.normal(0, 2e-4)
            watts.append(1 + self.noise + self.walk + self.drift * self.seconds)
        self.seconds += 6
        energy = fmean(watts) * (1 - self.saving if after else 1)
        if self.source.random() < 0.05:
            energy *= 1 + self.source.exponential(0.03)
        return float(energy / self.source.normal(1, 0.003))

    def verdict(self, trial: Trial, seed: int) -> Saving:
        pairs: list[Pair] = []
        for first in trial.orders(seed):
            one, other = self.run(first), self.run(not first)
            pairs.append(Pair(other, one, True) if first else Pair(one, other, False))
            found = trial.saving(pairs)
            if len(pairs) in trial.looks and found is not None and found.is_clear:
                break
        assert found is not None
        return found


def claimed(runs: int, **meter: float) -> list[Saving]:
    return [Meter(seed, **meter).verdict(TRIAL, 1000 + seed) for seed in range(runs)]


def test_nothing_changed_and_hardly_ever_a_saving_is_claimed() -> None:
    found = claimed(200)
    savings = sum(one.low > 0 for one in found)
    losses = sum(one.high < 0 for one in found)
    assert savings <= 0.05 * 200, "of 200 A/A trials at most 5 % may claim a saving"
    assert savings + losses <= 0.05 * 200
    # the intervals are no wider than they must be: half of them are known to half a percent
    assert np.median([one.high - one.low for one in found]) < 0.015


def test_a_strong_drift_is_no_saving() -> None:
    found = claimed(200, drift=2e-4)  # a third more energy by the end
    assert sum(one.low > 0 for one in found) <= 0.05 * 200


def test_a_saving_is_found_with_its_amount() -> None:
    found = claimed(50, saving=0.1)
    assert all(one.verdict == "proven" for one in found)
    assert fmean(one.pairs for one in found) < TRIAL.pairs_max / 2, "it stops when it is clear"
    assert sum(one.low <= 0.1 <= one.high for one in found) >= 45


def test_a_small_saving_takes_all_pairs() -> None:
    found = claimed(30, saving=0.02)
    assert sum(one.low > 0 for one in found) >= 27
    assert fmean(one.pairs for one in found) > TRIAL.looks[0]


def test_more_energy_is_said_as_such() -> None:
    assert {one.verdict for one in claimed(10, saving=-0.1)} == {"costs more"}


def test_without_an_effect_of_the_order_it_is_a_t_interval_with_one_degree_less() -> None:
    trial = Trial(pairs_max=8)
    ratios = [0.9, 0.92, 0.88, 0.91, 0.9, 0.89, 0.92, 0.88]
    # equal means of both orders
    pairs = [Pair(1.0, r, index % 2 == 0) for index, r in enumerate(ratios)]
    found = trial.saving(pairs)
    assert found is not None
    logs = np.log(ratios)
    halves = [fmean(logs[0::2]), fmean(logs[1::2])]
    assert found.value == pytest.approx(1 - math.exp(fmean(halves)))
    [low, high] = ttest_1samp(logs, 0).confidence_interval(found.level)
    assert found.low == pytest.approx(1 - math.exp(high), abs=0.01)
    assert found.high == pytest.approx(1 - math.exp(low), abs=0.01)


def test_a_drift_from_run_to_run_is_taken_out_exactly() -> None:
    trial = Trial(pairs_max=8)
    energies = iter(1.01**step for step in range(16))
    pairs = []
    for first in trial.orders(3):
        one, other = next(energies), next(energies)
        pairs.append(Pair(other, one, True) if first else Pair(one, other, False))
    found = trial.saving(pairs)
    assert found is not None
    assert found.value == pytest.approx(0, abs=1e-12)
    assert found.high - found.low < 1e-9


def test_the_looks_spend_the_error_once() -> None:
    for pairs_max in (4, 6, 8, 12, 24, 50):
        trial = Trial(pairs_max=pairs_max, confidence=0.9)
        assert trial.looks[-1] == pairs_max
        assert trial.looks[0] >= FEWEST_PAIRS
        assert sum(map(trial.error_of, trial.looks)) == pytest.approx(0.1)


def test_the_orders_are_balanced_and_of_the_seed() -> None:
    orders = TRIAL.orders(7)
    assert orders == TRIAL.orders(7) != TRIAL.orders(8)
    assert all(sum(orders[at : at + 2]) == 1 for at in range(0, len(orders), 2))


def test_too_few_pairs_say_nothing() -> None:
    pair = Pair(1.0, 0.9, True)
    assert TRIAL.saving([pair] * 3) is None
    assert TRIAL.saving([pair] * 10) is None
