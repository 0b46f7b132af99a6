"""What runs over power states teach beside the physical model, on a drive that is known."""

import numpy as np
import pytest

from iojoule.datasets.profile import DeviceProfile, load_shipped_profile
from iojoule.datasets.schema import Measurement, from_row
from iojoule.datasets.vocabulary import Evidence, MixDispatch
from iojoule.model.evaluate.frame import make_frame
from iojoule.model.evaluate.power_limit import with_limits
from iojoule.model.evaluate.prediction import DEVICE_VALUE
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.fit.state_residual import mixes_left_out, with_state_residuals

SIZES = (4096, 16384, 65536)
DEPTHS = (1, 4, 16)
STATES = (0, 1, 2)


def unpublished() -> DeviceProfile:
    """A profile whose effects of power states nobody published."""
    profile = load_shipped_profile("samsung-980-pro-1tb")
    effects = [
        effect.model_copy(
            update={
                "ceiling_bytes_per_second": effect.ceiling_bytes_per_second.model_copy(
                    update={"evidence": Evidence.DATASHEET}
                )
            }
        )
        for effect in profile.power_state_effects
    ]
    return profile.model_copy(update={"power_state_effects": effects})


def places(sizes=SIZES, states=STATES) -> dict[str, list[object]]:
    grid = [(size, depth, state) for size in sizes for depth in DEPTHS for state in states]
    size, depth, state = (list(column) for column in zip(*grid, strict=True))
    return {
        "operation": ["read"] * len(grid),
        "pattern": ["random"] * len(grid),
        "engine": ["io_uring"] * len(grid),
        "completion": ["interrupt"] * len(grid),
        "jobs": [1] * len(grid),
        "request_bytes": size,
        "queue_depth": depth,
        "power_state": state,
    }


def truth(profile: DeviceProfile, columns: dict[str, list[object]]):
    """Latency and watts of a drive that is slower and draws less in lower states than the model."""
    state = np.array(columns["power_state"], float)
    answer, _ = Predictor(profile).predict_columns(columns, len(state))
    return (
        answer["latency_mean_ns"].value * 1.25**state,
        answer["latency_p99_ns"].value * 1.5**state,
        answer["device_power_watts"].value * 0.85**state,
    )


def runs(profile: DeviceProfile, states=STATES) -> list[Measurement]:
    columns = places(states=states)
    found = []
    for row, (mean, p99, watts) in enumerate(zip(*truth(profile, columns), strict=True)):
        one = {name: values[row] for name, values in columns.items()}
        iops = columns["queue_depth"][row] / mean * 1e9
        found.append(
            from_row(
                one
                | {
                    "iops": iops,
                    "throughput_bytes_per_second": iops * columns["request_bytes"][row],
                    "latency_mean_ns": mean,
                    "latency_p99_ns": p99,
                    "device_power_watts": watts,
                }
            )
        )
    return found


@pytest.fixture(scope="module")
def learned() -> DeviceProfile:
    profile = unpublished()
    return with_state_residuals(profile, runs(profile))


@pytest.mark.parametrize("name", ["latency_mean_ns", "latency_p99_ns"])
def test_between_runs_no_state_is_surer_than_ps0_was_before(name: str) -> None:
    """Runs on a curve that was fitted to them miss nothing, which says nothing of other places."""
    columns = places(sizes=(8192, 32768))
    before = unpublished()
    surfaces = [
        one.model_copy(
            update={
                "widths": [
                    width.model_copy(update={"factor": 5 * width.factor}) for width in one.widths
                ]
            }
        )
        for one in before.surfaces
    ]
    before = before.model_copy(update={"surfaces": surfaces})
    learned = with_state_residuals(before, runs(before))
    rested = columns | {"power_state": [0] * len(columns["jobs"])}

    def half_width(profile: DeviceProfile, asked: dict[str, list[object]]) -> np.ndarray:
        band = Predictor(profile).predict_columns(asked, len(asked["jobs"]))[0][name]
        return np.log(band.high / band.value)

    assert (half_width(learned, columns) >= half_width(before, rested) * (1.0 - 1e-9)).all()


@pytest.mark.parametrize("watts", [100.0, 3.6])
def test_a_limit_leaves_alone_what_runs_without_one_showed(watts: float) -> None:
    """Runs of PS0 draw a fifth less than the law says: where that is within a limit it is free."""
    profile = unpublished()
    columns = places(states=(0,))
    seen = [
        run.model_copy(
            update={
                "observations": run.observations.model_copy(
                    update={"device_power_watts": 0.8 * (run.observations.device_power_watts or 0)}
                )
            }
        )
        for run in runs(profile)
    ]
    learned = with_state_residuals(profile, seen)
    free, _ = Predictor(learned).predict_columns(columns, len(columns["jobs"]))
    limited = with_limits(learned, [watts])
    columns = columns | {"power_limit_watts": [watts] * len(columns["jobs"])}
    told, _ = Predictor(limited).predict_columns(columns, len(columns["jobs"]))
    below = free["device_power_watts"].value < 0.99 * watts
    assert below.any()
    for name in ("iops", "latency_p99_ns", "device_power_watts"):
        assert told[name].value[below] == pytest.approx(free[name].value[below], rel=1e-6)
    assert (told["device_power_watts"].value <= watts * (1.0 + 1e-9)).all()


