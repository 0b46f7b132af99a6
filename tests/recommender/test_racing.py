"""Race to idle against pacing: what must hold whatever the drive draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iojoule.datasets.profile import DeviceProfile
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import WorkloadProfile
from iojoule.recommender.response import Row
from tests.model.known_drive import SETTLE, idle_behaviour, write_state

Ask = Callable[..., WorkloadProfile]
Make = Callable[..., DeviceProfile]

RATE = 1e7
BURST = {"arrival_process": "bursts", "demand_bytes_per_second": RATE}


def drive(make_profile: Make, **changes: Any) -> Recommender:
    parts: dict[str, Any] = {
        "idle": idle_behaviour().model_dump(mode="json"),
        "write_state": write_state().model_dump(mode="json"),
    }
    return Recommender(make_profile(**(parts | changes)))


def device_watts(one: Recommender, ask: Ask, **workload: Any) -> float:
    row = answer(one, ask, **workload)
    assert row.device_power_watts is not None
    return float(row.device_power_watts.value)


def answer(one: Recommender, ask: Ask, **workload: Any) -> Row:
    asked = ask({**BURST, **workload}, current={"queue_depth": 16}, free={}, sla={})
    return one.recommend(asked).current


def notes(one: Recommender, ask: Ask, **workload: Any) -> str:
    asked = ask({**BURST, **workload}, current={"queue_depth": 16}, free={}, sla={})
    return "\n".join(one.recommend(asked).notes)


def test_long_gaps_rest_and_short_ones_do_not(make_profile: Make, ask: Ask) -> None:
    one = drive(make_profile)
    power = one.profile.device_power
    assert power is not None
    long = device_watts(one, ask, idle_gap_seconds_p50=1000.0)
    short = device_watts(one, ask, idle_gap_seconds_p50=0.5 * SETTLE)
    row = answer(one, ask, idle_gap_seconds_p50=1000.0)
    idle, base = power.idle_watts[0].value, power.parameters[0].value
    active = one.predictor.predict_columns({"request_bytes": 4096, "queue_depth": 16}, 1)[0]
    full = float(active["device_power_watts"].value[0])
    busy = row.busy_share
    assert long == pytest.approx(busy * full + (1 - busy) * idle, rel=1e-3)
    assert short == pytest.approx(busy * full + (1 - busy) * base, rel=1e-3)
    assert "race to idle" in notes(one, ask, idle_gap_seconds_p50=1000.0)


@settings(deadline=None, max_examples=15)
@given(gap=st.floats(1e-3, 300.0), longer=st.floats(1.0, 20.0))
def test_power_never_grows_with_the_gap(
    make_profile: Make, ask: Ask, gap: float, longer: float
) -> None:
    one = drive(make_profile)
    here = device_watts(one, ask, idle_gap_seconds_p50=gap)
    there = device_watts(one, ask, idle_gap_seconds_p50=gap * longer)
    assert there <= here * (1 + 1e-4)


def test_racing_equals_pacing_where_resting_draws_what_being_awake_does(
    make_profile: Make, ask: Ask
) -> None:
    known = make_profile().device_power
    assert known is not None
    data = known.model_dump(mode="json")
    for idle in data["idle_watts"]:
        idle["value"] = data["parameters"][0]["value"]
    behaviour = idle_behaviour().model_dump(mode="json")
    behaviour["wake_seconds"]["value"] = 1e-12
    one = drive(make_profile, device_power=data, idle=behaviour)
    values = [device_watts(one, ask, idle_gap_seconds_p50=gap) for gap in (0.01, 0.2, 50.0)]
    assert values == pytest.approx([values[0]] * 3, rel=1e-6)


def test_work_after_writes_keeps_short_gaps_from_resting(make_profile: Make, ask: Ask) -> None:
    """At PS2 the work after a burst is longer than the gap, so that racing wins nothing."""
    one = drive(make_profile)
    facts = {"operation": "write", "burst_bytes": 1e9, "idle_gap_seconds_p50": None}
    said = {}
    for state in (0, 2):
        asked = ask(
            {**BURST, **facts, "pattern": "sequential"},
            current={"queue_depth": 16, "power_state": state}, free={}, sla={},
        )  # fmt: skip
        said[state] = "\n".join(one.recommend(asked).notes)
    # 100 s a period: 0.2 s of work at PS0, 16 s at PS2
    assert "racing pays from 0.2" in said[0]
    assert "racing pays from 16" in said[2]


def test_bursts_without_a_demand_set_the_pace_by_their_gaps(make_profile: Make, ask: Ask) -> None:
    one = drive(make_profile)
    asked = ask(
        {"burst_bytes": 4096e3, "idle_gap_seconds_p50": 2.0},
        current={"queue_depth": 16}, free={}, sla={},
    )  # fmt: skip
    row = one.recommend(asked).current
    active = one.predictor.predict_columns(
        {"request_bytes": 4096, "queue_depth": 16, "burst_bytes": 4096e3,
         "idle_gap_seconds_p50": 2.0}, 1,
    )[0]  # fmt: skip
    burst = 1000.0 / float(active["iops"].value[0])
    assert row.throughput_bytes_per_second.value == pytest.approx(4096e3 / (burst + 2.0))
    assert row.busy_share == pytest.approx(burst / (burst + 2.0))
    assert np.isfinite(row.device_power_watts.value if row.device_power_watts else np.nan)
