"""Trees like /sys and /proc with one NVMe drive, or one SATA disk, of a test's own making."""

from __future__ import annotations

from pathlib import Path


def write(path: Path, text: object) -> None:
    """A file with all folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def nvme_tree(root: Path, *, tolerance: int | str | None = 100000, substates: bool = True) -> Path:
    """A sysfs with the drive nvme0n1 behind nvme0 at 0000:01:00.0; returns its root."""
    sysfs = root / "sys"
    port = sysfs / "devices/pci0000:00/0000:00:01.0"
    pci = port / "0000:01:00.0"
    controller = pci / "nvme/nvme0"
    block = controller / "nvme0n1"
    for name, text in {
        "model": "Samsung SSD 980 1TB",
        "serial": "S649NX0R1",
        "transport": "pcie",
    }.items():
        write(controller / name, text)
    write(controller / "firmware_rev", "1B4QFXO7")
    if tolerance is not None:
        write(controller / "power/pm_qos_latency_tolerance_us", tolerance)
    power(pci, control="on", status="active", active=90_000, suspended=10_000)
    for name, text in {
        "vendor": "0x144d",
        "class": "0x010802",
        "power_state": "D0",
        "d3cold_allowed": 1,
    }.items():
        write(pci / name, text)
    for name, on in {
        "l1_aspm": 1,
        "l1_1_aspm": int(substates),
        "l1_2_aspm": int(substates),
    }.items():
        write(pci / "link" / name, on)
    write(
        sysfs / "module/pcie_aspm/parameters/policy",
        "[default] performance powersave powersupersave",
    )
    parameters = sysfs / "module/nvme_core/parameters"
    write(parameters / "default_ps_max_latency_us", 100000)
    write(parameters / "apst_primary_timeout_ms", 100)
    write(parameters / "force_apst", "N")
    write(block / "size", 1953525168)
    write(block / "dev", "259:0")
    write(block / "queue/rotational", 0)
    write(block / "queue/logical_block_size", 512)
    link(sysfs / "class/nvme/nvme0", controller)
    link(controller / "device", pci)
    link(block / "device", controller)
    link(sysfs / "class/block/nvme0n1", block)
    link(sysfs / "block/nvme0n1", block)
    for name in ("loop0", "dm-0"):
        write(sysfs / "devices/virtual/block" / name / "dev", "7:0")
        link(sysfs / "class/block" / name, sysfs / "devices/virtual/block" / name)
        link(sysfs / "block" / name, sysfs / "devices/virtual/block" / name)
    write(block / "nvme0n1p1/partition", 1)
    link(sysfs / "class/block/nvme0n1p1", block / "nvme0n1p1")
    return sysfs


def sata_tree(root: Path) -> Path:
    """A sysfs with the disk sda on port ata1; returns its root."""
    sysfs = root / "sys"
    pci = sysfs / "devices/pci0000:00/0000:00:17.0"
    write(pci / "vendor", "0x8086")
    write(pci / "class", "0x010601")
    power(pci, control="auto", status="suspended", active=1000, suspended=3000)
    host = pci / "ata1/host0"
    device = host / "target0:0:0/0:0:0:0"
    for name, text in {"model": "WDC WD40EFRX", "vendor": "ATA", "rev": "0A82"}.items():
        write(device / name, text)
    power(device, control="on", status="active", active=4000, suspended=0)
    write(device / "scsi_disk/0:0:0:0/manage_runtime_start_stop", 1)
    write(host / "scsi_host/host0/link_power_management_policy", "med_power_with_dipm")
    block = device / "block/sda"
    write(block / "queue/rotational", 1)
    write(block / "dev", "8:0")
    link(block / "device", device)
    link(sysfs / "class/block/sda", block)
    link(sysfs / "block/sda", block)
    link(sysfs / "class/scsi_host/host0", host / "scsi_host/host0")
    return sysfs


def power(folder: Path, *, control: str, status: str, active: int, suspended: int) -> None:
    """Runtime power management of a device; times in milliseconds."""
    write(folder / "power/control", control)
    write(folder / "power/runtime_status", status)
    write(folder / "power/runtime_active_time", active)
    write(folder / "power/runtime_suspended_time", suspended)


def link(path: Path, to: Path) -> None:
    """A symbolic link with all folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(to)


def diskstats(proc: Path, name: str, *, reads: int, writes: int = 0, in_flight: int = 0) -> None:
    """One line of 17 fields."""
    fields = [reads, 0, 8 * reads, 0, writes, 0, 8 * writes, 0, in_flight, 0, 0, *[0] * 6]
    write(proc / "diskstats", f" 259 0 {name} {' '.join(map(str, fields))}")


def process(
    proc: Path, pid: int, program: str, *, read: int = 0, written: int = 0, **more: Path
) -> None:
    """A process, with its cgroup, and with the files open that `opened` names."""
    folder = proc / str(pid)
    write(folder / "comm", program[:15])
    write(folder / "cmdline", f"/usr/sbin/{program}\0--now")
    write(folder / "cgroup", f"0::/system.slice/{program}.service")
    write(folder / "io", f"rchar: 1\nread_bytes: {read}\nwrite_bytes: {written}")
    (folder / "fd").mkdir(exist_ok=True)
    for number, path in enumerate(more.values()):
        link(folder / "fd" / str(number), path)
