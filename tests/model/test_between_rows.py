"""Between measured neighbours lies what is between them, and the interval says how sure that is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import Measurement
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.surface import is_unaligned, whole_units
from iojoule.model.fit import residual as grid
from iojoule.model.fit.build import fit_profile
from iojoule.model.fit.rows import rows_of
from iojoule.model.fit.surfaces import SurfaceMemory, fit_surfaces
from iojoule.model.recipe import generic_recipe
from tests.model.conftest import Maker

KIB = 1024
REPEATABILITY = 0.02
LEVELS = st.floats(-3.0, 3.0)


def axes_of(depths: int, sizes: int) -> grid.Axes:
    return np.arange(float(depths)), np.zeros(1), 12.0 + np.arange(float(sizes))


@st.composite
def grids(draw: st.DrawFn) -> tuple[grid.Axes, np.ndarray, np.ndarray]:
    """Axes, known levels (NaN between them) and any curve."""
    depths, sizes = draw(st.integers(3, 7)), draw(st.integers(1, 5))
    cells = depths * sizes
    shape = (depths, 1, sizes)
    levels = np.array(draw(st.lists(LEVELS, min_size=cells, max_size=cells))).reshape(shape)
    curve = np.array(draw(st.lists(LEVELS, min_size=cells, max_size=cells))).reshape(shape)
    seen = np.array(draw(st.lists(st.booleans(), min_size=cells, max_size=cells))).reshape(shape)
    seen[0, 0, 0] = True
    return axes_of(depths, sizes), np.where(seen, levels, np.nan), curve


@given(grids())
def test_cells_keep_what_was_measured_and_all_are_filled(
    drawn: tuple[grid.Axes, np.ndarray, np.ndarray],
) -> None:
    axes, known, curve = drawn
    filled = grid.fill(axes, known, curve)
    seen = np.isfinite(known)
    np.testing.assert_array_equal(filled.level[seen], known[seen])
    np.testing.assert_array_equal(filled.measured, seen)
    assert np.isfinite(filled.level).all()
    assert (filled.sd[~seen] > 0.0).all()
    assert (filled.sd[seen] == 0.0).all()


@given(st.lists(LEVELS, min_size=3, max_size=6), st.lists(LEVELS, min_size=11, max_size=11))
def test_a_line_stays_between_its_neighbours_in_time_and_in_rate(
    levels: list[float], laws: list[float]
) -> None:
    axis = np.arange(2.0 * len(levels) - 1)
    known = np.full(len(axis), np.nan)
    known[::2] = levels
    curve = np.array(laws[: len(axis)])
    axes = axis, np.zeros(1), np.zeros(1)
    found = grid.fill(axes, known.reshape(-1, 1, 1), curve.reshape(-1, 1, 1)).level.ravel()
    rate = axis * np.log(2.0) - found
    for values in (found, rate):
        for at in range(1, len(axis), 2):
            low, high = sorted((values[at - 1], values[at + 1]))
            assert low - 1e-9 <= values[at] <= high + 1e-9


@given(st.lists(st.floats(0.0, 1.0), min_size=4, max_size=4), st.integers(0, 2))
def test_what_rises_with_depth_rises_between_measured_depths(steps: list[float], axis: int) -> None:
    positions = np.arange(7.0)
    known = np.full(7, np.nan)
    known[::2] = np.cumsum(steps)
    shape = [1, 1, 1]
    shape[axis] = 7
    axes = [np.zeros(1), np.zeros(1), np.zeros(1)]
    axes[axis] = positions
    filled = grid.fill((axes[0], axes[1], axes[2]), known.reshape(shape), np.zeros(shape))
    assert (np.diff(filled.level.ravel()) >= -1e-9).all()


def test_a_power_law_is_found_again_and_is_surer_than_a_knee() -> None:
    axis = np.arange(9.0)
    axes = axis, np.zeros(1), np.zeros(1)
    knee = np.log(2.0) * np.maximum(axis - 5.0, 0.0)
    found = {}
    for name, truth in (("line", 0.3 * axis), ("knee", knee)):
        known = np.where(axis % 2 == 0, truth, np.nan).reshape(-1, 1, 1)
        found[name] = grid.fill(axes, known, (0.3 * axis).reshape(-1, 1, 1))
    assert found["line"].level.ravel() == pytest.approx(0.3 * axis)
    assert found["knee"].sd.ravel()[5] > 1.5 * found["line"].sd.ravel()[5]


def test_doubt_grows_with_the_distance_to_the_neighbours() -> None:
    axis = np.arange(9.0)
    known = np.where(np.isin(axis, [0, 8]), 1.0, np.nan).reshape(-1, 1, 1)
    sd = grid.fill((axis, np.zeros(1), np.zeros(1)), known, np.zeros((9, 1, 1))).sd.ravel()
    assert (np.diff(sd[:5]) > 0.0).all()
    assert (np.diff(sd[4:]) < 0.0).all()


def test_cells_beyond_the_rows_keep_what_the_curve_misses_at_the_nearest() -> None:
    axis = np.arange(6.0)
    curve = (0.1 * axis**2).reshape(-1, 1, 1)
    known = np.where(axis <= 2, 0.1 * axis**2 + 0.25, np.nan).reshape(-1, 1, 1)
    filled = grid.fill((axis, np.zeros(1), np.zeros(1)), known, curve)
    assert (filled.level - curve).ravel() == pytest.approx(np.full(6, 0.25))
    assert (np.diff(filled.sd.ravel()[2:]) > 0.0).all()


def test_many_positions_are_put_together() -> None:
    positions = np.linspace(0.0, 10.0, 1000)
    assert len(grid.knots(positions)) <= grid.KNOTS_MAX
    own = np.array([0.0, 1.585, 4.0])
    assert grid.knots(own).tolist() == [0.0, 1.0, 1.585, 2.0, 3.0, 4.0]


def at_sizes(
    latency_us: dict[int, float], session: str = "one", depth: int = 1
) -> list[Measurement]:
    return [
        Measurement.model_validate(
            {
                "workload": {"operation": "read", "pattern": "random"},
                "configuration": {
                    "request_bytes": size,
                    "queue_depth": depth,
                    "jobs": 1,
                    "engine": "io_uring",
                    "completion": "interrupt",
                    "scheduler": "none",
                },
                "conditions": {"device_model": "truth", "session_id": session},
                "observations": {
                    "iops": depth * 1e6 / latency,
                    "latency_mean_ns": 1e3 * latency,
                },
            }
        )
        for size, latency in latency_us.items()
    ]


def profile_of(measurements: list[Measurement]) -> DeviceProfile:
    recipe = generic_recipe("truth", "Truth").model_copy(update={"max_transfer_bytes": 524288})
    return fit_profile(recipe, measurements, [], memory=SurfaceMemory())


def ask(profile: DeviceProfile, **columns: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean latency in us with its interval."""
    rows = max(len(v) for v in columns.values() if isinstance(v, list))
    full = {
        "queue_depth": [1] * rows,
        "engine": ["io_uring"] * rows,
        "completion": ["interrupt"] * rows,
        **columns,
    }
    band = Predictor(profile).predict_columns(full, rows)[0]["latency_mean_ns"]
    return band.value / 1e3, band.low / 1e3, band.high / 1e3


