"""Block traces on the command line: workloads, time lines and demand classes."""

import json
import random
import tomllib
from pathlib import Path

import pytest

from tests.api.conftest import Iojoule

REQUESTS = 3000
VOLUMES = {"0": 1000, "1": 2000}
"""Of the file, and how many requests each has."""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In Alibaba's format: 30 % reads of 16 KiB in the mean, 200 a second."""
    draw, micros, lines = random.Random(1), 1577808000000000, []
    for number in range(REQUESTS):
        micros += 5000
        operation = "R" if number % 10 < 3 else "W"
        lines.append(
            f"{min(number % 3, 1)},{operation},{draw.randrange(1 << 20) * 4096},16384,{micros}"
        )
    path = tmp_path_factory.mktemp("trace") / "io_traces.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_volumes_are_listed_and_pooled_only_when_asked(iojoule: Iojoule, trace: Path) -> None:
    listed = iojoule("workload", "from", "trace", trace)
    assert listed.code == 0, listed.err
    assert all(str(count) in listed.out for count in VOLUMES.values())
    assert iojoule("workload", "from", "trace", trace, "-o", "json").code == 3
    one = iojoule("workload", "from", "trace", trace, "--volume", "1", "-o", "json")
    merged = iojoule("workload", "from", "trace", trace, "--merge", "-o", "json")
    rates = [json.loads(done.out)["workload"]["demand_bytes_per_second"] for done in (one, merged)]
    assert rates == pytest.approx([16384 * 200 * 2 / 3, 16384 * 200], rel=0.01)
    assert any("15" in note for note in json.loads(one.out)["notes"])  # it lasts 15 s


def test_demand_classes_are_planned_for_a_fleet(
    iojoule: Iojoule, trace: Path, tmp_path: Path
) -> None:
    classes = tmp_path / "classes.toml"
    done = iojoule("workload", "from", "trace", trace, "--merge", "--fleet-classes", classes)
    assert done.code == 0, done.err
    [work] = tomllib.loads(classes.read_text())["class"]
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(
        f'''name = "one"
[[domain]]
name = "rack"
[[drives]]
name = "drives"
device = "samsung-980-pro-1tb"
count = 2
domain = "rack"
classes = ["{work["name"]}"]
'''
        + classes.read_text()
    )
    planned = iojoule("fleet", "plan", fleet, "-o", "json")
    assert planned.code == 0, planned.err


@pytest.mark.parametrize("interval", ["5", "60"])
def test_a_trace_is_replayed_whole_whatever_the_interval(
    iojoule: Iojoule, trace: Path, interval: str
) -> None:
    done = iojoule(
        "simulate", "--ssd", "samsung-980-pro-1tb", "--trace", trace, "--interval", interval
    )
    assert done.code == 0, done.err
    answer = json.loads(done.out)
    assert answer["requests"] == REQUESTS
    assert sum(one["reads"] + one["writes"] for one in answer["intervals"]) == REQUESTS
    joules = sum(one["watts"] * one["seconds"] for one in answer["intervals"])
    assert joules == pytest.approx(sum(answer["energy_joules"].values()), rel=1e-6)


def test_a_day_has_the_requests_that_were_asked_for(iojoule: Iojoule) -> None:
    done = iojoule("simulate", "--ssd", "samsung-980-pro-1tb", "--day", "20000")
    assert done.code == 0, done.err
    assert json.loads(done.out)["requests"] == pytest.approx(20_000, rel=0.05)
    assert "[fast_collection]" in done.err
    assert "--engine" not in done.err  # which is refused beside a day


@pytest.mark.parametrize(
    "option", [("--volume", "1"), ("--format", "msr"), ("--speed", "2"), ("--wrap",)]
)
def test_an_option_of_traces_needs_a_trace(iojoule: Iojoule, option: tuple[str, ...]) -> None:
    assert iojoule("simulate", "--ssd", "samsung-980-pro-1tb", "--day", "10", *option).code == 2


def test_a_scale_is_one_of_a_day(iojoule: Iojoule, trace: Path) -> None:
    drive = ("simulate", "--ssd", "samsung-980-pro-1tb")
    assert iojoule(*drive, "--trace", trace, "--scale", "2").code == 2
    assert iojoule(*drive, "--day", "20000", "--scale", "0.5").code == 2
    told = json.loads(iojoule(*drive, "--day", "20000", "--scale", "4").out)
    assert told["scale"] == 4
    assert told["requests"] == pytest.approx(20_000, rel=0.2)
    assert told["simulated_seconds"] == pytest.approx(86_400, rel=0.01)


@pytest.mark.parametrize(
    "option",
    [
        ("--front",),
        ("--shard", "1/2"),
        ("--vary", "channels=1,2"),
        ("--engine", "fast"),
        ("--max-wall", "5"),
        ("--jobs", "2"),
        ("--state", "kept"),
        ("--series-step", "1"),
    ],
)
def test_an_option_of_workloads_is_refused_beside_a_day(
    iojoule: Iojoule, option: tuple[str, ...]
) -> None:
    assert iojoule("simulate", "--ssd", "samsung-980-pro-1tb", "--day", "10", *option).code == 2


def test_a_damaged_row_is_named_by_file_and_line(iojoule: Iojoule, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("0,R,4096,4096,1577808000000000\n0,X,4096,4096,1577808000000001\n")
    done = iojoule("workload", "from", "trace", path, "--format", "alibaba")
    assert done.code == 3
    assert "bad.csv" in done.err
    assert "2" in done.err


def test_each_volume_has_a_file_of_its_own(iojoule: Iojoule, tmp_path: Path) -> None:
    log = tmp_path / "log"
    names = ("/a/b", "/a_b", "a_b")
    lines = [f"{1000 * at} {name} read 0 4096" for at, name in enumerate(names * 2)]
    log.write_text("\n".join(["fio version 3 iolog", *lines]) + "\n")
    done = iojoule("workload", "from", "trace", log, "--each", "--out", tmp_path / "each")
    assert done.code == 0, done.err
    written = [tomllib.loads(file.read_text())["name"] for file in (tmp_path / "each").iterdir()]
    assert sorted(written) == sorted(f"fio-iolog-{name}" for name in names)
