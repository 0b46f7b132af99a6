"""Disks that stop and links that sleep, in gaps of the work."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iojoule.api.application.build_profile import expected_profile
from iojoule.api.application.profiles import profile_of
from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.vocabulary import LinkPowerPolicy
from iojoule.model.evaluate.prediction import Prediction
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.quantities import GAP_QUANTITIES, QUANTITIES

DISK, SSD = expected_profile("toshiba-dt01aca300"), expected_profile("samsung-860-evo")


def ask(profile: DeviceProfile, rows: int = 1, **columns: Any) -> Prediction:
    predictor = Predictor(profile)
    filled = {name: v if isinstance(v, list) else [v] * rows for name, v in columns.items()}
    from iojoule.model.evaluate.frame import make_frame

    frame, _ = make_frame(profile, filled, rows)
    return predictor.predict(frame, only=(*QUANTITIES, *GAP_QUANTITIES))


ONE_READ: Mapping[str, Any] = {
    "operation": "read",
    "pattern": "random",
    "request_bytes": 4096,
    "queue_depth": 1,
    "jobs": 1,
    "burst_bytes": 4096.0,
}


def test_a_stopped_disk_makes_the_next_request_wait_for_the_spin_up() -> None:
    told = ask(DISK, 2, **ONE_READ, idle_gap_seconds_p50=7200.0, standby_timer_seconds=[0.0, 600.0])
    standby = DISK.idle.standby if DISK.idle else None
    assert standby is not None
    waited = np.diff(told["latency_mean_ns"].value)[0]
    assert waited == pytest.approx(1e9 * standby.exit_seconds.value, rel=0.01)


def test_the_energy_of_a_cycle_is_that_of_its_parts() -> None:
    """Spinning until the timer, still after it, and the spin-up at its own watts."""
    gap, timer = 7200.0, 600.0
    told = ask(DISK, **ONE_READ, idle_gap_seconds_p50=gap, standby_timer_seconds=timer)
    standby, power = (DISK.idle.standby if DISK.idle else None), DISK.device_power
    assert standby is not None
    assert power is not None
    up = standby.exit_seconds.value
    idle = power.idle_watts[0].value
    joules = idle * timer + standby.watts.value * (gap - timer) + standby.spin_up_watts.value * up
    assert told["cycle_power_watts"].value[0] == pytest.approx(joules / (gap + up), rel=2e-3)


@pytest.mark.parametrize("policy", list(LinkPowerPolicy))
def test_a_sleeping_link_saves_no_more_than_slumber(policy: LinkPowerPolicy) -> None:
    gaps = {"idle_gap_seconds_p50": 60.0}
    told = ask(SSD, 2, **ONE_READ, **gaps, link_power_policy=["max_performance", policy.value])
    awake, slept = told["cycle_power_watts"].value
    assert SSD.device_power is not None
    assert SSD.idle is not None
    assert SSD.idle.link is not None
    most = SSD.device_power.idle_watts[0].value - SSD.idle.link.slumber_watts.value
    assert -1e-9 <= awake - slept <= most
    assert slept < awake or policy is LinkPowerPolicy.MAX_PERFORMANCE
    waited = told["latency_mean_ns"].value[1] - told["latency_mean_ns"].value[0]
    assert 0.0 <= waited < 0.02e9


def test_what_was_published_of_slumber_is_what_answers() -> None:
    assert SSD.idle is not None
    assert SSD.idle.link is not None
    assert SSD.idle.link.slumber_watts.value == 0.17


@settings(max_examples=40, deadline=None)
@given(gap=st.floats(1.0, 1e5), timer=st.sampled_from([60.0, 300.0, 1800.0]))
def test_a_timer_that_does_not_run_out_changes_nothing(gap: float, timer: float) -> None:
    told = ask(DISK, 2, **ONE_READ, idle_gap_seconds_p50=gap, standby_timer_seconds=[0.0, timer])
    cycle = told["cycle_power_watts"].value
    if gap < 0.8 * timer:
        assert cycle[1] == pytest.approx(cycle[0], rel=1e-6)
    if gap > 20 * timer:
        assert cycle[1] < cycle[0]


def test_without_stated_gaps_nothing_is_promised() -> None:
    told = ask(
        DISK,
        2,
        operation="read",
        request_bytes=4096,
        standby_timer_seconds=[0.0, 60.0],
        link_power_policy=["max_performance", "min_power"],
    )
    for name in ("iops", "device_power_watts", "latency_mean_ns"):
        assert told[name].value[0] == told[name].value[1]


@pytest.mark.parametrize(
    ("device", "columns"),
    [
        ("samsung-980-pro-1tb", {"link_power_policy": "min_power"}),
        ("samsung-980-pro-1tb", {"standby_timer_seconds": 600.0}),
        ("samsung-860-evo", {"standby_timer_seconds": 600.0}),
        ("samsung-860-evo", {"link_power_policy": "sleepy"}),
    ],
)
def test_what_a_drive_does_not_have_is_refused_by_field(
    device: str, columns: dict[str, Any]
) -> None:
    with pytest.raises(InputError) as caught:
        ask(profile_of(device), request_bytes=4096, **columns)
    assert caught.value.field == next(iter(columns))


def test_a_timer_of_nothing_is_switched_off_everywhere() -> None:
    ask(profile_of("samsung-980-pro-1tb"), request_bytes=4096, standby_timer_seconds=0.0)
