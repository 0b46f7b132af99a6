from pathlib import Path

import pytest

from iojoule.datasets.characteristics import (
    FILE_NAME,
    Estimate,
    ExperimentResult,
    Status,
    read_characteristics,
)
from iojoule.datasets.errors import InputError, SchemaVersionError
from iojoule.measure.characterise.experiment import ScaleName
from iojoule.measure.characterise.folder import CharacteriseFolder, Options
from iojoule.measure.characterise.report import interval, report
from iojoule.measure.errors import CampaignError
from tests.measure.characterise.found import answer, characteristics, estimate


def options(serial: str = "S1", scale: ScaleName = ScaleName.QUICK) -> Options:
    return Options(drive="/dev/none", serial=serial, scale=scale, began_utc="2026-01-01")


def test_it_goes_on_with_the_same_drive_and_scale_only(tmp_path: Path) -> None:
    folder = CharacteriseFolder(tmp_path / "out")
    begun = folder.begin(options())
    assert folder.begin(options()) == begun
    with pytest.raises(CampaignError, match="another folder"):
        folder.begin(options("S2"))
    with pytest.raises(CampaignError, match="another folder"):
        folder.begin(options(scale=ScaleName.FULL))


def test_foreign_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(CampaignError, match="not empty"):
        CharacteriseFolder(tmp_path).begin(options())


def test_only_an_answer_counts(tmp_path: Path) -> None:
    """What was interrupted, failed or could not be asked is asked again."""
    folder = CharacteriseFolder(tmp_path / "out")
    folder.begin(options())
    folder.fresh("idle")
    (folder.experiment("idle") / "half").write_text("x")
    assert not folder.is_done("idle")
    for status in (Status.FAILED, Status.SKIPPED):
        kept = answer().model_copy(update={"status": status})
        folder.keep("idle", kept, [])
        assert not folder.is_done("idle")
    folder.keep("idle", answer(idle_watts_ps0=estimate(1.6, "W")), [])
    assert folder.is_done("idle")
    folder.fresh("slc-cache")
    assert not (folder.experiment("slc-cache") / "half").exists()


def test_the_file_is_read_back_and_a_newer_or_damaged_one_refused(tmp_path: Path) -> None:
    folder = CharacteriseFolder(tmp_path)
    assert read_characteristics(tmp_path) is None
    folder.write(FILE_NAME, characteristics())
    assert read_characteristics(tmp_path) == characteristics()
    text = (tmp_path / FILE_NAME).read_text()
    (tmp_path / FILE_NAME).write_text(text.replace('"schema_version": 1', '"schema_version": 2'))
    with pytest.raises(SchemaVersionError):
        read_characteristics(tmp_path)
    (tmp_path / FILE_NAME).write_text(text[: len(text) // 2])
    with pytest.raises(InputError):
        read_characteristics(tmp_path)


def test_an_estimate_has_an_interval_or_a_reason() -> None:
    for wrong in (
        {"value": 1.0},
        {},
        {"value": 1.0, "low": 2.0, "high": 3.0},
        {"value": 1.0, "low": 0.0, "high": 3.0, "reason": "x"},
    ):
        with pytest.raises(ValueError, match=r"reason|low|value"):
            Estimate(unit="W", method="m", **wrong)


def test_people_read_values_bounds_and_absence() -> None:
    assert interval(estimate(36 << 20, "bytes", 0.5)) == "36 MiB (18 MiB to 54 MiB)"
    assert interval(estimate(0.03, "s", 0.1)) == "30 ms (27 ms to 33 ms)"
    bound = Estimate(unit="bytes", method="m", reason="no fall", low=1 << 30)
    assert interval(bound) == "not found; at least 1 GiB"
    text = report(characteristics())
    assert "| `idle_watts_ps0` | 1.6 W" in text
    assert "none seen; made up" in text


def test_what_failed_is_said_in_the_report() -> None:
    found = characteristics()
    failed = ExperimentResult(
        title="t", purpose="p", sources=(), status=Status.FAILED, reason="the meter stalled"
    )
    found = found.model_copy(update={"answers": {**found.answers, "idle": failed}})
    assert "failed: the meter stalled" in report(found)
