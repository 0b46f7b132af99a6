import numpy as np
import pytest

from iojoule.measure.recording.statistics import IdlePower, background

SECOND = 10**9
TIMES = np.arange(0, 60 * SECOND, 10_000_000, dtype=np.int64)
IDLE = IdlePower(mean_watts=2.0, sd_watts=0.05)


def test_a_rectangle_of_work_is_measured() -> None:
    watts = np.where(TIMES < 20 * SECOND, 5.0, 2.0)
    found = background(TIMES, watts, 5 * SECOND, IDLE)
    assert found is not None
    assert found.returned
    # the moving mean is at idle from the window on that begins when the work ends
    assert found.seconds == pytest.approx(15, abs=0.11)
    assert found.energy_joules == pytest.approx(3 * 15, rel=0.01)


def test_a_quiet_spell_that_is_too_short_is_not_idle() -> None:
    busy = (TIMES < 10 * SECOND) | ((TIMES >= 13 * SECOND) & (TIMES < 20 * SECOND))
    found = background(TIMES, np.where(busy, 5.0, 2.0), 0, IDLE)
    assert found is not None
    assert found.seconds == pytest.approx(20, abs=0.11)
    assert found.energy_joules == pytest.approx(3 * 17, rel=0.01)


def test_idle_at_once() -> None:
    found = background(TIMES, np.full(len(TIMES), 2.01), 0, IDLE)
    assert found is not None
    assert (found.seconds, found.returned) == (0.0, True)
    assert found.energy_joules == 0.0


def test_what_never_comes_back_is_a_lower_bound() -> None:
    found = background(TIMES, np.full(len(TIMES), 3.0), 10 * SECOND, IDLE)
    assert found is not None
    assert not found.returned
    assert found.seconds == pytest.approx(50, abs=0.02)
    assert found.energy_joules == pytest.approx(50, rel=0.01)


def test_less_than_a_window_says_nothing() -> None:
    assert background(TIMES, np.full(len(TIMES), 2.0), 60 * SECOND - SECOND // 2, IDLE) is None
