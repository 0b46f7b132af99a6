"""Fitting a drive whose truth is known."""

import numpy as np
import pytest

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DeviceProfile, parse_profile
from iojoule.datasets.schema import Measurement
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.fit.backtest import judge_intervals, leave_out
from iojoule.model.fit.build import fit_profile
from iojoule.model.fit.generic_recipe import device_power_recipe
from iojoule.model.fit.performance import Settings, fit_surface
from iojoule.model.fit.power import fit_linear
from iojoule.model.fit.rows import average_repeats, rows_of
from iojoule.model.fit.surfaces import fit_surfaces
from iojoule.model.fit.widths import conformal_factor, folds
from iojoule.model.recipe import generic_recipe, load_recipe, shipped_recipes
from tests.model.conftest import Maker, true_latency_ns


def settings_of(measurements: list[Measurement]) -> Settings:
    return fit_surfaces(generic_recipe("truth", "Truth"), measurements, None)[0].fitted.settings


@pytest.fixture(scope="module")
def profile(measure: Maker) -> DeviceProfile:
    return fit_profile(generic_recipe("truth", "Truth"), measure(jobs=(1, 4)), [])


def test_profile_repeats_what_was_measured(profile: DeviceProfile, measure: Maker) -> None:
    rows = rows_of(measure(jobs=(1, 4)), host_cores=20)
    answer, _ = Predictor(profile).predict_columns(
        {"request_bytes": rows.request_bytes, "queue_depth": rows.queue_depth, "jobs": rows.jobs},
        len(rows),
    )
    np.testing.assert_allclose(answer["latency_mean_ns"].value, rows.latency_ns, rtol=0.05)
    np.testing.assert_allclose(answer["latency_p99_ns"].value, rows.p99, rtol=0.1)
    assert set(answer.evidence_words()) == {"measured"}


def test_a_profile_of_several_surfaces_repeats_the_rows_of_each() -> None:
    # what limits reads might be the host, what limits writes cannot be that host
    measured = [
        Measurement.model_validate(
            {
                "workload": {"operation": operation},
                "configuration": {
                    "request_bytes": size,
                    "queue_depth": depth,
                    "engine": "io_uring",
                },
                "observations": {"iops": min(depth / seconds, most)},
            }
        )
        for size in (4096, 16384, 65536)
        for depth in (1, 4, 16, 64, 256)
        for operation, seconds, most in (("read", 70e-6, 200e3), ("write", 20e-6, 450e3))
    ]
    fitted = Predictor(fit_profile(generic_recipe("truth", "Truth"), measured, []))
    columns = {
        "engine": ["io_uring"] * len(measured),
        "operation": [one.workload.operation.value for one in measured],
        "request_bytes": [one.configuration.request_bytes for one in measured],
        "queue_depth": [one.configuration.queue_depth for one in measured],
    }
    answer, _ = fitted.predict_columns(columns, len(measured))
    iops = [one.observations.iops for one in measured]
    np.testing.assert_allclose(answer["iops"].value, iops, rtol=0.02)


def test_many_rows_that_the_host_never_limits_say_nothing_of_it() -> None:
    def row(pattern: str, size: int, depth: int, jobs: int, iops: float) -> Measurement:
        return Measurement.model_validate(
            {
                "workload": {"operation": "read", "pattern": pattern},
                "configuration": {
                    "request_bytes": size,
                    "queue_depth": depth,
                    "jobs": jobs,
                    "engine": "io_uring",
                },
                "observations": {"iops": iops},
            }
        )

    random = [
        row("random", size, depth, jobs, min(depth * jobs / 70e-6, 900e3 * jobs, 1.5e6))
        for size in (4096, 8192)
        for depth in (1, 4, 16, 256)
        for jobs in (1, 2, 4)
    ]
    sequential = [
        row("sequential", size, depth, jobs, min(depth * jobs / (60e-6 + size / 3e9), 3e9 / size))
        for size in (131072, 262144, 524288, 1048576)
        for depth in (1, 2, 4, 8, 16, 32, 64)
        for jobs in (1, 2)
    ]
    columns = {
        "engine": ["io_uring"] * 4,
        "pattern": ["random"] * 4,
        "queue_depth": [8, 32, 64, 128],
        "jobs": [1, 1, 2, 4],
    }
    alone, both = (
        Predictor(fit_profile(generic_recipe("truth", "Truth"), rows, [])).predict_columns(
            columns, 4
        )[0]["iops"]
        for rows in (random, random + sequential)
    )
    np.testing.assert_allclose(both.value, alone.value, rtol=1e-6)


