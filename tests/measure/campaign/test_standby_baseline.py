"""Standby power of a disk, measured beside its idle power."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from iojoule.datasets.schema import Configuration, Workload
from iojoule.datasets.vocabulary import Operation
from iojoule.measure.campaign.drive_bench import STANDBY, DriveBench
from iojoule.measure.campaign.folder import CampaignState
from iojoule.measure.campaign.plan import Settle
from iojoule.measure.point import Point
from tests.measure.fakes import FakeSensor, constant
from tests.measure.sata import asked, fake_hdparm, sata
from tests.stand_ins import SYSTEM, look_in


def bench(folder: Path, timer: float | None, said: list[str], *, rotates: bool = True) -> Any:
    """A bench of a plan that sweeps a standby timer, or none."""
    found = object.__new__(DriveBench)
    point = Point(
        Workload(operation=Operation.READ),
        Configuration(request_bytes=4096, standby_timer_seconds=timer),
    )
    settle = Settle(baseline_seconds=0.3, window_seconds=0.05, after_writes_seconds_max=0.1)
    drive = sata(folder / "sys", fake_hdparm(folder) / "sda", rotates=rotates)
    found.__dict__ |= {
        "_plan": SimpleNamespace(settle=settle),
        "_points": [point],
        "_rig": SimpleNamespace(drive=drive, sensors=[FakeSensor(constant(1.1))], say=said.append),
    }
    return found


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look_in(monkeypatch, tmp_path, *SYSTEM)
    monkeypatch.setattr("iojoule.measure.campaign.settings.wake", lambda device: None)


def test_a_disk_is_stopped_for_it(tmp_path: Path) -> None:
    state, said = CampaignState(), []
    bench(tmp_path, 300.0, said)._standby_baseline(state)
    assert [one.mean_watts for one in state.idle[STANDBY]] == pytest.approx([1.1])
    assert asked(tmp_path) == ["-y", "-C"]


def test_a_disk_that_somebody_woke_is_not_stored(tmp_path: Path) -> None:
    state, said = CampaignState(), []
    one = bench(tmp_path, 300.0, said)
    program = (tmp_path / "hdparm").read_text()
    (tmp_path / "hdparm").write_text(program.replace('echo standby >"$here/state"', "true"))
    one._standby_baseline(state)
    assert state.idle == {}
    assert len(said) == 2


@pytest.mark.parametrize(("timer", "rotates"), [(None, True), (0.0, True), (300.0, False)])
def test_nothing_is_stopped_where_nobody_asked(
    tmp_path: Path, timer: float | None, rotates: bool
) -> None:
    state = CampaignState()
    bench(tmp_path, timer, [], rotates=rotates)._standby_baseline(state)
    assert state.idle == {}
    assert asked(tmp_path) == []
