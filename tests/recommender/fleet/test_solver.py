"""HiGHS as the fleet needs it."""

from __future__ import annotations

import numpy as np
import pytest

from iojoule.recommender.fleet.solver import Matrix, solve

GROUPS, MODES = 4, 5
"""Of interchangeable groups, each with the same modes."""


@pytest.mark.parametrize("seed", range(5))
def test_of_equal_plans_the_last_bits_of_its_numbers_do_not_choose(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count, size = GROUPS * MODES, rng.integers(3, 9)
    watts, served = np.tile(rng.uniform(4.0, 12.0, MODES), GROUPS), np.tile(
        rng.uniform(0.5, 2.0, MODES), GROUPS
    )  # fmt: skip
    rows = np.concatenate([np.arange(count) // MODES, np.full(count, GROUPS)])
    columns = np.tile(np.arange(count), 2)
    least = np.append(np.full(GROUPS, -np.inf), 0.4 * served.max() * size * GROUPS)
    most = np.append(np.full(GROUPS, float(size)), np.inf)
    plans = []
    for _ in range(12):
        jitter = 1.0 + rng.uniform(-4e-16, 4e-16, (3, count))
        found = solve(
            watts * jitter[0], np.ones(count, dtype=np.intp), np.zeros(count),
            np.full(count, np.inf),
            Matrix(rows, columns, np.concatenate([np.ones(count), served * jitter[1]]),
                   (GROUPS + 1, count)),
            least * jitter[2, : GROUPS + 1], most, gap=1e-4,
        )  # fmt: skip
        assert found is not None
        plans.append((found.values.tolist(), found.objective))
    assert all(plan == plans[0] for plan in plans)
