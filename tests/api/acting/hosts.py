"""A host below a folder: an NVMe drive's queue and processors, as Linux shows them."""

from __future__ import annotations

from pathlib import Path

from iojoule.measure.campaign.rig import DriveFacts
from iojoule.measure.drive.block_device import BlockDevice

SERIAL = "S5GX 1"


def host(folder: Path, *, cpus: int = 2, serial: str = SERIAL) -> DriveFacts:
    """A drive nvme0n1 with mq-deadline, 32 requests a hardware queue of 64, two hardware queues."""
    drive = folder / "class" / "block" / "nvme0n1"
    write(drive / "queue", scheduler="none [mq-deadline]", nr_requests="32", io_poll="0")
    write(drive / "queue" / "iosched", read_expire="500")
    write(drive / "device", serial=serial, model="My drive")
    for number in range(2):
        write(drive / "mq" / str(number), nr_tags="64")
    for number in range(cpus):
        cpu = folder / "devices" / "system" / "cpu" / f"cpu{number}"
        write(
            cpu / "cpufreq", scaling_governor="performance", scaling_max_freq="4000000",
            scaling_available_governors="performance powersave",
        )  # fmt: skip
        for state in range(3):
            write(cpu / "cpuidle" / f"state{state}", disable="0", name=f"C{state}")
    device = BlockDevice(Path("/dev/nvme0n1"), "nvme0n1", "259:99", 10**12, 512, folder)
    return DriveFacts(device, None, None)


def write(folder: Path, **values: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in values.items():
        (folder / name).write_text(value + "\n")


def values(folder: Path) -> dict[str, str]:
    """Every file of the host and what is in it."""
    return {
        str(file.relative_to(folder)): file.read_text().strip()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }
