"""Only what this user alone can have written is obeyed, and only where a step could write."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from iojoule.measure.errors import CampaignError
from iojoule.measure.host.changes import Record, SysfsValue, TextFile, to_record
from iojoule.measure.host.journal import (
    journals_folder,
    read_trusted,
    restore_abandoned,
    write_trusted,
)
from iojoule.measure.host.undo_file import read_undo_file

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")


def test_what_was_written_for_oneself_is_read(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_trusted(tmp_path / "mine", "text")
    finally:
        os.umask(before)
    assert (tmp_path / "mine").stat().st_mode & 0o077 == 0
    assert read_trusted(tmp_path / "mine") == "text"


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_what_others_may_write_is_not_obeyed(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "shared"
    file.write_text("text")
    file.chmod(mode)
    with pytest.raises(CampaignError):
        read_trusted(file)


def test_a_link_a_pipe_and_a_folder_that_others_fill_are_not_obeyed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(CampaignError):
            read_trusted(tmp_path / name)
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    with pytest.raises(CampaignError):
        write_trusted(open_to_all / "mine", "text")
    (open_to_all / "mine").write_text("text")
    with pytest.raises(CampaignError):
        read_trusted(open_to_all / "mine")


@needs_root
def test_files_and_folders_of_somebody_else_are_not_obeyed(tmp_path: Path) -> None:
    write_trusted(tmp_path / "theirs", "text")
    os.chown(tmp_path / "theirs", 65534, 65534)
    with pytest.raises(CampaignError):
        read_trusted(tmp_path / "theirs")
    folder = tmp_path / "folder"
    folder.mkdir()
    write_trusted(folder / "mine", "text")
    os.chown(folder, 65534, 65534)
    with pytest.raises(CampaignError):
        read_trusted(folder / "mine")


@needs_root
def test_a_journal_that_somebody_else_put_there_changes_nothing(tmp_path: Path) -> None:
    target = tmp_path / "setting"
    target.write_text("as it was")
    content = {
        "format": "iojoule-restore",
        "schema_version": 1,
        "drive": "/dev/nvme0n1",
        "pid": 1,
        "pid_started": -1,
        "boot_id": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        "changes": [to_record(SysfsValue(str(target)), "theirs").model_dump()],
    }
    journal = tmp_path / "journals" / "restore-1-2.json"
    journal.parent.mkdir()
    journal.write_text(json.dumps(content))
    os.chown(journal, 65534, 65534)
    with pytest.raises(CampaignError):
        restore_abandoned(journal.parent)
    assert target.read_text() == "as it was"


@needs_root
def test_an_undo_file_of_somebody_else_is_not_obeyed(tmp_path: Path) -> None:
    file = tmp_path / "undo.json"
    file.write_text(json.dumps({"format": "iojoule-undo", "schema_version": 1, "changes": []}))
    os.chown(file, 65534, 65534)
    with pytest.raises(CampaignError):
        read_undo_file(file)


@pytest.mark.parametrize(
    "change",
    [
        SysfsValue("/etc/passwd"),
        SysfsValue("/proc/sys/kernel/core_pattern"),
        SysfsValue("/proc/sys/kernel/modprobe"),
        SysfsValue("/sys/kernel/uevent_helper"),
        SysfsValue("/sys/module/firmware_class/parameters/path"),
        SysfsValue("/sys/class/block/../../kernel/uevent_helper"),
        SysfsValue("/sys/class/block/nvme0n1/uevent"),
        TextFile("/etc/cron.d/x"),
        TextFile("/etc/tmpfiles.d/iojoule-x.conf/y"),
        SysfsValue("/sys/../etc/shadow"),
        SysfsValue("/proc/sys/../../root/.bashrc"),
        TextFile("/etc/cron.d/iojoule-x.conf"),
        TextFile("/etc/udev/rules.d/70-persistent.rules"),
        TextFile("/etc/tmpfiles.d/../cron.d/iojoule-x.conf"),
    ],
)
def test_what_no_step_sets_is_not_put_back(change: SysfsValue | TextFile) -> None:
    with pytest.raises(CampaignError):
        Record(kind=change.kind, target=asdict(change), before="x").change()
    with pytest.raises(CampaignError):
        to_record(change, "x")  # nor does a journal say so, without which nothing is set


def test_roots_journals_lie_apart_from_what_the_service_keeps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("IOJOULE_JOURNALS", raising=False)
    monkeypatch.setenv("IOJOULE_STATE", "/var/lib/iojoule")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert not journals_folder().is_relative_to("/var/lib/iojoule")
