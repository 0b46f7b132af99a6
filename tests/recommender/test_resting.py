"""Standby timers and link policies as knobs of a recommendation."""

from typing import Any

import pytest

from iojoule.api.application.profiles import profile_of
from iojoule.datasets.errors import InputError
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import WorkloadProfile

DISK = profile_of("toshiba-dt01aca300")


def archive(gap: float, burst: float = 2e9, **more: Any) -> WorkloadProfile:
    return WorkloadProfile.model_validate(
        {
            "workload": {
                "operation": "read", "pattern": "sequential", "useful_request_bytes": 1 << 20,
                "burst_bytes": burst, "idle_gap_seconds_p50": gap,
            },
            "current": {"queue_depth": 4, "jobs": 1, "engine": "libaio"},
            **more,
        }
    )  # fmt: skip


def test_a_disk_with_long_gaps_is_stopped_in_them() -> None:
    found = Recommender(DISK).recommend(archive(7200.0))
    assert found.recommended is not None
    assert found.recommended.configuration.standby_timer_seconds == 60.0


def test_a_latency_bound_that_the_spin_up_breaks_keeps_it_spinning() -> None:
    """One of the 190 requests of a burst waits for it: more than one in a thousand."""
    sla = {"latency_p999_ns_max": 1e9}
    found = Recommender(DISK).recommend(archive(7200.0, burst=2e8, sla=sla))
    assert found.recommended is not None
    assert not found.recommended.configuration.standby_timer_seconds


def test_gaps_that_would_wear_the_disk_out_offer_no_standby() -> None:
    found = Recommender(DISK).recommend(archive(900.0))
    assert found.recommended is not None
    assert not found.recommended.configuration.standby_timer_seconds
    listed = archive(900.0, free={"standby_timer_seconds": [60]})
    with pytest.raises(InputError) as caught:
        Recommender(DISK).recommend(listed)
    assert caught.value.field == "free.standby_timer_seconds"


@pytest.mark.parametrize("device", ["toshiba-dt01aca300", "samsung-860-pro", "samsung-860-evo"])
def test_nothing_of_nvme_is_offered_on_sata(device: str) -> None:
    found = Recommender(profile_of(device)).recommend(archive(3600.0))
    for row in found.pareto:
        one = row.configuration
        assert one.completion != "polled"
        assert one.engine not in ("spdk", "io_uring_cmd")
        assert not one.power_state
        assert one.queue_depth <= 32
        assert one.apst_enabled is None


@pytest.mark.parametrize(
    "free",
    [
        {"engine": ["io_uring_cmd"]},
        {"completion": ["polled"]},
        {"power_state": [0, 1]},
    ],
)
def test_what_is_listed_and_cannot_be_is_refused(free: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Recommender(DISK).recommend(archive(3600.0, free=free))


def test_an_nvme_drive_is_offered_neither() -> None:
    found = Recommender(profile_of("samsung-980-pro-1tb")).recommend(archive(7200.0))
    for row in found.pareto:
        assert row.configuration.standby_timer_seconds is None
        assert row.configuration.link_power_policy is None
