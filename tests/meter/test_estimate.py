from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iojoule.datasets.errors import NoProfileError
from iojoule.datasets.profile import load_shipped_profile
from iojoule.meter.counters import Amounts
from iojoule.meter.estimate import DriveModel, States
from iojoule.meter.idle import Descent
from iojoule.model.evaluate.bands import Interval
from iojoule.model.evaluate.frame import make_frame
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.timeline import Phase, follow
from iojoule.model.prior.classes import class_profile
from tests.model.known_drive import (
    DELAY,
    FULL_WORK_JOULES,
    SEEN_JOULES_PER_BYTE,
    SEEN_MOST_JOULES,
    SEEN_WATTS,
    drive,
    that_runs_full,
    whose_cache_is_not_known,
)

PROFILE = load_shipped_profile("samsung-980-pro-1tb")
MODEL = DriveModel(PROFILE)
SLEEP = Descent(
    tuple(Interval(watts, watts, watts) for watts in (2.0, 1.2, 0.05)), after=(0.035, 5.0)
)


def amounts(
    seconds: float = 1.0,
    *,
    reads: float = 0.0,
    writes: float = 0.0,
    size: float = 4096.0,
    in_flight: float = 0.0,
    drives: int = 1,
) -> Amounts:
    """Requests of one size in an interval."""

    def each(value: float) -> Any:
        return np.full(drives, value)

    return Amounts(
        seconds,
        each(reads),
        each(reads * size),
        each(writes),
        each(writes * size),
        each(in_flight * seconds),
        each(in_flight * seconds * writes / max(reads + writes, 1.0)),
        each(0.0),
    )


@pytest.mark.parametrize("operation", ["read", "write"])
@pytest.mark.parametrize("size", [4096, 65536])
@pytest.mark.parametrize("depth", [1, 16])
def test_at_full_speed_it_draws_what_is_predicted(operation: str, size: int, depth: int) -> None:
    columns = {"operation": operation, "pattern": "random", "request_bytes": size}
    predictor = Predictor(PROFILE)
    frame, _ = make_frame(PROFILE, {**columns, "queue_depth": depth, "jobs": 1}, 1)
    told = predictor.predict(frame)
    rate, watts = told["iops"].value[0], told["device_power_watts"]
    work = {"reads" if operation == "read" else "writes": rate}
    found = MODEL.step(amounts(size=size, in_flight=depth, **work), States.fresh(1))
    # a sequential pattern counts too, as far as the time that commands took allows
    assert watts.low[0] * 0.97 <= found.watts[0] <= watts.high[0] * 1.03


def test_parts_add_up_and_none_is_negative() -> None:
    found = MODEL.step(amounts(reads=5000, writes=2000, in_flight=0.6), States.fresh(1))
    for part in (found.idle, found.read, found.write, found.background):
        assert part[0] >= 0
    assert found.watts[0] > found.idle[0]
    assert found.sd[0] > 0


@settings(max_examples=40, deadline=None)
@given(
    reads=st.integers(0, 300_000),
    writes=st.integers(0, 300_000),
    size=st.sampled_from([512, 4096, 131072]),
)
def test_more_requests_never_draw_less(reads: int, writes: int, size: int) -> None:
    load = amounts(reads=reads, writes=writes, size=size, in_flight=1.0)
    more = amounts(reads=reads * 1.5, writes=writes * 1.5, size=size, in_flight=1.5)
    less_watts = MODEL.step(load, States.fresh(1)).watts[0]
    more_watts = MODEL.step(more, States.fresh(1)).watts[0]
    assert more_watts >= less_watts * 0.995
    cap = PROFILE.device_power
    assert cap is not None
    assert more_watts <= max(cap.cap_watts[0], cap.peak_watts.value) * 1.001


def test_without_requests_it_rests_after_its_settle_time() -> None:
    states = States.fresh(1)
    MODEL.step(amounts(reads=1000, in_flight=0.1), states)
    idle = PROFILE.device_power.idle_watts[0].value  # type: ignore[union-attr]
    first = MODEL.step(amounts(), states).watts[0]
    later = MODEL.step(amounts(), states).watts[0]
    assert first > later == pytest.approx(idle)


def test_work_that_writes_leave_keeps_the_drive_awake() -> None:
    """It is on its way to sleep from the end of that work, as from that of the last request."""

    def asleep_after(work: dict[str, float]) -> int:
        states = States.fresh(1)
        model = DriveModel(PROFILE, sleep=SLEEP)
        model.step(amounts(size=131072, in_flight=1.0, **work), states)
        watts = [model.step(amounts(0.1), states).watts[0] for _ in range(300)]
        return next(place for place, one in enumerate(watts) if one < 0.1)

    state = PROFILE.write_state
    assert state is not None
    bytes_written = 1500 * 131072
    seconds = bytes_written * state.background[0].seconds_per_byte.value
    later = asleep_after({"writes": 1500}) - asleep_after({"reads": 1500})
    assert 0.1 * later == pytest.approx(seconds, rel=0.5, abs=0.2)
    assert later >= 1


def test_a_busy_drive_that_is_slower_than_its_profile_works_as_hard() -> None:
    columns = {"operation": "read", "pattern": "random", "request_bytes": 65536}
    frame, _ = make_frame(PROFILE, {**columns, "queue_depth": 8, "jobs": 1}, 1)
    rate = float(Predictor(PROFILE).predict(frame)["iops"].value[0])
    full = amounts(reads=rate, size=65536, in_flight=8)
    slow = amounts(reads=rate / 2, size=65536, in_flight=8)
    busy = np.ones(1)
    watts = [
        MODEL.step(replace(one, in_use_seconds=busy), States.fresh(1)).watts[0]
        for one in (full, slow)
    ]
    assert watts[1] == pytest.approx(watts[0], rel=0.1)


