from pathlib import Path

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
