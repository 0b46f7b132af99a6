"""A SATA drive through a stand-in `hdparm` that answers as the real one does."""

from pathlib import Path

import pytest

from iojoule.datasets.errors import InputError
from iojoule.measure.drive.hdparm import SataDrive, SpinState, timer_code
from iojoule.measure.errors import DriveError, HostStateError
from iojoule.measure.host.changes import PowerLevel, StandbyTimer, to_record
from tests.measure.sata import asked, fake_hdparm
from tests.stand_ins import SYSTEM, look_in


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    look_in(monkeypatch, tmp_path, *SYSTEM)
    return fake_hdparm(tmp_path)


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("active/idle", SpinState.ACTIVE),
        ("active/idle_b", SpinState.ACTIVE),
        ("standby", SpinState.STANDBY),
        ("standby_y", SpinState.STANDBY),
        ("sleeping", SpinState.SLEEPING),
        ("unknown", SpinState.UNKNOWN),
    ],
)
def test_the_state_is_read_and_nothing_else_is_asked(
    bench: Path, said: str, state: SpinState
) -> None:
    (bench / "state").write_text(said)
    assert SataDrive(bench / "sda").state() is state
    assert asked(bench) == ["-C"]


@pytest.mark.parametrize(
    ("seconds", "code"),
    [(0, 0), (5, 1), (60, 12), (600, 120), (1200, 240), (1800, 241), (3600, 242), (19800, 251)],
)
def test_the_codes_of_the_timer(seconds: float, code: int) -> None:
    assert timer_code(seconds) == code


@pytest.mark.parametrize("seconds", [1.0, 7.0, 1205.0, 2000.0, 21600.0])
def test_what_no_timer_has_is_refused(seconds: float) -> None:
    with pytest.raises(InputError) as caught:
        timer_code(seconds)
    assert caught.value.field == "standby_timer_seconds"


def test_a_timer_is_set_and_restored_as_off(bench: Path) -> None:
    change = StandbyTimer(str(bench / "sda"))
    record = to_record(change, change.get())
    change.set("600")
    assert (bench / "timer").read_text().strip() == "120"
    record.change().set(record.before)
    assert (bench / "timer").read_text().strip() == "0"
    assert set(asked(bench)) == {"-C", "-S"}  # nothing that wakes it
    assert change.command("600") == f"hdparm -S 120 {bench / 'sda'}"


def test_a_level_is_read_back(bench: Path) -> None:
    change = PowerLevel(str(bench / "sda"))
    assert change.get() == "254"
    change.set("127")
    assert change.get() == "127"
    change.set("255")
    assert change.get() == "255"


def test_a_drive_without_levels_says_so(bench: Path) -> None:
    (bench / "apm").write_text("not supported")
    with pytest.raises(DriveError, match="apm_level"):
        PowerLevel(str(bench / "sda")).get()


def test_a_level_that_the_drive_ignores_is_an_error(bench: Path) -> None:
    program = (bench / "hdparm").read_text().replace('echo "$2" >"$here/apm"', "true")
    (bench / "hdparm").write_text(program)
    with pytest.raises(DriveError):
        PowerLevel(str(bench / "sda")).set("1")


def test_without_hdparm_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_in(monkeypatch, tmp_path)
    with pytest.raises(HostStateError, match="apt-get install hdparm"):
        SataDrive(tmp_path / "sda").state()


def test_a_missing_permission_and_another_failure_are_told_apart(bench: Path) -> None:
    (bench / "hdparm").write_text("#!/bin/sh\necho 'Permission denied' >&2; exit 13\n")
    with pytest.raises(HostStateError, match="root"):
        SataDrive(bench / "sda").state()
    (bench / "hdparm").write_text("#!/bin/sh\necho 'Inappropriate ioctl' >&2; exit 25\n")
    with pytest.raises(DriveError, match="Inappropriate"):
        SataDrive(bench / "sda").state()
