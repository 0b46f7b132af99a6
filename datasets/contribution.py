"""Contributed measurements: one folder that a pull request carries.

    contribution.toml   drive, instruments, conditions, licence: what people read first
    measurements.csv    one line a run, the columns of the schema that are known
    runs.csv            what the raw samples of each run say of sensor and steadiness, where kept
    checks.json         every check with its value and its limit
    profile.json        the profile that the measurements lead to
    agreement.json, .md how far what was known before predicts them

Measurements are CSV and not Parquet: reviewers see every figure in the diff, a correction is a
line, and no binary metadata can hold a name. Numbers are written with as many digits as they need
to come back the same. The same input gives the same bytes: nothing says when or where the folder
was made.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.csv as pacsv
import tomlkit
from pydantic import Field, ValidationError

from iojoule.datasets.arrow import columns
from iojoule.datasets.atomic import sync_folder
from iojoule.datasets.errors import InputError
from iojoule.datasets.input_file import read_input, toml_of
from iojoule.datasets.measured_drive import MeasuredDrive
from iojoule.datasets.provenance import Provenance, unreadable
from iojoule.datasets.schema import (
    COLUMNS,
    Count,
    Measurement,
    NonNegative,
    Positive,
    PositiveInt,
    Section,
    to_row,
    validation_error,
)
from iojoule.datasets.store import Dataset

ABOUT_FILE = "contribution.toml"
MEASUREMENTS_FILE = "measurements.csv"
RUNS_FILE = "runs.csv"
CHECKS_FILE = "checks.json"
PROFILE_FILE = "profile.json"
AGREEMENT_FILE, AGREEMENT_PAGE = "agreement.json", "agreement.md"

NEEDED = (ABOUT_FILE, MEASUREMENTS_FILE, CHECKS_FILE, PROFILE_FILE, AGREEMENT_FILE, AGREEMENT_PAGE)
OPTIONAL = (RUNS_FILE,)

LARGEST_BYTES = 8_000_000
"""Of a whole folder; a campaign of a working day takes a tenth of it."""


class Channel(Section):
    """Calibration of one channel of an instrument, as the instrument stores it."""

    quantity: Literal["current", "voltage"]
    vref_volts: float
    sensitivity: float


class Instrument(Section):
    """One instrument; None = it does not say.

    Attributes:
        kind: Its name in `iojoule measure`, without its address.
        scope: What its rails feed.
        rails: How many were added up.
        nominal_hertz: Samples a second.
        version: Board and firmware.
        resolution_watts: Of the coarsest rail.
        full_scale_watts: Of the rail with the least.
        offset_uncertainty_watts: Of the calibration, over all rails.
        gain_uncertainty: Likewise as a fraction, of the worst rail.
        channels: Calibration by channel.
    """

    kind: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    scope: Literal["device", "cpu", "dram", "system"]
    rails: PositiveInt
    nominal_hertz: Positive | None = None
    version: str | None = Field(default=None, pattern=r"^[A-Z]\d{3}-\d+\.\d+\.\d+$")
    resolution_watts: NonNegative | None = None
    full_scale_watts: NonNegative | None = None
    offset_uncertainty_watts: NonNegative | None = None
    gain_uncertainty: NonNegative | None = None
    channels: tuple[Channel, ...] = ()


class RunSamples(Section):
    """What the raw samples of one run say; None = unknown.

    Attributes:
        row: Line of the run in `measurements.csv`, the first run being 1.
        started_seconds: Begin of the run after that of the first.
        wall_seconds: From its first setting to its last wait.
        measured_seconds: Of its measured part.
        mean_watts: Drive power over the measured part.
        standard_error_watts: Of it, by chance alone.
        calibration_uncertainty_watts: Of it.
        maximum_1_ms_watts: Highest mean over 1 ms.
        coverage: Share of the measured part that samples stand for.
        lost_share: Samples lost of all.
        scatter_watts: Usual standard deviation within 20 samples.
        longest_constant_seconds: Longest stretch of equal samples.
        clipped_seconds: Time in which a rail was at its full scale.
        watts_excursion, watts_slope: Of drive power over five parts of the run, fractions of its
            mean (SNIA PTS 2.1.24).
        throughput_excursion, throughput_slope: Likewise of the bytes that the block layer counted.
        second_meter_ratio: Mean of a second meter of the drive over the first's.
    """

    row: PositiveInt
    started_seconds: NonNegative | None = None
    wall_seconds: NonNegative | None = None
    measured_seconds: NonNegative | None = None
    mean_watts: float | None = None
    standard_error_watts: NonNegative | None = None
    calibration_uncertainty_watts: NonNegative | None = None
    maximum_1_ms_watts: float | None = None
    coverage: NonNegative | None = None
    lost_share: NonNegative | None = None
    scatter_watts: NonNegative | None = None
    longest_constant_seconds: NonNegative | None = None
    clipped_seconds: NonNegative | None = None
    watts_excursion: NonNegative | None = None
    watts_slope: NonNegative | None = None
    throughput_excursion: NonNegative | None = None
    throughput_slope: NonNegative | None = None
    second_meter_ratio: NonNegative | None = None


Verdict = Literal["passed", "failed", "not known"]


class Check(Section):
    """One check of a contribution.

    Attributes:
        name: What is checked; a refusal bears it.
        verdict: `not known` where the measurements do not say.
        value: The figure that was judged; None where there is no single one.
        limit: What it must not pass.
        unit: Of both; empty for ratios and counts.
        runs: Lines of `measurements.csv` (the first run is 1) that fail by themselves.
        said: What was found, in words.
    """

    name: str
    verdict: Verdict
    value: float | None = None
    limit: float | None = None
    unit: str = ""
    runs: tuple[int, ...] = ()
    said: str


class Checks(Section):
    """`checks.json`."""

    schema_version: Literal[1] = 1
    checks: tuple[Check, ...]


class About(Section):
    """`contribution.toml`.

    Attributes:
        device: Id of the drive's model in the catalogue; of one that it lacks, made of its model.
        licence: Under which the contributor gives the measurements.
        contributor: As whom to cite, if the contributor says so.
        measured_with: Where the measurements come from.
        rows: Measurements.
        failed_runs: Runs of the campaign that failed, and are not here.
        left_out: Fields of which values were left out because they may identify a person or host.
        measurements_sha256: Of `measurements.csv`.
        drive: What the drive says of itself; None = it was not asked.
        conditions: By field: the one value, or the lowest and the highest, or all words.
        instruments: Those of power.
    """

    schema_version: Literal[1] = 1
    device: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    licence: Literal["Apache-2.0"] = "Apache-2.0"
    contributor: str | None = Field(default=None, pattern=r"^[^\x00-\x1f|]{1,200}$")
    measured_with: Literal["campaign", "dataset"]
    rows: PositiveInt
    failed_runs: Count = 0
    left_out: tuple[str, ...] = ()
    measurements_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    drive: MeasuredDrive | None = None
    conditions: dict[str, Any] = Field(default_factory=dict)
    instruments: tuple[Instrument, ...] = ()


@dataclass(frozen=True)
class Contribution:
    """A contribution as it was read or will be written.

    Attributes:
        about: What it is.
        measurements: One a run.
        runs: What their raw samples say; of every run or of none.
    """

    about: About
    measurements: list[Measurement]
    runs: list[RunSamples]


def origin_of(measurements: Sequence[Measurement]) -> str:
    """A short word made of what was observed: the same for the same measurements alone."""
    text = "\n".join(measurement.observations.model_dump_json() for measurement in measurements)
    return text_sha256(text)[:8]


def measurements_text(measurements: Sequence[Measurement]) -> str:
    """The content of `measurements.csv`."""
    rows = [to_row(measurement) for measurement in measurements]
    names = [name for name in COLUMNS if any(row[name] is not None for row in rows)]
    return _table(names, rows)


def runs_text(runs: Sequence[RunSamples]) -> str:
    """The content of `runs.csv`."""
    rows = [run.model_dump() for run in runs]
    names = [n for n in RunSamples.model_fields if any(row[n] is not None for row in rows)]
    return _table(names, rows)


def _table(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_cell(row[name]) for name in names] for row in rows)
    return stream.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)


def conditions_of(measurements: Sequence[Measurement]) -> dict[str, Any]:
    """Every known condition: the one value, the lowest and the highest, or all words."""
    common: dict[str, Any] = {}
    rows = [measurement.conditions.model_dump() for measurement in measurements]
    for name in rows[0] if rows else ():
        values = {row[name] for row in rows} - {None}
        if not values:
            continue
        ordered = sorted(values)
        if len(ordered) == 1:
            common[name] = ordered[0]
        elif any(isinstance(value, str | bool) for value in ordered):
            common[name] = ordered
        else:
            common[name] = [ordered[0], ordered[-1]]
    return common


def about_text(about: About) -> str:
    """The content of `contribution.toml`."""
    return tomlkit.dumps(about.model_dump(mode="json", exclude_none=True))


def text_sha256(text: str) -> str:
    """Hash of a text file's content, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def refuse_existing(folder: Path) -> None:
    """Refuse a place where a contribution cannot be written, before anything is computed.

    Raises:
        InputError: It exists and is not an empty folder, or the folder around it does not exist.
    """
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise InputError(f"{folder}: exists already; name a new folder, or delete this one first")
    if not folder.absolute().parent.is_dir():
        raise InputError(f"{folder}: the folder around it does not exist; make it first")


