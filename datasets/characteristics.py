"""What a drive turned out to be like, stored as `characteristics.json`.

One section for each experiment: its estimates, each with an interval or with
the reason why there is none, and the evidence they rest on. `iojoule measure characterise` writes
it, `iojoule fit` reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from iojoule.datasets.errors import InputError, SchemaVersionError
from iojoule.datasets.input_file import json_of, read_input
from iojoule.datasets.measured_drive import MeasuredDrive
from iojoule.datasets.schema import Count, NonNegative, Section, validation_error

FILE_NAME = "characteristics.json"
SCHEMA_VERSION = 1
CONFIDENCE = 0.95
"""Of every interval here."""


class Estimate(Section):
    """One number with its interval, or the reason why it was not found.

    A bound may stand without a value: that much is known then.

    Attributes:
        value: The estimate; None = not found.
        low: Lower end of the 95 % interval, or a lower bound.
        high: Upper end, or an upper bound.
        unit: SI, as in the field names of the schema; "1" for ratios.
        method: How it was found.
        reason: Why there is no value.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str
    method: str
    reason: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.value is None) == (self.reason is None):
            raise ValueError("reason: exactly one of a value and a reason must be stated")
        if self.value is not None:
            if self.low is None or self.high is None:
                raise ValueError("low: a value needs its interval")
            if not self.low <= self.value <= self.high:
                raise ValueError(f"value: {self.value} is not in [{self.low}, {self.high}]")
        return self


class Row(Section):
    """One observation: a run of fio or a stretch of rest. Units are in the names of the values."""

    label: str
    values: dict[str, float] = Field(default_factory=dict)

    def __getitem__(self, name: str) -> float:
        return self.values[name]

    def get(self, name: str) -> float | None:
        """A value; None where it was not observed."""
        return self.values.get(name)


class Evidence(Section):
    """What was observed in one experiment.

    Attributes:
        rows: In order of time.
        series: Name -> numbers over time or over requests, for what a mean would hide.
    """

    rows: tuple[Row, ...] = ()
    series: dict[str, tuple[float, ...]] = Field(default_factory=dict)

    def named(self, prefix: str) -> list[Row]:
        """The rows whose label begins so."""
        return [row for row in self.rows if row.label.startswith(prefix)]

    def row(self, label: str) -> Row | None:
        """The row of that label; None where it is missing."""
        return next((row for row in self.rows if row.label == label), None)


class Status(StrEnum):
    """What became of an experiment."""

    ANSWERED = "answered"
    FAILED = "failed"
    SKIPPED = "skipped"


class ExperimentResult(Section):
    """The section of one experiment.

    Attributes:
        title: What it is called.
        purpose: What the result is good for.
        sources: Where the experiment comes from.
        status: What became of it.
        reason: Why it failed or was skipped.
        bytes_written: By fio, for this experiment.
        seconds: It took.
        estimates: By name.
        evidence: What they rest on.
        plot: The picture, relative to the file.
    """

    schema_version: Literal[1] = 1
    title: str
    purpose: str
    sources: tuple[str, ...]
    status: Status
    reason: str | None = None
    bytes_written: Count = 0
    seconds: NonNegative = 0.0
    estimates: dict[str, Estimate] = Field(default_factory=dict)
    evidence: Evidence = Evidence()
    plot: str | None = None


class Characteristics(Section):
    """The whole file.

    Attributes:
        generator: Who wrote it.
        scale: How thoroughly it was measured.
        began_utc: When.
        drive: What the drive says of itself.
        confidence: Of every interval.
        answers: By name of the experiment.
    """

    schema_version: Literal[1] = 1
    generator: str
    scale: str
    began_utc: str
    drive: MeasuredDrive
    confidence: float = CONFIDENCE
    answers: dict[str, ExperimentResult]

    def estimate(self, experiment: str, name: str) -> Estimate | None:
        """An estimate that has a value; None where there is none."""
        result = self.answers.get(experiment)
        estimate = result.estimates.get(name) if result is not None else None
        return estimate if estimate is not None and estimate.value is not None else None


def parse_characteristics(data: Any, where: str) -> Characteristics:
    """Check a document.

    Raises:
        SchemaVersionError: It is of a newer version.
        InputError: It is not what it must be.
    """
    version = data.get("schema_version") if isinstance(data, dict) else None
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise SchemaVersionError(f"{where}: was written by a newer iojoule; upgrade")
    try:
        return Characteristics.model_validate(data)
    except ValidationError as error:
        raise InputError(validation_error(error, where).message) from None


def read_characteristics(folder: Path) -> Characteristics | None:
    """Read the file in a folder of measurements; None where there is none.

    Raises:
        InputError: It is damaged, or of a newer version.
    """
    path = folder / FILE_NAME
    if not path.is_file():
        return None
    try:
        data = json_of(read_input(path))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from None
    return parse_characteristics(data, str(path))


def characteristics(paths: Sequence[Path]) -> Characteristics | None:
    """What `iojoule measure characterise` found of the drive, if that was kept."""
    folders = [path if path.is_dir() else path.parent for path in paths]
    return next(
        (
            characteristics
            for folder in folders
            if (characteristics := read_characteristics(folder))
        ),
        None,
    )
