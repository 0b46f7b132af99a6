"""The shipped examples are answered by the shipped profiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from iojoule.datasets.profile import load_shipped_profile, shipped_profiles
from iojoule.datasets.schema import YEAR_SECONDS, State
from iojoule.datasets.vocabulary import DeviceState
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import load_workload

EXAMPLES = ("analytics.toml", "kv-reads.toml", "page-reads.toml")
FLUSHING = ("oltp.toml", "oltp.fio")

CACHED = State(device_state=DeviceState.CACHED)


@pytest.fixture(scope="module")
def shipped() -> Recommender:
    return Recommender(load_shipped_profile("samsung-980-pro-1tb"))


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_has_an_answer(root: Path, shipped: Recommender, name: str) -> None:
    asked = load_workload(root / "examples" / name).model_copy(update={"state": CACHED})
    answer = shipped.recommend(asked)
    assert answer.recommended is not None
    assert answer.recommended.meets_sla
    assert len(answer.pareto) >= 2
    assert answer.saving is not None
    assert answer.saving.watts.low <= answer.saving.watts.value <= answer.saving.watts.high
    objectives = [row.joules_per_useful_gb for row in answer.pareto]
    values = [objective.value for objective in objectives if objective is not None]
    assert values == sorted(values)
    assert len(values) == len(objectives)


@pytest.mark.parametrize("name", FLUSHING)
def test_flushes_of_unknown_cost_leave_nothing_that_is_shown_to_hold(
    root: Path, shipped: Recommender, name: str
) -> None:
    answer = shipped.recommend(load_workload(root / "examples" / name))
    assert answer.action == "none"
    assert answer.reason_code == "not_shown_to_hold"
    assert all(one.unknown for miss in answer.nearest_misses for one in miss.shortfalls)


def test_a_year_of_transactions_is_judged_steady_and_a_quarter_of_an_hour_cached(
    root: Path, shipped: Recommender
) -> None:
    asked = load_workload(root / "examples" / "oltp.toml")
    year, short, steady, cached = (
        shipped.recommend(asked.model_copy(update=update)).current
        for update in (
            {"horizon_seconds": YEAR_SECONDS},
            {},
            {"state": State(device_state=DeviceState.STEADY)},
            {"state": CACHED},
        )
    )
    assert year == steady
    assert short == cached
    assert year != short


def test_the_job_file_asks_what_the_toml_file_asks(root: Path) -> None:
    toml = load_workload(root / "examples" / "oltp.toml")
    fio = load_workload(root / "examples" / "oltp.fio")
    for name in (
        "operation", "read_fraction", "pattern", "useful_request_bytes", "arrival_process",
        "demand_operations_per_second", "flush_every_writes",
    ):  # fmt: skip
        assert getattr(fio.workload, name) == getattr(toml.workload, name), name
    for name in ("engine", "completion", "queue_depth", "jobs"):
        assert getattr(fio.current, name) == getattr(toml.current, name), name


@pytest.mark.parametrize("device", shipped_profiles())
def test_every_shipped_profile_answers_and_admits_what_it_lacks(root: Path, device: str) -> None:
    profile = load_shipped_profile(device)
    question = load_workload(root / "examples" / "kv-reads.toml")
    modest = question.workload.model_copy(update={"demand_operations_per_second": 2000.0})
    question = question.model_copy(update={"workload": modest, "free": None})
    answer = Recommender(profile).recommend(question)
    assert (answer.saving is None) == (profile.device_power is None)
    if profile.device_power is None:
        assert answer.ranked_by == "performance"
        assert answer.current.device_power_watts is None