@pytest.mark.parametrize(
    ("small", "large"), [(2000.0, 2000.0), (90.0, 90.0), (60.0, 400.0), (500.0, 80.0)]
)
def test_two_measured_sizes_bound_what_lies_between(small: float, large: float) -> None:
    profile = profile_of(at_sizes({4 * KIB: small, 32 * KIB: large}))
    sizes = [KIB * n for n in (4, 8, 12, 16, 20, 24, 28, 32)]
    found, _, _ = ask(profile, request_bytes=sizes)
    low, high = sorted((small, large))
    assert (found >= low * (1 - REPEATABILITY)).all()
    assert (found <= high * (1 + REPEATABILITY)).all()
    assert found[[0, -1]] == pytest.approx([small, large], rel=0.01)


def test_no_interpolation_across_a_split() -> None:
    times = {256 * KIB: 200.0, 512 * KIB: 300.0, 1024 * KIB: 900.0, 2048 * KIB: 1800.0}
    profile = profile_of(at_sizes(times))
    found, _, _ = ask(profile, request_bytes=[512 * KIB, 516 * KIB, 1024 * KIB])
    assert found[0] == pytest.approx(300.0, rel=0.01)
    assert found[2] == pytest.approx(900.0, rel=0.01)
    # just above the limit what the curve misses is that of split requests, not of whole ones
    surface = profile.surfaces[0]
    table = surface.residuals[0]
    size, missed = table.log2_request_bytes, table.values["latency"]
    beyond = next(i for i, x in enumerate(size) if x > 19.0)
    assert size[beyond] - size[beyond - 1] < 0.01
    assert missed[beyond] == pytest.approx(missed[size.index(20.0)], abs=1e-3)
    assert abs(missed[beyond] - missed[beyond - 1]) > 0.01


