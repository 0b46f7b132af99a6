"""Which drives are refused: looked at through made-up /proc and /sys trees."""

import os
from pathlib import Path

import pytest

from iojoule.measure.drive.block_device import BlockDevice, open_block_device
from iojoule.measure.drive.safety import (
    Signature,
    require_consent,
    require_unused,
    signatures,
    uses,
)
from iojoule.measure.errors import DriveError, UnsafeDriveError

NUMBER = "259:0"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    folder = tmp_path / "proc"
    (folder / "self").mkdir(parents=True)
    (folder / "self" / "mountinfo").write_text("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
    (folder / "swaps").write_text("Filename Type Size Used Priority\n")
    return folder


@pytest.fixture
def drive(tmp_path: Path) -> BlockDevice:
    folder = tmp_path / "sys" / "class" / "block" / "nvme0n1"
    (folder / "nvme0n1p1" / "holders").mkdir(parents=True)
    (folder / "nvme0n1p1" / "partition").write_text("1")
    (folder / "nvme0n1p1" / "dev").write_text("259:1")
    (folder / "holders").mkdir()
    return BlockDevice(Path("/dev/nvme0n1"), "nvme0n1", NUMBER, 1 << 30, 512, tmp_path / "sys")


def test_an_unused_drive_may_be_used(drive: BlockDevice, proc: Path) -> None:
    assert uses(drive, proc=proc) == []
    require_unused(drive, proc=proc)


@pytest.mark.parametrize("number", [NUMBER, "259:1"])
def test_a_mounted_drive_or_partition_is_refused(
    drive: BlockDevice, proc: Path, number: str
) -> None:
    (proc / "self" / "mountinfo").write_text(
        f"30 1 {number} / /mnt/my\\040data rw shared:1 - ext4 /dev/nvme0n1p1 rw\n"
    )
    with pytest.raises(UnsafeDriveError, match="mounted on /mnt/my data"):
        require_unused(drive, proc=proc)


def test_a_mounted_namespace_beside_it_counts_where_the_whole_drive_is_changed(
    tmp_path: Path, proc: Path
) -> None:
    below = tmp_path / "sys" / "devices" / "nvme0"
    block = tmp_path / "sys" / "class" / "block"
    block.mkdir(parents=True)
    for name, number in (("nvme0n1", NUMBER), ("nvme0n2", "259:5")):
        (below / name).mkdir(parents=True)
        (below / name / "dev").write_text(number)
        (below / name / "device").symlink_to(below)
        (block / name).symlink_to(below / name)
    drive = BlockDevice(Path("/dev/nvme0n1"), "nvme0n1", NUMBER, 1 << 30, 512, tmp_path / "sys")
    assert [one.name for one in drive.namespaces()] == ["nvme0n1", "nvme0n2"]
    require_unused(drive, every_namespace=True, proc=proc)
    (proc / "self" / "mountinfo").write_text("30 1 259:5 / /mnt rw - ext4 /dev/nvme0n2 rw\n")
    require_unused(drive, proc=proc)
    with pytest.raises(UnsafeDriveError, match="nvme0n2"):
        require_unused(drive, every_namespace=True, proc=proc)


def test_swap_on_a_partition_is_refused(drive: BlockDevice, proc: Path) -> None:
    (proc / "swaps").write_text("Filename Type\n/dev/nvme0n1p1 partition 8 0 -2\n")
    with pytest.raises(UnsafeDriveError, match="nvme0n1p1 is swap"):
        require_unused(drive, proc=proc)


@pytest.mark.parametrize("place", ["holders", "nvme0n1p1/holders"])
def test_what_is_built_on_it_is_refused(drive: BlockDevice, proc: Path, place: str) -> None:
    (drive.folder / place / "dm-0").mkdir()
    with pytest.raises(UnsafeDriveError, match=r"dm-0 .*is built on it"):
        require_unused(drive, proc=proc)


def test_a_partition_is_refused_and_its_drive_named(tmp_path: Path) -> None:
    node = next((path for path in Path("/dev").glob("*") if path.is_block_device()), None)
    if node is None:
        pytest.skip("this machine has no block device node")
    status = node.stat()
    number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    whole = tmp_path / "devices" / "sdz" / "sdz2"
    whole.mkdir(parents=True)
    (whole / "partition").write_text("2")
    for folder, name in (("dev/block", number), ("class/block", "sdz2")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / name).symlink_to(whole)
    with pytest.raises(UnsafeDriveError, match="name /dev/sdz"):
        open_block_device(node, sysfs=tmp_path)


def test_files_and_absent_nodes_are_no_drives(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UnsafeDriveError, match="no device"):
        open_block_device(file)
    with pytest.raises(UnsafeDriveError, match="a character device"):
        open_block_device(Path("/dev/null"))
    with pytest.raises(DriveError, match="no such drive"):
        open_block_device(tmp_path / "absent")


class TestConsent:
    def test_nothing_is_overwritten_without_the_serial_number(self, drive: BlockDevice) -> None:
        with pytest.raises(UnsafeDriveError, match="--serial S123"):
            require_consent(drive, "S123", None, [])

    def test_another_serial_number_is_refused(self, drive: BlockDevice) -> None:
        with pytest.raises(UnsafeDriveError, match="is S123, not S124"):
            require_consent(drive, "S123", "S124", [])

    def test_a_signature_is_refused_until_it_is_named(
        self, drive: BlockDevice, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            "iojoule.measure.drive.safety.signatures", lambda _: [Signature("ext4", "/dev/x")]
        )
        with pytest.raises(UnsafeDriveError, match="--overwrite ext4"):
            require_consent(drive, "S123", "S123", [])
        require_consent(drive, "S123", " S123\n", ["ext4"])

    def test_wipefs_sees_a_file_system(self, tmp_path: Path, drive: BlockDevice) -> None:
        image = tmp_path / "image"
        # the magic number of swap at the end of the first page (linux/swap.h)
        content = bytearray(1 << 20)
        content[4086:4096] = b"SWAPSPACE2"
        content[1024:1028] = (1).to_bytes(4, "little")
        content[1028:1032] = (255).to_bytes(4, "little")
        image.write_bytes(content)
        there = BlockDevice(image, "absent", "0:0", 1 << 20, 512, tmp_path)
        assert [one.kind for one in signatures(there)] == ["swap"]
