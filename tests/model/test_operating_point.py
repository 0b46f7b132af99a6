"""What the host's settings do to a prediction."""

from typing import Any

import numpy as np
import pytest

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DeviceProfile
from iojoule.model.evaluate import operating_point
from iojoule.model.evaluate.prediction import Prediction
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.quantities import QUANTITIES
from iojoule.model.fit.host_power import expected_operation
from iojoule.model.recipe import load_recipe
from tests.errors import having
from tests.recommender.conftest import profile_data


@pytest.fixture(scope="module")
def profile() -> DeviceProfile:
    operation = expected_operation(load_recipe("samsung-980-pro-1tb").host_operation)
    plain = DeviceProfile.model_validate(profile_data())
    return plain.model_copy(update={"host_operation": operation})


def ask(profile: DeviceProfile, **columns: Any) -> Prediction:
    rows = max((len(v) for v in columns.values() if isinstance(v, list)), default=1)
    return Predictor(profile).predict_columns(columns, rows)[0]


def test_who_says_nothing_of_the_host_gets_what_was_measured(profile: DeviceProfile) -> None:
    before = ask(profile.model_copy(update={"host_operation": None}), queue_depth=[1, 64])
    after = ask(profile, queue_depth=[1, 64])
    for name in QUANTITIES:
        np.testing.assert_array_equal(after[name].value, before[name].value)
        np.testing.assert_array_equal(after[name].high, before[name].high)


def test_the_reference_frequency_is_the_reference(profile: DeviceProfile) -> None:
    assert profile.host_operation is not None
    assert profile.host_operation.clock is not None
    hertz = profile.host_operation.clock.reference_hertz.value
    told = ask(profile, queue_depth=[1, 64], cpu_frequency_max_hertz=hertz)
    plain = ask(profile, queue_depth=[1, 64])
    np.testing.assert_allclose(told["iops"].value, plain["iops"].value)
    np.testing.assert_allclose(told["cpu_power_watts"].value, plain["cpu_power_watts"].value)


def test_switching_power_falls_faster_than_the_frequency(profile: DeviceProfile) -> None:
    assert profile.host_operation is not None
    clock = profile.host_operation.clock
    assert clock is not None
    ratio = np.linspace(0.35, 1.0, 14)
    watts, sd = operating_point.busy_watts_factor(clock, ratio)
    assert watts[-1] == pytest.approx(1.0)
    assert (np.diff(watts) > 0).all()
    assert (sd >= 0).all()
    switching = clock.model_copy(
        update={"static_share": clock.static_share.model_copy(update={"value": 0.0})}
    )
    assert (operating_point.busy_watts_factor(switching, ratio)[0][:-1] < ratio[:-1]).all()


def test_a_slower_core_completes_fewer_requests_and_is_known_less_well(
    profile: DeviceProfile,
) -> None:
    hertz = [None, 2.4e9, 1.2e9]
    answer = ask(profile, queue_depth=256, cpu_frequency_max_hertz=hertz)
    ceiling = answer["iops_per_core_max"].value
    assert (np.diff(ceiling) < 0).all()
    # a quarter of the core time waits for memory, whatever the clock
    assert ceiling[0] / ceiling[2] == pytest.approx(0.25 + 0.75 * 3.0e9 / 1.2e9)
    iops = answer["iops"]
    assert (np.diff(iops.value) < 0).all()
    assert (np.diff(np.log(iops.high / iops.low)) > 0).all()
    assert answer.evidence_words()[0] != answer.evidence_words()[1] == "assumed"


def test_throughput_and_latency_obey_little_at_every_setting(profile: DeviceProfile) -> None:
    answer = ask(
        profile,
        queue_depth=[1, 8, 64, 64, 64],
        cpu_governor=[None, "schedutil", "performance", None, None],
        cstate_limit=[0, None, None, 1, None],
        job_numa_node=[None, None, None, None, 1],
        device_numa_node=[None, None, None, None, 0],
    )
    in_flight = answer["iops"].value * answer["latency_mean_ns"].value * 1e-9
    np.testing.assert_allclose(in_flight, [1, 8, 64, 64, 64])


def test_a_governor_that_follows_the_load_lies_between_slow_and_fast(
    profile: DeviceProfile,
) -> None:
    answer = ask(
        profile,
        queue_depth=1,
        cpu_governor=["performance", "schedutil", "performance"],
        cpu_frequency_max_hertz=[None, None, 1e9],
    )
    fast, follows, slow = answer["latency_mean_ns"].value
    assert fast < follows < slow
    low, high = answer["latency_mean_ns"].low[1], answer["latency_mean_ns"].high[1]
    assert low < fast < high
    busy = ask(profile, queue_depth=256, cpu_governor=["performance", "schedutil"])
    np.testing.assert_allclose(*busy["iops"].value, rtol=1e-6)  # a full core runs at full speed


def test_light_sleep_is_faster_and_dearer(profile: DeviceProfile) -> None:
    answer = ask(profile, queue_depth=1, cstate_limit=[None, 1, 0])
    watts, latency = answer["cpu_power_watts"].value, answer["latency_mean_ns"].value
    assert (np.diff(watts) > 0).all()
    assert latency[1] < latency[0]
    polled = ask(profile, completion="polled", cstate_limit=[None, 0])
    np.testing.assert_allclose(*polled["latency_mean_ns"].value)  # who polls is never woken


def test_a_drive_on_the_other_node_costs_what_was_published(profile: DeviceProfile) -> None:
    """000 5.1.4: 9 % less throughput and 7 % more latency at 4 KiB and high depth."""
    answer = ask(profile, queue_depth=256, job_numa_node=[1, 0, 0], device_numa_node=[1, 1, None])
    near, far, unknown = answer["iops"].value
    assert near == pytest.approx(ask(profile, queue_depth=256)["iops"].value[0])
    assert 0.86 < far / near < 0.96
    assert far < unknown < near
    assert answer["iops"].low[2] < far
    assert answer["iops"].high[2] > near
    watts = answer["cpu_power_watts"].value
    assert watts[1] > watts[0]


@pytest.mark.parametrize(
    ("columns", "field"),
    [
        ({"cpu_frequency_max_hertz": 2e9}, "cpu_frequency_max_hertz"),
        ({"cpu_governor": "schedutil"}, "cpu_governor"),
        ({"cstate_limit": 1}, "cstate_limit"),
        ({"turbo_enabled": False}, "turbo_enabled"),
        ({"job_numa_node": 1, "device_numa_node": 0}, "job_numa_node"),
    ],
)
def test_a_profile_that_cannot_say_refuses_by_name(
    profile: DeviceProfile, columns: dict[str, Any], field: str
) -> None:
    blind = profile.model_copy(update={"host_operation": None})
    with pytest.raises(InputError, match=rf"row 1: {field}.*iojoule measure host"):
        ask(blind, **columns)


def test_what_no_host_offers_is_refused(profile: DeviceProfile) -> None:
    with pytest.raises(InputError, check=having(field="cpu_governor")):
        ask(profile, cpu_governor="fast")
    with pytest.raises(InputError, check=having(field="cpu_frequency_max_hertz")):
        ask(profile, cpu_frequency_max_hertz=1e8)
    # the drive's own node is the drive's own node on every host
    blind = profile.model_copy(update={"host_operation": None})
    ask(blind, job_numa_node=1, device_numa_node=1)
