"""The hidden physics are what they say, and thirty runs find a good setting in spite of them."""

from pathlib import Path

import numpy as np
import pytest

from tests.end_to_end.evidence_rungs import adaptive_rungs
from tests.end_to_end.hidden_physics import (
    HIDDEN,
    IOPS,
    MEAN,
    RATE,
    WATTS,
    CapHysteresis,
    Leakage,
    TransferBump,
    hidden,
)

BASE = {
    WATTS: np.array([2.0, 3.0, 4.0, 5.0]),
    RATE: np.array([1e8, 2e8, 3e8, 4e8]),
    IOPS: np.array([1e4, 2e4, 3e4, 4e4]),
    MEAN: np.array([1e5, 1e5, 1e5, 1e5]),
    "latency_p99_ns": np.array([2e5, 2e5, 2e5, 2e5]),
}


def test_a_long_run_of_a_leaking_drive_shows_the_truth_and_a_short_one_less() -> None:
    physics = Leakage(BASE)
    truth = physics.truth()[WATTS]
    assert np.all(np.diff(truth / BASE[WATTS]) > 0)  # leakage grows faster than power
    cold = physics.run(3, 30)[WATTS]
    physics.run(3, 600)
    assert cold < physics.run(3, 30)[WATTS] == pytest.approx(truth[3], rel=1e-3)
    after_hot = physics.run(0, 30)[WATTS]
    physics.rest()
    assert after_hot > physics.run(0, 30)[WATTS]


def test_the_bump_goes_up_down_and_up_again() -> None:
    sizes = np.array([16384.0, 32768.0, 65536.0, 131072.0])
    slower = TransferBump(BASE, sizes).truth()[MEAN] / BASE[MEAN]
    assert slower[0] == 1.0
    assert slower[1] > slower[2] < slower[3]
    truth = TransferBump(BASE, sizes).truth()
    np.testing.assert_allclose(truth[IOPS] * truth[MEAN], BASE[IOPS] * BASE[MEAN])  # Little


def test_a_cap_with_hysteresis_depends_on_what_was_run_before() -> None:
    physics = CapHysteresis(BASE)
    assert physics.releases_watts < BASE[WATTS][2] < physics.engages_watts < BASE[WATTS][3]
    free = physics.run(2, 30)
    physics.run(3, 30)
    physics.idle(2.5)
    held = physics.run(2, 30)
    assert held[WATTS] == pytest.approx(physics.releases_watts)
    assert held[RATE] < free[RATE]
    physics.run(0, 30)
    assert physics.run(2, 30) == free
    assert physics.truth()[RATE][2] == free[RATE]
    assert physics.truth()[RATE][3] < BASE[RATE][3]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.soak] if place else [])
        for place, name in enumerate(HIDDEN)
    ],
)
def test_three_per_cent_regret_in_thirty_runs(name: str, tmp_path: Path) -> None:
    found = [
        one for one in adaptive_rungs(hidden(name), (30,), 1, tmp_path) if one.answer == "advisor"
    ]
    assert [one.runs for one in found] == [30]
    assert found[0].feasible
    assert found[0].regret <= 0.03
