"""What sysfs says of a drive, in made-up trees laid out as Linux lays out the true ones."""

from pathlib import Path

import pytest

from iojoule.measure.drive.block_device import BlockDevice, Link
from tests.measure.sata import sata


def device(sysfs: Path, name: str) -> BlockDevice:
    return BlockDevice(Path("/dev") / name, name, "259:0", 1 << 30, 512, sysfs)


def controller(sysfs: Path, name: str) -> Path:
    """A controller on a PCIe link of generation 4 with 4 lanes."""
    folder = sysfs / "devices" / "nvme" / name
    (folder / "device").mkdir(parents=True)
    (folder / "transport").write_text("pcie\n")
    (folder / "device" / "current_link_speed").write_text("16.0 GT/s PCIe\n")
    (folder / "device" / "current_link_width").write_text("4\n")
    (folder / "device" / "numa_node").write_text("1\n")
    return folder


def namespace(sysfs: Path, folder: Path, below: Path, *, written: int) -> None:
    (folder / "queue").mkdir(parents=True)
    (folder / "queue" / "scheduler").write_text("[none] mq-deadline\n")
    (folder / "stat").write_text(f"1 0 8 0 2 0 {written} 0 0 0 0\n")
    (folder / "device").symlink_to(below)
    (sysfs / "class" / "block").mkdir(parents=True, exist_ok=True)
    (sysfs / "class" / "block" / folder.name).symlink_to(folder)


@pytest.fixture
def shared(tmp_path: Path) -> BlockDevice:
    """A drive that may have several controllers (CMIC): nvme2n1 of subsystem 2, controller 5."""
    below = controller(tmp_path, "nvme5")
    subsystem = tmp_path / "devices" / "nvme-subsystem" / "nvme-subsys2"
    subsystem.mkdir(parents=True)
    (subsystem / "nvme5").symlink_to(below)
    namespace(tmp_path, below / "nvme2c5n1", below, written=800)
    namespace(tmp_path, subsystem / "nvme2n1", subsystem, written=0)
    (subsystem / "nvme2n1" / "queue" / "scheduler").write_text("none\n")
    return device(tmp_path, "nvme2n1")


@pytest.fixture
def single(tmp_path: Path) -> BlockDevice:
    below = controller(tmp_path, "nvme0")
    namespace(tmp_path, below / "nvme0n1", below, written=600)
    return device(tmp_path, "nvme0n1")


def test_a_drive_of_one_controller_carries_its_requests_itself(single: BlockDevice) -> None:
    assert single.carrier == "nvme0n1"
    assert single.controller_node() == Path("/dev/nvme0")
    assert single.sectors_written() == 600
    assert (single.link(), single.numa_node()) == (Link(4, 4), 1)


def test_the_requests_of_a_shared_drive_are_counted_and_scheduled_below_it(
    shared: BlockDevice,
) -> None:
    assert shared.carrier == "nvme2c5n1"
    assert shared.sectors_written() == 800
    assert shared.queue_attribute("scheduler") == "[none] mq-deadline"


def test_the_controller_of_a_shared_drive_has_its_own_number_and_link(shared: BlockDevice) -> None:
    assert shared.controller_node() == Path("/dev/nvme5")
    assert (shared.link(), shared.numa_node()) == (Link(4, 4), 1)


def test_of_several_paths_none_stands_for_the_drive(shared: BlockDevice) -> None:
    other = controller(shared.sysfs, "nvme6")
    (shared.folder / "device" / "nvme6").symlink_to(other)
    namespace(shared.sysfs, other / "nvme2c6n1", other, written=100)
    assert shared.carrier == "nvme2n1"


def test_poll_queues_are_those_that_the_driver_was_told_to_make(single: BlockDevice) -> None:
    assert single.poll_queues() is None
    parameter = single.sysfs / "module" / "nvme" / "parameters" / "poll_queues"
    parameter.parent.mkdir(parents=True)
    parameter.write_text("2\n")
    single.queue("io_poll").write_text("0\n")  # the parameter was written after the driver began
    assert single.poll_queues() == 0
    single.queue("io_poll").write_text("1\n")
    assert single.poll_queues() == 2


def test_what_is_no_nvme_drive_has_no_controller(tmp_path: Path) -> None:
    there = device(tmp_path, "loop0")
    assert (there.carrier, there.controller_node()) == ("loop0", None)
    assert (there.link(), there.numa_node()) == (Link(None, None), None)


def test_a_sata_drive_is_known_by_its_serial_number(tmp_path: Path) -> None:
    drive = sata(tmp_path, Path("/dev/sda"))
    assert drive.serial == "/dev/sda"
    page = b"\0\x80\0\x08  WD-123"
    (drive.device.folder / "device" / "vpd_pg80").write_bytes(page)
    assert drive.serial == "WD-123"
