"""The folder of one characterisation.

characterise.json     drive, sensors, scale: what a later call must agree with
drive.json            capacity, transfer size and power states of the drive
questions/NAME/       answer.json, written last: from then on the experiment is done;
                      measurements.json, runs/ with job files and results, series/
plots/NAME.svg
characteristics.json, report.md, preset.toml, measurements.parquet    made of all results
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from iojoule.datasets.characteristics import ExperimentResult, Status
from iojoule.datasets.schema import Measurement, Section
from iojoule.measure.campaign.folder import JsonFolder
from iojoule.measure.characterise.experiment import ScaleName
from iojoule.measure.errors import CampaignError

OPTIONS_FILE = "characterise.json"
RESULT_FILE = "answer.json"
MEASUREMENTS_FILE = "measurements.json"


class Options(Section):
    """What it was begun with; a later call goes on only with the same drive and scale."""

    schema_version: int = 1
    drive: str
    controller: str | None = None
    serial: str
    scale: ScaleName
    sensors: list[str] = Field(default_factory=list)
    began_utc: str


class Measured(Section):
    """The runs of one experiment that fit the schema of measurements."""

    schema_version: int = 1
    measurements: list[Measurement] = Field(default_factory=list)


class CharacteriseFolder(JsonFolder):
    """The folder."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "give the same command again")

    def begin(self, options: Options) -> Options:
        """Begin, or resume with the same drive and scale; returns the options it was begun with.

        Raises CampaignError if another drive or scale was begun here, or other files are here.
        """
        if (self.path / OPTIONS_FILE).is_file():
            before = self.read(OPTIONS_FILE, Options)
            if (before.serial, before.scale) != (options.serial, options.scale):
                raise CampaignError(
                    f"{self.path}: drive {before.serial} was begun here at scale "
                    f"{before.scale.value}; name another folder for drive {options.serial} at "
                    f"scale {options.scale.value}"
                )
            return before
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if any(self.path.iterdir()):
                raise CampaignError(f"{self.path}: is not empty; name a new folder with --out")
        except OSError as error:
            raise CampaignError(f"{self.path}: cannot be made ({error.strerror})") from None
        self.write(OPTIONS_FILE, options)
        return options

    def experiment(self, name: str) -> Path:
        """The folder of an experiment."""
        return self.path / "questions" / name

    def fresh(self, name: str) -> Path:
        """The empty folder of an experiment; what an interrupted attempt left is removed."""
        folder = self.experiment(name)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def result(self, name: str) -> ExperimentResult | None:
        """The result of an experiment; None before it was run."""
        if not (self.experiment(name) / RESULT_FILE).is_file():
            return None
        return self.read(f"questions/{name}/{RESULT_FILE}", ExperimentResult)

    def is_done(self, name: str) -> bool:
        """Whether it need not be run again."""
        result = self.result(name)
        return result is not None and result.status is Status.ANSWERED

    def keep(
        self, name: str, result: ExperimentResult, measurements: Sequence[Measurement]
    ) -> None:
        """Store a result: from now on the experiment is done."""
        self.experiment(name).mkdir(parents=True, exist_ok=True)
        measured = Measured(measurements=list(measurements))
        self.write(f"questions/{name}/{MEASUREMENTS_FILE}", measured)
        self.write(f"questions/{name}/{RESULT_FILE}", result)

    def measurements(self, name: str) -> list[Measurement]:
        """The measurements of an experiment."""
        path = f"questions/{name}/{MEASUREMENTS_FILE}"
        if not (self.path / path).is_file():
            return []
        return self.read(path, Measured).measurements
