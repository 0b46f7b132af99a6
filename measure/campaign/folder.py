"""A campaign's folder: the plan, the records of its runs, and the dataset made of them.

    plan.toml            the plan, as given
    campaign.json        drive, sensors and options, for `resume`
    drive.json           capacity, transfer size and power states of the drive
    adaptive.json        the runs that an adaptive campaign chose, and why
    state.json           idle baselines and preconditioning done so far
    runs/00001-NAME/     job.fio, fio.json, run.json, and the raw series of every sensor;
                         with --trace the requests in trace/requests.parquet
    attempts/00001-NAME.1/  the same of a run that was repeated
    measurements.parquet the dataset of all finished runs (and its metadata file)

A run counts once its run.json exists; it is written last and atomically, so that an interrupted
run is made again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from iojoule.datasets.atomic import write_text_atomically
from iojoule.datasets.errors import InputError
from iojoule.datasets.input_file import json_of, read_input, read_input_text
from iojoule.datasets.provenance import ExcludedRow, Provenance, SourceFile
from iojoule.datasets.schema import Measurement, NonNegative, Positive, Section, validation_error
from iojoule.datasets.store import Dataset, write_dataset
from iojoule.datasets.verdict import RunVerdict
from iojoule.datasets.vocabulary import Verdict
from iojoule.measure.campaign.runs import Run, folder_name
from iojoule.measure.errors import CampaignError
from iojoule.measure.tracing.block_trace import TraceSummary

M = TypeVar("M", bound=BaseModel)


class JsonFolder:
    """The files of one campaign or characterisation; `go_on` ends messages about failed writes."""

    def __init__(self, path: Path, go_on: str) -> None:
        self.path = path
        self._go_on = go_on

    def write(self, name: str, content: BaseModel | dict[str, Any]) -> None:
        """Write a JSON file atomically; raises as `write_text`."""
        data = content.model_dump(mode="json") if isinstance(content, BaseModel) else content
        self.write_text(name, json.dumps(data, indent=1, ensure_ascii=False) + "\n")

    def write_text(self, name: str, text: str) -> None:
        """Write a text file atomically. Raises CampaignError if it cannot be written."""
        path = self.path / name
        try:
            write_text_atomically(path, text)
        except OSError as error:
            raise CampaignError(
                f"{path}: cannot be written ({error.strerror}); nothing measured so far is lost: "
                f"make room and {self._go_on}"
            ) from None

    def read(self, name: str, kind: type[M]) -> M:
        """Read a JSON file of the folder.

        Raises CampaignError if it is missing, damaged or too new.
        """
        path = self.path / name
        try:
            data = json_of(read_input(path))
        except (OSError, ValueError) as error:
            raise CampaignError(f"{path}: cannot be read ({error})") from None
        field = kind.model_fields.get("schema_version")
        newest = field.default if field is not None else 1
        version = data.get("schema_version", 1) if isinstance(data, dict) else 1
        if isinstance(version, int) and not 1 <= version <= newest:
            raise CampaignError(f"{path}: was written by a newer iojoule; upgrade")
        try:
            return kind.model_validate(data)
        except ValidationError as error:
            raise CampaignError(validation_error(error, str(path)).message) from None


RECORD_SCHEMA_VERSION: Literal[3] = 3
"""Version 2 added verdict, attempt and idle bracket, version 3 the trace; records of version 1 are
not judged."""


class Status(StrEnum):
    """How a run ended."""

    DONE = "done"
    FAILED = "failed"


class WindowRecord(Section):
    """Power averaged over windows of one width, in watts."""

    p50_watts: float
    p99_watts: float
    maximum_watts: float


class PowerRecord(Section):
    """Power of one scope over the measured part of a run.

    Attributes:
        mean_watts: None where the sensor is too slow, with the `reason`.
        calibration_uncertainty_watts: Not reduced by averaging; None = unknown.
        over_1_ms: Means over windows of 1 ms; None where the sensor is too slow.
        over_10_s: None in a shorter run.
        gaps: Stretches without samples, monotonic ns.
    """

    sensor: str
    rails: list[str]
    mean_watts: float | None
    standard_error_watts: float | None
    calibration_uncertainty_watts: float | None
    energy_joules: float | None
    over_1_ms: WindowRecord | None
    over_10_ms: WindowRecord | None
    over_10_s: WindowRecord | None
    samples: int
    lost: int
    coverage: float
    gaps: list[tuple[int, int]]
    reason: str | None


class SensorRecord(Section):
    """What one sensor delivered from its start to its stop."""

    samples: int
    lost: int
    errors: list[str] = Field(default_factory=list)


class RunRecord(Section):
    """One run.

    Attributes:
        verdict: None = not judged (schema version 1).
        attempt: From 1; the folders of earlier attempts are kept.
        idle_bracket: Number of idle baselines of its power state measured before it.
        littles_ratio: Throughput x mean latency / concurrency; None where undefined.
        trace: None without --trace.
    """

    schema_version: Literal[1, 2, 3] = RECORD_SCHEMA_VERSION
    number: int
    sweep: str
    repeat: int
    point: str
    status: Status
    reason: str | None = None
    verdict: RunVerdict | None = None
    attempt: int = 1
    idle_bracket: int = 0
    started_utc: datetime
    wall_seconds: float
    fio_seconds: float = 0.0
    waited_seconds: float = 0.0
    begin_monotonic_ns: int | None = None
    end_monotonic_ns: int | None = None
    littles_ratio: float | None = None
    measurement: Measurement | None = None
    power: dict[str, PowerRecord] = Field(default_factory=dict)
    sensors: dict[str, SensorRecord] = Field(default_factory=dict)
    trace: TraceSummary | None = None
    notes: list[str] = Field(default_factory=list)

    @property
    def name(self) -> str:
        """Name of its folder."""
        return folder_name(self.number, self.sweep)

    @property
    def is_good(self) -> bool:
        """Whether nothing speaks for making it again; runs without a verdict count."""
        judged = self.verdict is not None and self.verdict.verdict is not Verdict.GOOD
        return self.status is Status.DONE and not judged

    def judged(self, verdict: RunVerdict) -> RunRecord:
        """The same run under another verdict, which its row bears too."""
        measurement = self.measurement
        if measurement is not None:
            measurement = measurement.model_copy(update={"judgement": verdict.judgement})
        return self.model_copy(update={"verdict": verdict, "measurement": measurement})


PLAN_FILE = "plan.toml"
CAMPAIGN_FILE = "campaign.json"
STATE_FILE = "state.json"
RUN_FILE = "run.json"
DATASET = "measurements"


class AdaptiveOptions(Section):
    """Options of an adaptive campaign (`adaptive.Budget`); `question` is the workload profile."""

    hours: Positive
    regret: NonNegative
    question: dict[str, Any]


class CampaignOptions(Section):
    """Options of `measure run` beside the plan, for `measure resume`.

    Attributes:
        serial: Serial number of the drive, to detect a different one at the same node.
        overwrite: Signatures that the user declared worthless.
        adaptive: None = every run of the plan is made.
        trace: Whether block events are recorded.
    """

    schema_version: int = 1
    drive: str
    controller: str | None = None
    serial: str
    sensors: list[str] = Field(default_factory=list)
    overwrite: list[str] = Field(default_factory=list)
    adaptive: AdaptiveOptions | None = None
    trace: bool = False


class IdleBaseline(Section):
    """Idle power in one power state; `sd_watts` is of means over `settle.window_seconds`."""

    mean_watts: float
    standard_error_watts: float
    sd_watts: float
    seconds: float
    when_utc: str


def idle_key(power_state: int | None, limit: float | None) -> str:
    """Key of the idle power in a power state under a limit in watts; 0 and None: without one."""
    return f"{power_state or 0}" + (f" at most {limit:g} W" if limit else "")


class CampaignState(Section):
    """What was done to the drive so far.

    Attributes:
        idle: Baselines by power state and limit (`idle_key`), in order of time.
        filled: Whether the sequential passes are done.
        steady: By pattern: whether the drive became steady.
        bytes_written_at_purge: The drive's own counter at the purge; None = not purged.
    """

    model_config = ConfigDict(extra="forbid", frozen=False, validate_assignment=True)

    schema_version: int = 1
    idle: dict[str, list[IdleBaseline]] = Field(default_factory=dict)
    purged: bool = False
    filled: bool = False
    steady: dict[str, bool] = Field(default_factory=dict)
    bytes_written_at_purge: int | None = None
    bytes_written: int = 0

    def idle_in(self, power_state: int | None, limit: float | None) -> list[IdleBaseline]:
        """Idle power in a power state and limit, in order of time; None = the drive's only one."""
        return self.idle.get(idle_key(power_state, limit), [])


