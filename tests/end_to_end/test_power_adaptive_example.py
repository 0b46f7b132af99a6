"""The worked example of Xie et al., Can Storage Devices be Power Adaptive? (HotStorage 2024).

Section 3.3: SSD1, a Samsung PM9A3, writes at random 3.3 GiB/s for 8.19 W with requests of 256 KiB
at depth 64, its highest mean power and 99.5 % of its highest throughput; at depth 1 it draws 20 %
less for a throughput 40 % lower. The profile knows the first point, the data sheet and the range
of table 1 (3.5 to 13.5 W), and is asked for the second.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from iojoule.api.application.build_profile import expected_profile
from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.schema import Configuration
from iojoule.datasets.vocabulary import Engine, Evidence
from iojoule.model.evaluate.prediction import Prediction
from iojoule.model.evaluate.predictor import Predictor
from iojoule.recommender import pareto
from iojoule.recommender.fleet.document import Fleet
from iojoule.recommender.fleet.modes import Mode, Rest
from iojoule.recommender.fleet.plan import Part
from iojoule.recommender.fleet.program import MB, Program

SSD1 = "samsung-pm9a3"
GIB = 2**30
FULL = (3.3 * GIB, 8.19)
SHAPED = (0.6 * 3.3 * GIB, 0.8 * 8.19)
LEAST_WATTS = 3.5
"""The least that SSD1 drew under any workload (table 1)."""


def ask(depths: list[int]) -> Prediction:
    """Random writes of 256 KiB."""
    asked = {
        "operation": ["write"] * len(depths), "pattern": ["random"] * len(depths),
        "request_bytes": [262144] * len(depths), "queue_depth": depths,
        "engine": ["libaio"] * len(depths),
    }  # fmt: skip
    return Predictor(expected_profile(SSD1)).predict_columns(asked, len(depths))[0]


def test_the_catalogue_knows_the_point_at_depth_64_and_not_the_one_at_depth_1() -> None:
    sources = " ".join(fact.source for fact in load_catalogue().get(SSD1).facts)
    assert all(known in sources for known in ("004-002", "004-003", "004-067", "004-069"))
    assert not any(f"004-0{asked}" in sources for asked in (70, 71, 72, 73, 74))


@pytest.mark.parametrize(
    ("name", "published"),
    [("throughput_bytes_per_second", SHAPED[0]), ("device_power_watts", SHAPED[1])],
)
def test_the_published_point_at_depth_1_lies_in_its_interval(name: str, published: float) -> None:
    answer = ask([1])
    found = answer[name]
    assert found.low[0] < published < found.high[0]
    assert found.value[0] == pytest.approx(published, rel=0.2)
    assert set(answer.evidence_words(name)) == {"datasheet"}


def test_the_point_that_is_given_comes_back_closer_than_what_is_not() -> None:
    answer = ask([64, 1])
    for name, published in zip(("throughput_bytes_per_second", "device_power_watts"), FULL,
                               strict=True):  # fmt: skip
        found = answer[name]
        assert found.value[0] == pytest.approx(published, rel=0.07)
        assert found.low[0] < published < found.high[0]
        assert found.high[0] / found.low[0] < found.high[1] / found.low[1]


def test_what_is_curtailed_is_1_3_gib_a_second_and_each_byte_costs_a_third_more() -> None:
    assert (FULL[0] - SHAPED[0]) / GIB == pytest.approx(1.3, abs=0.05)
    joules = [watts / rate for rate, watts in (FULL, SHAPED)]
    assert joules[1] / joules[0] == pytest.approx(0.8 / 0.6)


def test_of_one_drive_both_points_and_rest_are_efficient() -> None:
    costs = np.array([[watts, -rate] for rate, watts in (FULL, SHAPED, (0.0, LEAST_WATTS))])
    assert pareto.non_dominated(costs).all()


def mode(rate: float, watts: float, depth: int) -> Mode:
    """A published point; what it draws in gaps is the least that was measured."""
    each = (watts - LEAST_WATTS) / rate
    return Mode(
        Part.ALL,
        Configuration(request_bytes=262144, queue_depth=depth, jobs=1, engine=Engine.LIBAIO),
        rate, LEAST_WATTS, LEAST_WATTS, each, each, watts, Evidence.PUBLISHED,
    )  # fmt: skip


def most_served(drives: int, budget: float) -> float:
    """What the fleet's program serves with so many SSD1 within a budget, bytes a second."""
    fleet = Fleet.model_validate(
        {
            "domains": [{"name": "rack"}],
            "drives": [{"name": "ssd1", "device": SSD1, "count": drives, "domain": "rack",
                        "classes": ["writes"]}],
            "classes": [{"name": "writes", "workload": {"workload": {"operation": "write"}},
                         "demand_bytes_per_second": drives * FULL[0], "redirectable": True,
                         "importance": 1.0}],
        }
    )  # fmt: skip
    modes = {(0, 0, Part.ALL): [mode(*FULL, 64), mode(*SHAPED, 1)]}
    rest = Rest(0, LEAST_WATTS, LEAST_WATTS, 0.0, 0.0)
    program = Program(fleet, modes, [(rest, None)], budget)
    found = program.solve({program.served[0]: -1.0}, program.must(), gap=0.0)
    assert found is not None
    return -found.objective * MB


@pytest.mark.parametrize("drives", [1, 3, 10])
@pytest.mark.parametrize("share", [0.45, 0.6, 0.8, 0.9, 1.0])
def test_joint_budgets_serve_what_every_combination_can_at_the_most(
    drives: int, share: float
) -> None:
    budget = share * drives * FULL[1]
    points = (FULL, SHAPED, (0.0, LEAST_WATTS))
    best = max(
        sum(rate for rate, _ in chosen)
        for chosen in itertools.combinations_with_replacement(points, drives)
        if sum(watts for _, watts in chosen) <= budget + 1e-9
    )
    assert most_served(drives, budget) == pytest.approx(best, rel=1e-6)


def test_of_ten_drives_fewer_at_full_depth_serve_as_much_as_all_at_depth_1() -> None:
    """Twenty per cent less power: 6 at full speed and 4 at rest draw 63.1 W, 10 shaped 65.5 W."""
    assert 6 * FULL[0] == pytest.approx(10 * SHAPED[0])
    assert 6 * FULL[1] + 4 * LEAST_WATTS == pytest.approx(63.14)
    assert 6 * FULL[1] + 4 * LEAST_WATTS < 10 * SHAPED[1]
    assert most_served(10, 63.2) == pytest.approx(10 * SHAPED[0])
