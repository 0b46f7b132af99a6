"""A drive along a time line of demand."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from iojoule.api.application.predictors import Predictors
from iojoule.api.application.profiles import profile_of
from iojoule.datasets.errors import InputError
from iojoule.model.evaluate.device_state import DeviceState
from iojoule.model.evaluate.frame import make_frame, operational_states
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.timeline import Phase, Trajectory, follow
from tests.errors import having
from tests.model.known_drive import (
    CACHE,
    FULL_WORK_JOULES,
    RATE,
    SECONDS_PER_BYTE,
    drive,
    that_runs_full,
)

WRITES = {"pattern": "random", "request_bytes": 1 << 20, "queue_depth": 32}
SEQUENTIAL = {**WRITES, "pattern": "sequential"}
RANDOM_FACTOR = 0.8


@cache
def predictor_of(sd: float) -> Predictor:
    return Predictor(drive(sd))


def run(*phases: Phase, sd: float = 0.0, **columns: float | str) -> Trajectory:
    return follow(predictor_of(sd), {**WRITES, **columns}, phases)


def test_energy_and_bytes_are_the_sums_over_time() -> None:
    story = run(Phase(100.0, write=True), Phase(50.5, write=False))
    steps = np.append(np.ones(150), 0.5)
    assert story.bytes_written.value == pytest.approx(story.bytes_per_second @ steps)
    assert story.energy_joules.value == pytest.approx(story.watts @ steps)


def test_the_rate_falls_where_the_cache_is_full() -> None:
    story = run(Phase(200.0, write=True))
    assert story.cliff_bytes is not None
    assert story.cliff_bytes.value == pytest.approx(0.99 * CACHE, rel=0.02)
    before = np.cumsum(story.bytes_per_second) < 0.9 * CACHE
    assert np.ptp(story.bytes_per_second[before]) < 1e-6 * story.bytes_per_second[0]
    assert story.bytes_per_second[-1] == pytest.approx(RATE, rel=0.02)
    filling = np.cumsum(story.bytes_per_second) < 0.98 * CACHE
    assert story.cache_bytes[filling] == pytest.approx(np.cumsum(story.bytes_per_second)[filling])
    assert story.cache_bytes[-1] == pytest.approx(CACHE)
    assert story.bytes_written.value > 1.1 * CACHE
    assert story.episodes.pauses.value == 1
    assert story.episodes.second_seconds is None, "random writes leave no time to empty the cache"


def test_a_short_stretch_reaches_no_cliff() -> None:
    assert run(Phase(10.0, write=True)).cliff_bytes is None


def test_idling_mends_the_cache_and_the_drive_then_rests() -> None:
    rest = 1.5 * RANDOM_FACTOR * CACHE * SECONDS_PER_BYTE
    story = run(Phase(200.0, write=True), Phase(rest, write=False), Phase(20.0, write=True))
    begun, again = story.bytes_per_second[0], story.bytes_per_second[-1]
    assert again == pytest.approx(begun)
    idle = story.watts[200 : 200 + int(rest)]
    power = predictor_of(0.0).profile.device_power
    assert power is not None
    assert idle[0] == pytest.approx(power.idle_watts[0].value + 2.0), "work above idle"
    assert idle[-1] == pytest.approx(power.idle_watts[0].value)
    assert story.background[200] == 1.0


def test_background_work_takes_what_was_owed() -> None:
    owed = run(Phase(10.0, write=True))
    done = run(Phase(10.0, write=True), Phase(60.0, write=False))
    power = predictor_of(0.0).profile.device_power
    assert power is not None
    extra = done.energy_joules.value - owed.energy_joules.value - 60.0 * power.idle_watts[0].value
    assert extra == pytest.approx(owed.background_energy_joules.value)
    assert owed.background_seconds.value == pytest.approx(
        owed.bytes_written.value * RANDOM_FACTOR * SECONDS_PER_BYTE
    )
    assert done.background_seconds.value == pytest.approx(0.0)


def test_a_cache_that_ran_full_is_emptied_at_once_and_takes_what_was_seen() -> None:
    predictor = Predictor(that_runs_full(drive()))
    power = predictor.profile.device_power
    assert power is not None
    idle = power.idle_watts[0].value

    def after(written: float) -> tuple[float, float]:
        """Watts above idle in the first second after, and joules above idle until it is done."""
        phases = [Phase(written, write=True), Phase(200.0, write=False)]
        story = follow(predictor, WRITES, phases)
        rest = story.watts[int(written) :] - idle
        assert story.background_energy_joules.value == 0.0
        return float(rest[0]), float(rest.sum())

    full, joules = after(200.0)
    assert full == pytest.approx(2.0, rel=0.01)
    assert joules == pytest.approx(FULL_WORK_JOULES, rel=0.01)
    short, joules = after(10.0)
    assert short == pytest.approx(0.0, abs=0.01), "it waits"
    assert joules < 0.2 * FULL_WORK_JOULES


def test_collecting_beside_sequential_writes_empties_the_cache_and_full_speed_returns() -> None:
    story = run(Phase(200.0, write=True), **SEQUENTIAL)
    fast = story.bytes_per_second[0]
    fill = CACHE / fast
    # the host keeps RATE / fast of the drive's time, the folding has the rest
    fold = CACHE * SECONDS_PER_BYTE / (1.0 - RATE / fast)
    times = story.episodes
    assert times.pauses.value == 1 + (200.0 - fill) // (fill + fold)
    assert times.second_start_seconds is not None
    assert times.second_seconds is not None
    assert times.pause_seconds is not None
    assert times.second_start_seconds.value == pytest.approx(2 * fill + fold, abs=3.0)
    assert times.pause_seconds.value == pytest.approx(fold, abs=1.5)
    assert times.second_seconds.value == pytest.approx(fold, abs=1.5)
    between = story.bytes_per_second[int(fill + fold) + 3 : int(2 * fill + fold) - 3]
    assert between == pytest.approx(fast)
    assert story.cache_bytes.max() <= 1.05 * CACHE
    assert story.background_seconds.value == pytest.approx(CACHE * SECONDS_PER_BYTE)


def test_a_fuller_drive_collects_sooner_and_more_often() -> None:
    empty = run(Phase(150.0, write=True), **SEQUENTIAL, fill_fraction=0.0)
    full = run(Phase(150.0, write=True), **SEQUENTIAL, fill_fraction=1.0)
    assert full.episodes.pauses.value > 2 * empty.episodes.pauses.value
    assert full.bytes_written.value < empty.bytes_written.value


def test_a_lower_power_state_collects_longer() -> None:
    columns = {**SEQUENTIAL, "fill_fraction": 1.0}
    asked = [run(Phase(3000.0, write=True), **columns, power_state=state) for state in (0, 1)]
    first, second = (one.episodes.pause_seconds for one in asked)
    assert first is not None
    assert second is not None
    assert second.value > 5 * first.value


def test_fill_that_is_not_said_widens_the_bytes_written() -> None:
    said = run(Phase(60.0, write=True), sd=0.01, fill_fraction=0.0).bytes_written
    unsaid = run(Phase(60.0, write=True), sd=0.01).bytes_written
    assert unsaid.value == pytest.approx(said.value, rel=1e-3)
    assert np.log(unsaid.value / unsaid.low) > 1.2 * np.log(said.value / said.low)


def test_a_demand_below_full_speed_is_met() -> None:
    story = run(Phase(30.0, write=True, bytes_per_second=1e8))
    assert story.bytes_written.value == pytest.approx(3e9)
    full = run(Phase(30.0, write=True))
    assert story.energy_joules.value < full.energy_joules.value


def test_doubt_about_the_drive_widens_the_intervals() -> None:
    sure, unsure = (run(Phase(120.0, write=True), sd=sd, fill_fraction=0.0) for sd in (0.0, 0.1))
    assert unsure.cliff_bytes is not None
    assert sure.cliff_bytes is not None
    for one, other in (
        (sure.cliff_bytes, unsure.cliff_bytes),
        (sure.background_seconds, unsure.background_seconds),
    ):
        assert other.low < one.low <= one.value <= one.high < other.high


@pytest.mark.parametrize("seconds", [0.0, -1.0, 1e9])
def test_impossible_time_lines_are_refused(seconds: float) -> None:
    with pytest.raises(InputError, check=having(field="seconds")):
        run(Phase(seconds, write=True))
    with pytest.raises(InputError, check=having(field="step_seconds")):
        run()


def test_working_on_in_a_state_that_the_drive_lacks_is_refused() -> None:
    with pytest.raises(InputError, check=having(field="post_write_power_state")):
        follow(predictor_of(0.0), {"post_write_power_state": 7}, [Phase(1.0, write=False)])


def test_a_profile_without_write_state_says_what_to_measure() -> None:
    bare = drive().model_copy(update={"write_state": None})
    with pytest.raises(InputError, match="measure writes over time"):
        follow(Predictor(bare), WRITES, [Phase(1.0, write=True)])


OVER_TIME = (
    "seconds",
    "step_seconds",
    "bytes_per_second",
    "watts",
    "watts_low",
    "watts_high",
    "cache_bytes",
    "background",
)

phases = st.lists(
    st.builds(
        Phase,
        seconds=st.integers(1, 150).map(float),
        write=st.booleans(),
        bytes_per_second=st.none() | st.floats(1e7, 3.9e9),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=25, deadline=None)
@given(
    before=phases,
    after=phases,
    pattern=st.sampled_from(["random", "sequential"]),
    written=st.floats(0.0, 2.0 * CACHE),
    state=st.sampled_from([0, 1, 2]),
)
def test_what_comes_later_changes_nothing_before(
    before: list[Phase], after: list[Phase], pattern: str, written: float, state: int
) -> None:
    columns = {"pattern": pattern, "power_state": state, "host_bytes_written_since_purge": written}
    short, long = run(*before, sd=0.05, **columns), run(*before, *after, sd=0.05, **columns)
    steps = len(short.seconds)
    assert (short.collecting == long.collecting[:steps]).all()
    for name in OVER_TIME:
        assert getattr(short, name) == pytest.approx(getattr(long, name)[:steps], rel=1e-9), name


@pytest.mark.parametrize("columns", [WRITES, SEQUENTIAL])
def test_a_phase_in_two_parts_is_the_phase(columns: dict[str, float | str]) -> None:
    whole = run(Phase(200.0, write=True), **columns)
    parts = run(Phase(30.0, write=True), Phase(170.0, write=True), **columns)
    assert (whole.collecting == parts.collecting).all()
    assert whole.bytes_per_second == pytest.approx(parts.bytes_per_second, rel=1e-9)
    assert whole.watts == pytest.approx(parts.watts, rel=1e-9)


def test_random_writes_collect_from_the_cliff_on_and_not_before() -> None:
    story = run(Phase(200.0, write=True))
    full = np.cumsum(story.bytes_per_second) > CACHE
    assert not story.collecting[: np.argmax(full) - 2].any()
    assert story.collecting[np.argmax(full) + 2 :].all()


@given(
    st.sampled_from(["samsung-980-pro-1tb", "micron-7450", "kingston-a2000-1tb", "intel-670p-2tb"]),
    st.sampled_from([4096, 1 << 20]),
    st.sampled_from([1, 32]),
    st.sampled_from([0, 1]),
    st.floats(-9.0, -0.01),
)
@settings(max_examples=25, deadline=None)
def test_writes_below_full_speed_draw_what_is_predicted_of_their_rate(
    device: str, size: int, depth: int, state: int, log_share: float
) -> None:
    profile = profile_of(device)
    assume(state in operational_states(profile))
    columns: dict[str, Any] = {
        "operation": "write",
        "request_bytes": size,
        "queue_depth": depth,
        "power_state": state,
    }
    asked = {name: [value] for name, value in columns.items()} | {"device_state": ["fresh"]}
    full, _ = Predictors(profile).predict_columns(asked, {}, 1)
    rate = 10.0**log_share * float(full["throughput_bytes_per_second"].value[0])
    demanded = asked | {"demand_bytes_per_second": [rate], "arrival_process": ["steady"]}
    found, _ = Predictors(profile).predict_columns(demanded, {}, 1)
    frame, _ = make_frame(profile, asked, 1)
    joules, _ = DeviceState(profile).joules_per_byte(frame)
    story = follow(Predictor(profile), columns, [Phase(1.0, write=True, bytes_per_second=rate)])
    later = float(joules[0]) * rate  # charged to the writes, done after the time line
    assert story.watts[0] + later == pytest.approx(found["device_power_watts"].value[0], rel=1e-3)


def test_a_rate_above_the_link_is_refused() -> None:
    predictor = Predictor(profile_of("samsung-980-pro-1tb"))
    with pytest.raises(InputError, check=having(field="bytes_per_second")):
        follow(predictor, WRITES, [Phase(1.0, write=True, bytes_per_second=1e11)])
