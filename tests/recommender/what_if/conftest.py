"""A made-up drive with a made-up question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from iojoule.datasets.profile import DeviceProfile
from iojoule.recommender.request import WorkloadProfile
from iojoule.recommender.what_if.compare import Answerer
from iojoule.recommender.what_if.situation import Situation

FACTORS = {"electricity_price_per_kwh": 0.25, "currency": "EUR"}


@pytest.fixture(scope="session")
def situation(
    make_profile: Callable[..., DeviceProfile], ask: Callable[..., WorkloadProfile]
) -> Situation:
    """40 % reads at 60,000 operations a second, to be served within 3 ms."""
    work = {"operation": "mixed", "read_fraction": 0.4, "demand_operations_per_second": 6e4,
            "arrival_process": "poisson"}  # fmt: skip
    free = {"queue_depth": "all", "jobs": "all", "power_state": "all"}
    cached = {"device_state": "cached"}
    asked = ask(
        work, sla="p99 < 3 ms", factors=FACTORS, concurrency_max=256, free=free, state=cached
    )
    return Situation(make_profile(), asked)


@pytest.fixture(scope="session")
def answerer(situation: Situation) -> Answerer:
    return Answerer(situation, lambda named: _no_other(named))


def _no_other(named: str) -> Any:
    raise AssertionError(f"nobody asked for {named}")
