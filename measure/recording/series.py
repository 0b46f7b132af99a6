"""The recorded samples of one sensor, read back a window at a time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from iojoule.measure.errors import SensorError
from iojoule.measure.recording.spool import FLAGS, TIME, About, read_about
from iojoule.measure.sensors.protocol import Flag, Kind, Rail, Scope


@dataclass(frozen=True)
class Window:
    """Samples of some rails within a window.

    Attributes:
        times_ns: int64, shape (n,).
        values: float64, shape (n, rails).
        flags: uint8, shape (n,).
    """

    times_ns: NDArray[np.int64]
    values: NDArray[np.float64]
    flags: NDArray[np.uint8]


class Series:
    """One file.

    Raises:
        SensorError: It cannot be read, or is no series of iojoule.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with pq.ParquetFile(path) as file:
                self.about: About = read_about(file, path)
                self._groups = _group_times(file)
        except (OSError, pa.ArrowException) as error:
            raise SensorError(f"{path} cannot be read: {error}") from error

    @property
    def rails(self) -> tuple[Rail, ...]:
        """Its rails."""
        return self.about.probe.rails

    def counted(self, scope: Scope) -> tuple[Rail, ...]:
        """The rails that together are the power of a scope: no parent beside its child."""
        rails = [rail for rail in self.rails if rail.scope is scope and rail.counts]
        energy = tuple(rail for rail in rails if rail.kind is Kind.ENERGY)
        return energy or tuple(rail for rail in rails if rail.kind is Kind.POWER)

    def window(
        self, begin_ns: int, end_ns: int, rails: tuple[Rail, ...], *, around: bool = False
    ) -> Window:
        """Samples with begin <= time < end; with `around` also one before and one after."""
        chosen = [
            number
            for number, (first, last) in enumerate(self._groups)
            if around or (last >= begin_ns and first < end_ns)
        ]
        names = [rail.name for rail in rails]
        with pq.ParquetFile(self.path) as file:
            table = file.read_row_groups(chosen, columns=[TIME, FLAGS, *names])
        times = table[TIME].to_numpy()
        low, high = np.searchsorted(times, (begin_ns, end_ns)).tolist()
        if around:
            low, high = max(low - 1, 0), high + 1
        table = table.slice(low, high - low)
        columns = [table[name].to_numpy().astype(np.float64) for name in names]
        return Window(
            times_ns=times[low:high],
            values=np.column_stack(columns) if columns else np.empty((len(table), 0)),
            flags=table[FLAGS].to_numpy(),
        )

    def markers_ns(self) -> NDArray[np.int64]:
        """When the sensor saw a marker."""
        with pq.ParquetFile(self.path) as file:
            table = file.read(columns=[TIME, FLAGS])
        marked = (table[FLAGS].to_numpy() & Flag.MARKER) != 0
        times: NDArray[np.int64] = table[TIME].to_numpy()[marked]
        return times


def _group_times(file: pq.ParquetFile) -> list[tuple[int, int]]:
    """First and last time of each row group."""
    metadata = file.metadata
    times: list[tuple[int, int]] = []
    for number in range(metadata.num_row_groups):
        statistics = metadata.row_group(number).column(0).statistics
        # Parquet has them for every column of integers that our writer makes
        limits: tuple[Any, Any] = (0, 0) if statistics is None else (statistics.min, statistics.max)
        times.append(limits)
    return times