def test_a_depth_that_only_another_state_was_measured_at_is_extrapolated() -> None:
    profile = unpublished()
    measured = runs(profile)
    shallow = [
        run
        for run in measured
        if not run.configuration.power_state or run.configuration.queue_depth < DEPTHS[-1]
    ]
    asked = places(states=(2,))
    rows = len(asked["power_state"])
    deep = np.array(asked["queue_depth"]) == DEPTHS[-1]

    everywhere, _ = Predictor(with_state_residuals(profile, measured)).predict_columns(asked, rows)
    partly, _ = Predictor(with_state_residuals(profile, shallow)).predict_columns(asked, rows)

    words = np.array([str(word) for word in partly.evidence_words()])
    assert set(words[deep]) == {Evidence.EXTRAPOLATED}
    assert Evidence.EXTRAPOLATED not in set(words[~deep])
    width = {
        name: np.log(answer["latency_mean_ns"].high / answer["latency_mean_ns"].low)
        for name, answer in (("everywhere", everywhere), ("partly", partly))
    }
    assert (width["partly"][deep] > 2 * width["everywhere"][deep]).all()


def test_what_a_state_does_is_known_where_nobody_measured(learned: DeviceProfile) -> None:
    asked = places(sizes=(8192, 32768))
    told, _ = Predictor(learned).predict_columns(asked, len(asked["power_state"]))
    for name, true in zip(
        ("latency_mean_ns", "latency_p99_ns", "device_power_watts"),
        truth(unpublished(), asked),
        strict=True,
    ):
        assert np.median(np.abs(np.log(told[name].value / true))) < 0.05
        assert np.mean((told[name].low <= true) & (true <= told[name].high)) >= 0.9


def test_latency_and_rate_obey_littles_law(learned: DeviceProfile) -> None:
    asked = places()
    told, _ = Predictor(learned).predict_columns(asked, len(asked["power_state"]))
    np.testing.assert_allclose(
        told["iops"].value * told["latency_mean_ns"].value * 1e-9, asked["queue_depth"], rtol=1e-6
    )


def test_measured_places_bear_measured_evidence(learned: DeviceProfile) -> None:
    asked = places()
    told, _ = Predictor(learned).predict_columns(asked, len(asked["power_state"]))
    assert set(told.evidence_words()) == {"measured"}


def test_watts_without_interval_are_those_with_one(learned: DeviceProfile) -> None:
    predictor = Predictor(learned)
    asked = places()
    told, _ = predictor.predict_columns(asked, len(asked["power_state"]))
    frame, _ = make_frame(learned, asked, len(asked["power_state"]))
    bare = predictor.predict(frame, only={DEVICE_VALUE})
    np.testing.assert_allclose(
        bare["device_power_watts"].value, told["device_power_watts"].value, rtol=1e-12
    )


def test_published_effects_and_runs_in_one_state_change_nothing() -> None:
    published = load_shipped_profile("samsung-980-pro-1tb")
    assert with_state_residuals(published, runs(published)) is published
    profile = unpublished()
    assert with_state_residuals(profile, runs(profile, states=(0,))) is profile


MIX = {"latency_mean_ns": 1.4, "latency_p99_ns": 1.8, "device_power_watts": 0.9}
"""What mixing does on the known drive beside what the model says, at 70 % reads."""


def mixed(
    profile: DeviceProfile, fraction: float, sizes=SIZES, states=STATES
) -> dict[str, list[object]]:
    columns = places(sizes, states)
    rows = len(columns["operation"])
    return columns | {"operation": ["mixed"] * rows, "read_fraction": [fraction] * rows}


def mixed_runs(
    profile: DeviceProfile, fraction: float, sizes=SIZES, states=STATES
) -> list[Measurement]:
    columns = mixed(profile, fraction, sizes, states)
    answer, _ = Predictor(profile).predict_columns(columns, len(columns["operation"]))
    found = []
    for row in range(len(columns["operation"])):
        one = {name: values[row] for name, values in columns.items()}
        seen = {name: float(answer[name].value[row]) * factor for name, factor in MIX.items()}
        iops = float(answer["iops"].value[row]) / MIX["latency_mean_ns"]
        rates = {"iops": iops, "throughput_bytes_per_second": iops * one["request_bytes"]}
        found.append(from_row(one | seen | rates))
    return found


def over_the_model(learned: DeviceProfile, fraction: float, name: str) -> np.ndarray:
    columns = mixed(learned, fraction, sizes=(8192, 32768))
    plain = unpublished()
    said = [
        Predictor(one).predict_columns(columns, len(columns["operation"]))[0][name].value
        for one in (learned, plain)
    ]
    return np.asarray(said[0] / said[1])


@pytest.fixture(scope="module")
def mixes() -> DeviceProfile:
    profile = unpublished()
    return with_state_residuals(profile, mixed_runs(profile, 0.7))


