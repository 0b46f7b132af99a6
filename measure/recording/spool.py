"""One sensor's samples as a Parquet file, written while they come.

Columns: `monotonic_ns`, `flags` (see `protocol.Flag`), then one per rail with unit, kind and scope
in its metadata. The file appears under its name only when it is complete.
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

from iojoule.measure.errors import SensorError
from iojoule.measure.sensors.protocol import Chunk, Delivery, Kind, Probe, Rail, Scope

FORMAT = "iojoule-series"
SCHEMA_VERSION = 1
GROUP_ROWS = 1 << 18
TIME, FLAGS = "monotonic_ns", "flags"
_KEY = b"iojoule"


@dataclass(frozen=True)
class About:
    """What a file says of its samples.

    Attributes:
        sensor: Its name.
        probe: Its rails.
        delivery: What it delivered.
        failure: Why it stopped early, if it did.
        clock: `monotonic_ns` and `unix_ns` of one moment, `boot_id`: what the times refer to.
    """

    sensor: str
    probe: Probe
    delivery: Delivery
    failure: str | None
    clock: dict[str, Any]


class Spool:
    """A file that grows.

    Args:
        folder: Where; it must exist.
        number: Position of the sensor among those recorded; makes the name unique.
        sensor: The sensor's name.
        probe: Its rails.

    Raises:
        SensorError: The file cannot be created, or a rail has an impossible name.
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
        """Append samples.

        Raises:
            SensorError: They cannot be written; the file is gone then.
        """
        self._waiting.append(chunk)
        self._rows += len(chunk)
        if self._rows >= GROUP_ROWS:
            self._flush()

    def finish(self, delivery: Delivery, failure: str | None) -> About:
        """Write the rest and give the file its name.

        Raises:
            SensorError: It cannot be written; the file is gone then.
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
    """What a file says of its samples.

    Raises:
        SensorError: It is not such a file, or of a newer version.
    """
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
    boot = Path("/proc/sys/kernel/random/boot_id")
    return {
        "monotonic_ns": time.monotonic_ns(),
        "unix_ns": time.time_ns(),
        "boot_id": boot.read_text(encoding="ascii").strip() if boot.exists() else None,
    }
