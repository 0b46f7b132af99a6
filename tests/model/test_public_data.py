"""The shipped profiles against the public measurements they were fitted from."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from typing import Any

import pytest

from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.profile import load_shipped_profile, shipped_profiles
from iojoule.datasets.schema import AskedConditions
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.timeline import Phase, follow
from iojoule.model.evaluate.validity import under
from iojoule.model.fit.build import fit_profile, load_measurements
from iojoule.model.fit.report import Table, report
from iojoule.model.prior.build import completed_with_facts
from iojoule.model.prior.facts import facts_of
from iojoule.model.recipe import load_recipe
from tests.reference_data import PUBLIC_DATA, needs_public_data


def same(found: Any, shipped: Any, where: str = "") -> None:
    """Compare nested JSON to its last digit: seven significant ones, five decimals of residuals.

    Machines round otherwise (linear algebra, exponentials), which the fits carry to some 1e-8; a
    number next to the half of its last digit may so be written one higher or lower.
    """
    if isinstance(shipped, dict):
        assert set(found) == set(shipped), where
        for key, value in shipped.items():
            same(found[key], value, f"{where}.{key}")
    elif isinstance(shipped, list):
        assert len(found) == len(shipped), where
        for index, value in enumerate(shipped):
            same(found[index], value, f"{where}[{index}]")
    elif isinstance(shipped, float):
        assert found == pytest.approx(shipped, rel=2e-6, abs=2e-5), where
    else:
        assert found == shipped, where


@needs_public_data
@pytest.mark.slow
@pytest.mark.parametrize("device", shipped_profiles())
def test_shipped_profile_is_what_the_recipe_fits(device: str) -> None:
    recipe = load_recipe(device)
    measurements, sources = load_measurements(recipe, PUBLIC_DATA)
    found = completed_with_facts(
        fit_profile(recipe, measurements, sources), facts_of(load_catalogue().get(device))
    )
    same(
        json.loads(found.model_dump_json()),
        json.loads(load_shipped_profile(device).model_dump_json()),
    )


@pytest.fixture(scope="module")
def every_table() -> list[Table]:
    return report(PUBLIC_DATA).tables


@pytest.fixture(scope="module")
def tables(every_table: list[Table]) -> dict[str, Table]:
    """The 980 PRO's tables by the end of each title."""
    titles = [table.title.split(": ", 1) for table in every_table]
    return {
        title[1]: table
        for title, table in zip(titles, every_table, strict=True)
        if "980 PRO" in title[0]
    }


def number(cell: str | int | float | None) -> float:
    assert isinstance(cell, int | float)
    return float(cell)


@needs_public_data
@pytest.mark.soak
def test_model_errs_less_than_the_baselines(every_table: list[Table]) -> None:
    rows = {
        (str(row[1]), str(row[2]), str(row[3])): row
        for row in every_table[0].rows
        if row[0] == "samsung-980-pro-1tb"
    }
    for quantity in ("throughput", "mean latency", "p99"):
        row = rows["queue_depth", "inside", quantity]
        assert number(row[5]) <= number(row[6])
        row = rows["queue_depth", "beyond", quantity]
        assert number(row[5]) <= number(row[6]) / 2


@needs_public_data
@pytest.mark.soak
def test_all_drives_together_beat_interpolation_and_extrapolation(
    every_table: list[Table],
) -> None:
    rows = {
        (str(row[2]), str(row[3])): row for row in every_table[0].rows if row[0] == "all drives"
    }
    for quantity in ("throughput", "mean latency", "p99"):
        assert number(rows["inside", quantity][5]) <= number(rows["inside", quantity][6])
    for quantity in ("throughput", "mean latency"):
        assert number(rows["beyond", quantity][5]) <= number(rows["beyond", quantity][6]) / 2
    assert number(rows["beyond", "p99"][5]) <= number(rows["beyond", "p99"][6])
    for row in every_table[0].rows:  # where the host's queue overflows
        if row[:4] == ["samsung-860-pro", "both", "beyond", "p99"]:
            assert number(row[5]) <= 0.5 * number(row[6])


