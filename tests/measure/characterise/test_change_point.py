import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.measure.characterise.experiments.slc_cache import find_drop


def written(
    cache: float, fast: float, slow: float, total: float, step: float = 0.1
) -> tuple[np.ndarray, np.ndarray]:
    """Bytes so far and rate of bins of equal length, for a rate that falls once: a closed form."""
    fills = cache / fast
    ends = np.arange(step, fills + (total - cache) / slow, step)
    places = np.minimum(ends, fills) * fast + np.maximum(ends - fills, 0) * slow
    return places, np.diff(places, prepend=0.0) / step


@given(
    cache=st.floats(20.0, 60.0),
    slow=st.floats(0.1, 0.8),
    noise=st.floats(0.0, 0.03),
    seed=st.integers(0, 1000),
)
def test_the_size_is_found_within_a_bin(cache: float, slow: float, noise: float, seed: int) -> None:
    fast = 20.0
    places, rates = written(cache, fast, slow * fast, 100.0)
    rates = rates * (1 + noise * np.random.default_rng(seed).normal(size=len(rates)))
    drop = find_drop(places, rates)
    assert drop is not None
    assert drop.low <= cache <= drop.high
    assert drop.place == pytest.approx(cache, abs=0.1 * fast * (0.3 + 20 * noise))
    assert drop.before == pytest.approx(fast, rel=0.05)
    assert drop.after == pytest.approx(slow * fast, rel=0.2)


@pytest.mark.parametrize("bins", [10, 20, 50, 200])
def test_a_constant_rate_has_hardly_ever_a_fall(bins: int) -> None:
    random = np.random.default_rng(bins)
    places = np.arange(1.0, bins + 1)
    rates = 20 * (1 + 0.2 * random.normal(size=(500, bins)))
    assert sum(find_drop(places, one) is not None for one in rates) <= 5


def test_a_rate_that_rises_or_a_series_too_short_has_none() -> None:
    places, rates = written(40.0, 10.0, 20.0, 100.0)
    assert find_drop(places, rates) is None
    assert find_drop(np.arange(6.0), np.array([9.0, 9, 9, 1, 1, 1])) is None
