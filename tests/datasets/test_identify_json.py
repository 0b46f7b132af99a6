"""What nvme-cli prints of a drive, in the forms of its versions 1 and 2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from iojoule.datasets.errors import InputError
from iojoule.datasets.measured_drive import measured_drive, read_identify

NEW = {
    "max_power": 2500,
    "max_power_scale": 0,
    "non-operational_state": 0,
    "entry_lat": 70,
    "exit_lat": 80,
    "idle_power": 506,
    "idle_scale": 2,
    "active_power": 140000,
    "active_scale": 1,
}
OLD = {
    "max_power": 700,
    "flags": 3,
    "entry_lat": 4000,
    "exit_lat": 10000,
    "idle_power": 5,
    "idle_scale": 0x80,
    "active_power": 0,
    "active_work_scale": 0,
}


def controller(**other: Any) -> dict[str, Any]:
    return {
        "mn": "A Drive  ",
        "fr": "FW1 ",
        "mdts": 5,
        "tnvmcap": 10**12,
        "vwc": 7,
        "psds": [NEW, OLD],
    } | other


def write(path: Path, data: Any) -> Path:
    path.write_text(json.dumps(data))
    return path


def test_both_forms_of_a_power_state(tmp_path: Path) -> None:
    drive = read_identify(write(tmp_path / "id.json", controller()))
    first, second = drive.power_states
    assert (first.max_power_watts, first.operational) == (25.0, True)
    assert first.idle_power_watts == pytest.approx(5.06)
    assert first.active_power_watts == pytest.approx(14.0)
    assert (second.max_power_watts, second.operational) == (pytest.approx(0.07), False)
    assert second.idle_power_watts == pytest.approx(0.05)
    assert second.active_power_watts is None
    assert (drive.model, drive.firmware) == ("A Drive", "FW1")
    assert drive.max_transfer_bytes == 128 * 1024
    assert drive.volatile_write_cache is True


def test_a_folder_with_both_takes_blocks_from_the_namespace(tmp_path: Path) -> None:
    write(tmp_path / "ctrl.json", controller(tnvmcap=0))
    namespace = {"nsze": 1000, "flbas": 1, "lbafs": [{"ds": 9}, {"ds": 12}]}
    write(tmp_path / "ns.json", namespace)
    drive = read_identify(tmp_path)
    assert (drive.block_bytes, drive.capacity_bytes) == (4096, 4096000)


def test_a_campaigns_folder_is_read_as_it_is(tmp_path: Path) -> None:
    kept = {"schema_version": 1, "model": "Kept", "capacity_bytes": 1000, "block_bytes": 512}
    path = write(tmp_path / "drive.json", kept)
    assert read_identify(tmp_path).model == read_identify(path).model == "Kept"


def test_a_profile_of_that_name_is_no_campaigns_drive(tmp_path: Path) -> None:
    profile = {"schema_version": 7, "defaults": {}, "device": "x", "capacity_bytes": 1000}
    path = write(tmp_path / "drive.json", profile)
    assert measured_drive([tmp_path / "dataset.parquet"]) is None
    with pytest.raises(InputError, match="is a profile"):
        read_identify(path)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "Identify Controller"),
        ([], "nvme id-ctrl"),
        (controller(psds=[{"max_power": 1}]), "entry_lat"),
        (controller(tnvmcap=0), "capacity"),
        (controller(mn=" "), "model number"),
    ],
)
def test_what_is_not_that_is_refused_with_the_remedy(tmp_path: Path, data: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_identify(write(tmp_path / "id.json", data))


def test_text_and_an_empty_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("NVME Identify Controller:")
    with pytest.raises(InputError, match="-o json"):
        read_identify(tmp_path / "x.json")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match="nvme id-ctrl"):
        read_identify(empty)
