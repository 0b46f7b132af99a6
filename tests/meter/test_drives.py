from pathlib import Path

import pytest

from iojoule.meter.drives import GUEST, HIDDEN_PATH, REMOTE, STACKED, VIRTUAL, find_drives
from tests.meter.hosts import Host


def test_only_physical_drives_count_and_each_once(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.nvme("nvme0n1", "S1")
    host.disk("dm-0", below="", slaves__nvme0n1="")
    host.disk("md0", below="")
    host.disk("loop0", below="")
    host.disk("zram0", below="")
    host.disk("vda", below="virtio0")
    host.disk("nvme1n1", below="fabrics/nvme1", device__transport="tcp", device__serial="S2")
    host.disk("nvme0c0n1", below="pci/nvme9", hidden="1")
    host.disk("sdb", below="host3/session1/target3:0:0", device__model="LUN")
    found = find_drives(host.sysfs)
    assert [drive.name for drive in found.drives] == ["nvme0n1"]
    assert found.left_out == {
        "dm-0": STACKED, "md0": STACKED, "loop0": VIRTUAL, "zram0": VIRTUAL, "vda": GUEST,
        "nvme1n1": REMOTE, "nvme0c0n1": HIDDEN_PATH, "sdb": REMOTE,
    }  # fmt: skip


def test_namespaces_of_one_drive_are_one_drive(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.nvme("nvme0n1", "S1")
    host.nvme("nvme0n2", "S1", queue__iostats="0")
    host.nvme("nvme10n1", "S3")
    host.nvme("nvme2n1", "S2")
    drives = find_drives(host.sysfs).drives
    assert [drive.devices for drive in drives] == [
        ("nvme0n1", "nvme0n2"),
        ("nvme2n1",),
        ("nvme10n1",),
    ]
    assert drives[0].reasons == ("iostats_off",)
    assert drives[0].capacity_bytes == 2 * 2000409264 * 512


def test_what_is_known_of_a_drive(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.nvme(
        "nvme0n1",
        "S1",
        wwid="eui.0025",
        device__firmware_rev="5B2QGXA7",
        device__power__pm_qos_latency_tolerance_us="100000",
        device__device__current_link_speed="16.0 GT/s PCIe",
        device__device__current_link_width="4",
    )
    sata = host.disk("sda", below="pci/ata1/host0/target0", queue__rotational="1")
    (sata / "device" / "vpd_pg80").write_bytes(b"\0\x80\0\x08  WD-1234"[:12])
    nvme, disk = find_drives(host.sysfs).drives
    assert (nvme.key, nvme.serial, nvme.wwid) == ("S1", "S1", "eui.0025")
    assert (nvme.transport, nvme.firmware, nvme.sleeps_by_itself) == ("nvme", "5B2QGXA7", True)
    assert (nvme.link.generation, nvme.link.lanes) == (4, 4)
    assert (disk.transport, disk.rotates, disk.serial) == ("sata", True, "WD-123")


def test_a_named_device_counts_whatever_it_is(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.disk("loop0", below="")
    assert [drive.name for drive in find_drives(host.sysfs, {"loop0"}).drives] == ["loop0"]
    assert not find_drives(tmp_path / "nowhere").drives


def test_what_a_network_or_a_hypervisor_provides_is_left_out(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.disk("sda", below="pci/virtio2/host0/target0:0:0/0:0:0:0")
    host.disk("sdb", below="pci/host7/rport-7:0-1/target7:0:0/7:0:0:0")
    host.disk("sdc", below="LNXSYSTM:00/VMBUS:01/host1/target1:0:0/1:0:0:0")
    host.disk("sdd", below="pci/ata1/host2/target2:0:0/2:0:0:0", device__model="QEMU HARDDISK")
    host.nvme("nvme0n1", "vol1", device__model="Amazon Elastic Block Store")
    host.disk("pmem0", below="ndbus0/region0/namespace0.0")
    found = find_drives(host.sysfs)
    assert found.drives == ()
    assert found.left_out == {
        "sda": GUEST, "sdb": REMOTE, "sdc": GUEST, "sdd": GUEST, "nvme0n1": GUEST, "pmem0": VIRTUAL,
    }  # fmt: skip


@pytest.mark.parametrize("serial", [{"device__serial": "0x1"}, {}])
def test_the_areas_of_an_emmc_are_one_drive(tmp_path: Path, serial: dict[str, str]) -> None:
    host = Host(tmp_path)
    host.disk("mmcblk0", below="mmc0/mmc0:0001", device__model="x", **serial)
    for area in ("boot0", "boot1", "gp0"):
        host.disk(f"mmcblk0{area}", below="mmc0/mmc0:0001/mmcblk0")
    (drive,) = find_drives(host.sysfs).drives
    assert drive.devices == ("mmcblk0", "mmcblk0boot0", "mmcblk0boot1", "mmcblk0gp0")
    assert (drive.name, drive.model) == ("mmcblk0", "x")


def test_one_serial_number_of_two_drives_makes_them_not_one(tmp_path: Path) -> None:
    host = Host(tmp_path)
    for name, port, more in (
        ("sda", "usb1/host1/target1:0:0/1:0:0:0", {"device__model": "A"}),  # two units
        ("sdb", "usb1/host1/target1:0:0/1:0:0:1", {"device__model": "B"}),
        ("sdc", "usb2/host2/target2:0:0/2:0:0:0", {"device__model": "A"}),
        ("sdd", "end_device-1:0/target3:0:0/3:0:0:0", {"wwid": "naa.5"}),  # two paths
        ("sde", "end_device-2:0/target4:0:0/4:0:0:0", {"wwid": "naa.5"}),
        ("sdf", "end_device-3:0/target5:0:0/5:0:0:0", {"wwid": "naa.6"}),
    ):
        host.disk(name, below=port, device__serial="S", **more)
    host.nvme("nvme0n1", "S")
    host.nvme("nvme1n1", "S", device__model="another")
    drives = find_drives(host.sysfs).drives
    assert [drive.devices for drive in drives] == [
        ("nvme0n1",), ("nvme1n1",), ("sda", "sdb"), ("sdc",), ("sdd", "sde"), ("sdf",),
    ]  # fmt: skip
    assert len({drive.key for drive in drives}) == len(drives)
    assert {drive.serial for drive in drives} == {"S"}
