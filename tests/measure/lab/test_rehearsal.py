"""A drive made of a profile: what the table says, what is refused, and that fio sees it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DeviceProfile, load_shipped_profile, write_profile
from iojoule.datasets.vocabulary import Operation
from iojoule.measure.errors import LabError
from iojoule.measure.lab import life
from iojoule.measure.lab.client import LabClient
from iojoule.measure.lab.rehearsal import (
    IN_FLIGHT,
    QUANTILES,
    find_profile,
    make_table,
    rehearsal,
    spread_of,
)
from iojoule.model.evaluate.predictor import Predictor
from tests.measure.lab.conftest import need

SHIPPED = "samsung-980-pro-1tb"


@pytest.fixture
def profile() -> DeviceProfile:
    return load_shipped_profile(SHIPPED)


def numbers(text: str, word: str) -> list[list[float]]:
    """The numbers of every line that begins with the word."""
    return [
        [float(each) for each in line.split()[1:]]
        for line in text.splitlines()
        if line.split()[0] == word
    ]


def test_the_table_is_what_the_profile_predicts(profile: DeviceProfile) -> None:
    table = make_table(profile, 1 << 17, [0, 2])
    key = ("write", "sequential", 2)
    size, depth = 16384.0, 8.0
    row, column = list(table.request_bytes).index(size), list(IN_FLIGHT).index(depth)
    asked = {"operation": key[0], "pattern": key[1], "power_state": key[2]}
    columns = {name: [value] for name, value in asked.items()}
    told, _ = Predictor(profile).predict_columns(
        {**columns, "request_bytes": [size], "queue_depth": [depth]}, rows=1
    )
    for found, name in ((table.latency_ns, "latency_mean_ns"), (table.watts, "device_power_watts")):
        assert found[key][row, column] == pytest.approx(told[name].value[0])
    spread = table.spread[key]
    assert (np.diff(spread) >= 0).all()
    assert np.trapezoid(spread, QUANTILES) == pytest.approx(1)


def test_between_the_depths_of_the_table_its_line_is_near(profile: DeviceProfile) -> None:
    depths = np.arange(33, 1025, dtype=np.float64)
    columns = {"request_bytes": [4096] * len(depths), "queue_depth": depths}
    told, _ = Predictor(profile).predict_columns(columns, rows=len(depths))
    exact = told["latency_mean_ns"].value
    at = np.isin(depths, IN_FLIGHT)
    lines = np.exp(np.interp(np.log(depths), np.log(depths[at]), np.log(exact[at])))
    assert lines == pytest.approx(exact, rel=0.01)


def test_the_spread_has_the_percentiles_of_the_profile() -> None:
    found = spread_of(np.array(0.95), np.array(1.6), np.array(2.5))
    for share, ratio in ((0.5, 0.95), (0.99, 1.6), (0.999, 2.5)):
        assert np.interp(share, QUANTILES, found) == pytest.approx(ratio, rel=0.02)
    unknown = spread_of(*[np.full(3, np.nan)] * 3)
    assert unknown.min() == pytest.approx(0.9)


def test_it_is_slow_enough_and_says_so(profile: DeviceProfile) -> None:
    profile = profile.model_copy(update={"max_transfer_bytes": 8192})
    made = rehearsal(profile, SHIPPED)
    told = made.facts["rehearsal"]
    assert 4e6 <= told["fastest_latency_ns"] < 4.5e6  # rounded up to two digits
    slower = rehearsal(profile, SHIPPED, 2 * told["slow_down"])
    first, second = (numbers(each.text, "latency_ns")[0] for each in (made, slower))
    assert second == pytest.approx([2 * value for value in first])
    assert numbers(slower.text, "watts") == numbers(made.text, "watts")
    assert made.model == "Samsung 980 PRO 1TB (rehearsal)"
    assert [state.operational for state in made.power.states] == [True, True, True, False, False]
    assert made.power.states[3].exit_latency_ns == round(1_200_000 * told["slow_down"])
    assert made.max_transfer_bytes == 8192


def test_what_stands_in_is_listed(profile: DeviceProfile) -> None:
    reads = [each for each in profile.surfaces if each.operation == Operation.READ]
    poor = profile.model_copy(
        update={
            "device": "nobodys",
            "surfaces": reads,
            "capacity_bytes": None,
            "max_transfer_bytes": 1 << 40,
        }
    )
    made = rehearsal(poor, "x")
    said = "\n".join(made.facts["rehearsal"]["stand_ins"])
    for words in (
        "random writes: not measured; as random reads",
        "capacity: not known",
        "largest command: not known",
    ):
        assert words in said
    assert made.max_transfer_bytes == 0


def test_what_cannot_be_stood_in_for_is_refused(profile: DeviceProfile, tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"no watts of the drive \(device_power\)"):
        rehearsal(profile.model_copy(update={"device_power": None}), "x")
    with pytest.raises(LabError, match="no performance"):
        rehearsal(profile.model_copy(update={"surfaces": []}), "x")
    with pytest.raises(LabError, match="outside 1 to"):
        rehearsal(profile, "x", 0.5)
    with pytest.raises(InputError, match="cannot be read"):
        find_profile("no-such-profile")
    lacking = load_shipped_profile("samsung-860-pro").model_copy(update={"device_power": None})
    path = tmp_path / "p.json"
    write_profile(lacking, path)
    with pytest.raises(LabError, match="device_power"):
        life.up(tmp_path / "lab", profile=str(path))
    assert not (tmp_path / "lab").exists()


@pytest.fixture(scope="module")
def rehearsed(disk_possible: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabClient]:
    folder = tmp_path_factory.mktemp("lab") / "lab"
    try:
        # slower than need be, so that a busy machine hardly counts
        with life.up(folder, profile=SHIPPED, slow_down=1500) as client:
            yield client
    finally:
        life.down(folder)


def predicted(lab: LabClient, columns: dict[str, Any]) -> dict[str, float]:
    told, _ = Predictor(load_shipped_profile(SHIPPED)).predict_columns(
        {name: [value] for name, value in columns.items()}, rows=1
    )
    slow_down = lab.state["rehearsal"]["slow_down"]
    return {
        "latency_mean_ns": told["latency_mean_ns"].value[0] * slow_down,
        "iops": told["iops"].value[0] / slow_down,
        "watts": told["device_power_watts"].value[0],
    }


def played(lab: LabClient, columns: dict[str, Any], seconds: float) -> dict[str, float]:
    """What fio saw, and the watts of the time between."""
    need("fio")
    if lab.disk.status()["power_state"] != columns["power_state"]:
        lab.disk.ask("state", columns["power_state"])
        time.sleep(2)  # leaving PS2 takes 1.5 s here
    order = "rand" if columns["pattern"] == "random" else ""
    begin_ns = time.monotonic_ns()
    done = subprocess.run(
        [
            "fio",
            "--name=x",
            f"--filename={lab.state['drive']}",
            "--direct=1",
            "--norandommap",
            f"--rw={order}{columns['operation']}",
            "--ioengine=io_uring",
            "--time_based",
            f"--bs={columns['request_bytes']}",
            f"--iodepth={columns['queue_depth']}",
            f"--runtime={seconds}s",
            "--ramp_time=2s",
            "--allow_file_create=0",
            "--output-format=json",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    seen = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0][columns["operation"]]
    found = lab.disk.completions(begin_ns, time.monotonic_ns())
    first_ns = int((found["done_ns"] - (found["packed"] >> 24)).min())
    true = lab.record(first_ns + 2_200_000_000, first_ns + round(1e9 * (seconds + 1.8)))
    return {
        "latency_mean_ns": seen["lat_ns"]["mean"],
        "iops": seen["iops"],
        "watts": true["device_power_watts"],
    }


@pytest.mark.soak
@pytest.mark.parametrize(
    ("operation", "pattern", "size", "depth", "state"),
    [
        ("read", "random", 4096, 4, 0),
        ("read", "random", 4096, 64, 0),
        ("read", "random", 65536, 8, 0),
        ("read", "random", 4096, 4, 2),
        ("write", "random", 4096, 16, 0),
        ("write", "sequential", 131072, 4, 0),
    ],
)
def test_fio_sees_the_profile(
    rehearsed: LabClient, operation: str, pattern: str, size: int, depth: int, state: int
) -> None:
    columns = {
        "operation": operation,
        "pattern": pattern,
        "request_bytes": size,
        "queue_depth": depth,
        "power_state": state,
    }
    expected = predicted(rehearsed, columns)
    tolerances = {"latency_mean_ns": 0.05, "iops": 0.05, "watts": 0.03}
    # fio waits for what is in flight at the end, which with long tails takes many mean latencies
    seconds = max(8, round(100e-9 * expected["latency_mean_ns"])) if state else 8
    tries = []
    for _ in range(4):  # it may meet a busy machine
        seen = played(rehearsed, columns, seconds)
        tries.append({name: seen[name] / expected[name] - 1 for name in tolerances})
        if all(abs(tries[-1][name]) <= most for name, most in tolerances.items()):
            return
    raise AssertionError(tries)


@pytest.mark.soak
def test_asleep_it_draws_less_and_wakes_up_late(rehearsed: LabClient) -> None:
    rehearsed.disk.ask("state", 3)
    begin_ns = time.monotonic_ns()
    time.sleep(0.5)
    assert rehearsed.record(begin_ns)["device_power_watts"] == pytest.approx(1.2, rel=0.01)
    subprocess.run(
        [
            "dd",
            f"if={rehearsed.state['drive']}",
            "of=/dev/null",
            "bs=4k",
            "count=1",
            "iflag=direct",
        ],
        check=True,
        capture_output=True,
    )
    exit_ns = 1_200_000 * rehearsed.state["rehearsal"]["slow_down"]
    assert rehearsed.record(begin_ns)["read"]["latency_min_ns"] > exit_ns
    assert rehearsed.disk.status()["power_state"] != 3


@pytest.mark.soak
def test_what_is_written_is_read_and_trimmed(rehearsed: LabClient) -> None:
    drive = rehearsed.state["drive"]
    data = os.urandom(8192)
    place = {"bs": "4k", "seek": str(1 << 27)}  # half a terabyte
    options = [f"{name}={value}" for name, value in place.items()]
    write = ["dd", f"of={drive}", *options, "oflag=direct", "conv=notrunc"]
    read = ["dd", f"if={drive}", "bs=4k", f"skip={1 << 27}", "count=2", "iflag=direct"]
    subprocess.run(write, input=data, check=True, capture_output=True)
    assert subprocess.run(read, check=True, capture_output=True).stdout == data
    offset = str((1 << 27) * 4096)
    subprocess.run(["blkdiscard", "-f", "-o", offset, "-l", "4096", drive], check=True)
    found = subprocess.run(read, check=True, capture_output=True).stdout
    assert found == bytes(4096) + data[4096:]
    assert rehearsed.disk.status()["dropped_bytes"] == 0
