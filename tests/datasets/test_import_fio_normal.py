"""fio's normal output: what people keep who gave no --output-format."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from iojoule.datasets.errors import DataQualityError, InputError
from iojoule.datasets.importers.fio import import_fio
from iojoule.datasets.schema import Measurement
from iojoule.datasets.verdict import ReasonCode
from tests.datasets.fio_runs import RUNS, only

TEXT = (RUNS / "normal.txt").read_text()
READS = TEXT[TEXT.index("reads: (groupid=0") : TEXT.index("mix: (groupid=1")]

OLD = """\
old: (g=0): rw=write, bs=128K-128K/128K-128K/128K-128K, ioengine=libaio, iodepth=8
fio-2.16
Starting 1 process

old: (groupid=0, jobs=1): err= 0: pid=7: Wed Feb 28 13:36:48 2018
  write: io=1250.0MB, bw=128000KB/s, iops=1000, runt= 10000msec
    slat (usec): min=4, max=90, avg=20.00, stdev= 5.00
    clat (msec): min=2, max=40, avg= 7.98, stdev= 1.00
     lat (msec): min=2, max=40, avg= 8.00, stdev= 1.00
    clat percentiles (msec):
     | 50.00th=[    8], 99.00th=[   12], 99.90th=[   20]
  cpu          : usr=1.00%, sys=2.00%, ctx=10000, majf=0, minf=9
     issued    : total=r=0/w=10000/d=0, short=r=0/w=0/d=0, drop=r=0/w=0/d=0
"""


def written(tmp_path: Path, text: str, name: str = "result.txt") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def rows(path: Path) -> list[Measurement]:
    return list(import_fio([path]).measurements())


def test_normal_output_says_what_the_json_of_the_same_run_says() -> None:
    read, expected = rows(RUNS / "normal.txt"), rows(RUNS / "normal.json")
    assert len(read) == len(expected) == 2
    for one, other in zip(read, expected, strict=True):
        assert one.workload == other.workload.model_copy(update={"working_set_bytes": None})
        assert one.configuration == other.configuration
        assert one.conditions.session_id is not None
        for name in ("iops", "throughput_bytes_per_second", "context_switches_per_second"):
            exact = getattr(other.observations, name)
            assert getattr(one.observations, name) == pytest.approx(exact, rel=1e-6)
        for name in ("latency_mean_ns", "latency_p50_ns", "latency_p99_ns", "cpu_utilisation"):
            rounded = getattr(other.observations, name)
            if rounded is not None:
                assert getattr(one.observations, name) == pytest.approx(rounded, rel=0.006)


def test_fio_2_counted_in_units_of_1024(tmp_path: Path) -> None:
    run = only(import_fio([written(tmp_path, OLD)]))
    assert run.configuration.request_bytes == 131072
    assert run.configuration.queue_depth == 8
    assert run.observations.iops == 1000
    assert run.observations.throughput_bytes_per_second == 1000 * 131072
    assert run.observations.latency_mean_ns == 8e6
    assert run.observations.latency_p99_ns == 12e6


def test_runs_appended_to_one_file_are_runs(tmp_path: Path) -> None:
    assert len(rows(written(tmp_path, TEXT + OLD, "kept"))) == 3


def test_a_folder_of_normal_output_is_searched(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    written(tmp_path / "out", TEXT, "run.log")
    written(tmp_path / "out", TEXT, "how-to.md")
    dataset = import_fio([tmp_path / "out"])
    assert len(dataset) == 2
    assert [item.source for item in dataset.provenance.excluded] == ["how-to.md"]


def test_without_printed_options_the_name_and_littles_law_tell(tmp_path: Path) -> None:
    text = READS.replace("reads:", "randreads:")
    run = only(import_fio([written(tmp_path, text)]))
    assert (run.configuration.jobs, run.configuration.queue_depth) == (2, 4)
    assert run.configuration.request_bytes == 16384
    assert run.configuration.engine is None
    with pytest.raises(InputError, match="does not record"):
        import_fio([written(tmp_path, READS)])


def test_a_page_cache_shows_in_what_the_drives_served(tmp_path: Path) -> None:
    text = re.sub(r"ios=\d+/\d+, merge=\d+/\d+", "ios=120/4, merge=0/0", TEXT)
    read = rows(written(tmp_path, text))
    assert [run.judgement.verdict_reasons for run in read] == [ReasonCode.PAGE_CACHE] * 2


def test_a_job_that_is_cut_off_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataQualityError, match=r"job 'mix'.*cut off"):
        import_fio([written(tmp_path, TEXT[: TEXT.rindex("issued")])])


def test_a_failed_job_is_named(tmp_path: Path) -> None:
    text = TEXT[: TEXT.index("reads: (groupid=0")] + "reads: (groupid=0, jobs=2): err= 5: pid=1:\n"
    with pytest.raises(DataQualityError, match="error 5"):
        import_fio([written(tmp_path, text)])
