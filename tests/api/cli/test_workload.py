"""`iojoule workload` from the shell: every source, and that `recommend` takes what it writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from iojoule.datasets.io_summary import IoSource, IoSummary, IoWindow, parse_summary
from iojoule.measure import observe as session
from iojoule.measure.drive.block_io import Disk
from tests.measure.test_observe import readings

IOLOG = """\
fio version 3 iolog
0 /dev/x add
1000 /dev/x write 0 4096
2000 /dev/x sync 0 0
501000 /dev/x read 81920 8192
901000 /dev/x read 0 4096
"""


@pytest.fixture
def iolog(tmp_path: Path) -> Path:
    path = tmp_path / "log"
    path.write_text(IOLOG)
    return path


def test_a_trace_becomes_a_question_that_recommend_takes(
    iojoule, device: str, iolog: Path, tmp_path: Path
) -> None:
    out, seen = tmp_path / "question.toml", tmp_path / "seen.json"
    done = iojoule("workload", "from", iolog, "--out", out, "--histograms", seen)
    assert done.code == 0, done.err
    assert "open loop" in done.out
    assert "gaps" in done.out
    answer = iojoule("recommend", "--device", device, "--workload", out, "-o", "json")
    assert json.loads(answer.out)["reason_code"] == "not_shown_to_hold", "it flushes"
    assert "1 flushes" in answer.out, "what the profile notes is repeated in the answer"
    shown = iojoule("recommend", "--device", device, "--workload", out)
    assert shown.code == 7, shown.err
    again = iojoule("workload", "from", seen, "-o", "json")
    assert json.loads(again.out)["workload"]["read_fraction"] == pytest.approx(2 / 3, rel=1e-5)


def test_the_closed_loop(iojoule, iolog: Path) -> None:
    done = iojoule("workload", "from", iolog, "--loop", "closed", "-o", "toml")
    assert "demand" not in done.out


def test_a_fio_job_file(iojoule, root: Path, tmp_path: Path) -> None:
    job = root / "examples" / "oltp.fio"
    done = iojoule("workload", "from", job, "-o", "json")
    assert json.loads(done.out)["workload"]["demand_operations_per_second"] == 30000
    each = iojoule("workload", "from", job, "--each", "--out", tmp_path / "jobs")
    assert each.code == 0, each.err
    assert (tmp_path / "jobs" / "oltp.toml").exists()
    for option in (("--hours", "1-2"), ("--histograms", "x.json")):
        assert iojoule("workload", "from", job, *option).code == 2


def test_what_is_no_source_is_refused(iojoule, iolog: Path, tmp_path: Path) -> None:
    iolog.write_text(IOLOG + "oops\n")
    done = iojoule("workload", "from", iolog)
    assert done.code == 3
    assert "line 7" in done.err
    iolog.write_text("hello\n")
    assert "--as" in iojoule("workload", "from", iolog).err
    assert "line 1" in iojoule("workload", "from", iolog, "--as", "mqsim-trace").err
    assert iojoule("workload", "from", tmp_path / "none").code == 3
    iolog.write_text(IOLOG)
    assert iojoule("workload", "from", iolog, "--job", "a").code == 2
    refused = iojoule("workload", "from", iolog, "--out", tmp_path / "question.txt")
    assert refused.code == 3
    assert ".toml" in refused.err


def test_presets_are_listed_and_shown(iojoule) -> None:
    listed = iojoule("workload", "presets", "-o", "json")
    names = [one["preset"] for one in json.loads(listed.out)]
    assert "ycsb-a" in names
    for name in names:
        assert f"{name} (" in iojoule("workload", "show", name).out
    assert iojoule("workload", "show", "ycsb").code == 3


@pytest.fixture
def drive(monkeypatch: pytest.MonkeyPatch) -> None:
    """A drive whose counters tell the same every time."""

    def sample(*_: object) -> Iterator[object]:
        yield readings([(0.1 * k, 0.1 * k + 0.01, 8, 0) for k in range(1, 9)], 1.0)

    monkeypatch.setattr(session, "find_disk", lambda path: Disk(path, Path("/sys/block/x")))
    monkeypatch.setattr(session, "sample", sample)


@pytest.mark.usefixtures("drive")
def test_observations_add_up_in_one_file(iojoule, tmp_path: Path) -> None:
    seen = tmp_path / "seen.json"
    watch = ("workload", "observe", "/dev/x", "--seconds", "1", "--histograms", seen)
    assert iojoule(*watch).code == 0
    done = iojoule(*watch, "--repeat", "2")
    assert done.code == 0, done.err
    summary = parse_summary(seen.read_text(), "seen.json")
    assert [one.reads for one in summary.windows] == [8, 8, 8]
    hours = json.loads(iojoule("workload", "day", seen, "-o", "json").out)
    assert sum(hour["observed_seconds"] for hour in hours) == pytest.approx(3 * 0.999)
    other = summary.model_copy(update={"name": "y"})
    seen.write_text(other.model_dump_json())
    refused = iojoule(*watch)
    assert refused.code == 3
    assert "observation of y" in refused.err


@pytest.mark.usefixtures("drive")
def test_ctrl_c_keeps_what_was_seen(
    iojoule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sample(*_: object) -> Iterator[object]:
        yield readings([(0.1, 0.11, 8, 0), (0.2, 0.21, 8, 0)], 0.5)
        raise KeyboardInterrupt

    monkeypatch.setattr(session, "sample", sample)
    seen = tmp_path / "seen.json"
    done = iojoule("workload", "observe", "/dev/x", "--seconds", "9", "--histograms", seen)
    assert done.code == 130
    assert "2 reads" in done.out
    assert parse_summary(seen.read_text(), "seen.json").windows[0].reads == 2


def test_only_some_hours(iojoule, tmp_path: Path) -> None:
    windows = tuple(
        IoWindow(began_unix_seconds=hour * 3600.0, seconds=60.0, reads=hour, read_bytes=hour * 4096)
        for hour in (3, 9)
    )
    seen = tmp_path / "seen.json"
    summary = IoSummary(source=IoSource.DISKSTATS, name="x", windows=windows)
    seen.write_text(summary.model_dump_json())
    done = iojoule("workload", "from", seen, "--hours", "8-12", "-o", "json")
    demand = json.loads(done.out)["workload"]["demand_bytes_per_second"]
    assert demand == pytest.approx(9 * 4096 / 60, rel=1e-5)
    table = iojoule("workload", "day", seen)
    assert "hour (UTC)" in table.out


def test_there_must_be_a_drive(iojoule, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert iojoule("workload", "observe", "/dev/none-such", "--seconds", "1").code == 21
    assert iojoule("workload", "observe", tmp_path / "file", "--seconds", "1").code == 20
