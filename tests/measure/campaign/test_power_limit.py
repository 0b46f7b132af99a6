"""The drive's power limit in a campaign: the real nvme command against the lab's controller."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from iojoule.datasets.schema import Configuration, Workload
from iojoule.measure.campaign import settings
from iojoule.measure.campaign.drive_bench import DriveBench
from iojoule.measure.campaign.folder import CampaignState
from iojoule.measure.campaign.plan import Settle
from iojoule.measure.campaign.rig import DriveFacts
from iojoule.measure.campaign.run_record import RunObservation
from iojoule.measure.drive.nvme import NvmeController
from iojoule.measure.drive.power_measurement import (
    NO_LIMIT,
    POWER_LIMIT,
    limit_watts,
    power_word,
)
from iojoule.measure.errors import DriveError
from iojoule.measure.host.journal import HostState, restore_abandoned
from iojoule.measure.lab import drives, system
from iojoule.measure.lab.controller import Controller, ControllerSocket
from iojoule.measure.lab.nvme_bytes import Identity
from iojoule.measure.point import Point
from iojoule.measure.recording.recorder import Recorder
from tests.api.acting.hosts import host
from tests.measure.fakes import FakeSensor, constant
from tests.measure.lab.conftest import need


class Disk:
    """In the power state that the controller told it."""

    def __init__(self) -> None:
        self.state = 0

    def ask(self, name: str, *words: Any) -> dict[str, Any]:
        if name == "state":
            (self.state,) = words
        return {}

    def status(self) -> dict[str, Any]:
        return {"power_state": self.state}


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def controller(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[NvmeController]:
    need("nvme")
    if not (system.BUILT / system.PRELOAD).exists():
        pytest.skip(f"{system.PRELOAD} was not built")
    drive = drives.find(drives.DEFAULT).device.physical
    identity = Identity("LAB42", "iojoule lab NVMe", "LAB1.0", 576 << 20, 128 << 10)
    served = Controller(drive.power, disk, identity)  # type: ignore[arg-type]
    listening = ControllerSocket(tmp_path / "controller.sock", served)
    node = tmp_path / "nvme0"
    node.touch()
    monkeypatch.setenv("LD_PRELOAD", str(system.BUILT / system.PRELOAD))
    monkeypatch.setenv("IOJOULE_LAB_NODES", f"{node}:{tmp_path / 'none'}:{tmp_path / 'none'}")
    monkeypatch.setenv("IOJOULE_LAB_CONTROLLER", str(tmp_path / "controller.sock"))
    monkeypatch.setattr(settings, "wake", lambda device: None)
    yield NvmeController(node)
    listening.close()


def point(state: int | None, limit: float | None) -> Point:
    chosen = Configuration(request_bytes=4096, power_state=state, power_limit_watts=limit)
    return Point(Workload(operation="read"), chosen)


def bench_of(
    controller: NvmeController, points: list[Point], state: HostState, drive: DriveFacts
) -> Any:
    made = object.__new__(DriveBench)
    settle = Settle(baseline_seconds=0.2, window_seconds=0.05, after_writes_seconds_max=0.1)
    made.__dict__ |= {
        "_plan": SimpleNamespace(
            settle=settle, host=SimpleNamespace(queue={}, files={}, apm_level=None,
            volatile_write_cache=None), precondition=SimpleNamespace(until_steady=True),
        ),
        "_points": points, "_of_runs": {}, "_throughout": {},
        "_recorder": lambda folder: Recorder([FakeSensor(constant(1.1))], folder),
        "_preconditioner": SimpleNamespace(fill=lambda *_: None, steady=lambda *_: None),
        "_rig": SimpleNamespace(
            drive=drive, controller=controller, state=state,
            say=lambda _: None,
        ),
    }  # fmt: skip
    return made


@pytest.mark.parametrize("theirs", [NO_LIMIT, power_word(4.5)])
def test_each_run_has_its_own_and_the_first_is_put_back(
    controller: NvmeController, disk: Disk, tmp_path: Path, theirs: int
) -> None:
    controller.set_feature(POWER_LIMIT, theirs)
    before = disk.state
    held = {(0, 0.0): 0, (None, 3.5): 2, (2, 3.5): 2, (1, 0.0): 1}
    points = [point(*power) for power in held]
    drive, state = host(tmp_path / "sys"), CampaignState()
    with HostState("drive", tmp_path / "journals") as changes:
        bench = bench_of(controller, points, changes, drive)
        bench.prepare(state, lambda _: None)
        assert set(state.idle) == {"0", "1", "2 at most 3.5 W"}
        for run, present in zip(points, held.values(), strict=True):
            bench.before(SimpleNamespace(point=run), state, lambda _: None)
            assert limit_watts(controller.feature(POWER_LIMIT)) is None
            bench._set_up(run)
            limit = limit_watts(controller.feature(POWER_LIMIT))
            assert limit == pytest.approx(run.configuration.power_limit_watts or None)
            assert disk.state == present
    assert (controller.feature(POWER_LIMIT), disk.state) == (theirs, before)
    assert not list((tmp_path / "journals").iterdir())


def test_a_run_without_a_power_state_follows_one_with_a_state_below_its_limit(
    controller: NvmeController, disk: Disk, tmp_path: Path
) -> None:
    points = [point(2, 3.5), point(None, 3.5)]
    with HostState("drive", tmp_path / "journals") as changes:
        bench = bench_of(controller, points, changes, host(tmp_path / "sys"))
        bench.prepare(CampaignState(), lambda _: None)
        for run in points:
            bench._set_up(run)
            assert limit_watts(controller.feature(POWER_LIMIT)) == pytest.approx(3.5)
            assert disk.state == 2


KILLED = """
import os, sys
from pathlib import Path
from iojoule.measure.campaign import settings
from iojoule.measure.drive.nvme import NvmeController
from iojoule.measure.host.journal import HostState
controller, state = NvmeController(Path(sys.argv[1])), HostState("drive", Path(sys.argv[2]))
state.remember(settings.power_state(controller))
state.remember(settings.power_limit(controller))
for change, value in settings.of_power(2, 3.5, controller):
    state.set(change, value)
