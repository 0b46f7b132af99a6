"""From a campaign to a folder for a pull request: reproducible, anonymous, refused by name."""

from __future__ import annotations

import json
import platform
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iojoule.datasets.anonymous import TEXT_FIELDS
from iojoule.datasets.contribution import read_contribution
from iojoule.datasets.profile import read_profile
from iojoule.datasets.provenance import Provenance
from iojoule.datasets.schema import from_row
from iojoule.datasets.store import Dataset, write_dataset
from iojoule.model.fit.contributions import contribution_checks
from tests.contributions import (
    CONDITIONS,
    HOST,
    MODEL,
    SENSOR,
    SERIAL,
    One,
    changed,
    contents,
    runs,
    write_campaign,
    write_identify,
)

REFUSED = 8


@pytest.fixture(autouse=True)
def _without_public_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The profile then rests on the contribution alone, wherever the tests run."""
    monkeypatch.setenv("IOJOULE_DATA", str(tmp_path / "none"))


PLANTED = {
    "serial": SERIAL,
    "host": HOST,
    "mac": "00:1b:21:3c:4d:5e",
    "wwn": "eui.0025385b71b08f1a",
    "home": "/home/jane.doe/campaign",
    "uuid": "9d2c1f1e-5f3a-4a57-9e0e-6e7a3b1c2d4f",
}


def test_a_campaign_becomes_one_folder_twice_the_same(iojoule, tmp_path: Path) -> None:
    campaign = write_campaign(tmp_path / "campaign", runs())
    for name in ("one", "two"):
        done = iojoule("profile", "contribute", campaign, "-o", tmp_path / name)
        assert done.code == 0, done.err
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    checked = iojoule("profile", "contribute", tmp_path / "one", "--check")
    assert checked.code == 0, checked.err
    found = read_contribution(tmp_path / "one")
    assert found.about.device == "samsung-980-pro-1tb"
    assert found.about.licence == "Apache-2.0"
    assert found.about.conditions["temperature_celsius_mean"] == 42.0
    assert found.about.conditions["pcie_generation"] == 4
    assert found.about.drive is not None
    assert found.about.drive.max_transfer_bytes == 524288
    (meter,) = found.about.instruments
    assert (meter.kind, meter.version, meter.resolution_watts) == (
        "powersensor3",
        "F411-1.6.1",
        0.05,
    )
    assert [(one.vref_volts, one.sensitivity) for one in meter.channels] == [(1.65, 0.12)]
    profile = read_profile(tmp_path / "one" / "profile.json")
    assert profile.sources[-1].sha256 == found.about.measurements_sha256
    # the campaign follows the shipped profile, but for one percent
    told = json.loads((tmp_path / "one" / "agreement.json").read_text())
    assert told["compared_with"] == "measured profile"
    errors = {one["quantity"]: one for one in told["quantities"]}
    assert errors["throughput_bytes_per_second"]["median_error"] < 0.02
    assert errors["device_power_watts"]["covered"] > 0.9


def test_doubtful_runs_are_left_out_and_a_folder_with_one_is_refused(
    iojoule, tmp_path: Path
) -> None:
    made = runs()
    doubtful = {"verdict": "doubtful", "verdict_reasons": "stall"}
    campaign = write_campaign(
        tmp_path / "campaign",
        [*(changed(one, verdict="good") for one in made[:-1]), changed(made[-1], **doubtful)],
    )
    done = iojoule("profile", "contribute", campaign, "-o", tmp_path / "one")
    assert done.code == 0, done.err
    assert "1 doubtful measurements are left out (1 stall)" in done.err
    assert read_contribution(tmp_path / "one").about.rows == len(made) - 1
    rows = [from_row(one.row) for one in (*made[:-1], changed(made[-1], **doubtful))]
    checks = {one.name: one for one in contribution_checks(rows, [], None, None, [])}
    assert (checks["verdicts"].verdict, checks["verdicts"].runs) == ("failed", (len(made),))


def test_nothing_planted_anywhere_gets_out(
    iojoule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = runs()
    # the schema itself lets no such text into the reasons of a verdict
    fields = [name for name in TEXT_FIELDS if name not in ("device_model", "verdict_reasons")]
    here = "rack07a"  # short enough for a firmware revision, and known to be this host's name
    monkeypatch.setattr(platform, "node", lambda: here)
    plants = [*PLANTED.values(), here]
    for place, one in enumerate(made):
        # one identity for a run; labels must not tell runs apart, or they are of several drives
        every = {name: " ".join(plants) for name in fields if name.endswith(("_id", "_hash"))}
        other = {
            name: plants[(place + shift) % len(plants)]
            for shift, name in enumerate(fields)
            if name not in every
        }
        made[place] = changed(one, **every, **other)
    campaign = write_campaign(tmp_path / "campaign", made)
    done = iojoule("profile", "contribute", campaign, "-o", tmp_path / "folder")
    assert done.code == 0, done.err
    secrets = [*plants, SENSOR, "SN0042", "385A357C3433", "jane", str(tmp_path), "nvme0n1"]
    secrets.append(CONDITIONS["device_serial_hash"])
    for name, content in contents(tmp_path / "folder").items():
        text = content.decode("utf-8").casefold()
        assert not [one for one in secrets if one.casefold() in text], name
    assert iojoule("profile", "contribute", tmp_path / "folder", "--check").code == 0
    left = read_contribution(tmp_path / "folder").about.left_out
    assert {"cpu_model", "firmware", "kernel_version", "mount_options"} <= set(left)


def test_a_secret_as_a_model_is_refused(iojoule, tmp_path: Path) -> None:
    made = [changed(one, device_model=PLANTED["serial"]) for one in runs()]
    campaign = write_campaign(tmp_path / "campaign", made)
    done = iojoule("profile", "contribute", campaign, "-o", tmp_path / "folder")
    assert done.code == REFUSED
    assert not (tmp_path / "folder").exists()


def stuck(made: list[One]) -> None:
    made[2].watts[500:1500] = made[2].watts[500]


def lost_noise(made: list[One]) -> None:
    # one channel frozen: what is left is the noise of the other
    one = made[4]
    one.watts[:] = one.watts.mean() + 0.01 * (one.watts - one.watts.mean())


def clipped(made: list[One]) -> None:
    random = np.random.default_rng(2)
    made[5].watts[800:1000] = 46.3 + 0.05 * random.standard_normal(200)


def two_hosts(made: list[One]) -> None:
    made[6:] = [changed(one, host_id="host-ffffffffffff") for one in made[6:]]


def two_drives(made: list[One]) -> None:
    made[6:] = [
        changed(one, device_serial_hash="0123456789abcdef", session_id="other") for one in made[6:]
    ]


def two_models(made: list[One]) -> None:
    made[6:] = [changed(one, device_model="Micron 7450") for one in made[6:]]


def two_sessions_as_one(made: list[One]) -> None:
    made[6:] = [
        replace(one, began=one.began - timedelta(seconds=28, minutes=0)) for one in made[6:]
    ]


def another_kernel(made: list[One]) -> None:
    made[6:] = [changed(one, kernel_version="5.15.0") for one in made[6:]]


def unsteady(made: list[One]) -> None:
    for one in made[:8]:
        one.moved[:] = [1.6, 1.3, 1.0, 0.7, 0.4]


def off_the_law(made: list[One]) -> None:
    made[:5] = [changed(one, latency_mean_ns=1.3 * one.row["latency_mean_ns"]) for one in made[:5]]


def milliwatts(made: list[One]) -> None:
    made[:] = [
        changed(
            one, device_power_watts=10.0 * one.row["device_power_watts"], system_power_watts=None
        )
        for one in made
    ]


def below_idle(made: list[One]) -> None:
    made[3] = changed(made[3], device_power_watts=0.9)


def wall_unmoved(made: list[One]) -> None:
    made[:] = [changed(one, system_power_watts=90.0) for one in made]


def above_the_link(made: list[One]) -> None:
    made[:] = [changed(one, pcie_generation=1, pcie_lanes=1) for one in made]


@pytest.mark.parametrize(
    ("break_it", "name"),
    [
        (stuck, "stuck_sensor"),
        (lost_noise, "stuck_sensor"),
        (clipped, "clipped_sensor"),
        (two_hosts, "one_drive_one_host"),
        (two_drives, "one_drive_one_host"),
        (two_models, "one_drive_one_host"),
        (two_sessions_as_one, "one_session"),
        (another_kernel, "one_session"),
        (unsteady, "steady"),
        (off_the_law, "littles_law"),
        (milliwatts, "declared_cap"),
        (below_idle, "above_idle"),
        (wall_unmoved, "wall_meter"),
        (above_the_link, "link"),
    ],
)
def test_a_bad_campaign_is_refused_by_name(
    iojoule, tmp_path: Path, break_it: Any, name: str
) -> None:
    made = runs()
    break_it(made)
    campaign = write_campaign(tmp_path / "campaign", made)
    done = iojoule("profile", "contribute", campaign, "-o", tmp_path / "folder")
    assert done.code == REFUSED
    assert name in done.err or name == "one_drive_one_host"
    assert [path.name for path in tmp_path.iterdir()] == ["campaign"]


@pytest.mark.parametrize(
    "changes",
    [
        {"mn": "Samsung SSD 990 PRO 4TB"},
        {"tnvmcap": 2_000_398_934_016},
        {"fr": "0B2QEXE7"},
        {"mdts": 9},
        {"psds": [{"max_power": 1200, "entry_lat": 0, "exit_lat": 0}]},
    ],
)
def test_identify_data_of_another_drive_are_refused(
    iojoule, tmp_path: Path, changes: dict[str, Any]
) -> None:
    campaign = write_campaign(tmp_path / "campaign", runs())
    told = write_identify(tmp_path / "identify.json", **changes)
    out = tmp_path / "folder"
    done = iojoule("profile", "contribute", campaign, "-o", out, "--identify", told)
    assert done.code == REFUSED
    assert "identify" in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["campaign", "identify.json"]


def test_a_dataset_alone_is_packed_and_says_what_nobody_knows(iojoule, tmp_path: Path) -> None:
    rows = [from_row(one.row) for one in runs()]
    write_dataset(Dataset.from_measurements(rows, Provenance(importer="test")), tmp_path / "rows")
    told = write_identify(tmp_path / "identify.json")
    done = iojoule(
        "profile",
        "contribute",
        tmp_path / "rows.parquet",
        "-o",
        tmp_path / "folder",
        "--identify",
        told,
        "--contributor",
        "Jane Doe",
    )
    assert done.code == 0, done.err
    found = read_contribution(tmp_path / "folder")
    assert (found.about.contributor, found.about.measured_with) == ("Jane Doe", "dataset")
    assert (found.runs, len(found.measurements)) == ([], len(rows))
    checks = json.loads((tmp_path / "folder" / "checks.json").read_text())["checks"]
    verdicts = {one["name"]: one["verdict"] for one in checks}
    assert verdicts["stuck_sensor"] == verdicts["steady"] == "not known"
    assert verdicts["identify"] == verdicts["littles_law"] == "passed"
    assert SERIAL.encode() not in b"".join(contents(tmp_path / "folder").values())


def test_what_is_there_already_is_not_touched(iojoule, tmp_path: Path) -> None:
    campaign = write_campaign(tmp_path / "campaign", runs())
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").write_text("mine")
    done = iojoule("profile", "contribute", campaign, "-o", tmp_path / "folder")
    assert done.code == 3
    assert contents(tmp_path / "folder") == {"mine": b"mine"}


def test_nobody_named_the_drive(iojoule, tmp_path: Path) -> None:
    rows = [from_row(changed(one, device_model=None).row) for one in runs()]
    write_dataset(Dataset.from_measurements(rows, Provenance(importer="test")), tmp_path / "rows")
    done = iojoule("profile", "contribute", tmp_path / "rows.parquet", "-o", tmp_path / "folder")
    assert done.code == 3
    assert "--device" in done.err
    assert MODEL not in done.err


def test_a_contributor_is_one_line(iojoule, tmp_path: Path) -> None:
    campaign = write_campaign(tmp_path / "campaign", runs())
    out = tmp_path / "folder"
    done = iojoule("profile", "contribute", campaign, "-o", out, "--contributor", "a\nb")
    assert done.code == 3
    assert not out.exists()


def test_a_folder_is_written_or_checked(iojoule, tmp_path: Path) -> None:
    assert iojoule("profile", "contribute", tmp_path).code == 2
    assert iojoule("profile", "contribute", tmp_path, "--check", "-o", tmp_path / "x").code == 2
    assert iojoule("profile", "contribute", tmp_path, "--check").code == 3
