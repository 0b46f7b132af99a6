"""`iojoule profile`: built from facts, and what it rests on."""

from __future__ import annotations

import json
from pathlib import Path

from iojoule.datasets.profile import read_profile


def test_build_writes_a_profile_that_answers(iojoule, tmp_path: Path) -> None:
    path = tmp_path / "drive.json"
    done = iojoule("profile", "build", "--device", "micron-7450", "-o", path)
    assert (done.code, path.is_file()) == (0, True)
    assert "nobody measured" in done.err
    assert read_profile(path).ladder is not None
    answered = iojoule("predict", "--profile", path, "--set", "queue_depth=4")
    assert "datasheet" in answered.out


def test_build_from_identify_data(iojoule, tmp_path: Path) -> None:
    state = {"max_power": 1200, "max_power_scale": 0, "non-operational_state": 0, "entry_lat": 0,
             "exit_lat": 0}  # fmt: skip
    told = {"mn": "Nobody Knows It", "fr": "1", "tnvmcap": 10**12, "psds": [state]}
    (tmp_path / "id.json").write_text(json.dumps(told))
    path = tmp_path / "drive.json"
    done = iojoule("profile", "build", "--identify", tmp_path / "id.json", "-o", path)
    assert done.code == 0
    profile = read_profile(path)
    assert profile.device == "nobody-knows-it"
    assert profile.device_power is not None
    assert profile.device_power.cap_watts == [12.0]


def test_build_from_a_data_sheet(iojoule, root: Path, tmp_path: Path) -> None:
    path = tmp_path / "drive.json"
    done = iojoule(
        "profile", "build", "--facts", root / "examples" / "drive-facts.toml", "-o", path
    )
    assert done.code == 0
    profile = read_profile(path)
    assert profile.device == "example-datacentre-3-84tb"
    assert profile.rating.pcie_generation == 4
    assert profile.device_power is not None
    assert profile.device_power.cap_watts == [25.0, 14.0]


def test_a_data_sheet_that_contradicts_itself_is_refused(
    iojoule, root: Path, tmp_path: Path
) -> None:
    sheet = (root / "examples" / "drive-facts.toml").read_text()
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(sheet.replace("value = 4.0\n", "value = 14.0\n"))
    done = iojoule("profile", "build", "--facts", wrong, "-o", tmp_path / "drive.json")
    assert done.code == 3
    assert not (tmp_path / "drive.json").exists()
    for part in ("wrong.toml", "facts[11].value", "idle_power", "active_power_read"):
        assert part in done.err


def test_build_wants_one_source_and_a_file(iojoule, tmp_path: Path) -> None:
    assert iojoule("profile", "build", "-o", tmp_path / "x.json").code == 2
    assert iojoule("profile", "build", "--device", "micron-7450").code == 2


def test_explain_names_facts_with_sources(iojoule) -> None:
    done = iojoule("profile", "explain", "--device", "micron-7450", "-o", "json")
    told = {one["quantity"]: one for one in json.loads(done.out)["quantities"]}
    read = told["read_sequential_bytes_per_second"]
    assert read["low"] < read["value"] < read["high"]
    assert any("https://" in fact["source"] for fact in read["facts"])
    assert read["rung"] == read["evidence"] == "datasheet"
    assert "128 KiB" in read["next"]


def test_explain_shares_of_one_configuration_add_up(iojoule, device: str) -> None:
    for name in (device, "micron-7450"):
        done = iojoule(
            "profile", "explain", "--device", name, "--configuration", "queue_depth=32",
            "--configuration", "request_bytes=16384", "-o", "json",
        )  # fmt: skip
        told = {one["quantity"]: one for one in json.loads(done.out)["quantities"]}
        for quantity in ("iops", "latency_p99_ns", "device_power_watts"):
            shares = [part["share"] for part in told[quantity]["variance"]]
            assert 0.99 < sum(shares) < 1.01
            assert shares == sorted(shares, reverse=True)
            assert told[quantity]["low"] < told[quantity]["value"] < told[quantity]["high"]


def test_explain_prints_tables_and_csv(iojoule) -> None:
    shown = iojoule("profile", "explain", "--device", "micron-7450").out
    assert "90 % interval" in shown
    assert "idle_watts" in shown
    listed = iojoule("profile", "explain", "--device", "micron-7450", "-o", "csv").out
    assert listed.startswith("quantity,rung,")
