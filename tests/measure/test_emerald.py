"""The metrics of a campaign whose watts and rates are known."""

from __future__ import annotations

import json
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from iojoule.datasets import measured_drive
from iojoule.datasets.measured_drive import MeasuredDrive
from iojoule.datasets.schema import from_row
from iojoule.datasets.verdict import Reason, ReasonCode, RunVerdict, Verdict
from iojoule.measure.campaign.folder import (
    CampaignFolder,
    CampaignOptions,
    CampaignState,
    IdleBaseline,
    PowerRecord,
    RunRecord,
    Status,
)
from iojoule.measure.campaign.plan import load_plan
from iojoule.measure.emerald import emerald
from iojoule.measure.errors import CampaignError
from iojoule.measure.recording.recorder import Recorder
from iojoule.measure.sensors.protocol import Kind, Rail, Scope
from tests.measure.fakes import FakeSensor

WATTS, IOPS, REQUEST = 5.0, 2000.0, 8192
RAILS = (
    Rail("12v", "watts", Kind.POWER, Scope.DEVICE),
    Rail("disk-read-bytes", "bytes", Kind.COUNTER, Scope.HOST),
    Rail("disk-write-bytes", "bytes", Kind.COUNTER, Scope.HOST),
)


def record(number: int, begin: int, end: int, depth: int, iops: float, latency: float) -> RunRecord:
    row = {
        "operation": "read",
        "pattern": "random",
        "request_bytes": REQUEST,
        "queue_depth": depth,
        "iops": iops,
        "latency_mean_ns": latency * 1e9,
    }
    power = PowerRecord(
        sensor="fake",
        rails=["12v"],
        mean_watts=WATTS,
        standard_error_watts=0.0,
        calibration_uncertainty_watts=0.05,
        energy_joules=None,
        over_1_ms=None,
        over_10_ms=None,
        over_10_s=None,
        samples=100,
        lost=0,
        coverage=1.0,
        gaps=[],
        reason=None,
    )
    return RunRecord(
        number=number,
        sweep="random-read",
        repeat=0,
        point="x",
        status=Status.DONE,
        started_utc=datetime.now(UTC),
        wall_seconds=1.0,
        begin_monotonic_ns=begin,
        end_monotonic_ns=end,
        measurement=from_row(row),
        power={"device": power},
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> CampaignFolder:
    """Two depths: the deeper does more, but beyond the bound on the response time."""
    made = CampaignFolder(tmp_path_factory.mktemp("emerald") / "campaign")
    made.create(load_plan("emerald-lab")[1], CampaignOptions(drive="/dev/none", serial="S"))
    drive = MeasuredDrive(model="fake", capacity_bytes=10**12, block_bytes=512)
    made.write(measured_drive.FILE_NAME, drive)
    base = {"standard_error_watts": 0.01, "sd_watts": 0.01, "seconds": 3.0, "when_utc": "x"}
    idle = [IdleBaseline(mean_watts=watts, **base) for watts in (1.98, 2.02)]
    made.write("state.json", CampaignState(idle={"0": idle}))
    runs = made.path / "runs" / "00001-random-read"

    def values(times: np.ndarray) -> np.ndarray:
        read = times * 1e-9 * IOPS * REQUEST
        return np.column_stack([np.full(len(times), WATTS), read, np.zeros(len(times))])

    with Recorder([FakeSensor(values, RAILS)], runs):
        begin = time.monotonic_ns()
        time.sleep(1.8)
        end = time.monotonic_ns()
    (made.path / "runs" / "00002-random-read").mkdir()
    for one in (
        record(1, begin, end, 8, IOPS, 0.004),
        record(2, begin, end, 64, 1.5 * IOPS, 0.0215),
    ):
        text = json.dumps(one.model_dump(mode="json"))
        (made.path / f"runs/{one.number:05d}-random-read/run.json").write_text(text)
    return made


def test_the_metrics_are_work_over_watts(folder: CampaignFolder) -> None:
    idle, reads = emerald(folder).metrics
    assert (idle.name, idle.unit, idle.stable) == ("EP_RI", "GB/W", True)
    assert idle.value == pytest.approx(1000 / 2.0)
    assert (reads.name, reads.unit, reads.queue_depth) == ("EP_RR", "IO/s/W", 8)
    assert reads.value == pytest.approx(IOPS / WATTS)
    assert reads.stable is True
    assert reads.periods >= 5
    assert reads.low is not None
    assert reads.high is not None
    assert reads.low < IOPS / WATTS < reads.high
    # the calibration of 1 % is in it
    assert reads.high - reads.low >= 2 * 1.9 * 0.01 * IOPS / WATTS
    assert "shorter than the 30 min of Emerald" in reads.notes


def test_a_depth_beyond_the_bound_does_not_count_unless_none_is_below(
    folder: CampaignFolder,
) -> None:
    strict = emerald(folder, 0.001).metrics[1]
    assert strict.queue_depth == 8
    assert any("no depth kept" in note for note in strict.notes)


def judged(folder: CampaignFolder, path: Path, **verdicts: Verdict) -> CampaignFolder:
    """A copy of the campaign in which runs, named r1 and so on, have these verdicts."""
    copy = CampaignFolder(shutil.copytree(folder.path, path))
    first, second = (copy.path / f"runs/{number:05d}-random-read" for number in (1, 2))
    for recording in first.glob("*.parquet"):
        shutil.copy(recording, second)
    for run in copy.records():
        verdict = verdicts.get(f"r{run.number}", Verdict.GOOD)
        reason = Reason(
            code=ReasonCode.LOW_COVERAGE,
            verdict=verdict,
            value=0.5,
            limit=0.9,
            unit="",
            said="",
            remedy="",
        )
        reasons = () if verdict is Verdict.GOOD else (reason,)
        text = run.judged(RunVerdict(verdict=verdict, reasons=reasons)).model_dump_json()
        (copy.path / f"runs/{run.number:05d}-random-read/run.json").write_text(text)
    return copy


def test_doubtful_runs_count_only_where_they_are_asked_for(
    folder: CampaignFolder, tmp_path: Path
) -> None:
    campaign = judged(folder, tmp_path / "deep", r2=Verdict.DOUBTFUL)
    # within this bound the doubtful run has the higher rate
    metric = emerald(campaign, 0.03).metrics[1]
    assert metric.queue_depth == 8
    assert any("1 low_coverage" in note for note in metric.notes)
    metric = emerald(campaign, 0.03, with_doubtful=True).metrics[1]
    assert metric.queue_depth == 64
    assert not any("low_coverage" in note for note in metric.notes)


@pytest.mark.parametrize(
    ("verdict", "with_doubtful"),
    [(Verdict.DOUBTFUL, False), (Verdict.FAILED, False), (Verdict.FAILED, True)],
)
def test_a_metric_without_a_usable_run_has_no_value_but_the_reason(
    folder: CampaignFolder, tmp_path: Path, verdict: Verdict, with_doubtful: bool
) -> None:
    campaign = judged(folder, tmp_path / "none", r1=verdict, r2=verdict)
    idle, reads = emerald(campaign, with_doubtful=with_doubtful).metrics
    assert idle.value is not None
    assert (reads.name, reads.value, reads.low, reads.stable) == ("EP_RR", None, None, None)
    assert any("2 low_coverage" in note for note in reads.notes)


def test_good_runs_count_as_runs_without_a_verdict_do(
    folder: CampaignFolder, tmp_path: Path
) -> None:
    assert emerald(judged(folder, tmp_path / "good")).metrics == emerald(folder).metrics


def test_the_document_is_json(folder: CampaignFolder) -> None:
    told = json.loads(json.dumps(emerald(folder).document(), allow_nan=False))
    assert told["schema_version"] == 1
    assert [one["name"] for one in told["metrics"]] == ["EP_RI", "EP_RR"]
    assert "the drive was not preconditioned until it was steady" in told["notes"]


def test_a_folder_without_such_runs_is_refused(tmp_path: Path) -> None:
    made = CampaignFolder(tmp_path / "campaign")
    made.create(load_plan("quick")[1], CampaignOptions(drive="/dev/none", serial="S"))
    with pytest.raises(CampaignError, match="--plan emerald"):
        emerald(made)
