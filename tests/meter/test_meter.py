"""Joules that never fall and never count twice, whatever happens to drives, counters and clocks."""

from pathlib import Path

import numpy as np
import pytest

from iojoule.datasets.profile import load_shipped_profile
from iojoule.meter.correction import WORKLOAD_SHARE
from iojoule.meter.counters import APPEARED, RESET, VANISHED, Snapshot
from iojoule.meter.idle import Descent
from iojoule.meter.meter import DRIFTED, POWER_LIMITED, SUSPENDED, Meter
from iojoule.meter.readings import PARTS, Basis
from iojoule.model.evaluate.bands import Interval
from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.model.prior.classes import class_profile
from tests.meter.hosts import Clock, Host

PROFILE = load_shipped_profile("samsung-980-pro-1tb")


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    host = Host(tmp_path)
    host.nvme("nvme0n1", "S1")
    return Clock(host)


def meter(source: str = "profile") -> Meter:
    profile = PROFILE if source == "profile" else class_profile(rotates=False, nvme=True)
    return Meter(lambda drive: Basis(profile, source))


def test_joules_are_watts_times_seconds_and_parts_add_up(clock: Clock) -> None:
    metered, joules = meter(), 0.0
    assert np.isnan(metered.step(clock.look())[0].watts)
    for seconds in (1.0, 0.5, 4.0):
        clock.host.did("nvme0n1", reads=3000, writes=500, ms=200)
        (reading,) = metered.step(clock.look(seconds))
        joules += reading.watts * seconds
        assert reading.joules == pytest.approx(joules)
        assert sum(reading.part_watts.values()) == pytest.approx(reading.watts)
        assert sum(reading.part_joules.values()) == pytest.approx(reading.joules)
        assert set(reading.part_joules) == set(PARTS)
        assert reading.watts_low < reading.watts < reading.watts_high


def test_no_workload_is_surer_than_workloads_are_and_rest_is(clock: Clock) -> None:
    metered = meter()
    metered.step(clock.look())
    clock.host.did("nvme0n1", reads=3000, ms=200)
    (serves,) = metered.step(clock.look(1.0))
    (rests,) = metered.step(clock.look(1.0))
    assert serves.watts - serves.watts_low >= NORMAL_90 * WORKLOAD_SHARE * serves.watts
    assert rests.watts - rests.watts_low < NORMAL_90 * WORKLOAD_SHARE * rests.watts


def test_what_is_not_known_adds_no_joules_but_seconds(clock: Clock) -> None:
    metered = meter()
    metered.step(clock.look())
    clock.host.did("nvme0n1", reads=100, ms=10)
    before = metered.step(clock.look())[0].joules
    clock.host.counters["nvme0n1"] = [0] * 17
    clock.host.write()
    (reset,) = metered.step(clock.look(2.0))
    assert (reset.joules, reset.unmetered_seconds) == (before, 2.0)
    assert RESET in reset.reasons
    clock.host.remove("nvme0n1")
    assert len(metered.step(clock.look(3.0))) == 0
    assert metered.intervals is not None
    assert metered.intervals.problems == {"nvme0n1": VANISHED}
    clock.host.nvme("nvme7n1", "S1")
    (back,) = metered.step(clock.look(1.0))
    assert back.joules == before
    assert APPEARED in back.reasons
    assert metered.step(clock.look(1.0))[0].joules > before


def test_a_limit_makes_an_estimate_less_certain_and_a_measurement_not(clock: Clock) -> None:
    metered = Meter(lambda drive: Basis(PROFILE, "profile", power_limited=True))
    metered.step(clock.look())
    (estimated,) = metered.step(clock.look(1.0))
    (measured,) = metered.step(clock.look(1.0), {"nvme0n1": (3.4, 0.01)})
    assert (estimated.reasons, measured.reasons) == ((POWER_LIMITED,), ())


