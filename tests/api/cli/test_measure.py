"""`iojoule measure` where there is no drive, and, on the virtual one, what it says beforehand."""

import io
import json
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyarrow.parquet import read_table

from iojoule.datasets.verdict import Reason, ReasonCode, verdict_of
from iojoule.datasets.vocabulary import Verdict
from iojoule.measure.campaign.folder import CampaignFolder, CampaignOptions, RunRecord, Status
from iojoule.measure.campaign.plan import shipped_plans
from iojoule.measure.errors import (
    CampaignError,
    DriveError,
    HostStateError,
    RunsFailedError,
    UnsafeDriveError,
)
from iojoule.measure.lab.client import LabClient
from tests.measure.lab.conftest import lab, shared_lab

__all__ = ["lab", "shared_lab"]

STEP = Reason(
    code=ReasonCode.CLOCK_STEP, verdict=Verdict.FAILED, value=2.0, limit=0.1, unit="s",
    said="the host's clock was set", remedy="let it be adjusted slowly",
)  # fmt: skip
WRITES = """
schema_version = 1
name = "writes"
[precondition]
purge = "format"
fill_passes = 2
[[sweep]]
name = "s"
operation = ["read", "write"]
request_bytes = "4KiB"
engine = ["psync", "libaio"]
queue_depth = [1, 8]
scheduler = ["none", "kyber"]
power_state = "operational"
"""


READ_SECONDS = 1
READS = f"""
schema_version = 1
name = "reads"
repeats = 1
[run]
seconds = {READ_SECONDS}
ramp_seconds = 0.2
[settle]
baseline_seconds = 0
seconds = 0
[[sweep]]
name = "s"
operation = "read"
request_bytes = 4096
engine = "libaio"
"""


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IOJOULE_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("IOJOULE_JOURNALS", str(tmp_path / "state"))


def test_the_plans_that_ship_are_listed(iojoule) -> None:
    said = iojoule("measure", "plans").out
    assert all(name in said for name in shipped_plans())


@pytest.mark.parametrize(
    ("drive", "kind"),
    [
        ("/dev/null", UnsafeDriveError),
        ("/dev/absent", DriveError),
        ("/etc/hosts", UnsafeDriveError),
    ],
)
def test_what_is_no_drive_is_refused(iojoule, tmp_path: Path, drive: str, kind: type) -> None:
    out = tmp_path / "out"
    done = iojoule("measure", "run", "--drive", drive, "--plan", "quick", "--out", out)
    assert done.code == kind.exit_code
    assert drive in done.err
    assert not out.exists()


def test_an_unknown_plan_and_a_folder_without_a_campaign(iojoule, tmp_path: Path) -> None:
    done = iojoule("measure", "plan", "--drive", "/dev/null", "--plan", "quik")
    assert (done.code, "quick-lab" in done.err) == (CampaignError.exit_code, True)
    for verb in ("check", "resume"):
        done = iojoule("measure", verb, tmp_path)
        assert (done.code, "holds no campaign" in done.err) == (CampaignError.exit_code, True)


def test_nothing_to_restore_is_no_error(iojoule) -> None:
    done = iojoule("measure", "restore")
    assert (done.code, done.out) == (0, "nothing was left changed\n")


