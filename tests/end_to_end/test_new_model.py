"""A new SSD model: dataset in, `iojoule calibrate`, profile out, the recommendation uses it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iojoule.api.cli.app import run
from iojoule.datasets.profile import read_profile
from iojoule.datasets.provenance import Provenance
from iojoule.datasets.store import Dataset, write_dataset
from tests.sim.calibration.hidden import HIDDEN, TRUTH, measured

WORKLOAD = """
scope = "device"

[workload]
operation = "read"
pattern = "random"
useful_request_bytes = 262144
demand_bytes_per_second = 5e8

[current]
engine = "spdk"
queue_depth = 64

[free]
engine = ["spdk"]
queue_depth = "all"
jobs = "all"
"""


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    rows = measured(HIDDEN, (4096, 16384, 65536), (1, 4, 16, 64))
    write_dataset(Dataset.from_measurements(rows, Provenance(importer="test")), folder / "runs")
    code = run(
        ["calibrate", str(folder / "runs.parquet"), "--ssd", "samsung-980-pro-1tb",
         "--parameters", ",".join(TRUTH), "--designs", "10", "--rounds", "2", "-j", "2",
         "--hold-out", "request_bytes=16384", "--state", str(folder / "state"),
         "-o", str(folder / "profile.json")]
    )  # fmt: skip
    assert code == 0
    return folder / "profile.json"


def test_the_profile_holds_what_was_hidden(profile: Path) -> None:
    section = read_profile(profile).simulated
    assert section is not None
    found = {one.name: one for one in section.parameters}
    assert found["page_read_ns"].value == pytest.approx(TRUTH["page_read_ns"], rel=0.05)
    left_out = [one for one in section.errors if one.held_out and one.where == "all"]
    assert {one.quantity for one in left_out} == {"throughput", "latency", "watts"}
    assert all(one.calibrated is not None and one.calibrated < 0.05 for one in left_out)


def test_predictions_come_from_it_where_nothing_was_measured(
    profile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(
        ["predict", "--profile", str(profile), "--set", "request_bytes=262144",
         "--set", "queue_depth=16", "--set", "engine=spdk", "-o", "json"]
    )  # fmt: skip
    (row,) = json.loads(capsys.readouterr().out)["predictions"]
    assert code == 0
    assert row["evidence"] == "simulated"
    truth = measured(HIDDEN, (262144,), (16,))[0].observations
    low, high = (row[f"throughput_bytes_per_second_{end}"] for end in ("low", "high"))
    assert truth.throughput_bytes_per_second is not None
    assert low < truth.throughput_bytes_per_second < high


def test_the_recommendation_uses_it(
    profile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workload = tmp_path / "workload.toml"
    workload.write_text(WORKLOAD)
    code = run(["recommend", "--profile", str(profile), "--workload", str(workload), "-o", "json"])
    answer = capsys.readouterr().out
    assert code == 0
    assert '"simulated"' in answer
