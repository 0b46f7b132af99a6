"""Hard disks and SATA SSDs through the commands that people use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "fleet_disks.toml"

ARCHIVE = """
name = "archive"
[workload]
operation = "read"
pattern = "sequential"
useful_request_bytes = 1048576
burst_bytes = 2000000000
idle_gap_seconds_p50 = 7200
[current]
queue_depth = 4
jobs = 1
engine = "libaio"
"""


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    file = tmp_path / "archive.toml"
    file.write_text(ARCHIVE)
    return file


@pytest.mark.parametrize(
    ("device", "field", "value"),
    [
        ("toshiba-dt01aca300", "standby_timer_seconds", 60.0),
        ("seagate-exos-7e2000", "standby_timer_seconds", 60.0),
        ("samsung-860-evo", "link_power_policy", "med_power_with_dipm"),
    ],
)
def test_a_recommendation_lets_the_drive_rest(
    iojoule, archive: Path, device: str, field: str, value: object
) -> None:
    done = iojoule("recommend", "--device", device, "--workload", archive, "-o", "json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    best = min(found["pareto"], key=lambda row: row["device_power_watts"]["value"])
    assert best["configuration"][field] == value


def test_what_if_the_disk_were_a_sata_ssd(iojoule, archive: Path) -> None:
    done = iojoule(
        "what-if", "ask", "--workload", archive, "--device", "toshiba-dt01aca300",
        "-c", "drive=samsung-860-evo", "-o", "json",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "samsung-860-evo" in done.out


@pytest.mark.parametrize(
    ("device", "setting"),
    [
        ("toshiba-dt01aca300", "standby_timer_seconds=60"),
        ("samsung-860-evo", "link_power_policy=min_power"),
    ],
)
def test_a_time_line_rests_between_writes(iojoule, device: str, setting: str) -> None:
    said = {}
    for how in (setting, "queue_depth=1"):
        done = iojoule(
            "timeline", "write=10", "idle=600", "write=10", "--device", device,
            "--set", how, "--step", "5", "-o", "json",
        )  # fmt: skip
        assert done.code == 0, done.err
        said[how] = json.loads(done.out)["totals"]["device_energy_joules"]["value"]
    assert said[setting] < said["queue_depth=1"]


def test_the_fleet_of_disks_stops_what_its_wear_allows(iojoule) -> None:
    done = iojoule("fleet", "plan", EXAMPLE, "-o", "json")
    assert done.code == 0, done.err
    disks, flash = json.loads(done.out)["plans"][0]["groups"]
    assert (disks["count"], flash["count"]) == (40, 10)
    assert 0 < disks["spin_ups"] <= disks["spin_ups_left"]
    said = iojoule("fleet", "plan", EXAMPLE).out
    for word in ("standby", "slumber", "wear budget", "waits up to"):
        assert word in said


def test_a_facts_file_of_a_disk_with_nvme_states_is_refused(iojoule) -> None:
    done = iojoule(
        "predict", "--device", "toshiba-dt01aca300", "--set", "power_state=1",
    )  # fmt: skip
    assert done.code != 0
    assert "power_state" in done.err
