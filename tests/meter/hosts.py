"""Hosts of a test's own making: procfs and sysfs as folders of files."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from iojoule.datasets.catalogue import PowerState
from iojoule.meter.counters import BlockCounters, Snapshot


class Host:
    """Block devices with their counters.

    Args:
        root: An empty folder.
    """

    def __init__(self, root: Path) -> None:
        self.proc, self.sysfs = root / "proc", root / "sys"
        for folder in (self.proc, self.sysfs / "block", self.sysfs / "devices"):
            folder.mkdir(parents=True)
        (self.sysfs / "class").mkdir()
        (self.sysfs / "class" / "block").symlink_to(self.sysfs / "block")
        self.counters: dict[str, list[int]] = {}
        self.write()

    def disk(self, name: str, *, below: str = "pci/nvme", **attributes: str) -> Path:
        """A block device; `below` is its place among the devices, empty for one without a drive.

        Attributes are files below its folder, `__` for a slash: `device__serial="S1"`.
        """
        place = self.sysfs / "devices" / (below or "virtual/block") / name
        place.mkdir(parents=True)
        (self.sysfs / "block" / name).symlink_to(place)
        if below:
            device = self.sysfs / "devices" / below
            (place / "device").symlink_to(device)
        for file, text in {"size": "2000409264", "queue__iostats": "1", **attributes}.items():
            path = place / file.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
        self.counters[name] = [0] * 17
        self.write()
        return place

    def nvme(self, name: str, serial: str, **attributes: str) -> Path:
        """An NVMe drive behind PCIe, with a controller of its own."""
        usual = {
            "device__serial": serial + "   ",
            "device__model": "Samsung SSD 980 PRO 1TB",
            "device__transport": "pcie",
            "queue__rotational": "0",
        }
        below = f"pci/{name.rpartition('n')[0]}"
        return self.disk(name, below=below, **{**usual, **attributes})

    def remove(self, name: str) -> None:
        """Pull it out."""
        (self.sysfs / "block" / name).unlink()
        del self.counters[name]
        self.write()

    def swap(self, name: str, serial: str, **attributes: str) -> None:
        """Pull it out and put another one in its place, before anybody looks."""
        self.remove(name)
        shutil.rmtree(self.sysfs / "devices" / "pci" / name.rpartition("n")[0])
        self.nvme(name, serial, **attributes)

    def did(
        self, name: str, *, reads: int = 0, writes: int = 0, size: int = 4096, ms: int = 0
    ) -> None:
        """Let requests of one size complete."""
        values = self.counters[name]
        for place, count in ((0, reads), (4, writes)):
            values[place] += count
            values[place + 2] += count * size // 512
        values[3] = (values[3] + ms) % (1 << 32)
        self.write()

    def write(self) -> None:
        """Show the counters."""
        lines = (
            f" 259 {number:7} {name} {' '.join(map(str, values))}\n"
            for number, (name, values) in enumerate(self.counters.items())
        )
        (self.proc / "diskstats").write_text("".join(lines))


class Clock:
    """Snapshots of a host, one second apart."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.counters = BlockCounters(host.proc, host.sysfs)
        self.monotonic, self.boot = 100.0, 100.0

    def look(self, seconds: float = 1.0, suspended: float = 0.0) -> Snapshot:
        self.monotonic += seconds
        self.boot += seconds + suspended
        return replace(
            self.counters.read(), monotonic_seconds=self.monotonic, boot_seconds=self.boot
        )


def declared_state(
    index: int,
    operational: bool,
    max_watts: float,
    entry_us: int | None,
    exit_us: int | None,
    idle_watts: float | None,
) -> PowerState:
    """A power state as a drive declares it."""
    return PowerState(
        index=index,
        operational=operational,
        max_power_watts=max_watts,
        entry_latency_us=entry_us,
        exit_latency_us=exit_us,
        idle_power_watts=idle_watts,
        source="made up",
    )
