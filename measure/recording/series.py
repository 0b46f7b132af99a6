"""Samples of one sensor as a Parquet file: written while they come, read window by window.

Columns: `monotonic_ns`, `flags` (see `protocol.Flag`), then one per rail with unit, kind and scope
in its metadata. The file gets its name only when it is complete.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from iojoule.measure.errors import SensorError
from iojoule.measure.host.host_files import boot_id
from iojoule.measure.sensors.protocol import Chunk, Delivery, Kind, Probe, Rail, Scope

FORMAT = "iojoule-series"
SCHEMA_VERSION = 1
GROUP_ROWS = 1 << 18
TIME, FLAGS = "monotonic_ns", "flags"
_KEY = b"iojoule"


@dataclass(frozen=True)
class About:
    """Metadata of a file; `clock` has `monotonic_ns`, `unix_ns` and `boot_id` of one time."""

    sensor: str
    probe: Probe
    delivery: Delivery
    failure: str | None
    clock: dict[str, Any]


class Spool:
    """A growing file in an existing folder; `number` makes its name unique.

    Raises SensorError if the file cannot be created, or a rail has an impossible name.
    """

    def __init__(self, folder: Path, number: int, sensor: str, probe: Probe) -> None:
        slug = re.sub(r"[^a-z0-9]+", "-", sensor.lower()).strip("-")[:80]
        self.path = folder / f"{number:02d}-{slug}.parquet"
        self._partial = self.path.with_name(f".{self.path.name}.part")
        self._sensor, self._probe = sensor, probe
        self._clock = _clock()
        self._schema = _schema(sensor, probe.rails)
        self._waiting: list[Chunk] = []
        self._rows = 0
        try:
            self._file = self._partial.open("wb")
        except OSError as error:
            raise self._failed(error) from error
        # near-regular times shrink to about a byte each
        self._writer = pq.ParquetWriter(
            self._file,
            self._schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=False,
            column_encoding={TIME: "DELTA_BINARY_PACKED"},
        )

    def add(self, chunk: Chunk) -> None:
        """Append samples. Raises SensorError if they cannot be written; the file is removed."""
        self._waiting.append(chunk)
        self._rows += len(chunk)
        if self._rows >= GROUP_ROWS:
            self._flush()

    def finish(self, delivery: Delivery, failure: str | None) -> About:
        """Write the rest and name the file.

        Raises SensorError if that fails; the file is removed.
        """
        about = About(self._sensor, self._probe, delivery, failure, self._clock)
        self._flush()
        try:
            self._writer.add_key_value_metadata({_KEY.decode(): _to_json(about)})
            self._writer.close()
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._partial.replace(self.path)
        except OSError as error:
            self.discard()
            raise self._failed(error) from error
        return about

    def discard(self) -> None:
        """Leave nothing behind."""
        for close in (self._writer.close, self._file.close):
            # a full disk complains once more; the file goes anyway
            with contextlib.suppress(OSError):
                close()
        self._partial.unlink(missing_ok=True)

    def _flush(self) -> None:
        if not self._rows:
            return
        waiting, self._waiting, self._rows = self._waiting, [], 0
        columns: list[Any] = [
            np.concatenate([chunk.monotonic_ns for chunk in waiting]),
            np.concatenate([chunk.flags for chunk in waiting]),
        ]
        values = np.concatenate([chunk.values for chunk in waiting])
        columns += [
            values[:, place].astype(field.type.to_pandas_dtype())
            for place, field in enumerate(list(self._schema)[2:])
        ]
        try:
            self._writer.write_table(pa.table(columns, schema=self._schema))
        except OSError as error:
            self.discard()
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> SensorError:
        return SensorError(
            f"{self.path}: samples cannot be written ({error.strerror or error}): "
            "make room or choose another folder; nothing of this series was kept"
        )


def read_about(file: pq.ParquetFile, path: Path) -> About:
    """Metadata of a file. Raises SensorError if it is no series, or of a newer version."""
    raw = (file.schema_arrow.metadata or {}).get(_KEY) or (file.metadata.metadata or {}).get(_KEY)
    if raw is None:
        raise SensorError(f"{path} holds no series that iojoule recorded")
    data = json.loads(raw)
    if data.get("format") != FORMAT or data.get("schema_version") != SCHEMA_VERSION:
        raise SensorError(
            f"{path}: {data.get('format')} version {data.get('schema_version')}; this iojoule "
            f"reads {FORMAT} version {SCHEMA_VERSION}: use the one that wrote it"
        )
    rails = tuple(
        Rail(**{**rail, "kind": Kind(rail["kind"]), "scope": Scope(rail["scope"])})
        for rail in data["probe"]["rails"]
    )
    probe = Probe(rails, data["probe"]["nominal_hertz"], data["probe"]["identity"])
    delivery = Delivery(**{**data["delivery"], "errors": tuple(data["delivery"]["errors"])})
    return About(data["sensor"], probe, delivery, data["failure"], data["clock"])


def _to_json(about: About) -> str:
    return json.dumps(
        {"format": FORMAT, "schema_version": SCHEMA_VERSION, **dataclasses.asdict(about)}
    )


def _schema(sensor: str, rails: tuple[Rail, ...]) -> pa.Schema:
    names = [rail.name for rail in rails]
    if len({TIME, FLAGS, *names}) != len(names) + 2:
        raise SensorError(f"{sensor}: two rails of one name, or one called as a column: {names}")
    fields: list[pa.Field[Any]] = [
        pa.field(TIME, pa.int64(), nullable=False, metadata={"unit": "ns"}),
        pa.field(FLAGS, pa.uint8(), nullable=False),
    ]
    for rail in rails:
        # seven digits serve what is sampled; a counter grows beyond them
        growing = rail.kind in (Kind.ENERGY, Kind.COUNTER)
        kind: pa.DataType = pa.float64() if growing else pa.float32()
        metadata = {"unit": rail.unit, "kind": rail.kind.value, "scope": rail.scope.value}
        fields.append(pa.field(rail.name, kind, metadata=metadata))
    return pa.schema(fields)


def _clock() -> dict[str, Any]:
    return {
        "monotonic_ns": time.monotonic_ns(),
        "unix_ns": time.time_ns(),
        "boot_id": boot_id(),
    }


@dataclass(frozen=True)
class Window:
    """Samples of some rails: times (n,), values (n, rails), flags (n,)."""

    times_ns: NDArray[np.int64]
    values: NDArray[np.float64]
    flags: NDArray[np.uint8]


class Series:
    """One file. Raises SensorError if it cannot be read, or is no series of iojoule."""

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


def _group_times(file: pq.ParquetFile) -> list[tuple[int, int]]:
    metadata = file.metadata
    times: list[tuple[int, int]] = []
    for number in range(metadata.num_row_groups):
        statistics = metadata.row_group(number).column(0).statistics
        # Parquet has them for every column of integers that our writer makes
        limits: tuple[Any, Any] = (0, 0) if statistics is None else (statistics.min, statistics.max)
        times.append(limits)
    return times
