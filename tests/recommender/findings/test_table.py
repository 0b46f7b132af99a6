"""The table on the public measurements: complete, judged without itself, and not circular."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from iojoule.api.cli.app import app
from iojoule.api.cli.findings import DIRECTION_PERCENT, MAGNITUDE_PERCENT
from iojoule.datasets.catalogue import Drive
from iojoule.datasets.findings import Asked, frozen_papers
from iojoule.datasets.profile import DeviceProfile, load_shipped_profile
from iojoule.recommender.validation.findings import (
    Profiles,
    Row,
    drive_without,
    findings_table,
    shares,
)
from tests.reference_data import PUBLIC_DATA, needs_public_data

DRIVE = "samsung-980-pro-1tb"


@pytest.fixture(scope="module")
def profiles() -> Profiles:
    if not PUBLIC_DATA.is_dir():
        pytest.skip("the public measurements (../shared/data) are not here")
    return Profiles(PUBLIC_DATA)


@pytest.fixture(scope="module")
def rows(profiles: Profiles) -> dict[str, Row]:
    papers = [
        paper.model_copy(update={"findings": [r for r in paper.findings if r.fact_id in WANTED]})
        for paper in frozen_papers()
    ]
    return {row.fact_id: row for row in findings_table(papers, profiles)}


WANTED = {"000-063", "000-066", "000-112", "000-128", "000-142", "000-143", "000-216", "001-042"}


@pytest.mark.slow
def test_a_finding_that_built_the_profile_changes_it_when_left_out(profiles: Profiles) -> None:
    whole = profiles.profile_for(DRIVE)
    without = profiles.profile_for(DRIVE, ["000-063"])
    assert whole is not None
    assert without is not None
    assert whole.device_power is not None
    assert without.device_power is not None
    assert whole.device_power.idle_watts[0].value == 1.75
    assert without.device_power.idle_watts[0].value != 1.75
    assert without.device_power.idle_watts[0].sd > 5 * whole.device_power.idle_watts[0].sd


@pytest.mark.slow
def test_leaving_out_a_point_moves_only_its_surface(profiles: Profiles) -> None:
    whole = profiles.profile_for(DRIVE)
    without = profiles.profile_for(DRIVE, ["000-142"])
    assert whole is not None
    assert without is not None
    moved = {
        (a.operation.value, a.pattern.value)
        for a, b in zip(whole.surfaces, without.surfaces, strict=True)
        if a != b
    }
    assert moved == {("read", "sequential")}
    assert whole.device_power == without.device_power


def test_a_finding_that_built_nothing_leaves_the_profile_as_it_is(profiles: Profiles) -> None:
    assert profiles.profile_for(DRIVE, ["000-112x"]) is profiles.profile_for(DRIVE)
    assert profiles.profile_for(DRIVE, ["000-145"]) is profiles.profile_for(DRIVE)


def test_a_row_says_without_what_it_was_judged(rows: dict[str, Row]) -> None:
    assert rows["000-063"].left_out == "000-063"
    assert rows["000-128"].left_out == "000-128"
    assert rows["000-216"].left_out == ""


def test_no_row_is_missing_and_unanswered_rows_count_as_wrong(rows: dict[str, Row]) -> None:
    assert set(rows) == WANTED
    unanswered = rows["001-042"]
    assert unanswered.asked
    assert not unanswered.answered
    assert not unanswered.direction_right
    assert not unanswered.magnitude_right
    assert "kingston-sv300s37a120g" in unanswered.missing
    assert not rows["000-066"].asked
    assert rows["000-066"].reason
    whole = shares(rows.values())[0]
    assert whole.rows == sum(row.asked for row in rows.values()) == 7


def test_a_column_that_the_models_do_not_know_is_named(rows: dict[str, Row]) -> None:
    assert rows["000-216"].answered or "think_time_ns" in rows["000-216"].missing


def test_a_figure_of_another_size_is_predicted_without_itself(rows: dict[str, Row]) -> None:
    row = rows["000-143"]
    assert row.left_out == "000-143"
    assert row.magnitude_right
    assert row.low is not None
    assert row.high is not None
    assert row.high > 1.1 * row.low


def test_the_catalogue_does_not_answer_with_the_finding_itself() -> None:
    whole = drive_without("intel-d7-p5510", [])
    less = drive_without("intel-d7-p5510", ["004-042"])
    assert whole is not None
    assert less is not None
    assert len(less.facts) == len(whole.facts) - 1
    assert less.fact("sequential_write_throughput_ratio_ps1") is None
    assert drive_without("no such drive", []) is None


def test_a_drive_without_recipe_is_asked_of_whoever_builds_from_the_catalogue() -> None:
    asked: list[str] = []
    own = load_shipped_profile(DRIVE)

    def build(device: str, drive: Drive | None, without: frozenset[str]) -> DeviceProfile:
        assert drive is not None
        assert drive.id == device
        assert "004-067" in without
        asked.append(device)
        return own

    assert Profiles(PUBLIC_DATA, build).profile_for("samsung-pm9a3", ["004-067"]) is own
    assert asked == ["samsung-pm9a3"]


@pytest.mark.slow
@needs_public_data
def test_the_documented_table_is_what_the_models_answer(root: Path) -> None:
    words = ["validate", "findings", "--data", str(PUBLIC_DATA), "-o", "json"]
    answered = json.loads(CliRunner().invoke(app, words).stdout)["summary"]
    text = (root / "docs" / "results" / "findings.csv").read_text("utf-8")
    documented = list(csv.DictReader(line for line in text.splitlines() if line[0] != "#"))
    assert len(documented) == len(answered)
    for row, group in zip(documented, answered, strict=True):
        assert row["rows"] == group["group"]
        assert row["direction right"].split()[0] == str(group["direction_right"])
        assert row["magnitude within"].split()[0] == str(group["magnitude_right"])


@needs_public_data
def test_the_command_ends_with_one_where_too_little_agrees() -> None:
    result = CliRunner().invoke(
        app, ["validate", "findings", "--data", str(PUBLIC_DATA), "--paper", "001", "-o", "json"]
    )
    found = json.loads(result.stdout)
    asked = [r for p in frozen_papers() if p.paper == "001" for r in p.findings]
    assert len(found["findings"]) == len(asked) == 144
    assert found["summary"][0]["rows"] == sum(isinstance(row, Asked) for row in asked)
    enough = (
        found["summary"][0]["direction_right"]
        >= DIRECTION_PERCENT / 100 * found["summary"][0]["rows"]
        and found["summary"][0]["magnitude_right"]
        >= MAGNITUDE_PERCENT / 100 * found["summary"][0]["rows"]
    )
    assert result.exit_code == (0 if enough else 1)
