"""The program against brute force, its bound, and the percentile that it promises."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from iojoule.datasets.schema import Configuration
from iojoule.datasets.vocabulary import Engine, Evidence
from iojoule.recommender.fleet.document import Fleet
from iojoule.recommender.fleet.modes import Mode, Rest
from iojoule.recommender.fleet.plan import Part
from iojoule.recommender.fleet.program import MB, Before, Program, value_of


def mode(capacity: float, gap: float, full: float, peak: float, depth: int = 1) -> Mode:
    """A made-up mode: capacity in MB/s, watts in gaps, at capacity and at its peak."""
    each = (full - gap) / (capacity * MB)
    return Mode(
        Part.ALL,
        Configuration(request_bytes=4096, queue_depth=depth, jobs=1, engine=Engine.LIBAIO),
        capacity * MB, gap, gap, each, each, peak, Evidence.MEASURED,
    )  # fmt: skip


SLOW = mode(100.0, 2.0, 3.0, 3.5, 1)
FAST = mode(400.0, 3.0, 8.0, 9.0, 32)
READY = Rest(0, 1.5, 1.5, 0.0, 0.0)
ASLEEP = Rest(3, 0.5, 0.5, 0.1, 0.2)


def fleet(counts: tuple[int, ...], demands: dict[str, float], **more: Any) -> Fleet:
    """Groups of every class, each in a domain of its own below one top."""
    domains = [{"name": "top", **more.pop("top", {})}]
    domains += [{"name": f"d{i}", "parent": "top"} for i in range(len(counts))]
    return Fleet.model_validate(
        {
            "domains": domains,
            "drives": [
                {
                    "name": f"g{i}", "device": "made-up", "count": count, "domain": f"d{i}",
                    "classes": list(demands),
                }
                for i, count in enumerate(counts)
            ],
            "classes": [
                {
                    "name": name, "workload": {"workload": {"operation": "read"}},
                    "demand_bytes_per_second": demand * MB, "redirectable": True,
                }
                for name, demand in demands.items()
            ],
            **more,
        }
    )  # fmt: skip


def program(stated: Fleet, budget: float | None, modes: tuple[Mode, ...] = (SLOW, FAST)) -> Program:
    every = {
        (group, number, Part.ALL): modes
        for group in range(len(stated.drives))
        for number in range(len(stated.classes))
    }
    return Program(stated, every, [(READY, ASLEEP)] * len(stated.drives), budget)


def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Every way to write a total as so many counts."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in compositions(total - first, parts - 1):
            yield (first, *rest)


def brute_force(stated: Fleet, budget: float, modes: tuple[Mode, ...]) -> float:
    """Least watts over every assignment of whole drives; the loads of each by linear programming.

    Written without the program's code: per group counts of (class, mode), ready, standby.
    """
    kinds = [(number, m) for number in range(len(stated.classes)) for m in modes]
    best = inf
    per_group = [list(compositions(g.count, len(kinds) + 2)) for g in stated.drives]
    for counts in itertools.product(*per_group):
        fixed = peak = 0.0
        slope, most, owner = [], [], []
        for own in counts:
            *serving, ready, asleep = own
            fixed += ready * READY.watts + asleep * ASLEEP.watts
            peak += ready * READY.watts + asleep * ASLEEP.watts
            for count, (number, m) in zip(serving, kinds, strict=True):
                fixed += count * m.gap_watts
                peak += count * m.peak_watts
                slope.append(m.joules_per_byte * MB)
                most.append(count * m.capacity_bytes_per_second / MB)
                owner.append(number)
        if peak > budget + 1e-9 or fixed >= best:
            continue
        needed = [c.demand_bytes_per_second / MB for c in stated.classes]
        rows = [[-float(o == number) for o in owner] for number in range(len(needed))]
        found = linprog(slope, A_ub=rows, b_ub=[-n for n in needed],
                        bounds=[(0, m) for m in most])  # fmt: skip
        if found.success:
            best = min(best, fixed + float(found.fun))
    return best


@pytest.mark.parametrize(
    ("counts", "demands", "budget"),
    [
        ((3,), {"a": 250.0}, 100.0),
        ((3,), {"a": 250.0}, 12.0),
        ((2, 2), {"a": 300.0}, 14.0),
        ((2, 1), {"a": 120.0, "b": 450.0}, 30.0),
        ((2, 2), {"a": 90.0, "b": 210.0}, 17.0),
        ((3, 1), {"a": 1.0, "b": 399.0}, 14.0),
    ],
)
def test_the_plan_is_that_of_brute_force(
    counts: tuple[int, ...], demands: dict[str, float], budget: float
) -> None:
    stated = fleet(counts, demands)
    asked = program(stated, budget)
    every = {place: asked.upper[place] for place in asked.served}
    found = asked.solve(asked.cost(), asked.must(every), gap=0.0)
    expected = brute_force(stated, budget, (SLOW, FAST))
    if expected == inf:
        assert found is None
    else:
        assert found is not None
        assert found.objective == pytest.approx(expected, rel=1e-6)


def test_a_budget_that_nothing_keeps_has_no_plan() -> None:
    asked = program(fleet((3,), {"a": 250.0}), 1.0)
    every = {place: asked.upper[place] for place in asked.served}
    assert asked.solve(asked.cost(), asked.must(every), gap=0.0) is None


@settings(max_examples=25, deadline=None)
@given(count=st.integers(1, 40), demand=st.floats(1.0, 10_000.0), budget=st.floats(1.0, 400.0))
def test_no_plan_beats_divisible_drives_nor_breaks_its_own_rules(
    count: int, demand: float, budget: float
) -> None:
    asked = program(fleet((count, count), {"a": demand}), budget)
    weights = dict.fromkeys(asked.served, -1.0)
    nothing = np.zeros(len(asked.upper))
    whole = asked.solve(weights, nothing, gap=0.0)
    if whole is None:  # even at rest they draw more
        assert 2 * count * ASLEEP.watts > budget * (1 - 1e-6)
        return
    assert whole.objective >= whole.bound - 1e-6 >= whole.relaxed - 2e-6
    assert value_of(asked.all_terms, whole.values) <= budget * (1 + 1e-6) + 1e-6
    served = whole.values[asked.served[0]]
    capacity = sum(
        whole.values[o.drives] * o.mode.capacity_bytes_per_second / MB for o in asked.options
    )
    assert served <= min(demand, capacity) * (1 + 1e-6) + 1e-6


def test_more_watts_never_serve_less() -> None:
    stated = fleet((20, 20), {"a": 5000.0, "b": 5000.0})
    before = 0.0
    for budget in (25.0, 60.0, 120.0, 240.0, 400.0):
        asked = program(stated, budget)
        found = asked.solve(dict.fromkeys(asked.served, -1.0), np.zeros(len(asked.upper)), gap=0.0)
        assert found is not None
        assert -found.objective >= before - 1e-6
        before = -found.objective


def test_drives_that_wake_serve_less_in_their_first_period() -> None:
    stated = fleet((4,), {"a": 1600.0})
    every = {(0, 0, Part.ALL): (FAST,)}
    asleep = {("g0", "", "", "PS3"): 4}
    served = []
    for period in (0.4, 2.0, 2000.0):
        asked = Program(stated, every, [(READY, ASLEEP)], None, Before(asleep, period))
        weights = dict.fromkeys(asked.served, -1.0)
        found = asked.solve(weights, np.zeros(len(asked.upper)), gap=0.0)
        assert found is not None
        served.append(-found.objective / 1600.0)
    # 0.2 s of 0.4, 2 and 2000 s
    assert served == pytest.approx([0.5, 0.9, 0.9999], rel=1e-6)


@pytest.mark.parametrize("together", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("load", [50.0, 200.0, 390.0])
def test_the_power_of_many_drives_stays_below_the_percentile(together: float, load: float) -> None:
    """Each drive fluctuates by a part of its own and one that all share, as widely as it can."""
    count, share = 200, 0.99
    stated = fleet((count,), {"a": count * load}, power_correlation=together, percentile=share)
    asked = program(stated, None, (FAST,))
    every = {place: asked.upper[place] for place in asked.served}
    found = asked.solve(asked.cost(), asked.must(every), gap=0.0)
    assert found is not None
    serving = int(sum(found.values[o.drives] for o in asked.options))
    bound = value_of(asked.all_terms, found.values) + asked.all_constant
    resting = value_of({r.variable: r.rest.watts for r in asked.resting}, found.values)
    mean = FAST.gap_watts * serving + FAST.joules_per_byte * count * load * MB + resting
    moments = 100_000
    rng = np.random.default_rng(7)
    sd = (FAST.peak_watts - FAST.gap_watts) / 2.0
    shared = np.sqrt(together) * serving * sd * rng.standard_normal(moments)
    own = np.sqrt((1.0 - together) * serving) * sd * rng.standard_normal(moments)
    exceeded = np.mean(mean + shared + own > bound)
    assert exceeded <= (1.0 - share) * 1.1
    if together == 0.0:  # drives that jump between two levels, each when it likes
        span = FAST.peak_watts - FAST.gap_watts
        chance = (mean - resting - FAST.gap_watts * serving) / (span * serving)
        jumping = resting + FAST.gap_watts * serving + span * rng.binomial(serving, chance, moments)
        assert np.mean(jumping > bound) <= 1.0 - share


def test_nothing_exceeds_all_peaks_together() -> None:
    asked = program(fleet((50,), {"a": 9000.0}), None)
    every = {place: asked.upper[place] for place in asked.served}
    found = asked.solve(asked.cost(), asked.must(every), gap=0.0)
    assert found is not None
    peaks = sum(found.values[o.drives] * o.mode.peak_watts for o in asked.options)
    resting = sum(found.values[r.variable] * r.rest.watts for r in asked.resting)
    assert value_of(asked.all_terms, found.values) == pytest.approx(peaks + resting)