def test_who_sets_another_power_state_wakes_the_drive(clock: Clock) -> None:
    levels = tuple(Interval(value=watts, low=watts, high=watts) for watts in (1.0, 1.0, 0.1))
    sleep = Descent(levels, (0.1, 5.0))
    first, second = (Basis(PROFILE, "profile", power_state=state, sleep=sleep) for state in (0, 1))
    metered, look = Meter(lambda drive: first), clock.look()
    metered.step(look)
    watts = []
    for basis in (first, first, second):
        metered.rebase(look.drives[0].key, basis)
        watts.append(metered.step(clock.look(1.0))[0].watts)
    assert watts[0] == watts[1] == pytest.approx(0.1)
    assert watts[2] > 0.3


def test_a_suspended_machine_is_named_and_its_time_is_unmetered(clock: Clock) -> None:
    metered = meter()
    metered.step(clock.look())
    awake = metered.step(clock.look(1.0))[0]
    (asleep,) = metered.step(clock.look(1.0, suspended=3600.0))
    assert SUSPENDED in asleep.reasons
    assert asleep.unmetered_seconds == 3600.0
    assert asleep.joules - awake.joules < 10


def test_an_instrument_counts_instead_and_corrects_what_comes_after(clock: Clock) -> None:
    metered, now = meter(), clock.look()
    metered.step(now)
    rng = np.random.default_rng(3)

    def load(before: Snapshot) -> tuple[Snapshot, float]:
        """The next look, and what the drive truly draws: not what the profile says."""
        reads = int(rng.integers(100, 20_000))
        clock.host.did("nvme0n1", reads=reads, ms=reads // 10)
        now, plain = clock.look(), meter()
        plain.step(before)
        return now, 0.4 + 1.2 * plain.step(now)[0].watts

    for _ in range(60):
        now, truth = load(now)
        (reading,) = metered.step(now, {"nvme0n1": (truth, 0.01)})
        assert reading.watts == pytest.approx(truth)
    errors = []
    for _ in range(20):
        now, truth = load(now)
        (reading,) = metered.step(now)
        assert reading.corrected
        errors.append(reading.watts / truth - 1)
    assert abs(np.mean(errors)) < 0.03


def test_parts_add_up_exactly_where_work_takes_hardly_any_of_an_interval(clock: Clock) -> None:
    metered = meter()
    metered.step(clock.look())
    clock.host.did("nvme0n1", writes=1, ms=1)
    metered.step(clock.look(0.001))
    (reading,) = metered.step(clock.look(3600.0), {"nvme0n1": (2.0, 0.01)})
    assert reading.part_watts["background"] > 0
    assert sum(reading.part_watts.values()) == pytest.approx(2.0, rel=1e-12)


def test_a_model_that_no_longer_fits_is_named(clock: Clock) -> None:
    metered = meter()
    metered.step(clock.look())
    reasons: set[str] = set()
    for turn in range(120):
        clock.host.did("nvme0n1", reads=2000, ms=100)
        now = clock.look()
        (reading,) = metered.step(now, {"nvme0n1": (2.0 if turn < 60 else 4.0, 0.02)})
        reasons.update(reading.reasons)
    assert DRIFTED in reasons


def test_of_a_drive_of_which_only_the_kind_is_known_the_interval_is_wide(clock: Clock) -> None:
    sure, unsure = meter(), meter("class")
    first = clock.look()
    for metered in (sure, unsure):
        metered.step(first)
    clock.host.did("nvme0n1", reads=2000, ms=100)
    now = clock.look()
    ratios = [
        reading.watts_high / reading.watts_low
        for reading in (sure.step(now)[0], unsure.step(now)[0])
    ]
    assert ratios[1] > 2 * ratios[0]


def test_the_time_that_a_drive_was_away_is_unmetered(clock: Clock) -> None:
    metered = Meter(lambda drive: Basis(PROFILE, "profile"))
    name = clock.look().drives[0].name
    metered.step(clock.look())
    metered.step(clock.look())
    place = clock.host.sysfs / "block" / name
    target, counters = place.readlink(), clock.host.counters[name]
    clock.host.remove(name)
    for _ in range(5):
        assert not len(metered.step(clock.look(2.0)))
    place.symlink_to(target)
    clock.host.counters[name] = counters
    clock.host.write()
    (reading,) = metered.step(clock.look())
    assert reading.unmetered_seconds == pytest.approx(11.0)
