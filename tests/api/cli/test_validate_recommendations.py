"""`iojoule validate recommendations`, as people type it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iojoule.api.cli.app import run
from iojoule.api.exit_codes import DIFFERENT


def test_two_tables_make_no_csv_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["validate", "recommendations", "-o", "csv"]) == 2
    assert "-o json" in capsys.readouterr().err


@pytest.mark.soak
def test_questions_are_judged_and_truth_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One question, so one drive: its truth is simulated in full, once."""
    asked = ["validate", "recommendations", "--cases", "1", "--seed", "3", "--keep", str(tmp_path)]
    code = run([*asked, "-o", "json"])
    told = json.loads(capsys.readouterr().out)
    assert [one["picker"] for one in told["outcomes"]] == ["intervals", "measured", "points"]
    ours = told["summary"][0]
    kept = (ours["violated"]["share"] or 0.0) <= ours["stated"]
    small = ours["regret"] is None or ours["regret"]["mean"] <= 0.03
    little = (ours["declined_possible"]["share"] or 0.0) <= 0.1
    assert code == (0 if kept and small and little else DIFFERENT)
    truth = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    poisson = told["outcomes"][0]["arrivals"] == "poisson"
    assert len(truth) >= 4 + poisson
    assert run(asked) == code
    assert "break the SLA" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == truth
