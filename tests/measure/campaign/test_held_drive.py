"""What comes onto a drive before it is held is found once it is, and nothing is written over it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from iojoule.datasets import programs
from iojoule.measure.campaign import session
from iojoule.measure.campaign.folder import CampaignFolder, CampaignOptions
from iojoule.measure.campaign.plan import parse_plan
from iojoule.measure.campaign.rig import DriveFacts
from iojoule.measure.campaign.runs import Abilities, Cost, expand
from iojoule.measure.campaign.session import OpenedDrive, run_campaign
from iojoule.measure.characterise import session as characterising
from iojoule.measure.characterise.experiment import ScaleName, extent_of
from iojoule.measure.characterise.experiments import EXPERIMENTS
from iojoule.measure.characterise.folder import CharacteriseFolder
from iojoule.measure.characterise.session import fills_first, plan_steps
from iojoule.measure.drive.block_device import BlockDevice
from iojoule.measure.drive.safety import held
from iojoule.measure.errors import CampaignError, UnsafeDriveError
from iojoule.measure.fio import Fio
from iojoule.measure.host import guard

PLAN = """
schema_version = 1
name = "overwrites"
[[sweep]]
name = "s"
operation = "write"
request_bytes = 4096
"""
BYTES = 1 << 26

Hold = Callable[[BlockDevice], AbstractContextManager[None]]


@dataclass
class Bench:
    """Two files in place of a drive's namespaces; every test is of the same two commands.

    Attributes:
        drive: What is written to.
        other: What a format would erase with it.
        begun: What began to work on the drive.
    """

    folder: Path
    drive: BlockDevice
    other: BlockDevice
    begun: list[str] = field(default_factory=list)

    def campaign(self, plan: str = PLAN) -> None:
        run_campaign(
            CampaignFolder(self.folder / "campaign"),
            plan,
            CampaignOptions(drive=str(self.drive.path), serial=str(self.drive.path)),
            typed_serial=str(self.drive.path),
            say=str,
            observer=None,
            conduct=self._begin,
        )  # type: ignore[arg-type]

    def characterise(self) -> None:
        facts = DriveFacts(self.drive, None, None)
        extent = extent_of(ScaleName.QUICK, BYTES)
        steps = plan_steps(EXPERIMENTS, extent, facts, has_power=False)
        considered = characterising.PlannedExperiments(
            facts, None, extent, steps, fills_first(steps)
        )
        asked = characterising.CharacteriseRequest([], [], str(self.drive.path), "")
        folder = CharacteriseFolder(self.folder / "characterise")
        characterising.characterise(considered, folder, asked, str)

    def _begin(self, *_: Any) -> Any:
        self.begun.append("campaign")


def formatted(device: BlockDevice) -> None:
    """Somebody makes it swap: the magic number at the end of the first page (linux/swap.h)."""
    content = bytearray(device.path.read_bytes())
    content[4086:4096] = b"SWAPSPACE2"
    content[1024:1032] = b"\x01\0\0\0\xff\0\0\0"
    device.path.write_bytes(content)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    if programs.optional_program("wipefs") is None:
        pytest.skip("wipefs is not installed: apt-get install util-linux")
    devices = []
    for name in ("drive0n1", "drive0n2"):
        image = tmp_path / name
        with image.open("wb") as file:
            file.truncate(BYTES)
        (tmp_path / "sys/class/block" / name).mkdir(parents=True)
        devices.append(BlockDevice(image, name, "0:0", BYTES, 512, tmp_path / "sys"))
    made = Bench(tmp_path, *devices)
    plan = parse_plan(PLAN, "plan")
    runs = expand(plan, Abilities())
    opened = OpenedDrive(plan, DriveFacts(made.drive, None, None), None, runs, Cost(*[0] * 8))  # type: ignore[arg-type]
    monkeypatch.setenv("IOJOULE_JOURNALS", str(tmp_path / "journals"))
    monkeypatch.setattr(session, "open_drive", lambda *_: opened)
    for module in (session, characterising):
        monkeypatch.setattr(module, "find_fio", lambda: Fio("/nowhere/fio", (3, 33)))
        monkeypatch.setattr(module, "open_sensors", lambda *_: [])
    monkeypatch.setattr(characterising._Session, "run", lambda _: made.begun.append("characterise"))
    monkeypatch.setattr(characterising, "write_results", lambda *_: None)
    monkeypatch.setattr(characterising, "_refuse_failures", lambda *_: None)
    return made


@pytest.fixture
def too_late(monkeypatch: pytest.MonkeyPatch) -> Callable[[BlockDevice], None]:
    """Lets somebody put something on a device in the moment before it is held."""

    def put(spoilt: BlockDevice) -> None:
        @contextmanager
        def hold(device: BlockDevice) -> Iterator[None]:
            if device == spoilt:
                formatted(device)
            with held(device):
                yield

        monkeypatch.setattr(guard, "held", hold)
        monkeypatch.setattr(session, "held", hold)

    return put


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_root_loads_no_plugin_that_somebody_else_may_write(bench: Bench) -> None:
    plugin = bench.folder / "plugin.so"
    plugin.touch(mode=0o644)
    plan = f'{PLAN}[host]\nspdk_plugin = "{plugin}"\n'
    os.chown(plugin, 65534, 65534)
    with pytest.raises(CampaignError, match="belongs to user 65534"):
        bench.campaign(plan)
    assert bench.begun == []
    os.chown(plugin, 0, 0)
    bench.campaign(plan)
    assert bench.begun == ["campaign"]


COMMANDS = {"campaign": Bench.campaign, "characterise": Bench.characterise}


@pytest.mark.parametrize("command", COMMANDS)
def test_an_empty_drive_is_worked_on(bench: Bench, command: str) -> None:
    COMMANDS[command](bench)
    assert bench.begun == [command]


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_there_at_first_is_refused_before_it_is_held(
    bench: Bench, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    formatted(bench.drive)
    monkeypatch.setattr(guard, "held", None)
    with pytest.raises(UnsafeDriveError, match="swap"):
        COMMANDS[command](bench)
    assert bench.begun == []


@pytest.mark.parametrize("command", COMMANDS)
def test_what_came_before_it_was_held_is_found_and_left_alone(
    bench: Bench, too_late: Callable[[BlockDevice], None], command: str
) -> None:
    too_late(bench.drive)
    with pytest.raises(UnsafeDriveError, match="--overwrite swap"):
        COMMANDS[command](bench)
    assert bench.begun == []
    found = bench.drive.path.read_bytes()
    formatted(bench.drive)
    assert bench.drive.path.read_bytes() == found
    assert found.count(0) > BYTES - 20


def test_also_on_a_namespace_that_a_format_erases(
    bench: Bench, too_late: Callable[[BlockDevice], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_erased_besides", lambda _: [bench.other])
    bench.campaign()
    assert bench.begun == ["campaign"]
    too_late(bench.other)
    bench.folder = bench.folder / "again"
    with pytest.raises(UnsafeDriveError, match=str(bench.other.path)):
        bench.campaign()
    assert bench.begun == ["campaign"]
