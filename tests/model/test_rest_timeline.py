"""Time lines of disks that stop and of links that sleep."""

import pytest

from iojoule.api.application.build_profile import expected_profile
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.timeline import Phase, Trajectory, follow

DISK = expected_profile("toshiba-dt01aca300")
SEQUENTIAL = {"pattern": "sequential", "request_bytes": 1 << 20, "queue_depth": 4, "jobs": 1}


def told(idle: float, step: float = 1.0, **more: object) -> Trajectory:
    phases = [Phase(20.0, write=True), Phase(idle, write=False), Phase(30.0, write=True)]
    return follow(Predictor(DISK), {**SEQUENTIAL, **more}, phases, step_seconds=step)


def test_a_disk_writes_as_fast_at_the_end_as_at_the_beginning() -> None:
    story = told(10.0)
    assert story.bytes_per_second[0] == pytest.approx(story.bytes_per_second[-1], rel=1e-3)
    assert story.cliff_bytes is None
    assert story.background_seconds.value == 0.0


def test_energy_of_a_stop_is_that_of_its_parts() -> None:
    awake, slept = told(3000.0), told(3000.0, standby_timer_seconds=600.0)
    assert DISK.idle is not None
    assert DISK.device_power is not None
    standby = DISK.idle.standby
    assert standby is not None
    idle = DISK.device_power.idle_watts[0].value
    up = standby.exit_seconds.value
    serving = awake.watts[-1]
    saved = (3000.0 - 600.0) * (idle - standby.watts.value)
    extra = up * (standby.spin_up_watts.value - serving)
    difference = awake.energy_joules.value - slept.energy_joules.value
    assert difference == pytest.approx(saved - extra, rel=0.01)
    lost = awake.bytes_written.value - slept.bytes_written.value
    assert lost == pytest.approx(up * awake.bytes_per_second[-1], rel=0.01)


def test_a_gap_shorter_than_the_timer_changes_nothing() -> None:
    awake, slept = told(300.0), told(300.0, standby_timer_seconds=600.0)
    assert slept.energy_joules.value == pytest.approx(awake.energy_joules.value)


@pytest.mark.parametrize("step", [0.5, 7.0])
def test_the_step_does_not_matter(step: float) -> None:
    one, other = (
        told(1000.0, step=s, standby_timer_seconds=600.0).energy_joules.value for s in (1.0, step)
    )
    assert one == pytest.approx(other, rel=0.01)


def test_a_sleeping_link_draws_what_slumber_does() -> None:
    profile = expected_profile("samsung-860-evo")
    idle = profile.idle
    assert idle is not None
    assert idle.link is not None
    story = follow(
        Predictor(profile), {"link_power_policy": "min_power"}, [Phase(5.0, write=False)]
    )
    assert story.watts[-1] == pytest.approx(idle.link.slumber_watts.value)
