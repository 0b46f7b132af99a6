"""`iojoule validate laws`: every law is told, and the exit status follows from the verdicts."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from iojoule.api.cli import validate_laws
from iojoule.api.cli.app import run
from iojoule.api.exit_codes import DIFFERENT, DONE
from iojoule.api.validating.laws import laws_of, subjects
from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import shipped_profiles
from iojoule.recommender.validation.laws import DRAWS, LAWS

ROOT = Path(__file__).parents[3]


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = run(["validate", "laws", *words, "--draws", "1", "-o", "json"])
    return code, json.loads(capsys.readouterr().out)


def test_every_drive_is_judged_by_every_law_named(capsys: pytest.CaptureFixture[str]) -> None:
    devices, laws = ("micron-7450", "samsung-980-pro-1tb"), (3, 12, 16)
    words = [word for one in devices for word in ("--device", one)]
    code, found = ask(capsys, *words, *(word for one in laws for word in ("--law", str(one))))
    told = [(one["device"], one["law"]) for one in found["laws"]]
    assert told == [(device, law) for device in devices for law in laws]
    good = {"holds", "expected failure", "does not apply"}
    kept = all(one["verdict"] in good for one in found["laws"])
    assert code == (DONE if kept else DIFFERENT)


def test_one_law_alone_and_its_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = ask(capsys, "--device", "samsung-980-pro-1tb", "--law", "15")
    assert code == DONE
    assert [(one["law"], one["verdict"]) for one in found["laws"]] == [(15, "holds")]


@pytest.mark.slow
def test_the_table_has_a_row_for_every_law(capsys: pytest.CaptureFixture[str]) -> None:
    run(["validate", "laws", "--device", "wd-zn540", "--draws", "1", "-o", "csv"])
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(LAWS)


def test_without_a_name_the_shipped_profiles_are_judged() -> None:
    assert {one.device for one in subjects([], [])} == set(shipped_profiles())


def test_a_profile_of_ones_own_is_judged() -> None:
    path = ROOT / "datasets" / "profiles" / "wd-zn540.json"
    [one] = subjects([], [path])
    assert one.device == "wd-zn540"
    assert "wd-zn540" not in one.drives


def test_there_is_no_law_20() -> None:
    with pytest.raises(InputError) as refused:
        laws_of([1, 20])
    assert refused.value.field == "law"


def test_the_default_of_the_command_is_that_of_the_judge() -> None:
    assert validate_laws.DRAWS == DRAWS
    assert inspect.signature(validate_laws.laws).parameters["draws"].default == DRAWS
