"""The tail law on drives whose collisions are known."""

import numpy as np
import pytest

from iojoule.datasets.profile import Tail
from iojoule.model.evaluate.surface import CurveTerms, Knots, Points, evaluate_curve, log_tail_ratio
from iojoule.model.fit.tails import fit_tail

SIZES = 2.0 ** np.arange(12, 18)


def drive() -> Knots:
    """100 us unloaded at every size and a capacity of 3.2 GB/s."""
    sizes = len(SIZES)
    return Knots(
        np.log2(SIZES),
        np.full(sizes, np.log(1e5)),
        np.log(3.2 / SIZES),
        np.full(sizes, np.log(2.0)),
        3.2,
        12.0,
        6.0,
    )


def load(knots: Knots, sizes: np.ndarray) -> tuple[Points, CurveTerms]:
    """Depths 1 to 256 at each size, one job."""
    size, depth = (grid.ravel() for grid in np.meshgrid(np.log2(sizes), np.arange(9.0)))
    one, nothing = np.ones(len(size)), np.zeros(len(size))
    requests = depth * np.log(2.0)
    points = Points(requests, one, size, size, depth, nothing, nothing, one, one)
    return points, evaluate_curve(knots, points)


@pytest.mark.parametrize("octave", [0.0, 0.3])
def test_a_trend_of_collisions_over_size_goes_on_beyond_the_last(octave: float) -> None:
    knots = drive()
    truth = Tail(
        quantile="p99",
        intrinsic=0.2,
        collision=[0.15 * float(np.exp(octave * step)) for step in range(len(SIZES))],
        exponent=0.6,
        saturation=2.0,
        host_damping=0.2,
    )
    points, terms = load(knots, SIZES[:-1])
    target = log_tail_ratio(truth, knots, points, terms, terms.log_latency)
    found = fit_tail("p99", knots, points, terms, terms.log_latency, target)
    beyond, there = load(knots, SIZES[-1:])
    answer = log_tail_ratio(found, knots, beyond, there, there.log_latency)
    expected = log_tail_ratio(truth, knots, beyond, there, there.log_latency)
    np.testing.assert_allclose(answer, expected, atol=0.04)