def test_each_side_of_a_split_is_fine_where_it_must_be() -> None:
    """A step in depth on one side alone: both sides keep all that they show."""
    whole = {1: 100.0, 4: 101.0, 16: 400.0, 64: 410.0, 256: 1640.0}
    split = {1: 900.0, 4: 950.0, 16: 1200.0, 64: 4800.0, 256: 19200.0}
    rows = [
        row
        for depth in whole
        for row in at_sizes({256 * KIB: whole[depth], 1024 * KIB: split[depth]}, depth=depth)
    ]
    profile = profile_of(rows)
    for size, expected in ((256 * KIB, whole), (1024 * KIB, split)):
        found, _, _ = ask(profile, request_bytes=[size] * 5, queue_depth=list(expected))
        np.testing.assert_allclose(found, list(expected.values()), rtol=0.02)
    table = profile.surfaces[0].residuals[0]
    shape = [len(axis) for axis in (table.log2_queue_depth, table.log2_request_bytes)]
    measured = np.array(table.values["measured"]).reshape(shape)
    assert measured.sum() == len(rows)


def test_sessions_that_differ_stay_sessions(measure: Maker) -> None:
    first = measure(sizes=(4096,))
    second = [
        one.model_copy(
            update={
                "conditions": one.conditions.model_copy(update={"session_id": "two"}),
                "observations": one.observations.model_copy(
                    update={
                        "iops": (one.observations.iops or 0) / 1.3,
                        "latency_mean_ns": (one.observations.latency_mean_ns or 0) * 1.3,
                    }
                ),
            }
        )
        for one in first
    ]
    recipe = generic_recipe("truth", "Truth")
    alone = fit_surfaces(recipe, first, None)[0].fitted
    both = fit_surfaces(recipe, first + second, None)[0].fitted
    rows = [rows_of(some, host_cores=20) for some in (first, second)]
    for own in rows:
        np.testing.assert_allclose(both.evaluate(own)["latency"], own.latency_ns, rtol=0.01)
    other = rows_of(
        [
            one.model_copy(
                update={"conditions": one.conditions.model_copy(update={"session_id": "three"})}
            )
            for one in first
        ],
        host_cores=20,
    )
    middle = both.evaluate(other)
    assert (middle["latency"] > rows[0].latency_ns).all()
    assert (middle["latency"] < rows[1].latency_ns).all()
    # half the distance of the two, in logs
    assert middle["latency_sd"] == pytest.approx(np.full(len(other), np.log(1.3) / 2), rel=0.05)
    assert alone.evaluate(rows[0])["latency_sd"] == pytest.approx(np.zeros(len(first)))


def test_the_last_measured_depth_is_continued_by_the_curve(measure: Maker) -> None:
    profile = fit_profile(
        generic_recipe("truth", "Truth"), measure(sizes=(4096,)), [], memory=SurfaceMemory()
    )
    depths = [256, 512, 1024, 2048]
    found, low, high = ask(profile, queue_depth=depths, request_bytes=[4096] * 4)
    assert (np.diff(found) > 0.0).all()
    assert (np.diff(np.array(depths) / found) > -1e-3 * depths[0] / found[0]).all()
    assert (np.diff(high / low) >= 0.0).all()


def test_a_command_moves_whole_access_units() -> None:
    sizes = np.log2(KIB * np.array([0.5, 4, 5, 8, 12, 13, 4096.0]))
    units = np.exp2(whole_units(sizes, 12.0)) / (4 * KIB)
    assert units == pytest.approx([1, 1, 2, 2, 3, 4, 1024])
    assert is_unaligned(sizes, 12.0).tolist() == [False, False, True, False, False, True, False]


def test_unaligned_sizes_are_a_step_of_their_own() -> None:
    aligned = {4 * KIB: 60.0, 8 * KIB: 66.0, 16 * KIB: 75.0}
    odd = {6 * KIB: 90.0, 10 * KIB: 99.0}
    profile = profile_of(at_sizes(aligned | odd))
    sizes = [4 * KIB, 6 * KIB, 8 * KIB, 10 * KIB, 12 * KIB, 16 * KIB]
    found, _, _ = ask(profile, request_bytes=sizes)
    assert found[[0, 1, 2, 3, 5]] == pytest.approx([60.0, 90.0, 66.0, 99.0, 75.0], rel=0.01)
    assert 66.0 <= found[4] <= 75.0  # between its aligned neighbours


def test_unaligned_sizes_that_nobody_measured_are_less_sure() -> None:
    aligned = {4 * KIB: 60.0, 8 * KIB: 66.0, 16 * KIB: 75.0}
    profile = profile_of(at_sizes(aligned))
    columns = {"request_bytes": [8 * KIB, 10 * KIB, 12 * KIB], "queue_depth": [1] * 3}
    answer, _ = Predictor(profile).predict_columns(columns, 3)
    width = answer["latency_mean_ns"].high / answer["latency_mean_ns"].low
    # a value that may err by less than LESS_SURE_SD more than its neighbours has no knot of its own
    assert width[1] > width[2] >= width[0]
    assert answer.evidence_words() == ["measured", "extrapolated", "interpolated"]
