"""A device profile on the user's host."""

from pathlib import Path

import numpy as np
import pytest

from iojoule.datasets.errors import InputError, SchemaVersionError
from iojoule.datasets.profile import (
    DeviceProfile,
    HostPath,
    HostPerformance,
    HostPower,
    HostProfile,
    Parameter,
    parse_host_profile,
    read_host_profile,
    write_host_profile,
)
from iojoule.datasets.vocabulary import Completion, Engine, Evidence
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.prior.host import with_host
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import parse_workload
from tests.recommender.conftest import profile_data


def measured(name: str, value: float, sd: float) -> Parameter:
    return Parameter(
        name=name, value=value, sd=sd, unit="W", evidence=Evidence.MEASURED, source="test"
    )


def host(slower: float = 2.0) -> HostProfile:
    reference = DeviceProfile.model_validate(profile_data()).host
    path = next(
        p for p in reference.paths if p.engine == "io_uring" and p.completion == "interrupt"
    )
    performance = HostPerformance(
        host_id="mine",
        cpu_cores=8,
        sharpness=6.0,
        schedulers=[],
        paths=[
            HostPath(
                engine=Engine.IO_URING,
                completion=Completion.INTERRUPT,
                submission_polling=False,
                added_latency_ns=0.0,
                core_time_ns=slower * path.core_time_ns,
                wakeup_ns=slower * path.wakeup_ns,
                relative_sd=0.05,
                evidence=Evidence.MEASURED,
                source="test",
            )
        ],
    )
    return HostProfile(
        schema_version=1,
        host_id="mine",
        cpu_model=None,
        cpu_cores=8,
        kernel_version="6.1",
        generator="test",
        measured_utc="2026-01-02T03:04:05Z",
        sensors=["rapl"],
        performance=performance,
        power=HostPower(
            host_id="mine",
            scope="CPU packages",
            parameters=[
                measured("idle_watts", 10.0, 0.1),
                measured("package_watts", 3.0, 0.1),
                measured("core_watts", 4.0, 0.1),
                measured("awake_core_watts", 0.1, 0.05),
                measured("wakeup_joules", 2e-5, 1e-6),
            ],
            covariance=np.diag([0.01, 0.01, 0.01, 0.0025, 1e-12]).tolist(),
            cpu_cores=8,
        ),
        system=None,
        operation=None,
        runs=20,
        others_busy_cores=0.01,
        gaps=[],
    )


@pytest.fixture
def profile() -> DeviceProfile:
    return DeviceProfile.model_validate(profile_data())


def test_power_is_that_of_the_host_and_surer(profile: DeviceProfile) -> None:
    columns = {"queue_depth": [1, 32], "engine": "io_uring"}
    before, _ = Predictor(profile).predict_columns(columns, 2)
    after, _ = Predictor(with_host(profile, host())).predict_columns(columns, 2)

    def width(answer: object) -> np.ndarray:
        band = answer["cpu_power_watts"]  # type: ignore[index]
        return np.asarray((band.high - band.low) / band.value)

    assert width(after)[0] < width(before)[0]  # at depth 32 a core of this host draws far more
    assert (after["cpu_power_watts"].value < 20).all()
    # the law was measured, the rate of the made-up drive was not
    assert after.evidence_words("cpu_power_watts") == after.evidence_words("iops")
    assert np.isnan(after["system_power_watts"].value).all()
    np.testing.assert_allclose(
        after["cpu_joules_per_operation"].value,
        after["cpu_power_watts"].value / after["iops"].value,
    )


def test_a_slower_host_carries_less_and_nothing_is_called_measured(profile: DeviceProfile) -> None:
    columns = {"queue_depth": [1, 256], "engine": "io_uring"}
    before, _ = Predictor(profile).predict_columns(columns, 2)
    after, _ = Predictor(with_host(profile, host(2.0))).predict_columns(columns, 2)
    assert (after["iops"].value < before["iops"].value).all()
    np.testing.assert_allclose(
        after["iops_per_core_max"].value, before["iops_per_core_max"].value / 2.0
    )
    assert "measured" not in after.evidence_words()


def test_paths_that_were_not_run_follow_in_proportion(profile: DeviceProfile) -> None:
    combined = with_host(profile, host(2.0)).host
    for path, before in zip(combined.paths, profile.host.paths, strict=True):
        assert path.core_time_ns == pytest.approx(2.0 * before.core_time_ns)
        ran = path.engine == "io_uring" and path.completion == "interrupt"
        assert (path.evidence == Evidence.INTERPOLATED) == (ran and not path.submission_polling)
        if not ran:
            assert path.relative_sd > before.relative_sd
    assert any("mine" in gap for gap in with_host(profile, host()).gaps)


def test_a_recommendation_is_made_for_the_host(profile: DeviceProfile) -> None:
    workload = parse_workload(
        {"workload": {"operation": "read", "demand_operations_per_second": 10000}}
    )
    answer = Recommender(with_host(profile, host())).recommend(workload)
    assert answer.recommended is not None
    assert answer.recommended.cpu_power_watts is not None
    assert 10.0 < answer.recommended.cpu_power_watts.value < 20.0


def test_a_host_profile_survives_its_file(tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    write_host_profile(host(), path)
    assert read_host_profile(path) == host()
    assert [one.name for one in tmp_path.iterdir()] == ["host.json"]
    text = path.read_bytes()
    with pytest.raises(SchemaVersionError, match="newer than 1"):
        parse_host_profile(text.replace(b'"schema_version": 1', b'"schema_version": 9'), "h")
    with pytest.raises(InputError, match="measure it again"):
        parse_host_profile(text[:-40], "h")
    with pytest.raises(InputError, match="not a host profile"):
        parse_host_profile(b"{}", "h")
    with pytest.raises(InputError, match="cannot be read"):
        read_host_profile(tmp_path / "missing.json")