def write_folder(folder: Path, files: Mapping[str, str]) -> None:
    """Write a folder of text files: all of them, or nothing.

    Raises:
        InputError: As `refuse_existing`, or it cannot be written.
    """
    refuse_existing(folder)
    parent = folder.absolute().parent
    part = parent / f".{folder.name}.part"
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        for name, text in files.items():
            with (part / name).open("x", encoding="utf-8", newline="") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
        sync_folder(part)
        part.replace(folder)
        sync_folder(parent)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror})") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def read_contribution(folder: Path) -> Contribution:
    """Read a contribution and refuse one that is not whole.

    Raises:
        InputError: A file is missing, foreign, changed or not what it must be; names it.
    """
    about = _read_about(folder / ABOUT_FILE)
    text = _read_text(folder / MEASUREMENTS_FILE)
    if text_sha256(text) != about.measurements_sha256:
        raise InputError(
            f"{folder / MEASUREMENTS_FILE}: is not what {ABOUT_FILE} was written for "
            "(measurements_sha256); contribute again",
            field="measurements_sha256",
        )
    measurements = _read_measurements(folder / MEASUREMENTS_FILE, text)
    if len(measurements) != about.rows:
        raise InputError(
            f"{folder / MEASUREMENTS_FILE}: {len(measurements)} runs, {ABOUT_FILE} says "
            f"{about.rows}",
            field="rows",
        )
    runs = _read_runs(folder / RUNS_FILE)
    if runs and [run.row for run in runs] != list(range(1, len(measurements) + 1)):
        raise InputError(f"{folder / RUNS_FILE}: is not one line for each run", field="row")
    return Contribution(about, measurements, runs)


