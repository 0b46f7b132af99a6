"""Runs in a lower power state tell its effect although none of them was repeated in PS0."""

import numpy as np
import pytest

from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import Measurement
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.fit.build import fit_profile
from iojoule.model.fit.power_states import predicted_twins
from iojoule.model.recipe import generic_recipe
from tests.model.conftest import Maker, true_latency_ns

CEILING_BYTES_PER_SECOND = 4e8


def slower(request_bytes: int, latency_ns: float, requests: int) -> float:
    """By how much a request takes longer under the cap."""
    return max(1.0, requests * request_bytes / CEILING_BYTES_PER_SECOND * 1e9 / latency_ns)


def at_ps1(measurement: Measurement) -> Measurement:
    """The same run where no more than so many bytes a second pass."""
    seen = measurement.observations
    assert seen.iops is not None
    assert seen.throughput_bytes_per_second is not None
    assert seen.latency_mean_ns is not None
    factor = slower(
        measurement.configuration.request_bytes,
        seen.latency_mean_ns,
        int(measurement.concurrency()),
    )
    return measurement.model_copy(
        update={
            "configuration": measurement.configuration.model_copy(update={"power_state": 1}),
            "observations": seen.model_copy(
                update={
                    "iops": seen.iops / factor,
                    "throughput_bytes_per_second": seen.throughput_bytes_per_second / factor,
                    "latency_mean_ns": seen.latency_mean_ns * factor,
                    "latency_p99_ns": (seen.latency_p99_ns or 0) * factor,
                    "cpu_utilisation": None,
                }
            ),
        }
    )


@pytest.fixture(scope="module")
def rows(measure: Maker) -> list[Measurement]:
    full = measure(depths=(1, 4, 16, 64, 256))
    return full + [at_ps1(one) for one in measure(depths=(2, 8, 32, 128))]


def fitted(rows: list[Measurement]) -> DeviceProfile:
    recipe = generic_recipe("truth", "Truth").model_copy(update={"cap_watts": [8.0, 5.0]})
    return fit_profile(recipe, rows, [])


def test_the_effect_is_found_without_any_twin(rows: list[Measurement]) -> None:
    depths = [2, 8, 32, 128]
    answer, _ = Predictor(fitted(rows)).predict_columns(
        {"queue_depth": depths, "power_state": [1] * 4, "request_bytes": [16384] * 4}, 4
    )
    free = [true_latency_ns(16384, depth, 1) for depth in depths]
    truth = [one * slower(16384, one, depth) for one, depth in zip(free, depths, strict=True)]
    assert truth[-1] > 1.5 * free[-1]
    np.testing.assert_allclose(answer["latency_mean_ns"].value, truth, rtol=0.15)


def test_only_runs_that_stand_alone_get_a_twin(rows: list[Measurement]) -> None:
    profile = fitted(rows)
    alone = [measurement for measurement in rows if measurement.configuration.power_state]
    twins = predicted_twins(profile, rows)
    assert len(twins) == len(alone)
    assert all(twin.configuration.power_state == 0 for twin in twins)
    assert predicted_twins(profile, [*rows, *twins]) == []
