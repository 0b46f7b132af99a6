"""What one of several drives draws is what its row says, whatever its requests wait for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from iojoule.datasets.profile import DeviceProfile
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import WorkloadProfile
from iojoule.recommender.what_if.compare import Answerer
from iojoule.recommender.what_if.sharing import Serving, gradients_of
from iojoule.recommender.what_if.situation import Situation
from tests.recommender.conftest import parameter

Make = Callable[..., DeviceProfile]
Ask = Callable[..., WorkloadProfile]

TODAY = {"queue_depth": 4, "jobs": 2}
CACHED = {"device_state": "cached"}


@pytest.fixture(scope="module")
def drive(make_profile: Make) -> DeviceProfile:
    """A drive whose flush takes 2 ms."""
    seconds = parameter("flush_seconds", 2e-3, 0.1, "s")
    return make_profile(flush={"seconds": seconds, "every_writes": [1, 100]})


@pytest.mark.parametrize(
    "work",
    [
        {"operation": "write"},
        {"operation": "write", "flush_every_writes": 4},
        {"operation": "write", "flush_every_writes": 4, "demand_operations_per_second": 500.0},
        {"operation": "mixed", "read_fraction": 0.5, "flush_every_writes": 1},
        {"useful_request_bytes": 8192, "request_bytes_mix": "4096/75:20480/25"},
        {"useful_request_bytes": 8192, "request_bytes_mix": "4096/75:20480/25",
         "demand_operations_per_second": 20_000.0, "arrival_process": "poisson"},
    ],
)  # fmt: skip
def test_one_of_them_draws_what_its_row_says(
    drive: DeviceProfile, ask: Ask, work: dict[str, Any]
) -> None:
    recommender = Recommender(drive)
    current = TODAY | {"request_bytes": work.get("useful_request_bytes", 4096)}
    workload = ask(work, current=current, state=CACHED)
    row = recommender.today(workload)
    assert row.device_power_watts is not None
    serving = Serving(recommender, workload, row, 3)
    one, all_of = (float(gradients_of(serving, n)["device"].watts[0]) for n in (1, None))
    assert one == pytest.approx(row.device_power_watts.value)
    assert all_of == pytest.approx(3.0 * one)


def test_all_drives_flush_as_the_one_that_is_recommended(drive: DeviceProfile, ask: Ask) -> None:
    """Weaker durability is taken where the SLA allows it; the totals then hold it too."""
    work = {"operation": "write", "flush_every_writes": 4}
    permitted = "p99 < 50 ms, allow weaker durability"
    asked = ask(work, current=TODAY, state=CACHED, sla=permitted, scope="device")

    def nothing(named: str) -> DeviceProfile:
        raise AssertionError(named)

    side = Answerer(Situation(drive, asked), nothing).ask({"drives": 2}).changed
    assert side.answer.durability is not None
    assert side.answer.durability.weakened
    assert side.row is not None
    assert side.row.device_power_watts is not None
    assert side.totals is not None
    assert side.totals.power_watts is not None
    assert side.totals.power_watts.value == pytest.approx(2.0 * side.row.device_power_watts.value)
