"""Every command tells the same of one configuration, whatever is asked together."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest

from iojoule.api.application.predictors import Predictors
from iojoule.api.application.profiles import profile_of
from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.errors import InputError, IojouleError
from iojoule.datasets.profile import DeviceProfile, shipped_profiles
from iojoule.datasets.schema import Conditions
from iojoule.model.evaluate.device_state import DeviceState
from iojoule.model.evaluate.frame import make_frame
from iojoule.model.evaluate.timeline import Phase, follow
from iojoule.model.evaluate.validity import under
from iojoule.recommender.fleet.modes import DriveModel
from iojoule.recommender.fleet.plan import Part
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import Scope, parse_workload
from iojoule.recommender.response import Row
from iojoule.recommender.what_if.compare import Answerer
from iojoule.recommender.what_if.situation import Situation

DRAWS = 8
"""Questions to each drive."""

SIZES = (512, 4096, 12288, 65536, 1 << 20)
QUANTITIES = ("iops", "latency_mean_ns", "latency_p99_ns", "device_power_watts", "cpu_power_watts")


def draw(profile: DeviceProfile, source: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """A workload without demand and a configuration."""
    kind = source.choice(profile.surfaces)
    size = source.choice(SIZES)
    work = {
        "operation": kind.operation.value,
        "pattern": kind.pattern.value,
        "useful_request_bytes": size,
        "request_bytes_coalescible": 2 * size,
    }
    settings = {
        "request_bytes": size * source.choice([1, 2]),
        "queue_depth": source.choice([1, 2, 8, 64]),
        "jobs": source.choice([1, 3, 8]),
        "engine": source.choice(["libaio", "io_uring"]),
        "power_state": 0,
    }
    return work, settings


def equal(row: Row, other: Row, where: object) -> None:
    for name in QUANTITIES:
        one, two = getattr(row, name), getattr(other, name)
        assert (one is None) == (two is None), (name, where)
        if one is not None and one.value != "unbounded":
            assert one.value == pytest.approx(two.value, rel=1e-7), (name, where)


def agree(profile: DeviceProfile, source: random.Random) -> None:
    recommender = Recommender(under(profile, Conditions()))
    work, settings = draw(profile, source)
    asked: dict[str, Any] = {"workload": work, "current": settings, "free": {}, "scope": "device"}
    asked["state"] = {"device_state": "fresh"} if work["operation"] == "write" else {}
    full = recommender.today(parse_workload(asked)).capacity_bytes_per_second.value
    rate = full * 10.0 ** source.uniform(-7.0, -0.1)
    if source.random() < 0.5:
        work |= {"demand_bytes_per_second": rate}
    else:
        work |= {"demand_operations_per_second": rate / work["useful_request_bytes"]}
    work |= {"arrival_process": "steady"}
    question = parse_workload(asked)
    where = (profile.device, asked)
    row = recommender.today(question)

    columns = {name: [value] for name, value in {**work, **settings, **asked["state"]}.items()}
    found, _ = Predictors(profile).predict_columns(columns, {}, 1)
    for name in QUANTITIES:
        if (one := getattr(row, name)) is not None and one.value != "unbounded":
            assert found[name].value[0] == pytest.approx(one.value, rel=1e-7), (name, where)

    equal(row, recommender.recommend(question).current or row, where)
    side = Answerer(Situation(profile, question), profile_of).ask({"drives": 1}).changed
    equal(row, side.answer.current or row, where)
    if profile.device_power is None:
        return

    model = DriveModel(under(profile, Conditions()), 0.5, Scope.DEVICE)
    assert row.device_power_watts is not None
    watts = row.device_power_watts.value
    try:
        (mode,) = model.modes(question, Part.ALL, None, rate)
        drawn = mode.gap_watts_expected + mode.joules_per_byte_expected * rate
        assert drawn == pytest.approx(watts, rel=1e-7), where
    except IojouleError:
        assert not row.meets_sla or row.busy_share > 0.5, where

    alone = settings["request_bytes"] == work["useful_request_bytes"]  # a time line merges none
    if work["operation"] == "write" and profile.write_state is not None and alone:
        writes = {**settings, "operation": "write", "pattern": work["pattern"]}
        joules, _ = DeviceState(profile).joules_per_byte(make_frame(profile, writes, 1)[0])
        story = follow(recommender.predictor, writes, [Phase(1e-3, True, rate)], step_seconds=1e-3)
        later = float(joules[0]) * rate
        assert story.watts[0] + later == pytest.approx(watts, rel=1e-3), where


def check(device: str, seed: int) -> None:
    profile, source = profile_of(device), random.Random(f"{device} {seed}")
    answered = 0
    for _ in range(DRAWS):
        with suppress(InputError):  # what the drive's link or sizes do not allow
            agree(profile, source)
            answered += 1
    assert answered


@pytest.mark.parametrize("device", sorted(shipped_profiles()))
def test_commands_agree_on_measured_drives(device: str) -> None:
    check(device, 0)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("device", sorted(drive.id for drive in load_catalogue()))
def test_commands_agree_on_every_drive(device: str, seed: int) -> None:
    try:
        check(device, seed)
    except IojouleError as error:
        pytest.skip(error.message)
