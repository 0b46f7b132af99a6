"""CPU activity: busy time, context switches, interrupts, frequency.

Source: proc(5) for /proc/stat, Documentation/admin-guide/pm/cpufreq.rst of Linux. A virtual machine
often has no cpufreq; the frequency is then left out.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from iojoule.measure.errors import SensorError
from iojoule.measure.sensors import Options
from iojoule.measure.sensors.polled import PolledSensor
from iojoule.measure.sensors.protocol import Kind, Probe, Rail, Scope

INTERVAL_SECONDS = 0.1
_SYSTEM, _IDLE, _IOWAIT, _IRQ, _SOFTIRQ, _FIELDS = 2, 3, 4, 5, 6, 8


class CoreSeconds(NamedTuple):
    """Time of all CPUs since the start of the system; two busy ones: two seconds a second.

    Attributes:
        busy: Not idle, nor waiting for I/O.
        kernel: Of that in system calls, kernel threads and interrupts.
    """

    busy: float
    kernel: float


def core_seconds(stat: Path) -> CoreSeconds:
    """Those of `proc/stat`.

    Raises:
        SensorError: It cannot be read, or is not what Linux writes there.
    """
    return _core_seconds(stat, _lines(stat))


def from_options(options: Options) -> Cpu:
    """`cpu[:ROOT][,every=SECONDS]`; ROOT holds `proc` and `sys`, by default `/`."""
    options.known("every")
    return Cpu(
        Path(options.address or "/"),
        interval_seconds=options.get("every", float) or INTERVAL_SECONDS,
    )


class Cpu(PolledSensor):
    """All CPUs of the machine; `root` holds `proc/stat` and `sys/devices/system/cpu`."""

    def __init__(
        self, root: Path = Path("/"), *, interval_seconds: float = INTERVAL_SECONDS
    ) -> None:
        super().__init__("cpu", interval_seconds, repeats_are_stale=False)
        self._stat = root / "proc" / "stat"
        cpus = root / "sys" / "devices" / "system" / "cpu"
        self._frequencies = sorted(cpus.glob("cpu[0-9]*/cpufreq/scaling_cur_freq"))

    def probe(self) -> Probe:
        """Reads everything once. Raises SensorError without /proc/stat."""
        self.poll()
        rails = [
            Rail("cpu-busy-seconds", "seconds", Kind.COUNTER, Scope.HOST, 1 / _ticks()),
            Rail("cpu-context-switches", "operations", Kind.COUNTER, Scope.HOST, 1.0),
            Rail("cpu-interrupts", "operations", Kind.COUNTER, Scope.HOST, 1.0),
        ]
        if self._frequencies:
            rails += [
                Rail("cpu-frequency-mean", "hertz", Kind.GAUGE, Scope.HOST, 1e3),
                Rail("cpu-frequency-max", "hertz", Kind.GAUGE, Scope.HOST, 1e3),
            ]
        return Probe(tuple(rails), 1 / self._interval, {"cpus": str(os.cpu_count())})

    def poll(self) -> list[float]:
        """Busy seconds of all CPUs (two busy ones: two a second), switches, interrupts, hertz."""
        lines = _lines(self._stat)
        busy = _core_seconds(self._stat, lines).busy
        try:
            values = [busy, float(lines["ctxt"]), float(lines["intr"].split()[0])]
        except (KeyError, IndexError, ValueError) as error:
            raise _unknown(self._stat, error) from error
        return values + self._hertz()

    def _hertz(self) -> list[float]:
        if not self._frequencies:
            return []
        hertz = []
        for path in self._frequencies:
            try:
                hertz.append(int(path.read_text(encoding="ascii")) * 1e3)
            except (OSError, ValueError):
                continue  # a CPU that went offline has no frequency
        return [sum(hertz) / len(hertz), max(hertz)] if hertz else [math.nan, math.nan]


def _lines(stat: Path) -> dict[str, str]:
    try:
        text = stat.read_text(encoding="ascii")
    except OSError as error:
        raise SensorError(f"{stat} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise _unknown(stat, error) from error
    return {key: rest for key, _, rest in (line.partition(" ") for line in text.splitlines())}


def _core_seconds(stat: Path, lines: Mapping[str, str]) -> CoreSeconds:
    try:
        times = [int(field) for field in lines["cpu"].split()[:_FIELDS]]
        # guest time, after the eighth, is part of user time
        busy = sum(times) - times[_IDLE] - times[_IOWAIT]
        kernel = times[_SYSTEM] + times[_IRQ] + times[_SOFTIRQ]
    except (KeyError, IndexError, ValueError) as error:
        raise _unknown(stat, error) from error
    return CoreSeconds(busy / _ticks(), kernel / _ticks())


def _unknown(stat: Path, error: Exception) -> SensorError:
    return SensorError(f"{stat} is not what Linux writes there ({error!r})")


def _ticks() -> int:
    return os.sysconf("SC_CLK_TCK")