def test_writes_that_wait_for_a_drive_without_a_cache_wait_for_work_of_its_own() -> None:
    """In flight all the time, but hardly served: the drive collects for the rest of the time."""
    profile = whose_cache_is_not_known(drive())
    model = DriveModel(profile)
    columns = {"operation": "write", "pattern": "random", "request_bytes": 65536}
    frame, _ = make_frame(profile, {**columns, "queue_depth": 8, "jobs": 1}, 1)
    rate = Predictor(profile).predict(frame)["iops"].value[0]
    own = []
    for share in (1.0, 0.5, 0.1):
        states = States.fresh(1)
        states.ran_full[:] = 1.0
        one = amounts(writes=share * rate, size=65536, in_flight=8)
        found = model.step(replace(one, in_use_seconds=np.ones(1)), states)
        own.append(found.background[0])
    assert own[0] < own[1] < own[2]


def test_two_halves_of_a_constant_load_are_the_whole() -> None:
    whole, halves = States.fresh(1), States.fresh(1)
    joules = 10 * MODEL.step(amounts(10, reads=50000, in_flight=0.5), whole).watts[0]
    parts = sum(
        5 * MODEL.step(amounts(5, reads=25000, in_flight=0.5), halves).watts[0] for _ in range(2)
    )
    assert parts == pytest.approx(joules, rel=1e-3)


def test_drives_that_do_the_same_draw_the_same_and_apart_from_each_other() -> None:
    together = MODEL.step(amounts(reads=4000, in_flight=0.4, drives=3), States.fresh(3))
    alone = MODEL.step(amounts(reads=4000, in_flight=0.4), States.fresh(1))
    assert together.watts == pytest.approx(np.repeat(alone.watts, 3))


def test_work_that_writes_leave_is_drawn_while_the_drive_rests() -> None:
    """The same joules as along a time line, though the meter sees requests only."""
    states, rate, size, seconds = States.fresh(1), 1500.0, 131072, 20
    joules = 0.0
    for _ in range(seconds):
        joules += MODEL.step(amounts(writes=rate, size=size, in_flight=1.0), states).watts[0]
    after = [MODEL.step(amounts(), states) for _ in range(400)]
    assert after[-1].background[0] == 0
    joules += sum(one.watts[0] for one in after)
    columns = {"pattern": "random", "request_bytes": size, "queue_depth": 1}
    phases = [Phase(seconds, write=True, bytes_per_second=rate * size), Phase(400, write=False)]
    told = follow(Predictor(PROFILE), columns, phases).energy_joules
    assert joules == pytest.approx(told.value, rel=0.05)


@pytest.mark.parametrize("reads", [0, 20, 20000])
def test_a_cache_that_ran_full_is_emptied_at_once_and_beside_reads(reads: int) -> None:
    model = DriveModel(that_runs_full(drive()))
    states = States.fresh(1)
    for _ in range(100):
        model.step(amounts(writes=8000, size=131072, in_flight=1.0), states)
    load = amounts(reads=reads, in_flight=reads * 5e-5)
    watts = [model.step(load, states) for _ in range(400)]
    assert watts[0].background[0] > 0.4, "more than a tenth of the time, and no wait"
    assert watts[-1].background[0] == 0.0
    assert sum(one.background[0] for one in watts) == pytest.approx(FULL_WORK_JOULES, rel=0.02)


@pytest.mark.parametrize("seconds", [10, 100])
def test_what_runs_left_behind_is_drawn_after_writes_at_once(seconds: int) -> None:
    model = DriveModel(whose_cache_is_not_known(drive()))
    states = States.fresh(1)
    load = amounts(writes=8000, size=131072, in_flight=64.0)
    for _ in range(seconds):  # it leaves the drive no rest
        model.step(replace(load, in_use_seconds=np.ones(1)), states)
    rest = [model.step(amounts(), states).background[0] for _ in range(100)]
    owed = min(seconds * 8000 * 131072 * SEEN_JOULES_PER_BYTE, SEEN_MOST_JOULES)
    assert sum(rest) == pytest.approx(owed, rel=0.02)
    assert rest[0] == pytest.approx(min(owed, SEEN_WATTS), rel=0.02)


def test_work_that_fills_no_cache_waits_for_a_rest() -> None:
    model = DriveModel(that_runs_full(drive()))
    states = States.fresh(1)
    model.step(amounts(writes=8000, size=131072, in_flight=1.0), states)
    rest = [model.step(amounts(), states).background[0] for _ in range(20)]
    assert not any(rest[: int(DELAY) - 1])
    assert sum(rest) == pytest.approx(8000 * 131072 * 4e-10, rel=0.02)


@pytest.mark.parametrize(("rotates", "nvme"), [(True, False), (False, True), (False, False)])
def test_of_a_drive_of_which_only_the_kind_is_known_little_is_sure(
    rotates: bool, nvme: bool
) -> None:
    model = DriveModel(class_profile(rotates=rotates, nvme=nvme))
    idle = model.step(amounts(), States.fresh(1))
    busy = model.step(amounts(reads=100, in_flight=0.5), States.fresh(1))
    assert 0 < idle.watts[0] < busy.watts[0] < 20
    assert idle.sd[0] > 0.2 * idle.watts[0]
    after_requests = States.fresh(1)
    model.step(amounts(reads=100, in_flight=0.5), after_requests)
    settles = model.step(amounts(0.01), after_requests)
    assert settles.sd[0] > 0.2 * settles.watts[0]


def test_a_profile_without_watts_is_refused() -> None:
    with pytest.raises(NoProfileError):
        DriveModel(PROFILE.model_copy(update={"device_power": None}))
