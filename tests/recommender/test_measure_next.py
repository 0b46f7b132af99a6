"""What is named narrows the interval as it says, and is what narrows it most."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from iojoule.model.evaluate.equal_work import Demand, watts_of, work_of
from iojoule.model.evaluate.frame import make_frame
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.model.evaluate.uncertainty import (
    Layout,
    all_gradients,
    contrast,
    energies,
    idle_gradients,
    relative_errors,
)
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import WorkloadProfile
from iojoule.recommender.response import MeasureNext, Recommendation
from tests.recommender.conftest import MakeProfile

Ask = Callable[..., WorkloadProfile]

FREE = {"queue_depth": "all", "jobs": [1, 2, 4], "engine": ["io_uring", "libaio"],
        "power_state": "all"}  # fmt: skip
TODAY = {"queue_depth": 8, "jobs": 4, "scheduler": "kyber", "completion": "polled"}


def asked(recommender: Recommender, ask: Ask, **parts: Any) -> tuple[Recommendation, MeasureNext]:
    # one by one, requests keep the drive awake: its own watts are then the same everywhere
    arrival = "bursts" if parts.get("scope") == "device" else "poisson"
    workload = {"demand_operations_per_second": 3e4, "arrival_process": arrival}
    free = {**FREE, "scheduler": "all", "completion": "all"}
    answer = recommender.recommend(ask(workload, current=TODAY, free=free, **parts))
    assert answer.measure_next is not None
    return answer, answer.measure_next


@pytest.mark.parametrize("scope", ["device", "device_cpu", "system"])
def test_every_measurement_narrows_the_interval(
    recommender: Recommender, ask: Ask, scope: str
) -> None:
    answer, found = asked(recommender, ask, scope=scope, least_saving_percent=0)
    assert answer.saving is not None
    percent = answer.saving.percent
    assert found.saving_percent == percent.value
    assert found.half_percent == pytest.approx((percent.high - percent.low) / 2)
    halves = [found.half_percent, *(one.half_percent for one in found.runs)]
    assert all(later <= earlier for earlier, later in pairwise(halves))
    for one in found.runs:
        assert one.half_percent <= one.alone_half_percent <= found.half_percent * (1 + 1e-9)
        sd = one.half_percent / NORMAL_90
        assert one.proves == (percent.value >= NormalDist().inv_cdf(0.9) * sd)
    if found.runs:
        assert found.runs[0].alone_half_percent == found.runs[0].half_percent
        assert found.runs[-1].half_percent <= 0.9 * found.half_percent


def test_what_is_compared_comes_before_rivals_that_tell_as_much(
    recommender: Recommender, ask: Ask
) -> None:
    answer, found = asked(recommender, ask, least_saving_percent=0)
    assert answer.recommended is not None
    roles = {one.role: one.configuration for one in found.runs}
    assert found.runs[0].role in ("today", "candidate")
    if "candidate" in roles:
        assert roles["candidate"] == answer.recommended.configuration
    if "today" in roles:
        assert roles["today"] == answer.current.configuration
    assert len({one.configuration.model_dump_json() for one in found.runs}) == len(found.runs)


def test_who_stays_is_told_what_would_show_more(recommender: Recommender, ask: Ask) -> None:
    answer, found = asked(recommender, ask, least_saving_percent=90)
    assert answer.not_taken is not None
    assert answer.not_taken.saving is not None
    assert found.saving_percent == answer.not_taken.saving.percent.value


def test_nothing_to_compare_nothing_to_measure(
    make_profile: MakeProfile, recommender: Recommender, ask: Ask
) -> None:
    assert recommender.recommend(ask(current=TODAY, free={})).measure_next is None
    blind = Recommender(make_profile(device_power=None, host_power=None, system_power=None))
    assert blind.recommend(ask(current=TODAY)).measure_next is None


def test_the_expected_width_is_what_drawing_errors_and_measurements_gives(
    make_profile: MakeProfile,
) -> None:
    """20,000 draws of what three configurations err, one of them measured: within 3 %."""
    profile, demand = make_profile(), Demand(5e7, 4096.0, 4096.0)
    columns = {"operation": "read", "queue_depth": [4, 32, 8], "jobs": [1, 2, 4],
               "engine": ["io_uring", "libaio", "libaio"]}  # fmt: skip
    frame, _ = make_frame(profile, columns, 3)
    prediction = Predictor(profile).predict(frame)
    work = work_of(frame, prediction, demand)
    watts = watts_of(profile, frame, prediction, work, 1.0)
    layout = Layout(profile)
    power = all_gradients(layout, frame, prediction, work, watts, 1.0)["device_cpu"]
    idle = idle_gradients(layout, frame, prediction, work, 1.0)["device_cpu"]
    every = energies(layout, power, idle, work, 0)
    covariance = relative_errors(layout, every, [0, 1, 2])
    ratio = power.watts[1] / power.watts[0]
    weights = ratio * np.array([1.0, -1.0, 0.0])
    found = contrast(layout, every, 0, [1])
    assert 100 * np.sqrt(weights @ covariance @ weights) == pytest.approx(found.percent[1][0])
    source = np.random.default_rng(3)
    errors = source.multivariate_normal(np.zeros(3), covariance, 20_000)
    noise = 0.02
    seen = errors[:, 2] + noise * source.standard_normal(len(errors))
    saving = errors @ weights
    slope = (saving @ seen) / (seen @ seen)
    left = np.std(saving - slope * seen)
    cross = weights @ covariance[:, 2]
    expected = weights @ covariance @ weights - cross**2 / (covariance[2, 2] + noise**2)
    assert left == pytest.approx(np.sqrt(expected), rel=0.03)
    assert NORMAL_90 * left < NORMAL_90 * np.sqrt(weights @ covariance @ weights)