@pytest.mark.parametrize("name", MIX)
def test_runs_of_a_mix_teach_what_mixing_does(mixes: DeviceProfile, name: str) -> None:
    assert over_the_model(mixes, 0.7, name) == pytest.approx(MIX[name], rel=0.05)


def test_what_mixing_does_fades_towards_reads_and_writes_alone(mixes: DeviceProfile) -> None:
    towards_reads, towards_writes = (
        [
            np.log(over_the_model(mixes, fraction, "latency_mean_ns")).mean()
            for fraction in fractions
        ]
        for fractions in ((0.7, 0.85, 0.95, 0.999, 1.0 - 1e-6), (0.3, 0.1, 0.01, 1e-6))
    )
    for told in (towards_reads, towards_writes):
        assert np.all(np.diff(told) < 0.0)
        assert told[-1] == pytest.approx(0.0, abs=1e-4)
    assert over_the_model(mixes, 1.0, "latency_mean_ns") == pytest.approx(1.0)


def test_a_mix_that_nobody_measured_is_less_sure(mixes: DeviceProfile) -> None:
    def width(fraction: float) -> float:
        columns = mixed(mixes, fraction)
        told, _ = Predictor(mixes).predict_columns(columns, len(columns["operation"]))
        band = told["latency_mean_ns"]
        return float(np.mean(np.log(band.high / band.value)))

    assert width(0.7) < width(0.6) < width(0.5)


def test_a_profile_that_knows_mixes_is_read_back_as_written(mixes: DeviceProfile) -> None:
    assert mixes.state_residuals is not None
    assert 0.7 in [table.read_fraction for table in mixes.state_residuals]
    assert DeviceProfile.model_validate_json(mixes.model_dump_json()) == mixes


OCTAVES = tuple(1 << power for power in range(12, 18))


@pytest.mark.parametrize("published", [True, False])
def test_mixes_measured_at_ps0_alone_are_learned_from(published: bool) -> None:
    profile = load_shipped_profile("samsung-980-pro-1tb") if published else unpublished()
    learned = with_state_residuals(profile, mixed_runs(profile, 0.5, OCTAVES, (0,)))
    columns = mixed(learned, 0.5, sizes=(8192, 32768), states=(0,))
    before, after = (
        Predictor(one).predict_columns(columns, len(columns["operation"]))[0]["latency_mean_ns"]
        for one in (profile, learned)
    )
    assert after.value / before.value == pytest.approx(MIX["latency_mean_ns"], rel=0.05)
    assert np.mean(after.high / after.value) < np.mean(before.high / before.value)
    pure = {**columns, "operation": ["read"] * len(columns["operation"]), "read_fraction": 1.0}
    plain, kept = (
        Predictor(one).predict_columns(pure, len(columns["operation"]))[0]["latency_mean_ns"].value
        for one in (profile, learned)
    )
    assert kept == pytest.approx(plain)


def even_runs(profile: DeviceProfile, rows: int | None = None) -> list[Measurement]:
    """Runs of even mixes of a drive whose mixing costs `MIX` there and less at other shares."""
    return mixed_runs(profile, 0.5, (4096, 65536), (0,))[:rows]


@pytest.mark.parametrize("rows", [1, 3, None])
def test_measured_even_mixes_tell_of_themselves_and_of_their_neighbours(rows: int | None) -> None:
    profile = load_shipped_profile("samsung-980-pro-1tb")
    runs = even_runs(profile, rows)
    learned = with_state_residuals(profile, runs)
    for fraction, truth in ((0.3, 1.3), (0.5, 1.4), (0.7, 1.3)):
        one = mixed(profile, fraction, (4096,), (0,))
        before, after = (
            Predictor(each).predict_columns(one, len(DEPTHS))[0]["latency_mean_ns"].value
            for each in (profile, learned)
        )
        where = slice(None) if rows is None else slice(rows)
        assert np.abs(np.log(after / before / truth))[where].max() < 0.5 * np.log(truth)


def test_shares_that_differ_by_chance_are_one_mix() -> None:
    profile = load_shipped_profile("samsung-980-pro-1tb")
    runs = [
        run
        for fraction in (0.4998, 0.5, 0.5001)
        for run in mixed_runs(profile, fraction, (4096,), (0,))
    ]
    learned = with_state_residuals(profile, runs)
    assert learned.state_residuals is not None
    measured = [
        table.read_fraction
        for table in learned.state_residuals
        if any(table.table.values["measured"])
    ]
    assert measured == [0.5]


def test_what_is_not_learned_from_is_counted() -> None:
    profile = load_shipped_profile("samsung-980-pro-1tb")
    runs = even_runs(profile)
    full = [
        run.model_copy(
            update={"state": run.state.model_copy(update={"device_state": "collecting"})}
        )
        for run in runs[:2]
    ]
    apart = [
        run.model_copy(
            update={
                "workload": run.workload.model_copy(update={"mix_dispatch": MixDispatch.SEPARATED})
            }
        )
        for run in runs[:3]
    ]
    assert not mixes_left_out(profile, runs)
    assert sorted(mixes_left_out(profile, runs + full + apart).values()) == [2, 3]
