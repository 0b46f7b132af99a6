"""Budgets: 3 % regret in 15 % of the factorial's hours, and half of a Sobol plan's regret.

Twenty drives drawn at random, each with a question of its own; see
`tests/end_to_end/simulated_drives.py` and `rehearsal.py`. The truth of all candidates is simulated
once and kept in build/truth: four minutes the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.end_to_end.rehearsal import Outcome, adaptive, factorial, factorial_hours, sobol
from tests.end_to_end.simulated_drives import Case, case

CASES = range(20)
REGRET = 0.03
SHARE = 0.15


@pytest.mark.parametrize("share", [0.05, 0.10, SHARE])
def test_regret_in_a_share_of_the_factorials_hours(share: float, tmp_path: Path) -> None:
    def adapted(one: Case) -> Outcome:
        return adaptive(one, share * factorial_hours(one), tmp_path / str(one.number))

    chosen = made(adapted)
    spread = made(lambda one: sobol(one, share * factorial_hours(one)))
    print(f"\n{share:.0%} of the hours of the full factorial, {len(CASES)} drives")
    print(HEADING)
    tell("adaptive", chosen)
    tell("Sobol", spread)
    held = np.mean([one.regret <= one.bound + 1e-3 for one in chosen])
    print(f"the advisor's own 90 % bound held on {held:.0%} of the drives")
    if share < SHARE:
        return
    tell("full factorial", made(factorial))
    for one, other in zip(chosen, spread, strict=True):
        print(f"  {one.regret:8.2%} adaptive ({one.runs} runs), {other.regret:8.2%} Sobol")
    regrets = np.array([one.regret for one in chosen])
    assert np.median(regrets) <= REGRET
    assert regrets.mean() <= REGRET
    assert regrets.mean() <= 0.5 * np.mean([one.regret for one in spread])


def test_a_campaign_that_ends_itself_is_right(tmp_path: Path) -> None:
    def ending(one: Case) -> Outcome:
        hours = 0.25 * factorial_hours(one)
        return adaptive(one, hours, tmp_path / str(one.number), seed=3, regret=REGRET)

    found = made(ending)
    print(f"\nended at a bound of {REGRET:.0%}, or after 25 % of the factorial's hours")
    print(HEADING)
    tell("adaptive", found)
    right = np.mean([one.regret <= REGRET for one in found])
    print(f"regret of at most {REGRET:.0%} on {right:.0%} of the drives")
    assert right >= 0.85


HEADING = (
    f"{'plan':16}{'median':>9}{'mean':>9}{'q80':>9}{'q90':>9}{'worst':>9}{'breaks SLA':>12}"
    f"{'hours':>8}{'runs':>7}"
)


def made(plan: Callable[[Case], Outcome]) -> list[Outcome]:
    return [plan(case(number)) for number in CASES]


def tell(name: str, found: Sequence[Outcome]) -> None:
    """One line of a table: quantiles of regret over the drives, mean hours and runs."""
    regrets = np.array([one.regret for one in found])
    columns = [np.median(regrets), regrets.mean(), *np.quantile(regrets, [0.8, 0.9, 1.0])]
    broken = sum(not one.feasible for one in found)
    hours, runs = (np.mean([getattr(one, each) for one in found]) for each in ("hours", "runs"))
    print(
        f"{name:16}{''.join(f'{each:9.2%}' for each in columns)}{broken:12}{hours:8.2f}{runs:7.0f}"
    )
