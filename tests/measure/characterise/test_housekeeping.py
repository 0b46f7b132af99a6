import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.measure.characterise.experiments.slc_cache import fit_line, housekeeping

IDLE = 1.6
STEP = 0.1


def watts(
    flush: float, rest: float, work: float, extra: float, noise: float = 0.0, seed: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """A flush, a rest, deferred work, and a long rest; times in whole bins."""
    counts = [round(one / STEP) for one in (flush, rest, work)]
    levels = [IDLE + extra] * counts[0] + [IDLE] * counts[1] + [IDLE + extra] * counts[2]
    levels += [IDLE] * 20
    found = np.array(levels) + noise * np.random.default_rng(seed).normal(size=len(levels))
    return STEP * np.arange(1, len(levels) + 1), found


@given(
    flush=st.sampled_from([0.0, 0.3, 1.0]),
    rest=st.floats(0.4, 3.0),
    work=st.floats(0.4, 5.0),
    extra=st.floats(0.4, 4.0),
    noise=st.floats(0, 0.01),
)
def test_deferred_work_is_found(
    flush: float, rest: float, work: float, extra: float, noise: float
) -> None:
    seconds, level = watts(flush, rest, work, extra, noise)
    found = housekeeping(seconds, level, IDLE, 0.001)
    assert found.deferred_seconds == pytest.approx(flush + rest, abs=1.5 * STEP)
    assert found.at_once == (flush > 0)
    assert found.watts == pytest.approx(extra, abs=0.1)
    assert found.deferred_work_seconds == pytest.approx(work, abs=1.5 * STEP)
    assert found.seconds == pytest.approx(flush + rest + work, abs=2.5 * STEP)
    true = extra * STEP * (round(flush / STEP) + round(work / STEP))
    assert found.joules == pytest.approx(true, abs=0.02 * true + 0.05)


def test_a_drive_that_rests_at_once_has_no_work() -> None:
    seconds, level = watts(0.0, 1.0, 0.0, 0.0, noise=0.002)
    found = housekeeping(seconds, level, IDLE, 0.001)
    assert (found.joules, found.seconds, found.deferred_seconds) == (0.0, 0.0, None)


def test_a_single_bin_that_is_high_is_no_work_of_its_own() -> None:
    seconds, level = watts(0.0, 2.0, 0.0, 0.0)
    level[10] += 2.0
    assert housekeeping(seconds, level, IDLE, 0.001).deferred_seconds is None


def test_work_that_follows_at_once_is_not_deferred() -> None:
    seconds, level = watts(1.0, 0.0, 0.0, 2.0)
    found = housekeeping(seconds, level, IDLE, 0.001)
    assert found.seconds == pytest.approx(1.0)
    assert found.deferred_seconds is None
    assert found.at_once
    assert found.watts == pytest.approx(2.0)


@given(start=st.floats(-5, 5), slope=st.floats(-3, 3))
def test_a_line_is_found_again(start: float, slope: float) -> None:
    places = np.array([1.0, 2.0, 4.0])
    line = fit_line(places, start + slope * places, np.full(3, 0.01))
    assert line is not None
    assert line.start == pytest.approx(start, abs=1e-6)
    assert line.slope == pytest.approx(slope, abs=1e-6)


def test_one_place_has_no_line() -> None:
    assert fit_line(np.array([1.0, 1.0]), np.array([1.0, 2.0]), np.ones(2)) is None
