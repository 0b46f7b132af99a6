"""Profiles of hard disks from their data sheets."""

from itertools import product

import numpy as np
import pytest

from iojoule.api.application.build_profile import expected_profile
from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DeviceProfile
from iojoule.model.evaluate.prediction import Prediction
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.prior.disk_facts import queued_share

DISKS = [drive.id for drive in load_catalogue() if drive.medium == "disk"]
WITH_WATTS = [
    name
    for name in DISKS
    if any(
        load_catalogue().get(name).fact(metric)
        for metric in ("idle_power", "idle_power_low", "rated_power")
    )
]


def ask(profile: DeviceProfile, **columns: object) -> Prediction:
    rows = max(len(v) for v in columns.values() if isinstance(v, list))
    filled = {k: v if isinstance(v, list) else [v] * rows for k, v in columns.items()}
    return Predictor(profile).predict_columns(filled, rows)[0]


def test_at_least_six_models_have_watts_from_a_source() -> None:
    assert len(WITH_WATTS) >= 6


@pytest.mark.parametrize("name", DISKS)
def test_every_disk_keeps_littles_law_and_orders_its_watts(name: str) -> None:
    profile = expected_profile(name)
    depth, jobs, size = zip(*product((1, 4, 32, 256), (1, 8), (4096, 131072, 4194304)), strict=True)
    for operation, pattern in product(("read", "write"), ("random", "sequential")):
        told = ask(
            profile,
            operation=operation,
            pattern=pattern,
            request_bytes=list(size),
            queue_depth=list(depth),
            jobs=list(jobs),
        )
        flying = np.array(depth) * np.array(jobs)
        assert told["iops"].value * told["latency_mean_ns"].value == pytest.approx(1e9 * flying)
        assert (told["latency_p99_ns"].value >= told["latency_mean_ns"].value).all()
        link = profile.link_bytes_per_second
        assert link is not None
        assert (told["throughput_bytes_per_second"].high <= link.value).all()
        assert profile.device_power is not None
        idle = profile.device_power.idle_watts[0].value
        assert (told["device_power_watts"].value > idle).all()
    standby = profile.idle.standby if profile.idle else None
    assert standby is not None
    assert standby.watts.value < idle < standby.spin_up_watts.value


def test_a_single_read_waits_for_the_arm_and_half_a_revolution() -> None:
    told = ask(
        expected_profile("hitachi-travelstar-5k320"),
        operation="read",
        pattern="random",
        request_bytes=[4096],
        queue_depth=1,
    )
    assert told["latency_mean_ns"].value[0] == pytest.approx(12e6 + 30e9 / 5400, rel=0.01)


def test_queued_reads_follow_the_law_of_one_arm() -> None:
    depth = [1, 2, 4, 8, 16, 32, 64]
    told = ask(
        expected_profile("toshiba-dt01aca300"),
        operation="read",
        pattern="random",
        request_bytes=4096,
        queue_depth=depth,
    )
    rate = told["iops"].value / told["iops"].value[0]
    assert rate == pytest.approx(1.0 / queued_share(np.array(depth, dtype=float)), rel=0.02)


def test_two_streams_cost_a_disk_what_one_does_not() -> None:
    told = ask(
        expected_profile("toshiba-dt01aca300"),
        operation="read",
        pattern="sequential",
        request_bytes=65536,
        queue_depth=8,
        jobs=[1, 2],
    )["throughput_bytes_per_second"].value
    assert told[1] < 0.7 * told[0]


def test_random_watts_do_not_depend_on_the_split_of_a_large_request() -> None:
    told = ask(
        expected_profile("toshiba-dt01aca300"),
        operation="read",
        pattern="random",
        request_bytes=[2**20, 2**22],
        queue_depth=1,
    )
    assert (
        told["throughput_bytes_per_second"].value[1] > told["throughput_bytes_per_second"].value[0]
    )


def test_different_disks_get_different_answers() -> None:
    seen = set()
    for name in DISKS:
        told = ask(
            expected_profile(name),
            operation="read",
            pattern="random",
            request_bytes=[4096, 2**20],
            queue_depth=[1, 8],
        )
        watts = told["device_power_watts"].value
        seen.add((*told["iops"].value.round(9), *watts.round(9)))
    alike = {"seagate-constellation-es-2-2tb", "wd-wd60efax"}
    assert len(seen) >= len(DISKS) - len(alike)


@pytest.mark.parametrize(
    "columns",
    [
        {"engine": "io_uring_cmd"},
        {"engine": "spdk"},
        {"completion": "polled", "engine": "io_uring"},
        {"power_state": 1},
    ],
)
def test_what_only_nvme_has_is_refused(columns: dict[str, object]) -> None:
    with pytest.raises(InputError):
        ask(expected_profile("seagate-exos-7e2000"), request_bytes=[4096], **columns)


def test_a_stated_figure_moves_the_answer_and_an_assumption_says_so() -> None:
    ladder = expected_profile("seagate-exos-7e2000").ladder
    assert ladder is not None
    by_name = {entry.quantity: entry for entry in ladder.entries}
    assert by_name["disk_idle"].value == 3.76
    assert by_name["disk_idle"].evidence.value == "datasheet"
    assert by_name["disk_seek"].evidence.value == "assumed"
