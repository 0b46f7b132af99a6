"""A host whose power is known: trees of powercap, sysfs and proc.

    packages = idle + package awake + core s(f) busy + light (cores - busy)
Awake is the share of the time in which one of the loaded cores is busy.
Busy is the real CPU time of the processes that the test starts, within the last half second;
whoever else works on this machine is not on that host.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

UPDATE_SECONDS = 0.02
WINDOW_SECONDS = 0.5
RANGE_MICROJOULES = 262_143_328_850
REFERENCE_HERTZ, MINIMUM_HERTZ = 3.0e9, 1.0e9


@dataclass(frozen=True)
class Truth:
    """The law; the sleeping states are POLL, C1 and C6."""

    idle_watts: float = 20.0
    package_watts: float = 6.0
    core_watts: float = 9.0
    static_share: float = 0.25
    voltage_floor: float = 0.7
    light_watts: tuple[float, float, float] = (3.0, 1.2, 0.0)
    dram_watts: float = 4.0
    wall: tuple[float, float, float] = (25.0, 1.08, 4e-4)

    def busy_factor(self, hertz: float) -> float:
        """Power of a busy core against that at the reference."""
        ratio = hertz / REFERENCE_HERTZ
        climb = (hertz - MINIMUM_HERTZ) / (REFERENCE_HERTZ - MINIMUM_HERTZ)
        voltage = self.voltage_floor + (1.0 - self.voltage_floor) * climb
        return self.static_share * voltage + (1.0 - self.static_share) * ratio * voltage**2

    def cpu_watts(self, busy: float, hertz: float = REFERENCE_HERTZ, limit: int = 2) -> float:
        """Watts of the packages."""
        loaded = max(math.ceil(busy), 1)
        awake = 1.0 - max(1.0 - busy / loaded, 0.0) ** loaded
        sleeping = max((os.cpu_count() or 1) - busy, 0.0)
        return (
            self.idle_watts
            + self.package_watts * awake
            + self.core_watts * busy * self.busy_factor(hertz)
            + self.light_watts[limit] * sleeping
        )

    def wall_watts(self, parts: float) -> float:
        """Watts at the wall."""
        a, b, c = self.wall
        return a + b * parts + c * parts**2


class KnownHost:
    """Keeps the trees below a folder up to date; a context manager."""

    def __init__(self, folder: Path, truth: Truth | None = None, *, controls: bool = True) -> None:
        self.truth = truth or Truth()
        self.rapl = folder / "powercap"
        self.sysfs = folder / "sys"
        self.proc = folder / "proc"
        self.proc.mkdir(parents=True)
        self._tell(0.0)
        self._joules = {"package-0": 0.0, "dram": 0.0, "psys": 0.0}
        self._folders = {
            "package-0": self.rapl / "intel-rapl:0",
            "dram": self.rapl / "intel-rapl:0" / "intel-rapl:0:0",
            "psys": self.rapl / "intel-rapl:1",
        }
        for name, place in self._folders.items():
            place.mkdir(parents=True)
            (place / "name").write_text(f"{name}\n")
            (place / "max_energy_range_uj").write_text(f"{RANGE_MICROJOULES}\n")
            (place / "energy_uj").write_text("0\n")
        if controls:
            self._build_sysfs()
        self._hertz = REFERENCE_HERTZ
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True)

    def __enter__(self) -> KnownHost:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def hertz(self) -> float:
        """Where the trees hold the first CPU."""
        path = self.sysfs / "devices/system/cpu/cpu0/cpufreq/scaling_max_freq"
        with suppress(OSError, ValueError):  # written at this moment, or not there at all
            self._hertz = float(path.read_text()) * 1e3
        return self._hertz

    def limit(self) -> int:
        """The deepest sleep state that is not switched off."""
        folder = self.sysfs / "devices/system/cpu/cpu0/cpuidle"
        return max(
            (
                i
                for i in range(3)
                if (folder / f"state{i}/disable").exists()
                and (folder / f"state{i}/disable").read_text().strip() == "0"
            ),
            default=2,
        )

    def _build_sysfs(self) -> None:
        for cpu in range(os.cpu_count() or 1):
            root = self.sysfs / f"devices/system/cpu/cpu{cpu}"
            frequency = root / "cpufreq"
            frequency.mkdir(parents=True)
            for name, value in (
                ("cpuinfo_min_freq", MINIMUM_HERTZ / 1e3),
                ("cpuinfo_max_freq", REFERENCE_HERTZ / 1e3),
                ("scaling_max_freq", REFERENCE_HERTZ / 1e3),
            ):
                (frequency / name).write_text(f"{value:.0f}\n")
            (frequency / "scaling_governor").write_text("schedutil\n")
            (frequency / "scaling_available_governors").write_text("performance schedutil\n")
            (frequency / "scaling_driver").write_text("acpi-cpufreq\n")
            for place, (name, latency, residency) in enumerate(
                (("POLL", 0, 0), ("C1", 2, 2), ("C6", 133, 600))
            ):
                state = root / f"cpuidle/state{place}"
                state.mkdir(parents=True)
                (state / "name").write_text(f"{name}\n")
                (state / "latency").write_text(f"{latency}\n")
                (state / "residency").write_text(f"{residency}\n")
                (state / "disable").write_text("0\n")

    def _tell(self, busy: float) -> None:
        """Write what /proc/stat says of a host on which nobody else works."""
        ticks = int(busy * os.sysconf("SC_CLK_TCK"))
        partial = self.proc / "stat.part"
        partial.write_text(f"cpu  {ticks} 0 0 0 0 0 0 0 0 0\nintr 0\nctxt 0\n")
        partial.replace(self.proc / "stat")

    def _keep(self) -> None:
        work = _Work()
        seen = deque([(time.monotonic(), work.seconds())])
        while not self._ending.wait(UPDATE_SECONDS):
            now, busy = time.monotonic(), work.seconds()
            passed = now - seen[-1][0]
            seen.append((now, busy))
            while now - seen[0][0] > WINDOW_SECONDS and len(seen) > 2:
                seen.popleft()
            load = (busy - seen[0][1]) / (now - seen[0][0])
            self._tell(busy)
            cpu = self.truth.cpu_watts(load, self.hertz(), self.limit())
            wall = self.truth.wall_watts(cpu + self.truth.dram_watts)
            for name, watts in zip(self._joules, (cpu, self.truth.dram_watts, wall), strict=True):
                self._joules[name] += watts * passed
                counted = int(self._joules[name] * 1e6) % RANGE_MICROJOULES
                handle = os.open(self._folders[name] / "energy_uj", os.O_WRONLY)
                os.pwrite(handle, f"{counted}\n".ljust(20).encode(), 0)
                os.close(handle)


class _Work:
    """CPU time of this process's descendants, those that have ended included."""

    def __init__(self) -> None:
        self._spent: dict[int, float] = {}

    def seconds(self) -> float:
        """Since the beginning."""
        left = _children(os.getpid())
        while left:
            pid = left.pop()
            left += _children(pid)
            with suppress(OSError, ValueError, IndexError):
                spent = int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) * 1e-9
                self._spent[pid] = max(spent, self._spent.get(pid, 0.0))
        return sum(self._spent.values())


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, file.read_text().split())
    return found
