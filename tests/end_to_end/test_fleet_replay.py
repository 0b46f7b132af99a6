"""What a fleet plan promises of a domain's power, against the power of every millisecond.

`pytest -s` prints the figures.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iojoule.datasets.errors import InfeasibleError
from iojoule.recommender.fleet.planner import Planner
from tests.end_to_end.fleet_replay import (
    DEVICE,
    fitted,
    fleet_of,
    peak_over_mean,
    replayed,
    summed,
    traces_of,
    work_of,
)
from tests.end_to_end.simulated_drives import case

PERCENTILES = (0.95, 0.99)
SHARES = (0.75, 1.0)
"""Limits, as shares of what a domain needs for all it can serve."""

SEEDS = (1, 2, 3)


def test_drives_in_step_peak_together_and_others_do_not() -> None:
    saw = np.tile(np.arange(10.0), 10)
    found = summed([(100, [saw])], seed=1)
    assert found.aligned.max() == pytest.approx(100 * saw.max())
    assert found.spread.max() < 0.8 * found.aligned.max()
    assert found.spread.mean() == pytest.approx(found.aligned.mean())


@pytest.mark.soak
@pytest.mark.parametrize("number", [0, 1, 4, 6])
def test_a_domain_exceeds_its_limit_no_longer_than_stated(number: int, tmp_path: Path) -> None:
    one = case(number)
    profile = fitted(one, tmp_path)
    work, traces = work_of(one), traces_of(one)
    free = Planner(fleet_of(work), {DEVICE: profile})
    for percentile in PERCENTILES:
        measured = peak_over_mean(one, free, percentile)
        told: dict[str, dict[str, Any]] = {
            "profile's peak": {},
            "measured peak": {"peak_over_mean": measured},
            "measured, and no correlation": {
                "peak_over_mean": measured, "power_correlation": 0.0,
            },
        }  # fmt: skip
        for name, more in told.items():
            asked = {"percentile": percentile, **more}
            whole = Planner(fleet_of(work, **asked), {DEVICE: profile}).plans("most_demand")[0]
            for share in SHARES:
                limit = share * whole.domains[0].percentile_watts
                try:
                    plan = Planner(
                        fleet_of(work, limit_watts=limit * (1 + 1e-6), **asked), {DEVICE: profile}
                    ).plans("most_demand")[0]
                except InfeasibleError:  # drives at rest draw more
                    continue
                runs = [replayed(plan, "rack-1", seed, traces) for seed in SEEDS]
                spread = np.concatenate([run.spread for run in runs])
                aligned = runs[0].aligned
                over = [float(np.mean(watts > limit)) for watts in (spread, aligned)]
                sys.stdout.write(
                    f"{number} {one.question.workload.operation} {percentile:.0%} {name} "
                    f"{share:.0%}: limit {limit:.0f} W, mean {spread.mean():.0f} W, "
                    f"{percentile:.0%} of the time below {np.quantile(spread, percentile):.0f} W "
                    f"({np.quantile(aligned, percentile):.0f} W in step), "
                    f"above the limit {over[0]:.2%} ({over[1]:.2%} in step)\n"
                )
                assert over[0] <= 1.0 - percentile
                if "power_correlation" not in more:
                    assert over[1] <= 1.0 - percentile
