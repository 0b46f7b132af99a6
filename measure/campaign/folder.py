"""A campaign's folder: what was planned, what is done, and the dataset made of it.

    plan.toml            the plan, as it was given
    campaign.json        drive, sensors and options: what `resume` needs
    drive.json           what the drive says of itself: capacity, transfer size, power states
    adaptive.json        what was chosen to run, and why, where the campaign decides as it goes
    state.json           idle baselines and preconditioning, as far as they are done
    runs/00001-NAME/     job.fio, fio.json, run.json, and the raw series of every sensor
    attempts/00001-NAME.1/  the same of a run that was made again, as it was before
    measurements.parquet the dataset of all runs that are done (and its side-car)

A run counts when its run.json is there; it is written last and atomically, so an interrupted run
is simply made again.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field

from iojoule.datasets.errors import InputError
from iojoule.datasets.provenance import ExcludedRow, Provenance, SourceFile
from iojoule.datasets.schema import NonNegative, Positive, Section
from iojoule.datasets.store import Dataset, write_dataset
from iojoule.measure.campaign.points import Run
from iojoule.measure.campaign.record import RunRecord, Status, folder_name
from iojoule.measure.errors import CampaignError
from iojoule.measure.json_folder import JsonFolder

PLAN_FILE = "plan.toml"
CAMPAIGN_FILE = "campaign.json"
STATE_FILE = "state.json"
RUN_FILE = "run.json"
DATASET = "measurements"


class AdaptiveOptions(Section):
    """How a campaign that decides as it goes was begun.

    Attributes:
        hours: Of the drive's time.
        regret: Ends it earlier once the recommendation is that close to the best, as a fraction.
        question: The workload profile that it is to answer, as plain data.
    """

    hours: Positive
    regret: NonNegative
    question: dict[str, Any]


class CampaignOptions(Section):
    """What `measure run` was told beside the plan, for `measure resume`.

    Attributes:
        drive: The device node.
        controller: The controller node; None = none.
        serial: Serial number of the drive, to find out when another one sits there.
        sensors: As the user wrote them.
        overwrite: Signatures that the user named as worthless.
        adaptive: How it decides what to run; None = it makes every run of the plan.
    """

    schema_version: int = 1
    drive: str
    controller: str | None = None
    serial: str
    sensors: list[str] = Field(default_factory=list)
    overwrite: list[str] = Field(default_factory=list)
    adaptive: AdaptiveOptions | None = None


class IdleBaseline(Section):
    """Idle power of the drive in one power state.

    `sd_watts` is the scatter of means over the plan's `settle.window_seconds`.
    """

    mean_watts: float
    standard_error_watts: float
    sd_watts: float
    seconds: float
    when_utc: str


class CampaignState(Section):
    """What was done to the drive so far.

    Attributes:
        idle: By power state (as text), every baseline in order of time.
        filled: Whether the sequential passes are done.
        steady: By pattern: whether the drive became steady.
        bytes_written_at_purge: What the drive had counted when it was purged; None = not purged.
        bytes_written: By this campaign.
    """

    model_config = ConfigDict(extra="forbid", frozen=False, validate_assignment=True)

    schema_version: int = 1
    idle: dict[str, list[IdleBaseline]] = Field(default_factory=dict)
    purged: bool = False
    filled: bool = False
    steady: dict[str, bool] = Field(default_factory=dict)
    bytes_written_at_purge: int | None = None
    bytes_written: int = 0

    def idle_in(self, power_state: int | None) -> list[IdleBaseline]:
        """Idle power in a power state, in order of time; None = the drive's only one."""
        return self.idle.get(str(power_state or 0), [])


class CampaignFolder(JsonFolder):
    """The folder of one campaign.

    Args:
        path: Where it is or will be.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, f"go on with `iojoule measure resume {path}`")

    @property
    def exists(self) -> bool:
        """Whether a campaign was begun here."""
        return (self.path / CAMPAIGN_FILE).is_file()

    def create(self, plan_text: str, options: CampaignOptions) -> None:
        """Begin a campaign here.

        Raises:
            CampaignError: There is one already, other files are in the way, or the folder cannot
                be written.
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
        """The plan as it was given."""
        return (self.path / PLAN_FILE).read_text()

    def state(self) -> CampaignState:
        """What was done to the drive so far."""
        if not (self.path / STATE_FILE).is_file():
            return CampaignState()
        return self.read(STATE_FILE, CampaignState)

    def run_folder(self, run: Run) -> Path:
        """The folder of a run that is about to be made, empty.

        An earlier attempt that has a record is kept among the attempts; what an interrupted one
        left is removed: it holds no result.

        Raises:
            CampaignError: The folder cannot be written.
        """
        folder = self.path / "runs" / run.name
        try:
            if (folder / RUN_FILE).is_file():
                kept = self.path / "attempts" / f"{run.name}.{self.attempts(run)}"
                kept.parent.mkdir(exist_ok=True)
                folder.replace(kept)
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
        self.write(f"runs/{folder_name(record.number, record.sweep)}/{RUN_FILE}", record)

    def write_measurements(self, records: Sequence[RunRecord], plan_name: str) -> Path | None:
        """Make the dataset of all runs that are done; None where there is none."""
        done = [one for one in records if one.measurement is not None]
        if not done:
            return None
        provenance = Provenance(
            importer="measure",
            sources=(SourceFile.of(self.path / PLAN_FILE, name=f"{plan_name}.toml"),),
            warnings=tuple(f"run {one.number}: {note}" for one in done for note in one.notes),
            excluded=tuple(
                ExcludedRow(source=plan_name, row=one.number, reason=one.reason or "failed")
                for one in records
                if one.status is Status.FAILED
            ),
        )
        measured = [one.measurement for one in done if one.measurement is not None]
        dataset = Dataset.from_measurements(measured, provenance)
        try:
            return write_dataset(dataset, self.path / DATASET)[0]
        except InputError as error:
            raise CampaignError(
                f"{error.message}; the runs themselves are stored: make room and go on with "
                f"`iojoule measure resume {self.path}`"
            ) from None
