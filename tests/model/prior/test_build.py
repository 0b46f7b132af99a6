"""Profiles of drives that nobody measured keep physics and answer with the weakest evidence."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from iojoule.datasets.catalogue import Drive, load_catalogue
from iojoule.datasets.measured_drive import DeclaredState, MeasuredDrive
from iojoule.datasets.profile import FACTS_RECIPE, DeviceProfile
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.fit.learn_prior import catalogue_drives
from iojoule.model.prior.build import build_profile
from iojoule.model.prior.facts import OWN_METRICS, facts_of, facts_of_measured

GRID = list(product(("read", "write"), ("random", "sequential"), (4096, 131072), (1, 32, 256)))


def columns() -> dict[str, list[object]]:
    operation, pattern, size, depth = zip(*GRID, strict=True)
    return {
        "operation": list(operation),
        "pattern": list(pattern),
        "request_bytes": list(size),
        "queue_depth": list(depth),
    }


def real_drives() -> Iterator[Drive]:
    return (drive for drive in load_catalogue() if drive.drive_class != "emulated")


def expected(device: str) -> DeviceProfile:
    return build_profile(facts_of(load_catalogue().get(device)))


@pytest.mark.parametrize("drive", list(real_drives())[::7], ids=lambda drive: drive.id)
def test_physics_holds_over_the_catalogue(drive: Drive) -> None:
    profile = build_profile(facts_of(drive))
    answer, _ = Predictor(profile).predict_columns(columns(), len(GRID))
    watts, iops, latency = (
        answer[name] for name in ("device_power_watts", "iops", "latency_mean_ns")
    )
    depth = np.array([row[3] for row in GRID])
    assert iops.value * latency.value * 1e-9 == pytest.approx(depth)
    for band in (watts, iops, latency):
        assert (band.low > 0).all()
        assert (band.low <= band.value).all()
        assert (band.value <= band.high).all()
    assert profile.device_power is not None
    assert (watts.high <= profile.device_power.cap_watts[0] * (1 + 1e-9)).all()
    assert set(answer.evidence_words()) == {"datasheet"}
    assert set(answer.evidence_words("device_power_watts")) == {"datasheet"}
    assert profile.device_power.parameters[0].value >= profile.device_power.idle_watts[0].value
    assert all(parameter.value >= 0 for parameter in profile.device_power.parameters)


def test_no_prediction_is_faster_than_the_link() -> None:
    profile = expected("samsung-860-pro")
    answer, _ = Predictor(profile).predict_columns(columns(), len(GRID))
    assert (answer["throughput_bytes_per_second"].high <= 6e8 * (1 + 1e-9)).all()


def test_rated_figures_come_back() -> None:
    profile = expected("samsung-pm9a3-u2-e1s")
    answer, _ = Predictor(profile).predict_columns(
        {"pattern": "sequential", "request_bytes": [131072], "queue_depth": [256]}, 1
    )
    assert answer["throughput_bytes_per_second"].value[0] == pytest.approx(6.5e9, rel=0.15)


def test_lower_caps_leave_less_power_and_rate() -> None:
    profile = expected("intel-d7-p5510")
    asked = {
        "operation": ["write"] * 3,
        "pattern": ["sequential"] * 3,
        "request_bytes": [131072] * 3,
        "queue_depth": [64] * 3,
        "power_state": [0, 1, 2],
    }
    answer, _ = Predictor(profile).predict_columns(asked, 3)
    rate = answer["throughput_bytes_per_second"].value
    assert rate[0] > rate[1] > rate[2]
    assert (answer["device_power_watts"].high <= np.array([25.0, 12.0, 10.0]) + 1e-9).all()


def told(caps: tuple[float, ...], active: float | None = None) -> MeasuredDrive:
    return MeasuredDrive(
        model="No Catalogue Knows It",
        capacity_bytes=10**12,
        block_bytes=512,
        power_states=tuple(
            DeclaredState(
                index=index,
                max_power_watts=cap,
                operational=True,
                entry_latency_us=0,
                exit_latency_us=0,
                active_power_watts=active,
            )
            for index, cap in enumerate(caps)
        ),
    )


def test_identify_data_alone_tell_the_class() -> None:
    small = build_profile(facts_of_measured(told((6.0, 3.0)), "small"))
    large = build_profile(facts_of_measured(told((25.0, 12.0)), "large"))
    assert small.device_power is not None
    assert large.device_power is not None
    assert large.device_power.idle_watts[0].value > 2 * small.device_power.idle_watts[0].value
    assert small.recipe == FACTS_RECIPE


def test_declared_active_power_narrows_the_highest_power() -> None:
    def watts(drive: MeasuredDrive) -> tuple[float, float]:
        profile = build_profile(facts_of_measured(drive, "drive"))
        assert profile.ladder is not None
        entry = next(entry for entry in profile.ladder.entries if entry.quantity == "read_watts")
        assert entry.value is not None
        assert entry.relative_half_width is not None
        return entry.value, entry.relative_half_width

    unsaid, said = watts(told((25.0,))), watts(told((25.0,), active=14.0))
    assert said[1] < unsaid[1]
    assert said[0] == pytest.approx(14.0, rel=0.25)


def test_the_ladder_names_facts_and_their_sources() -> None:
    profile = expected("samsung-pm9a3-u2-e1s")
    assert profile.ladder is not None
    entry = next(
        entry
        for entry in profile.ladder.entries
        if entry.quantity == "read_sequential_bytes_per_second"
    )
    assert {fact.name for fact in entry.facts} >= {"sequential_read_throughput"}
    assert all(fact.source for fact in entry.facts)
    assert entry.rung == "datasheet"
    assert entry.prior_drives > 20


def test_a_profile_of_facts_survives_its_file(tmp_path: object) -> None:
    profile = expected("micron-7450")
    assert DeviceProfile.model_validate_json(profile.model_dump_json()) == profile


def test_a_stated_latency_holds_the_transfer_of_its_request() -> None:
    for device, transferred in (("intel-optane-dc-p4800x-375gb", 0.1), ("samsung-z-ssd", 0.05)):
        drive = load_catalogue().get(device)
        stated = drive.fact("measured_random_read_4k_qd1_latency_mean")
        assert stated is not None
        told = next(o for o in facts_of(drive).observations if o.kind == "measured_latency")
        share = np.exp(told.log_value) / (float(stated.value) * 1e9)
        assert 0.5 <= share < 1.0 - transferred
        assert told.fact.value == pytest.approx(float(stated.value) * 1e9)


def test_where_writes_draw_less_the_most_that_was_measured_is_of_reads() -> None:
    profile = expected("samsung-pm9a3")  # 13.5 W over all workloads, 8.19 W writing at full speed
    answer, _ = Predictor(profile).predict_columns(
        {
            "operation": ["read", "write"],
            "pattern": ["sequential"] * 2,
            "request_bytes": [262144] * 2,
            "queue_depth": [64] * 2,
        },
        2,
    )
    assert answer["device_power_watts"].value == pytest.approx([13.5, 8.19], rel=0.1)


def test_what_is_known_of_one_drive_alone_teaches_nothing_of_others() -> None:
    drives = {drive.device: drive for drive in catalogue_drives()}
    metrics = {
        observation.fact.name for drive in drives.values() for observation in drive.observations
    }
    assert not metrics & OWN_METRICS
    own = {
        observation.fact.name
        for observation in facts_of(load_catalogue().get("samsung-pm9a3")).observations
    }
    assert own & OWN_METRICS
