"""What was set for good and how it is taken back."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from iojoule.datasets.errors import InputError
from iojoule.measure.errors import CampaignError, HostStateError
from iojoule.measure.host.changes import SysfsValue
from iojoule.measure.host.journal import restore_abandoned
from iojoule.measure.host.undo_file import (
    Entry,
    UndoFile,
    entries_of,
    read_undo_file,
    take_back,
)


@pytest.fixture(autouse=True)
def journals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IOJOULE_JOURNALS", str(tmp_path / "journals"))
    return tmp_path / "journals"


@pytest.fixture
def queue(tmp_path: Path) -> Path:
    folder = tmp_path / "queue"
    (folder / "iosched").mkdir(parents=True)
    for name, value in {
        "scheduler": "none [mq-deadline]",
        "nr_requests": "64",
        "wbt_lat_usec": "2000",
        "iosched/read_expire": "77",
    }.items():
        (folder / name).write_text(value)
    return folder


def undo_of(*entries: Entry) -> UndoFile:
    return UndoFile("/dev/x", None, "S", entries)


def test_it_is_read_as_it_was_written(queue: Path, tmp_path: Path) -> None:
    scheduler, depth = (SysfsValue(str(queue / name)) for name in ("scheduler", "nr_requests"))
    undo = undo_of(*entries_of([(scheduler, "none"), (depth, "32")]))
    undo.write(tmp_path / "undo.json")
    assert read_undo_file(tmp_path / "undo.json") == undo


def test_what_a_scheduler_disturbs_is_put_back_behind_it(queue: Path) -> None:
    scheduler, depth = (SysfsValue(str(queue / name)) for name in ("scheduler", "nr_requests"))
    entries = entries_of([(scheduler, "none"), (depth, "32")])
    names = [Path(one.change.path).name for one in reversed(entries)]  # type: ignore[attr-defined]
    assert names == ["scheduler", "nr_requests", "wbt_lat_usec", "read_expire"]
    assert {name: one.after for name, one in zip(names, reversed(entries), strict=True)} == {
        "scheduler": "none",
        "nr_requests": "32",
        "wbt_lat_usec": None,
        "read_expire": None,
    }


def test_what_somebody_else_has_changed_is_not_overwritten_unasked(tmp_path: Path) -> None:
    files = [tmp_path / name for name in "ab"]
    for file in files:
        file.write_text("set")
    undo = undo_of(*(Entry(SysfsValue(str(file)), "before", "set") for file in files))
    files[0].write_text("mine")
    with pytest.raises(HostStateError, match="was set to set and is now mine"):
        take_back(undo, print)
    assert [file.read_text() for file in files] == ["mine", "set"]
    assert take_back(undo, print, force=True) == 2
    assert [file.read_text() for file in files] == ["before"] * 2


def test_what_is_gone_or_back_already_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("before")
    undo = undo_of(
        Entry(SysfsValue(str(file)), "before", "set"),
        Entry(SysfsValue(str(tmp_path / "absent")), "before", "set"),
    )
    assert take_back(undo, print) == 0


def test_one_failure_does_not_stop_the_others(tmp_path: Path) -> None:
    file, bad = tmp_path / "a", tmp_path / "b"
    file.write_text("set")
    bad.mkdir()
    undo = undo_of(*(Entry(SysfsValue(str(one)), "before", "set") for one in (file, bad)))
    with pytest.raises(HostStateError, match=f"by hand: `echo before > {bad}`"):
        take_back(undo, print)
    assert file.read_text() == "before"


KILLED = """
import os, signal, sys
from pathlib import Path
from iojoule.measure.host.changes import SysfsValue
from iojoule.measure.host.undo_file import Entry, UndoFile, take_back
from tests.settable import declare_all_below
folder = Path(sys.argv[1])
declare_all_below(folder)
entries = [Entry(SysfsValue(str(folder / name)), "before", "set") for name in "ab"]
take_back(UndoFile("x", None, "S", tuple(entries)), lambda _: os.kill(os.getpid(), signal.SIGKILL))
"""


def test_a_killed_undo_is_completed_by_the_next_start(tmp_path: Path, journals: Path) -> None:
    files = [tmp_path / name for name in "ab"]
    for file in files:
        file.write_text("set")
    root = str(Path(__file__).resolve().parents[3])
    subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        check=False,
        env={**os.environ, "PYTHONPATH": root},
    )
    assert [file.read_text() for file in files] == ["set", "before"]
    assert len(restore_abandoned()) == 1
    assert [file.read_text() for file in files] == ["before"] * 2
    assert list(journals.iterdir()) == []


def test_a_file_that_is_there_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "undo.json"
    undo_of().create(file)
    with pytest.raises(InputError):
        undo_of(Entry(SysfsValue("/sys/x"), "before", "set")).create(file)
    assert read_undo_file(file) == undo_of()


def test_what_is_no_undo_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "undo.json"
    with pytest.raises(CampaignError, match="no such file"):
        read_undo_file(file)
    for text in ("{", "[]", '{"format": "iojoule-restore", "schema_version": 1}'):
        file.write_text(text)
        with pytest.raises(CampaignError, match="no undo file"):
            read_undo_file(file)


def test_nothing_is_set_where_it_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(HostStateError, match="nothing is set"):
        undo_of().create(tmp_path / "absent" / "undo.json")
    others = tmp_path / "others"
    others.mkdir()
    others.chmod(0o777)
    with pytest.raises(CampaignError):
        undo_of().create(others / "undo.json")
    assert list(others.iterdir()) == []
