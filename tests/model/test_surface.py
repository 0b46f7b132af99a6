"""Tables, hulls and sums of energy against independent computations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import RegularGridInterpolator

from iojoule.datasets.profile import Hull, ResidualTable, load_shipped_profile
from iojoule.model.evaluate import device_power, host_power, host_work
from iojoule.model.evaluate.surface import Knots, Points, TableLookup, evaluate_curve, hull_distance


def points(depth: list[float], jobs: list[float], size: list[float]) -> Points:
    zero = np.zeros(len(depth))
    return Points(
        zero,
        zero,
        np.array(size),
        np.array(size),
        np.array(depth),
        np.array(jobs),
        zero,
        zero,
        zero,
    )


@given(st.floats(-1, 9), st.floats(-1, 4), st.floats(11, 20))
def test_lookup_equals_an_independent_interpolator(depth: float, jobs: float, size: float) -> None:
    axes = [np.arange(9.0), np.arange(4.0), np.arange(12.0, 20.0)]
    values = np.random.default_rng(0).normal(size=(1, 9, 4, 8))
    table = ResidualTable(
        log2_queue_depth=axes[0].tolist(),
        log2_jobs=axes[1].tolist(),
        log2_request_bytes=axes[2].tolist(),
        paths=["a"],
        values={"latency": values.ravel().tolist()},
    )
    at = [np.clip(v, axis[0], axis[-1]) for v, axis in zip((depth, jobs, size), axes, strict=True)]
    expected = RegularGridInterpolator(axes, values[0])(at)[0]
    found = TableLookup(table)(points([depth], [jobs], [size]), np.zeros(1, dtype=np.intp))
    np.testing.assert_allclose(found["latency"], expected, atol=1e-12)


@given(st.floats(-1, 9), st.floats(-1, 4), st.floats(11, 20))
def test_beyond_its_axes_a_path_changes_as_the_path_with_most_rows(
    depth: float, jobs: float, size: float
) -> None:
    everywhere = [np.arange(9.0), np.arange(4.0), np.arange(12.0, 20.0)]
    few = [np.zeros(1), np.arange(2.0), np.arange(14.0, 17.0)]

    def lookup(axes: list[np.ndarray], shift: float) -> TableLookup:
        grid = np.meshgrid(*axes, indexing="ij")
        values = {
            "latency": (0.1 * grid[0] + 0.01 * grid[1] - 0.001 * grid[2] + shift).ravel().tolist(),
            "latency_sd": [shift] * grid[0].size,
        }
        names = ("log2_queue_depth", "log2_jobs", "log2_request_bytes")
        known = dict(zip(names, [axis.tolist() for axis in axes], strict=True))
        return TableLookup(ResidualTable(**known, paths=["a"], values=values))

    main, own = lookup(everywhere, 0.0), lookup(few, 0.5)
    at, first = points([depth], [jobs], [size]), np.zeros(1, dtype=np.intp)
    found = own(at, first, main)
    np.testing.assert_allclose(found["latency"], main(at, first)["latency"] + 0.5, atol=1e-12)
    np.testing.assert_allclose(found["latency_sd"], 0.5)


def test_hull_distance_is_zero_inside_and_octaves_outside() -> None:
    hull = Hull(
        normals=[(1.0, 0.0, 0.0), (-1.0, 0.0, 0.0)], offsets=[8.0, 0.0], fixed=(None, 0.0, 12.0)
    )
    where = points([4.0, 10.0, 4.0, 4.0], [0.0, 0.0, 1.0, 0.0], [12.0, 12.0, 12.0, 15.0])
    np.testing.assert_allclose(hull_distance(hull, where), [0.0, 2.0, 1.0, 3.0])


def test_device_power_is_the_sum_of_its_terms() -> None:
    power = load_shipped_profile("samsung-980-pro-1tb").device_power
    assert power is not None
    x = device_power.regressors(*(np.array([value]) for value in (1e9, 1e4, 2e8, 5e3, 0.0)))
    value, sd = device_power.active_watts(power, x, np.zeros(1, dtype=np.intp))
    by_hand = sum(p.value * float(x[0, i]) for i, p in enumerate(power.parameters))
    assert abs(value[0] - by_hand) < 1e-12
    assert sd[0] > 0
    assert all(p.value >= 0 for p in power.parameters)


def test_idle_host_draws_its_idle_power() -> None:
    power = load_shipped_profile("samsung-980-pro-1tb").host_power
    assert power is not None
    zero = np.zeros(1)
    value, _ = host_power.watts(power, host_work.load_of(zero, zero, zero))
    np.testing.assert_allclose(value, power.parameters[0].value)


@pytest.mark.parametrize("sizes", [1, 2, 5])
def test_each_of_many_curves_is_to_the_bit_what_it_is_alone(sizes: int) -> None:
    rng = np.random.default_rng(7)
    x = np.sort(rng.uniform(11.0, 20.0, sizes))
    unloaded, capacity, sharpness = rng.normal(size=(3, 40, sizes)) * 0.3
    transfer, host = np.exp(rng.normal(size=(2, 40, 1)))
    many = Knots(x, 11.0 + unloaded, capacity - 9.0, sharpness, transfer, 12.0, 1.0 + host)
    where = np.concatenate([x, rng.uniform(9.0, 22.0, 30)])
    zero = np.zeros(len(where))
    at = Points(
        rng.uniform(0, 6, len(where)), zero + 1, where, where, zero, zero, zero, zero + 1, zero + 1
    )
    session = rng.normal(size=(3, 40, len(where))) * 0.1
    together = evaluate_curve(many, at, session)
    for one in range(40):
        alone = Knots(
            x,
            many.log_unloaded_ns[one],
            many.log_capacity_per_ns[one],
            many.log_sharpness[one],
            float(transfer[one, 0]),
            12.0,
            float(1.0 + host[one, 0]),
        )
        expected = evaluate_curve(alone, at, session[:, one])
        np.testing.assert_array_equal(together.log_latency[one], expected.log_latency)
        np.testing.assert_array_equal(together.log_load[one], expected.log_load)