os.kill(os.getpid(), 9)
"""


def test_what_a_killed_campaign_limited_is_lifted_before_the_state_is_set(
    controller: NvmeController, disk: Disk, tmp_path: Path
) -> None:
    journals = tmp_path / "journals"
    subprocess.run(
        [sys.executable, "-c", KILLED, str(controller.node), str(journals)],
        check=False,
        env=dict(os.environ),
    )
    assert (limit_watts(controller.feature(POWER_LIMIT)), disk.state) == (3.5, 2)
    assert len(restore_abandoned(journals)) >= 1
    assert (controller.feature(POWER_LIMIT), disk.state) == (NO_LIMIT, 0)


def test_a_limit_that_somebody_changed_fails_the_run(
    controller: NvmeController, tmp_path: Path
) -> None:
    with HostState("drive", tmp_path / "journals") as changes:
        rig = SimpleNamespace(controller=controller, state=changes)
        watched = object.__new__(RunObservation)
        watched.rig = rig  # type: ignore[assignment]
        for change, value in settings.of_power(None, 3.5, controller):
            changes.set(change, value)
        watched._require_limit(controller, 3.5)
        controller.set_feature(POWER_LIMIT, power_word(4.5))
        with pytest.raises(DriveError):
            watched._require_limit(controller, 3.5)


def test_a_drive_that_somebody_limits_is_refused(
    controller: NvmeController, tmp_path: Path
) -> None:
    drive = replace(host(tmp_path / "sys"), controller=controller.identify())
    settings.require_no_limit(drive, controller)
    controller.set_feature(POWER_LIMIT, power_word(4.5))
    with pytest.raises(DriveError, match="set-feature"):
        settings.require_no_limit(drive, controller)