class CampaignFolder(JsonFolder):
    """The folder of one campaign."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, f"go on with `iojoule measure resume {path}`")

    @property
    def exists(self) -> bool:
        """Whether a campaign was begun here."""
        return (self.path / CAMPAIGN_FILE).is_file()

    def create(self, plan_text: str, options: CampaignOptions) -> None:
        """Begin a campaign here.

        Raises CampaignError if the folder is in use or cannot be written.
        """
        if self.exists:
            raise CampaignError(
                f"{self.path}: holds a campaign already; go on with `iojoule measure resume "
                f"{self.path}`, or name another folder"
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if any(self.path.iterdir()):
                raise CampaignError(f"{self.path}: is not empty; name a new folder with --out")
            (self.path / "runs").mkdir()
        except OSError as error:
            raise CampaignError(f"{self.path}: cannot be made ({error.strerror})") from None
        self.write_text(PLAN_FILE, plan_text)
        self.write(CAMPAIGN_FILE, options)

    def options(self) -> CampaignOptions:
        """What the campaign was begun with; raises CampaignError where there is none."""
        if not self.exists:
            raise CampaignError(
                f"{self.path}: holds no campaign; begin one with `iojoule measure run --out "
                f"{self.path}`"
            )
        return self.read(CAMPAIGN_FILE, CampaignOptions)

    def plan_text(self) -> str:
        """The plan as it was given. Raises CampaignError if it cannot be read."""
        path = self.path / PLAN_FILE
        try:
            return read_input_text(path)
        except (OSError, UnicodeDecodeError) as error:
            raise CampaignError(
                f"{path}: cannot be read ({error}); put back the plan that the campaign began with"
            ) from None

    def state(self) -> CampaignState:
        """What was done to the drive so far."""
        if not (self.path / STATE_FILE).is_file():
            return CampaignState()
        return self.read(STATE_FILE, CampaignState)

    def run_folder(self, run: Run) -> Path:
        """The empty folder of a run that is about to start.

        An earlier attempt with a record moves to the attempts; an interrupted one is removed.
        Raises CampaignError if the folder cannot be written.
        """
        folder = self.path / "runs" / run.name
        try:
            if (folder / RUN_FILE).is_file():
                earlier = self.path / "attempts" / f"{run.name}.{self.attempts(run)}"
                earlier.parent.mkdir(exist_ok=True)
                folder.replace(earlier)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        except OSError as error:
            raise CampaignError(
                f"{folder}: cannot be made ({error.strerror}); make room and resume the campaign"
            ) from None
        return folder

    def attempts(self, run: Run) -> int:
        """How often a run was made, the attempts that were not good included."""
        before = len(list(self.path.glob(f"attempts/{run.name}.*")))
        return before + (self.path / "runs" / run.name / RUN_FILE).is_file()

    def record(self, run: Run) -> RunRecord | None:
        """The record of a run; None where it is still to be made."""
        path = self.path / "runs" / run.name / RUN_FILE
        if not path.is_file():
            return None
        return self.read(str(path.relative_to(self.path)), RunRecord)

    def records(self) -> list[RunRecord]:
        """All records, in the order of the runs."""
        return [
            self.read(str(path.relative_to(self.path)), RunRecord)
            for path in sorted(self.path.glob(f"runs/*/{RUN_FILE}"))
        ]

    def keep(self, record: RunRecord) -> None:
        """Store a record: from now on the run counts."""
        self.write(f"runs/{record.name}/{RUN_FILE}", record)

    def write_measurements(self, records: Sequence[RunRecord], plan_name: str) -> Path | None:
        """Make the dataset of all runs that are done; None where there is none."""
        done = [record for record in records if record.measurement is not None]
        if not done:
            return None
        provenance = Provenance(
            importer="measure",
            sources=(SourceFile.of(self.path / PLAN_FILE, name=f"{plan_name}.toml"),),
            warnings=tuple(
                f"run {record.number}: {note}" for record in done for note in record.notes
            ),
            excluded=tuple(
                ExcludedRow(source=plan_name, row=record.number, reason=record.reason or "failed")
                for record in records
                if record.status is Status.FAILED
            ),
        )
        measured = [record.measurement for record in done if record.measurement is not None]
        dataset = Dataset.from_measurements(measured, provenance)
        try:
            return write_dataset(dataset, self.path / DATASET)[0]
        except InputError as error:
            raise CampaignError(
                f"{error.message}; the runs themselves are stored: make room and go on with "
                f"`iojoule measure resume {self.path}`"
            ) from None
