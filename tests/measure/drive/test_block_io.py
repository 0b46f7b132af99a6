"""The kernel's counters of a drive."""

from __future__ import annotations

from pathlib import Path

import pytest

from iojoule.measure.drive.block_io import (
    Counters,
    Disk,
    counters,
    find_disk,
    unwritten_bytes,
)
from iojoule.measure.errors import DriveError, UnsafeDriveError

BEFORE = "100 5 8000 40 200 10 16000 90 0 1000 130 7 0 560 3 11 2"
AFTER = "150 6 8400 45 260 13 17000 95 0 1500 140 9 0 576 4 31 5"


def disk_with(tmp_path: Path, text: str) -> Disk:
    (tmp_path / "stat").write_text(text + "\n")
    return Disk(Path("/dev/none"), tmp_path)


def test_differences_are_commands_and_bytes(tmp_path: Path) -> None:
    before = counters(disk_with(tmp_path, BEFORE))
    come = counters(disk_with(tmp_path, AFTER)).since(before)
    assert (come.reads, come.read_bytes, come.reads_merged) == (50, 400 * 512, 1)
    assert (come.writes, come.write_bytes, come.writes_merged) == (60, 1000 * 512, 3)
    assert (come.flushes, come.discards, come.discard_bytes) == (20, 2, 16 * 512)
    # a request to flush counts as a write, whether it brings data or not
    assert come.device_commands_low == 50 + 60 + 2
    assert come.device_commands_high == 50 + 60 + 20 + 2
    assert come.busy_seconds == 0.5


@pytest.mark.parametrize(("fields", "discards", "flushes"), [(11, None, None), (15, 2, None)])
def test_older_kernels_do_not_count_everything(
    fields: int, discards: int | None, flushes: int | None
) -> None:
    def first(text: str) -> Counters:
        return Counters(tuple(int(one) for one in text.split()[:fields]))

    come = first(AFTER).since(first(BEFORE))
    assert (come.discards, come.flushes) == (discards, flushes)
    assert come.device_commands_low == 110 + (discards or 0)
    assert come.device_commands_high is None


def test_a_drive_that_is_gone_has_no_counters(tmp_path: Path) -> None:
    with pytest.raises(DriveError, match="/dev/none"):
        counters(Disk(Path("/dev/none"), tmp_path))


def test_only_drives_are_drives(tmp_path: Path) -> None:
    with pytest.raises(DriveError, match="lsblk"):
        find_disk(tmp_path / "nothing")
    with pytest.raises(UnsafeDriveError, match="no block device"):
        find_disk(tmp_path)


def test_what_the_page_cache_holds(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nDirty:   12 kB\nWriteback:  4 kB\n")
    assert unwritten_bytes(tmp_path) == 16 * 1024
    assert unwritten_bytes(tmp_path / "nothing") is None
