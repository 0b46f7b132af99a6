"""`iojoule fleet` as people use it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from iojoule.datasets.errors import InputError

EXAMPLE = Path(__file__).parents[3] / "examples" / "fleet.toml"


def test_the_example_is_planned_and_shown(iojoule) -> None:
    said = iojoule("fleet", "plan", str(EXAMPLE), "--budget", "6000").out
    for word in ("least watts, budget 6,000 W", "standby", "r2-caches", "rack-1", "2,600 W"):
        assert word in said


def test_the_example_has_a_plan_for_each_of_its_budgets(iojoule) -> None:
    done = iojoule("fleet", "plan", str(EXAMPLE), "-o", "json")
    assert done.code == 0, done.err
    plans = json.loads(done.out)["plans"]
    assert [plan["budget_watts"] for plan in plans] == [6000, 4700, 6000]
    assert [lines[1].split(" expected")[0] for lines in json.loads(done.out)["summary"]] == [
        f"{plan['expected_watts']:,.0f} W" for plan in plans
    ]
    assert all(plan["percentile_watts"] <= plan["budget_watts"] * (1 + 1e-6) for plan in plans)


def test_every_drive_is_in_the_csv(iojoule) -> None:
    done = iojoule("fleet", "plan", str(EXAMPLE), "--aim", "most_demand", "-o", "csv")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    for start in ("0.0", "3600.0", "7200.0"):
        assert sum(int(row["count"]) for row in rows if row["from_seconds"] == start) == 360


def test_a_roll_out_starts_from_what_runs(iojoule, tmp_path: Path) -> None:
    plan = ("fleet", "plan", str(EXAMPLE), "--aim", "most_demand", "-o", "json")
    now = tmp_path / "now.json"
    now.write_text(iojoule(*plan, "--budget", "6000").out)
    found = json.loads(iojoule(*plan, "--budget", "4200", "--from", str(now)).out)
    (stages,) = found["rollouts"]
    assert [stage["share"] for stage in stages][-1] == 1.0
    assert found["plans"][0]["percentile_watts"] <= 4200 * (1 + 1e-6)
    assert "Roll-out" in iojoule(*plan[:-2], "--budget", "4200", "--from", str(now)).out


def test_a_file_without_a_plan_is_refused(iojoule, tmp_path: Path) -> None:
    now = tmp_path / "now.json"
    now.write_text('{"plans": [], "rollouts": []}')
    done = iojoule("fleet", "plan", str(EXAMPLE), "--from", str(now))
    assert done.code == InputError.exit_code


def test_a_demand_that_cannot_be_met_leaves_with_7(iojoule) -> None:
    done = iojoule("fleet", "plan", str(EXAMPLE), "--budget", "4000")
    assert done.code == 7
    assert "class analytics" in done.err
    assert "most_demand" in done.err


def test_the_frontier_is_drawn(iojoule, tmp_path: Path) -> None:
    picture = tmp_path / "frontier.svg"
    done = iojoule("fleet", "frontier", str(EXAMPLE), "--points", "3", "--plot", str(picture))
    assert "a watt" in done.out
    assert picture.read_text().startswith("<?xml")


def test_servers_are_compared(iojoule, tmp_path: Path) -> None:
    file = tmp_path / "servers.toml"
    file.write_text(
        "[old]\nthroughput_bytes_per_second = 140e6\nsystem_power_watts = 52\n"
        "[new]\nthroughput_bytes_per_second = 100e6\nsystem_power_watts = 18.2\n"
    )
    (found,) = json.loads(iojoule("fleet", "replace", str(file), "-o", "json").out)
    assert found["pays"] == "yes"
    file.write_text("[old]\n")
    refused = iojoule("fleet", "replace", str(file))
    assert refused.code == 3
    assert "throughput_bytes_per_second" in refused.err


def test_a_file_for_no_drive_of_the_fleet_is_named(iojoule) -> None:
    other = Path(__file__).parents[3] / "datasets" / "profiles" / "samsung-860-pro.json"
    done = iojoule("fleet", "plan", str(EXAMPLE), "--profile", str(other))
    assert done.code == 3
    assert "no drives of the fleet are" in done.err


def test_what_the_bounds_are_about_is_an_option_of_the_command(iojoule) -> None:
    bounds = []
    for about in ("same-host", "another-host"):
        done = iojoule(
            "fleet", "plan", str(EXAMPLE), "--budget", "6000", "--for", about, "-o", "json"
        )
        assert done.code == 0, done.err
        bounds.append(json.loads(done.out)["plans"][0]["bound_watts"])
    assert bounds[0] < bounds[1]
