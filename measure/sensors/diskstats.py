"""Block layer counters of a drive: commands, merges, bytes, requests in flight."""

from __future__ import annotations

from pathlib import Path

from iojoule.measure.drive.block_device import SECTOR_BYTES, Stat
from iojoule.measure.errors import SensorError
from iojoule.measure.sensors import Options
from iojoule.measure.sensors.polled import PolledSensor
from iojoule.measure.sensors.protocol import Kind, Probe, Rail, Scope

ROOT = Path("/sys/block")
INTERVAL_SECONDS = 0.1

_FIELDS: tuple[tuple[str, Stat, float, str], ...] = (
    ("disk-reads", Stat.READS, 1.0, "operations"),
    ("disk-reads-merged", Stat.READS_MERGED, 1.0, "operations"),
    ("disk-read-bytes", Stat.READ_SECTORS, SECTOR_BYTES, "bytes"),
    ("disk-writes", Stat.WRITES, 1.0, "operations"),
    ("disk-writes-merged", Stat.WRITES_MERGED, 1.0, "operations"),
    ("disk-write-bytes", Stat.WRITE_SECTORS, SECTOR_BYTES, "bytes"),
    ("disk-in-flight", Stat.IN_FLIGHT, 1.0, "operations"),
    ("disk-busy-seconds", Stat.BUSY_MS, 1e-3, "seconds"),
)
"""Rail, counter, factor, unit."""
_GAUGES = ("disk-in-flight",)

MOVED_BYTES = ("disk-read-bytes", "disk-write-bytes")
"""The rails of all bytes that went through the drive."""


def from_options(options: Options) -> Diskstats:
    """`diskstats:nvme0n1[,root=/sys/block][,every=SECONDS]`."""
    options.known("root", "every")
    return Diskstats(
        options.needed_address("diskstats:nvme0n1"),
        root=options.get("root", Path) or ROOT,
        interval_seconds=options.get("every", float) or INTERVAL_SECONDS,
    )


class Diskstats(PolledSensor):
    """One whole disk, by name or node."""

    def __init__(
        self, disk: str, *, root: Path = ROOT, interval_seconds: float = INTERVAL_SECONDS
    ) -> None:
        super().__init__(f"diskstats:{disk}", interval_seconds, repeats_are_stale=False)
        self._file = root / Path(disk).name / "stat"

    def probe(self) -> Probe:
        """Reads the counters once. Raises SensorError if the disk does not exist."""
        self.poll()
        rails = tuple(
            Rail(name, unit, Kind.GAUGE if name in _GAUGES else Kind.COUNTER, Scope.HOST, factor)
            for name, _, factor, unit in _FIELDS
        )
        return Probe(rails, 1 / self._interval, {})

    def poll(self) -> list[float]:
        """The counters since boot."""
        try:
            fields = self._file.read_text(encoding="ascii").split()
            return [int(fields[place]) * factor for _, place, factor, _ in _FIELDS]
        except FileNotFoundError as error:
            raise SensorError(
                f"{self._file} is not there: name a whole disk such as nvme0n1 (`lsblk -d`)"
            ) from error
        except OSError as error:
            raise SensorError(f"{self._file} cannot be read: {error.strerror}") from error
        except (ValueError, IndexError) as error:
            raise SensorError(f"{self._file} is not a disk's statistics ({error})") from error
