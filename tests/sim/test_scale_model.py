"""A scale model of a drive answers for the drive: sooner, and otherwise alike."""

from __future__ import annotations

import pytest

from iojoule.api.application import replay
from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines import Limits
from iojoule.sim.formats.files import read_drive
from iojoule.sim.presets import drive_path
from iojoule.sim.scale_model import PAGES_MIN, scale_model

DAY_REQUESTS = 600_000
FEWER = {"channels": 2, "chips_per_channel": 2, "blocks_per_plane": 120}
CACHE = {"static_blocks_per_plane": 4, "dynamic_blocks_per_plane": 30}


def preset(name: str) -> DeviceConfig:
    return read_drive(drive_path(name)).device


@pytest.fixture(scope="module")
def drive() -> DeviceConfig:
    """Small enough that a day of some hundred thousand requests rewrites it."""
    small = preset("samsung-980-pro-1tb").model_copy(update=FEWER)
    slc = small.physical.slc.model_copy(update=CACHE)
    return small.model_copy(update={"physical": small.physical.model_copy(update={"slc": slc})})


def day(device: DeviceConfig, scale: float | None, seed: int = 5) -> replay.Replay:
    return replay.replay_day(
        device,
        requests=DAY_REQUESTS,
        volumes=200,
        seed=seed,
        scale=scale,
        interval_seconds=3600,
        limits=Limits(),
    )


@pytest.mark.parametrize("wanted", [1.0, 0.5])
def test_at_a_scale_of_one_it_is_the_drive_itself(drive: DeviceConfig, wanted: float) -> None:
    assert scale_model(drive, wanted) == (drive, 1.0)


@pytest.mark.parametrize("wanted", [2, 7.5, 16, 1e6])
@pytest.mark.parametrize("name", ["samsung-980-pro-1tb", "intel-670p-512gb", "samsung-980-1tb"])
def test_only_what_takes_long_is_scaled(name: str, wanted: float) -> None:
    device = preset(name)
    model, scale = scale_model(device, wanted)
    assert scale <= wanted * 1.05
    assert model.pages_per_block >= PAGES_MIN
    assert model.pages_per_block % 3 == 0
    assert model.capacity_bytes * scale == pytest.approx(device.capacity_bytes)
    assert model.block_erase_ns * scale == pytest.approx(device.block_erase_ns, rel=1e-5)
    assert model.cmt_bytes * scale == pytest.approx(device.cmt_bytes, rel=1e-5)
    unchanged = set(DeviceConfig.model_fields) - {
        "pages_per_block", "block_erase_ns", "cmt_bytes", "physical",
    }  # fmt: skip
    assert all(getattr(model, each) == getattr(device, each) for each in unchanged)
    assert model.physical.slc.page_program_ns == device.physical.slc.page_program_ns


def test_a_block_erased_more_often_costs_less_each_time(drive: DeviceConfig) -> None:
    energy = drive.physical.energy.model_copy(update={"block_erase_joules": 3e-4})
    physical = drive.physical.model_copy(update={"energy": energy, "warmup_ns": 16_000})
    model, scale = scale_model(drive.model_copy(update={"physical": physical}), 16)
    assert scale == 16
    assert model.physical.energy.block_erase_joules == pytest.approx(3e-4 / 16)
    assert model.physical.energy.slc_block_erase_joules is None
    assert model.physical.warmup_ns == 1000


def test_a_day_on_the_model_is_the_day_on_the_drive(drive: DeviceConfig) -> None:
    whole, model = day(drive, 1), day(drive, 4)
    assert model.scale == 4
    assert whole.result.write_amplification > 1.1  # garbage collection is at work
    assert model.result.write_amplification == pytest.approx(
        whole.result.write_amplification, rel=0.03
    )
    assert sum(model.joules.values()) == pytest.approx(sum(whole.joules.values()), rel=0.01)
    assert model.seconds == pytest.approx(whole.seconds, rel=0.01)
    assert model.requests == pytest.approx(whole.requests, rel=0.06)
    for told, expected in (
        (model.result.read_latency, whole.result.read_latency),
        (model.result.write_latency, whole.result.write_latency),
    ):
        assert told.mean_ns == pytest.approx(expected.mean_ns, rel=0.06)
        # half of the writes have 4 KiB, so that their median falls on either side of a step
        assert told.p50_ns == pytest.approx(expected.p50_ns, rel=0.12)
        assert told.p99_ns == pytest.approx(expected.p99_ns, rel=0.1)


def test_the_time_line_is_that_of_the_whole_day(drive: DeviceConfig) -> None:
    model = day(drive, 4)
    hours = model.intervals[:24]
    assert [one.start_seconds for one in hours] == pytest.approx([3600 * n for n in range(24)])
    assert all(one.seconds == pytest.approx(3600) for one in hours[:23])
    assert sum(one.requests for one in model.intervals) == pytest.approx(model.requests, abs=60)
    joules = sum(one.watts * one.seconds for one in model.intervals)
    assert joules == pytest.approx(sum(model.joules.values()), rel=1e-6)
    assert max(hours, key=lambda one: one.requests).start_seconds in range(10 * 3600, 19 * 3600)


def test_a_long_day_is_scaled_by_itself_and_says_so(
    drive: DeviceConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert day(drive, None).scale == 1
    monkeypatch.setattr(replay, "REQUESTS_WHOLE", DAY_REQUESTS // 8)
    scaled = day(drive, None)
    assert scaled.scale == 8
    assert scaled.document()["scale"] == 8
    assert len(scaled.notes) == len(day(drive, 1).notes) + 1
    assert scaled.result.requests < DAY_REQUESTS / 6
