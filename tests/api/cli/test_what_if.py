"""`iojoule what-if` and its sweep, as people type them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from iojoule.api.application import what_if as what_ifs
from iojoule.api.application.profiles import profile_of
from iojoule.api.application.what_if_response import WhatIfAnswer
from iojoule.api.cli.app import run
from iojoule.datasets.errors import InputError
from iojoule.recommender.request import load_workload
from iojoule.recommender.what_if.situation import Situation
from iojoule.recommender.what_if.sweep import Record
from iojoule.sim.workers import Pool, open_pool

ROOT = Path(__file__).resolve().parents[3]
KV = str(ROOT / "examples/kv-reads.toml")
BASE = ["--device", "samsung-980-pro-1tb", "--workload", KV]


def test_a_change_needs_no_name_of_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["what-if", *BASE, "-c", "growth=1.2", "-o", "json"]) == 0
    outcome = WhatIfAnswer.model_validate_json(capsys.readouterr().out)
    assert outcome.changes == {"growth": 1.2}
    assert outcome.changed.totals is not None
    assert outcome.summary.startswith("With growth = 1.2 drives and CPU draw")


def test_the_table_shows_both_sides_and_what_keeps_a_cap(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["what-if", *BASE, "-c", "cap=device power <= 2.9 W for 1 h"]) == 0
    said = capsys.readouterr().out
    for words in ("as it is:", "changed:", "Under 2.90 W of drive for 3600 s", "GB wait"):
        assert words in said


def test_a_drive_built_otherwise_says_that_it_was_simulated(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["what-if", *BASE, "-c", "geometry.channels=4", "-o", "csv"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.endswith("evidence")
    tail = next(row for row in rows if row.startswith("latency_p99_ns"))
    assert tail.endswith("simulated")


def test_building_it_as_it_is_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["what-if", *BASE, "-c", "geometry.channels=8", "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["changed"]["totals"] == told["base"]["totals"]


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (["-c", "growth=5"], 7, "no configuration meets the changed question"),
        (["-c", "colour=blue"], 3, "nothing of that name can be changed"),
        (["-c", "geometry.flash=qlc"], 3, "page_read_ns"),
        (["-c", "price=0.3"], 3, "0.30EUR/kWh"),
    ],
)
def test_what_has_no_answer_leaves_with_its_code(
    more: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["what-if", *BASE, *more]) == code
    assert said in capsys.readouterr().err


def test_a_sweep_is_stored_drawn_and_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, picture = tmp_path / "s.parquet", tmp_path / "s.svg"
    asked = ["what-if", "sweep", *BASE, "--axis", "drives=1,2", "--axis", "growth=0.5,1",
             "--out", str(out), "--plot", str(picture)]  # fmt: skip
    assert run(asked) == 0
    assert "4 points, 4 meet the SLA" in capsys.readouterr().out
    assert pq.read_table(out).num_rows == 4
    drawn = picture.read_bytes()
    assert b"<svg" in drawn
    # asked again nothing is computed, and the picture is the same to the byte
    assert run(asked) == 0
    assert picture.read_bytes() == drawn


def test_points_may_be_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = tmp_path / "points.csv"
    listed.write_text('growth,sla\n0.5,p99 < 2 ms\n1,"p99 < 1 ms, latency < 400 us"\n')
    asked = [
        "what-if",
        "sweep",
        *BASE,
        "--points",
        str(listed),
        "--out",
        str(tmp_path / "s.parquet"),
    ]
    assert run([*asked, "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [each["change.growth"] for each in told["records"]] == [0.5, 1]


class _Interrupted:
    """A pool that Ctrl-C reaches after some points."""

    slots = 1

    def __init__(self, after: int) -> None:
        self.left = after

    def map(self, function: Any, items: Any, *, shared: Any, done: Any, **_: Any) -> list[Record]:
        for index, item in enumerate(items):
            if not self.left:
                raise KeyboardInterrupt
            self.left -= 1
            done(index, function(shared, item))
        raise AssertionError

    def close(self) -> None:
        pass


def test_an_interrupted_sweep_keeps_what_it_has_and_goes_on_there(tmp_path: Path) -> None:
    base = Situation(profile_of("samsung-980-pro-1tb"), load_workload(Path(KV)))
    asked = what_ifs.sweep_of(base, ["growth=0.5,0.75,1,1.25"], None, {})
    whole, part = tmp_path / "whole.parquet", tmp_path / "part.parquet"

    def sweep(path: Path, pool: Pool) -> what_ifs.SweepAnswer:
        return what_ifs.run_sweep(asked, path, pool, clock=lambda: 0.0)

    with pytest.raises(KeyboardInterrupt):
        sweep(part, _Interrupted(2))
    kept = pq.read_table(part)
    assert kept.column("point").to_pylist() == [0, 1]
    with open_pool(1) as pool:
        found, all_at_once = sweep(part, pool), sweep(whole, pool)
    assert found.records == all_at_once.records
    assert pq.read_table(part).equals(pq.read_table(whole))
    assert pq.read_table(part).slice(0, 2).equals(kept)


@pytest.mark.parametrize(
    ("axes", "listed", "fixed"),
    [
        (["growth=1,2"], None, {"growth": 2}),
        (["growth=1,2", "growth=3"], None, {}),
        (["growth=1,2"], "growth,drives\n1,1\n", {}),
        ([], "growth,growth\n1,2\n", {}),
        ([], "growth\n1\n", {"growth": 2}),
    ],
)
def test_a_field_of_a_sweep_is_stated_once(
    tmp_path: Path, axes: list[str], listed: str | None, fixed: dict[str, Any]
) -> None:
    base = Situation(profile_of("samsung-980-pro-1tb"), load_workload(Path(KV)))
    points = None if listed is None else tmp_path / "points.csv"
    if points is not None and listed is not None:
        points.write_text(listed)
    with pytest.raises(InputError) as refused:
        what_ifs.sweep_of(base, axes, points, fixed)
    assert refused.value.field == "growth"


def test_the_help_of_the_group_shows_the_options_of_its_usual_command(iojoule) -> None:
    told = iojoule("what-if", "--help").out
    for option in ("--change", "--workload", "--drives", "sweep"):
        assert option in told


def test_every_drive_that_the_list_of_changes_names_exists(iojoule) -> None:
    listed = json.loads(iojoule("what-if", "changes", "-o", "json").out)
    named = [word for one in listed for word in re.findall(r"drive=([\w.-]+)", str(one))]
    assert named
    for name in named:
        assert iojoule("devices", "show", name).code == 0