def contributed_folder(name: str) -> Path:
    """The folder of a contribution that is part of iojoule.

    Raises:
        InputError: There is none of that name.
    """
    folder = Path(str(resources.files("iojoule.datasets"))) / "contributed" / name
    if not (folder / ABOUT_FILE).is_file():
        raise InputError(f"{name}: datasets/contributed holds no such folder", field="contributed")
    return folder


def _read_text(path: Path) -> str:
    try:
        return read_input(path).decode("utf-8")
    except OSError as error:
        raise unreadable(path, error) from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8") from None


def _read_about(path: Path) -> About:
    try:
        return About.model_validate(toml_of(_read_text(path)))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not TOML: {error}") from None
    except ValidationError as error:
        raise validation_error(error, str(path)) from None


def _read_measurements(path: Path, text: str) -> list[Measurement]:
    types = {name: column.arrow_type for name, column in columns().items()}
    table = _read_table(path, text, types)
    data = {name: table[name] for name in table.column_names}
    provenance = Provenance(importer="contribution")
    where = "{}: run {}".format
    dataset = Dataset.from_columns(data, provenance, where=lambda row: where(path, row + 1))
    return dataset.measurements()


def _read_runs(path: Path) -> list[RunSamples]:
    if not path.is_file():
        return []
    types = {name: pa.float64() for name in RunSamples.model_fields} | {"row": pa.int64()}
    try:
        return [
            RunSamples.model_validate(row)
            for row in _read_table(path, _read_text(path), types).to_pylist()
        ]
    except ValidationError as error:
        raise validation_error(error, str(path)) from None


def _read_table(path: Path, text: str, types: Mapping[str, pa.DataType]) -> pa.Table:
    options = pacsv.ConvertOptions(
        column_types=dict(types),
        null_values=[""],
        strings_can_be_null=True,
        true_values=["true"],
        false_values=["false"],
    )
    try:
        table = pacsv.read_csv(io.BytesIO(text.encode()), convert_options=options)
    except pa.ArrowInvalid as error:
        raise InputError(f"{path}: {str(error).splitlines()[0]}") from None
    unknown = [name for name in table.column_names if name not in types]
    if unknown:
        raise InputError(f"{path}: unknown column {unknown[0]!r}", field=unknown[0])
    return table