@needs_public_data
@pytest.mark.soak
def test_intervals_of_all_drives_cover_and_few_score_worse(every_table: list[Table]) -> None:
    worse = set()
    for table in every_table:
        if not table.title.endswith("90 % intervals on the same rows"):
            continue
        for row in table.rows:
            if row[1] != "steady":
                continue
            assert number(row[6]) > 0.05, row
            if number(row[7]) > 1.01 * number(row[10]):
                worse.add((table.title.split(":")[0], row[0], row[3]))
    assert worse <= {("Samsung 860 PRO", "random read", "mean latency")}


@needs_public_data
@pytest.mark.soak
def test_intervals_of_steady_sessions_cover_and_score_better(tables: dict[str, Table]) -> None:
    for row in tables["90 % intervals on the same rows"].rows:
        if row[1] == "steady":
            assert number(row[6]) > 0.05, row
            assert number(row[7]) < number(row[10]), row


@needs_public_data
@pytest.mark.soak
def test_power_holds_where_nothing_was_fitted(tables: dict[str, Table]) -> None:
    rows = {str(row[0]): row for row in tables["device power on what the fit did not see"].rows}
    assert number(rows["power at 1 to 2 MiB, measured throughput"][3]) <= 3.0
    assert number(rows["cached regime, second half"][3]) <= 10.0
    assert number(rows["collecting regime, second half"][3]) <= 10.0
    assert number(rows["energy, total bytes and time given"][2]) <= 8.0
    assert number(rows["energy, bytes given each second"][2]) <= 8.0


@needs_public_data
@pytest.mark.soak
def test_the_write_series_is_foretold_without_its_state(tables: dict[str, Table]) -> None:
    rows = tables["write series, state not given"].rows
    assert {row[0] for row in rows} >= {
        "second half of the time",
        "second half of the bytes",
        "the whole series",
    }
    for row in rows:
        if str(row[3]) in ("energy of the series, J", "energy of what was left out, J"):
            # 13 where no cliff was seen yet: a queue that does not fill the drive is taken to
            # let it collect less
            assert abs(number(row[8])) <= 14.0, row
        assert row[9] == "yes", row


@dataclass(frozen=True)
class Trace:
    """A drawn trace of watts: writes in a power state, then idle time."""

    pattern: str
    power_state: int
    writing_seconds: float
    seconds: float
    joules: float


TRACES = {
    "5.1 a": Trace("sequential", 0, 15.0, 24.0, 122.71),
    "5.1 b": Trace("sequential", 1, 15.0, 48.0, 148.64),
    "5.1 c": Trace("sequential", 2, 15.0, 130.5, 383.61),
    "5.2 a": Trace("sequential", 0, 60.0, 114.5, 518.21),
    "5.2 b": Trace("random", 0, 60.0, 114.5, 514.99),
}
"""Figure of the thesis (Kanichai, VU Amsterdam, 2025) -> its trace, joules from its area."""


@needs_public_data
def test_energy_of_the_traces_is_the_area_under_the_figures() -> None:
    area = dict.fromkeys(TRACES, (0.0, 0.0))
    with (PUBLIC_DATA / "thesis_timeseries.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            figure = f"{row['figure']} {row['panel']}"
            if figure in TRACES and row["quantity"] == "device_power_watts":
                joules, seconds = area[figure]
                width = float(row["bin_seconds"])
                area[figure] = (joules + float(row["value"]) * width, seconds + width)
    for figure, trace in TRACES.items():
        assert area[figure] == pytest.approx((trace.joules, trace.seconds), rel=1e-4)


@pytest.mark.parametrize("figure", TRACES)
def test_energy_of_writes_and_of_what_follows_is_predicted(figure: str) -> None:
    """Watts over time; the profile knows means of these traces, not their course."""
    trace = TRACES[figure]
    configuration = {
        "operation": "write",
        "pattern": trace.pattern,
        "request_bytes": 131072,
        "queue_depth": 32,
        "power_state": trace.power_state,
        "host_bytes_written_since_purge": 0.0,
    }
    profile = under(load_shipped_profile("samsung-980-pro-1tb"), AskedConditions())
    phases = [
        Phase(trace.writing_seconds, write=True),
        Phase(trace.seconds - trace.writing_seconds, write=False),
    ]
    energy = follow(Predictor(profile), configuration, phases, step_seconds=0.5).energy_joules
    assert energy.low <= trace.joules <= energy.high
    assert energy.value == pytest.approx(trace.joules, rel=0.13)