@pytest.mark.parametrize(("depth", "jobs"), [(8, 1), (32, 1), (128, 1), (8, 4)])
def test_profile_finds_the_truth_between_depths(
    profile: DeviceProfile, depth: int, jobs: int
) -> None:
    answer, _ = Predictor(profile).predict_columns({"queue_depth": [depth], "jobs": [jobs]}, 1)
    truth = true_latency_ns(4096, depth, jobs)
    assert answer["latency_mean_ns"].value[0] == pytest.approx(truth, rel=0.07)
    assert answer.evidence_words() == ["interpolated"]


def test_profile_extrapolates_depth_with_the_curve(profile: DeviceProfile) -> None:
    answer, _ = Predictor(profile).predict_columns({"queue_depth": [1024], "jobs": [4]}, 1)
    truth = true_latency_ns(4096, 1024, 4)
    assert answer["latency_mean_ns"].value[0] == pytest.approx(truth, rel=0.1)
    assert answer.evidence_words() == ["extrapolated"]


def test_leaving_depths_out_beats_interpolation(measure: Maker) -> None:
    measurements = measure(noise=0.01)
    outcomes = [
        o
        for o in leave_out(rows_of(measurements, host_cores=20), settings_of(measurements))
        if o.quantity == "throughput" and o.axis == "queue_depth"
    ]
    for region in ("inside", "beyond", "below"):
        some = [o for o in outcomes if o.region == region]
        ours = np.median([o.error("model") for o in some])
        assert ours <= np.median([o.error("interpolation") for o in some])


@pytest.mark.slow
def test_intervals_cover_what_they_promise(measure: Maker) -> None:
    measurements = measure(depths=(1, 2, 4, 8, 16, 32, 64, 128, 256), noise=0.03)
    outcomes = leave_out(rows_of(measurements, host_cores=20), settings_of(measurements))
    latency = [o for o in outcomes if o.quantity == "mean latency" and o.region == "inside"]
    verdict = judge_intervals(latency, "model")
    assert verdict.rows >= 15
    assert 0.75 <= verdict.covered / verdict.rows <= 1.0


def test_folds_leave_out_whole_depths_and_sizes(measure: Maker) -> None:
    rows = rows_of(measure(), host_cores=20)
    for fold in folds(rows):
        left = getattr(rows.take(~fold.train), fold.axis)
        assert set(left) == {fold.value}
        assert fold.value not in getattr(rows.take(fold.train), fold.axis)


def test_session_shift_does_not_move_the_reference(measure: Maker) -> None:
    steady = measure()
    odd = [
        m.model_copy(
            update={
                "conditions": m.conditions.model_copy(update={"session_id": "unsteady"}),
                "observations": m.observations.model_copy(
                    update={
                        "iops": (m.observations.iops or 0) / 1.5,
                        "latency_mean_ns": (m.observations.latency_mean_ns or 0) * 1.5,
                    }
                ),
            }
        )
        for m in measure(sizes=(4096,))
    ]
    settings = settings_of(steady)
    alone = fit_surface(rows_of(steady, host_cores=20), settings)
    both = fit_surface(rows_of(steady + odd, host_cores=20), settings)
    rows = rows_of(steady, host_cores=20)
    np.testing.assert_allclose(
        both.evaluate(rows)["latency"], alone.evaluate(rows)["latency"], rtol=0.03
    )


def test_a_step_between_neighbours_widens_the_answer_there(measure: Maker) -> None:
    depths = (1, 2, 4, 8, 16, 32, 64, 128)
    flat = measure(sizes=(4096,), depths=depths)
    stepped = [
        m.model_copy(
            update={
                "observations": m.observations.model_copy(
                    update={
                        "iops": (m.observations.iops or 0) * 0.75,
                        "latency_mean_ns": (m.observations.latency_mean_ns or 0) / 0.75,
                    }
                )
            }
        )
        if m.configuration.queue_depth >= 16
        else m
        for m in flat
    ]
    settings = settings_of(flat)
    asked = rows_of(measure(sizes=(4096,), depths=(12,)), host_cores=20)
    sd = [
        fit_surface(rows_of(seen, host_cores=20), settings).evaluate(asked)["latency_sd"][0]
        for seen in (flat, stepped)
    ]
    assert sd[1] > 1.5 * sd[0]


