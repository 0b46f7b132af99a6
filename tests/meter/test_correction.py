"""What an instrument teaches: soon from many workloads, little from one, nothing of other parts."""

from __future__ import annotations

import numpy as np
import pytest

from iojoule.meter.correction import FACTOR_SD, Correction, Observed

SD = 0.1
"""Of a fitted profile, as a share of its watts."""


def interval(read: float = 0.0, write: float = 0.0, idle: float = 1.0) -> Observed:
    parts = dict.fromkeys(FACTOR_SD, 0.0) | {"idle": idle, "read": read, "write": write}
    del parts["rest"], parts["asleep"]
    return Observed(1.0, parts, (min(read, 1.0), min(write, 1.0)), served=read + write > 0)


def teach(correction: Correction, seen: Observed, measured: float, seconds: int = 1) -> None:
    for _ in range(seconds):
        correction.follow(seen, 1.0)
        correction.learn(measured, 0.01, seen, SD * seen.watts)


def test_many_workloads_teach_in_a_minute_what_one_does_not() -> None:
    """Reads draw 30 % more than the profile says."""
    rng = np.random.default_rng(5)
    many, one = Correction(), Correction()
    for _ in range(12):
        seen = interval(read=float(rng.uniform(0.5, 5.0)))
        teach(many, seen, 1.0 + 1.3 * seen.parts["read"], seconds=5)
    teach(one, interval(read=3.0), 1.0 + 1.3 * 3.0, seconds=60)
    new = interval(read=1.5)
    for correction in (many, one):
        correction.follow(new, 1.0)
    assert many.corrected(new).watts == pytest.approx(1.0 + 1.3 * 1.5, rel=0.04)
    assert many.corrected(new).sd < one.corrected(new).sd


def test_a_workload_that_goes_on_is_told_as_it_was_measured() -> None:
    correction, seen = Correction(), interval(read=3.0)
    teach(correction, seen, 4.6, seconds=30)
    correction.follow(seen, 1.0)
    assert correction.corrected(seen).watts == pytest.approx(4.6, rel=0.02)


def test_reads_teach_nothing_about_writes_and_rest() -> None:
    rng = np.random.default_rng(6)
    correction = Correction()
    for _ in range(20):
        seen = interval(read=float(rng.uniform(0.5, 5.0)))
        teach(correction, seen, 1.0 + 1.3 * seen.parts["read"], seconds=5)
    for other in (interval(idle=0.5), interval(write=2.0)):
        correction.follow(other, 600.0)
        assert correction.corrected(other).watts == pytest.approx(other.watts, rel=0.03)


def test_how_unsure_of_writes_a_profile_is_says_nothing_of_its_reads() -> None:
    """Writes come first, of which it is unsure; then a second of reads that draw half as much."""
    plain, after_writes = Correction(), Correction()
    writes, reads = interval(write=3.0), interval(read=3.0)
    after_writes.learn(writes.watts, 0.01, writes, 20 * SD * writes.watts)
    factors = []
    for correction in (plain, after_writes):
        correction.follow(reads, 600.0)
        correction.learn(2.5, 0.01, reads, SD * reads.watts)
        factors.append(correction.factors["read"])
    assert factors[1] == pytest.approx(factors[0], abs=0.1)


def test_a_profile_without_joules_of_requests_is_mended_by_watts_of_use() -> None:
    """No factor makes 2 W of nothing."""
    correction, rng = Correction(), np.random.default_rng(7)
    for turn in range(20):
        seen = interval(read=0.01) if turn % 2 else interval(idle=1.0)
        seen = Observed(
            1.0, seen.parts, (float(rng.uniform(0.6, 1.0)) * (turn % 2), 0.0), seen.served
        )
        for _ in range(5):
            correction.follow(seen, 1.0)
            correction.learn(1.0 + 2.0 * seen.uses[0], 0.01, seen, 0.5 * seen.watts)
    new = Observed(1.0, interval(read=0.01).parts, (1.0, 0.0), served=True)
    correction.follow(new, 1.0)
    assert correction.corrected(new).watts == pytest.approx(3.0, rel=0.1)


def test_what_was_learnt_wears_off_to_what_was_unknown_before() -> None:
    correction, seen = Correction(), interval(read=3.0)
    teach(correction, seen, 4.6, seconds=30)
    correction.follow(seen, 1.0)
    soon = correction.corrected(seen).sd
    correction.follow(seen, 1e7)
    late = correction.corrected(seen).sd
    assert soon < late < 0.3 * seen.watts


def test_a_profile_and_an_instrument_without_uncertainty() -> None:
    correction, seen = Correction(), interval()
    correction.learn(5.0, 0.0, seen, 0.0)
    correction.follow(seen, 1.0)
    corrected = correction.corrected(seen)
    assert seen.watts <= corrected.watts <= 5.0
    assert 0 < corrected.sd < np.inf


def test_work_at_another_time_is_not_taken_for_less_work() -> None:
    """The drive does all that the profile says, some seconds later or sooner."""
    rng = np.random.default_rng(8)
    correction, nothing = Correction(), dict.fromkeys(FACTOR_SD, 0.0)
    del nothing["rest"], nothing["asleep"]
    for _ in range(8):
        shift = int(rng.integers(-3, 4))
        for second in range(20):
            works, did = (3.0 * (5 <= at < 12) for at in (second, second - shift))
            seen = Observed(
                1.0,
                nothing | {"idle": 1.0, "background": works},
                (0.0, 0.0),
                served=True,
                own_watts=3.0,
            )
            teach(correction, seen, 1.0 + did)
    assert correction.factors["background"] == pytest.approx(1.0, abs=0.1)


def test_sleep_teaches_nothing_about_rest() -> None:
    correction, awake = Correction(), interval()
    asleep = Observed(1.0, awake.parts | {"idle": 0.05}, (0.0, 0.0), served=False, asleep=True)
    teach(correction, asleep, 0.1, seconds=30)
    correction.follow(awake, 600.0)
    assert correction.factors["asleep"] > 1.2
    assert correction.corrected(awake).watts == pytest.approx(awake.watts, rel=0.01)
