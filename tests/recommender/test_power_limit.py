"""A power limit in watts as a knob of a recommendation."""

from __future__ import annotations

from typing import Any

import pytest

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import Parameter, PowerLimit, load_shipped_profile
from iojoule.datasets.vocabulary import Evidence
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import WorkloadProfile
from tests.errors import having

PROFILE = load_shipped_profile("samsung-980-pro-1tb")
MEASURED = PROFILE.model_copy(
    update={
        "power_limit": PowerLimit(
            share_drawn=Parameter(
                name="share_drawn",
                value=0.98,
                sd=0.02,
                unit="1",
                evidence=Evidence.MEASURED,
                source="made",
            ),
            measured_watts=[4.0, 5.0],
        )
    }
)
PLAIN, KNOWN = Recommender(PROFILE), Recommender(MEASURED)


def reads(**more: Any) -> WorkloadProfile:
    return WorkloadProfile.model_validate(
        {
            "scope": "device",
            "workload": {"operation": "read", "pattern": "random", "useful_request_bytes": 4096},
            "current": {"queue_depth": 128, "jobs": 1, "engine": "io_uring"},
            **more,
        }
    )


NAMES = ("iops", "device_power_watts", "joules_per_useful_gb")


def today(watts: float, **more: Any) -> dict[str, Any]:
    """Figures of today's configuration where it is under a limit."""
    current = {"queue_depth": 128, "engine": "io_uring", "power_limit_watts": watts}
    row = PLAIN.recommend(reads(current=current, **more)).current
    return {name: getattr(row, name) for name in NAMES}


def values(found: dict[str, Any]) -> list[float]:
    return [found[name].value for name in NAMES]


def test_the_highest_limit_within_a_bound_on_watts_is_chosen() -> None:
    found = KNOWN.recommend(
        reads(
            free={"power_limit_watts": "all"},
            sla={"device_power_watts_max": 5.1},
        )
    )
    assert found.recommended is not None
    chosen = found.recommended.configuration
    assert chosen.power_limit_watts in (4.0, 5.0)
    assert chosen.power_state is None, "the drive is in what the limit leaves available"
    assert found.recommended.device_power_watts.value <= (chosen.power_limit_watts or 0.0)


def test_a_lower_limit_never_gives_more_watts_or_more_work() -> None:
    rows = [values(today(watts))[:2] for watts in (3.2, 3.6, 4.4, 5.0, 5.9, 8.0)]
    assert rows == sorted(rows)
    assert sorted(watts for _, watts in rows) == [watts for _, watts in rows]
    assert rows[0][0] < 0.9 * rows[-1][0]
    assert rows[-1] == pytest.approx(values(today(0.0))[:2])


@pytest.mark.parametrize("operation", ["read", "write"])
def test_served_work_costs_no_less_under_a_limit_that_it_does_not_reach(operation: str) -> None:
    asked = {
        "workload": {
            "operation": operation,
            "pattern": "sequential",
            "useful_request_bytes": 131072,
            "demand_bytes_per_second": 2e8,
        },
        "horizon_seconds": 60.0,
    }
    free, limited = (today(watts, **asked) for watts in (0.0, 7.0))
    assert values(limited) == pytest.approx(values(free))


def test_what_a_limit_saves_is_shared_with_the_other_knobs() -> None:
    found = KNOWN.recommend(
        reads(
            current={"queue_depth": 128, "engine": "io_uring", "power_state": 1},
            free={"power_limit_watts": [0, 4.0], "queue_depth": [8, 128], "power_state": [0, 1]},
            sla={"device_power_watts_max": 4.02},
        )
    )
    assert found.recommended is not None


def test_a_drive_without_measured_limits_gets_none_by_itself() -> None:
    for free in ({}, {"free": {"queue_depth": "all", "power_limit_watts": "all"}}):
        found = PLAIN.recommend(reads(**free))
        for row in found.pareto:
            assert not row.configuration.power_limit_watts
    assert today(4.0)["iops"].evidence == Evidence.EXTRAPOLATED
    assert today(8.0)["iops"].evidence == today(0.0)["iops"].evidence


def test_today_may_be_under_a_limit() -> None:
    found = PLAIN.recommend(
        reads(
            current={"queue_depth": 128, "engine": "io_uring", "power_limit_watts": 4.0},
            free={"power_limit_watts": "all"},
        )
    )
    assert found.current.configuration.power_limit_watts == 4.0
    assert found.current.device_power_watts.value <= 4.0


def test_a_limit_that_the_drive_refuses_is_refused() -> None:
    with pytest.raises(InputError, check=having(field="free.power_limit_watts")):
        PLAIN.recommend(reads(free={"power_limit_watts": [0, 3.0]}))