def test_repeats_become_their_geometric_mean(measure: Maker) -> None:
    rows = rows_of(measure(noise=0.1) + measure(), host_cores=20)
    merged = average_repeats(rows)
    assert len(merged) == len(rows) // 2
    first = rows.latency_ns[(rows.queue_depth == 1) & (rows.request_bytes == 4096)]
    assert merged.latency_ns[0] == pytest.approx(np.sqrt(first[0] * first[1]))


def test_linear_law_is_recovered_and_never_negative() -> None:
    random = np.random.default_rng(3)
    x = np.stack([np.ones(40), random.uniform(0, 3e9, 40), random.uniform(0, 1e5, 40)], axis=1)
    truth = np.array([2.5, 6e-10, 1e-6])
    prior, sd = np.array([2.0, 1e-9, 1e-6]), np.array([1.0, 1e-9, 1e-6])
    fit = fit_linear(x, x @ truth, np.full(40, 1e-3), prior, sd)
    np.testing.assert_allclose(fit.theta, truth, rtol=0.01)
    negative = fit_linear(x, x @ np.array([2.5, 6e-10, -1e-6]), np.full(40, 1e-3), prior, sd)
    assert (negative.theta >= 0).all()
    assert negative.theta[2] == 0


def test_without_data_the_prior_is_the_answer() -> None:
    prior, sd = np.array([2.0, 1e-9]), np.array([1.0, 2e-10])
    fit = fit_linear(np.zeros((0, 2)), np.zeros(0), np.zeros(0), prior, sd)
    np.testing.assert_allclose(fit.theta, prior)
    np.testing.assert_allclose(np.sqrt(np.diag(fit.covariance)), sd)


def test_conformal_factor_is_the_finite_sample_quantile() -> None:
    scores = np.arange(1.0, 25.0)  # n = 24: rank ceil(0.9 x 25) = 23
    assert conformal_factor(scores) == 23.0


def test_profile_survives_its_json(profile: DeviceProfile) -> None:
    again = parse_profile(profile.model_dump_json().encode(), "round trip")
    assert again == profile


def test_measurements_without_performance_say_what_to_measure() -> None:
    with pytest.raises(InputError, match="measure reads and writes"):
        fit_profile(generic_recipe("empty", "Empty"), [], [])


def test_every_assumption_of_a_recipe_names_its_source() -> None:
    for name in shipped_recipes():
        recipe = load_recipe(name)
        assert all(path.source for path in recipe.host_paths)
        assert all(point.source for surface in recipe.surfaces for point in surface.points)


def test_measured_power_is_fitted_without_a_recipe(measure: Maker) -> None:
    recipe = generic_recipe("truth", "Truth").model_copy(update={"cap_watts": [8.0, 5.0]})
    profile = fit_profile(recipe, measure(watts=True), [])
    assert profile.device_power is not None
    values = {p.name: p.value for p in profile.device_power.parameters}
    assert values["base_watts"] == pytest.approx(2.5, rel=0.02)
    assert values["read_joules_per_byte"] == pytest.approx(6e-10, rel=0.02)
    assert values["read_joules_per_operation"] == pytest.approx(1e-6, rel=0.1)
    answer, _ = Predictor(profile).predict_columns({"power_state": [0, 1]}, 2)
    assert answer.evidence_words() == ["measured", "published"]
    assert answer["device_power_watts"].value[1] <= 5.0


def test_power_in_a_state_whose_cap_and_idle_nobody_states_is_fitted(measure: Maker) -> None:
    slow = [
        one.model_copy(
            update={"configuration": one.configuration.model_copy(update={"power_state": 2})}
        )
        for one in measure(watts=True)
    ]
    recipe = device_power_recipe([*measure(watts=True), *slow], [])
    assert recipe is not None
    assert len(recipe.cap_watts) == len(recipe.idle_watts) == 3


def test_runs_that_are_all_as_fast_do_not_tell_bytes_from_operations(measure: Maker) -> None:
    one = measure(watts=True)[0]
    alike = device_power_recipe([one] * 6, [])
    assert alike is not None
    few = device_power_recipe([one] * 5, [])
    assert few is not None
    assert alike.priors == few.priors


def test_power_that_nobody_measured_stays_unknown(measure: Maker) -> None:
    profile = fit_profile(generic_recipe("truth", "Truth"), measure(), [])
    assert profile.device_power is None
    assert profile.host_power is None