class TestOnTheLab:
    @pytest.fixture
    def words(self, lab: LabClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Drive, controller and a plan that overwrites; the lab's environment is in force."""
        if shutil.which("fio") is None or shutil.which("nvme") is None:
            pytest.skip("fio and nvme-cli are needed")
        for name, value in lab.environment().items():
            monkeypatch.setenv(name, value)
        plan = tmp_path / "plan.toml"
        plan.write_text(WRITES)
        drive, controller = str(lab.state["drive"]), str(lab.state["controller"])
        return ["--drive", drive, "--controller", controller, "--plan", str(plan)]

    def test_the_plan_says_what_it_costs_and_what_is_left_out(self, iojoule, words) -> None:
        said = iojoule("measure", "plan", *words).out
        assert "72 of 36 points" in said
        assert "12 x queue_depth: psync holds one request" in said
        assert "GB (at 7,000 MB/s" in said

    def test_a_dry_run_prints_every_command_and_does_nothing(
        self, iojoule, words, lab: LabClient, tmp_path: Path
    ) -> None:
        before = lab.status()["disk"]["write_commands"]
        out = tmp_path / "out"
        done = iojoule("measure", "run", *words, "--out", out, "--dry-run")
        assert done.code == 0
        controller = words[words.index("--controller") + 1]
        assert f"nvme format {controller} --namespace-id=1 --ses=1 --force" in done.out
        assert f"nvme set-feature {controller} --feature-id=0x2 --value=0x2" in done.out
        assert "queue/scheduler" in done.out
        assert done.out.count("allow_file_create=0") == 72 + 1, "the runs, and filling"
        assert not out.exists()
        assert lab.status()["disk"]["write_commands"] == before

    def test_the_printed_job_files_are_fios(self, iojoule, words, tmp_path: Path) -> None:
        said = iojoule("measure", "run", *words, "--out", tmp_path / "out", "--dry-run").out
        job = said.split("<<'JOB'\n")[1].partition("JOB")[0]
        (tmp_path / "one.fio").write_text(job)
        parsed = subprocess.run(
            ["fio", "--parse-only", "one.fio"],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert parsed.returncode == 0, parsed.stderr

    def test_a_traced_run_holds_its_requests(
        self, iojoule, words, tmp_path: Path, lab: LabClient
    ) -> None:
        (tmp_path / "plan.toml").write_text(READS)
        out = tmp_path / "out"
        done = iojoule("measure", "run", *words, "--out", out, "--trace")
        if done.code == HostStateError.exit_code:
            assert not out.exists(), "refused before anything began"
            pytest.skip("tracing is not allowed here")
        assert done.code == 0, done.err
        folder = CampaignFolder(out)
        assert folder.options().trace
        [record] = folder.records()
        trace, measured = record.trace, record.measurement
        assert trace is not None
        assert measured is not None
        table = read_table(out / "runs" / "00001-s" / "trace" / "requests.parquet")
        assert table.num_rows >= trace.requests > 0
        assert trace.bytes == 4096 * trace.requests
        assert trace.issue_to_complete is not None
        if trace.lost_events == 0:
            assert trace.requests >= 0.9 * measured.observations.iops * READ_SECONDS
        assert [path.name for path in (out / "runs" / "00001-s" / "trace").iterdir()] == [
            "requests.parquet"
        ]

    def test_consent_is_asked_before_anything(
        self, iojoule, words, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lab: LabClient
    ) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO(""))
        out = tmp_path / "out"
        done = iojoule("measure", "run", *words, "--out", out)
        assert done.code == UnsafeDriveError.exit_code
        assert f"--serial {lab.state['serial']}" in done.err
        assert not out.exists()


def test_findings_of_check_are_json_too(iojoule, tmp_path: Path) -> None:
    folder = CampaignFolder(tmp_path / "campaign")
    folder.create("", CampaignOptions(drive="/dev/x", serial="S"))
    done = iojoule("measure", "check", folder.path, "-o", "json")
    assert (done.code, json.loads(done.out)) == (0, [])


def test_check_lists_verdicts_and_its_exit_code_says_that_a_run_failed(
    iojoule, tmp_path: Path
) -> None:
    folder = CampaignFolder(tmp_path / "campaign")
    folder.create("", CampaignOptions(drive="/dev/x", serial="S"))
    verdicts = {1: verdict_of([]), 2: verdict_of([]), 3: verdict_of([STEP])}
    for number, verdict in verdicts.items():
        failed = verdict.verdict is Verdict.FAILED
        record = RunRecord(
            number=number, sweep="s", repeat=0, point="p", started_utc=datetime.now(UTC),
            wall_seconds=1.0, status=Status.FAILED if failed else Status.DONE, verdict=verdict,
        )  # fmt: skip
        (folder.path / "runs" / f"0000{number}-s").mkdir()
        folder.keep(record)
    done = iojoule("measure", "check", folder.path, "-o", "json")
    assert done.code == RunsFailedError.exit_code
    listed = [(one["runs"], one["verdict"], one["code"]) for one in json.loads(done.out)]
    assert listed == [("3", "failed", "clock_step"), ("1-2", "good", "")]
