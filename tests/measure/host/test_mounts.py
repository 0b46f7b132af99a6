"""Options of a mount, on a file system in a file."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from iojoule.measure.errors import HostStateError
from iojoule.measure.host import changes
from iojoule.measure.host.changes import Mount, MountOption, mounts, to_record
from iojoule.measure.host.journal import HostState

LINE = "42 30 259:1 / /srv/a\\040b rw,nosuid,noatime shared:1 - ext4 /dev/nvme0n1p1 rw,discard\n"


def test_a_line_of_the_kernel_is_read(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "mountinfo").write_text(LINE + LINE.replace("259:1", "8:0"))
    assert mounts({"259:1"}, proc=tmp_path) == [
        Mount(
            "259:1",
            "/srv/a b",
            ("rw", "nosuid", "noatime"),
            "ext4",
            "/dev/nvme0n1p1",
            ("rw", "discard"),
        )
    ]


def test_a_mount_point_of_any_name_is_read(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    line = LINE.replace("a\\040b", "données\u00a0\u2028\\134")
    (tmp_path / "self" / "mountinfo").write_bytes(line.encode() + b"1 1 0:1 / /\xff rw - x y rw\n")
    [found] = mounts({"259:1"}, proc=tmp_path)
    assert found.point == "/srv/données\u00a0\u2028\\"
    assert found.source == "/dev/nvme0n1p1"


def test_a_remount_that_hangs_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(*_: object, **__: object) -> None:
        raise subprocess.TimeoutExpired("mount", 20)

    mount = Mount("259:1", "/srv", ("rw",), "ext4", "/dev/nvme0n1p1", ())
    monkeypatch.setattr(changes, "mounts", lambda _: [mount])
    monkeypatch.setattr(subprocess, "run", hang)
    with pytest.raises(HostStateError):
        MountOption("/srv", "259:1", "discard").set("discard")


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A small ext4 with nosuid, and the number of its device."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    if os.getuid() != 0 or shutil.which("mkfs.ext4", path=path) is None:
        pytest.skip("mounting needs root and mkfs.ext4")
    image, point = tmp_path / "image", tmp_path / "mounted"
    point.mkdir()
    with image.open("wb") as stream:
        stream.truncate(16 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True, env={**os.environ, "PATH": path})
    done = subprocess.run(["mount", "-o", "loop,nosuid", image, point], check=False)
    if done.returncode != 0:
        pytest.skip("this machine mounts no file in a loop device")
    try:
        number = point.stat().st_dev
        yield point, f"{os.major(number)}:{os.minor(number)}"
    finally:
        subprocess.run(["umount", point], check=True)


def test_a_choice_is_changed_in_use_and_nothing_else_is(
    mounted: tuple[Path, str], tmp_path: Path
) -> None:
    point, number = mounted
    [before] = mounts({number})
    access = MountOption(str(point), number, "access times")
    discard = MountOption(str(point), number, "discard")
    assert (access.get(), discard.get()) == ("relatime", "nodiscard")
    with HostState("drive", tmp_path / "journals") as state:
        state.set(access, "noatime")
        state.set(discard, "discard")
        [now] = mounts({number})
        assert {"nosuid", "noatime"} <= set(now.options)
        assert "discard" in now.file_system_options
    assert mounts({number}) == [before]


def test_what_a_file_system_does_not_know_is_an_error(mounted: tuple[Path, str]) -> None:
    point, number = mounted
    with pytest.raises(HostStateError, match="cannot be remounted"):
        MountOption(str(point), number, "discard").set("nonsense")


def test_what_is_not_mounted_holds_no_option() -> None:
    gone = MountOption("/nowhere", "0:0", "discard")
    assert not gone.is_there()
    assert to_record(gone, "discard").change() == gone
    with pytest.raises(HostStateError, match="not mounted"):
        gone.get()
