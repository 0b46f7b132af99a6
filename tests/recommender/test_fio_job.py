"""fio job files as fio takes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from iojoule.datasets.errors import InputError
from iojoule.recommender.fio_job import from_fio_job
from iojoule.recommender.workload import load_workload

JOB = """\
; comment
[global]
ioengine=libaio
direct=1
bs=16k
runtime=60
time_based

[reader]
rw=randread
iodepth=8
numjobs=2
rate_iops=500
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "job.fio"
    path.write_text(text)
    return path


def test_a_job_becomes_workload_and_todays_configuration(tmp_path: Path) -> None:
    question = load_workload(write(tmp_path, JOB))
    assert question.name == "reader"
    assert question.workload.operation == "read"
    assert question.workload.pattern == "random"
    assert question.workload.useful_request_bytes == 16384
    assert question.workload.demand_operations_per_second == 1000, "a rate is that of each job"
    assert question.current.engine == "libaio"
    assert (question.current.queue_depth, question.current.jobs) == (8, 2)
    assert any("runtime" in note and "time_based" in note for note in question.notes)


def test_a_mixed_job_with_flags(tmp_path: Path) -> None:
    question = from_fio_job(
        write(
            tmp_path,
            "[a]\nioengine=io_uring\ndirect=1\nrw=randrw\nrwmixread=70\nhipri\nsqthread_poll=1\n"
            "fsync=8\niodepth=4\nbs=8k\nthinktime=100us\nioscheduler=kyber\nnice=5\n",
        )
    )
    assert question.workload.read_fraction == 0.7
    assert question.workload.flush_every_writes == 8
    assert question.workload.think_time_ns == 100_000
    assert question.current.completion == "polled"
    assert question.current.submission_polling is True
    assert question.current.scheduler == "kyber"
    assert any("nice" in note for note in question.notes)


def test_jobs_that_agree_are_one_workload(tmp_path: Path) -> None:
    twice = JOB + "\n[second]\nrw=randread\niodepth=8\nnumjobs=3\nrate_iops=500\n"
    question = from_fio_job(write(tmp_path, twice))
    assert question.current.jobs == 5
    assert question.workload.demand_operations_per_second == 2500
    after = from_fio_job(write(tmp_path, twice + "stonewall\n"))
    assert after.current.jobs == 3, "one after the other"


def test_jobs_that_differ_must_be_picked(tmp_path: Path) -> None:
    path = write(tmp_path, JOB + "\n[writer]\nrw=write\niodepth=1\n")
    with pytest.raises(InputError, match=r"reader and writer differ in .*operation") as caught:
        from_fio_job(path)
    assert caught.value.field == "job"
    assert from_fio_job(path, job="writer").workload.operation == "write"
    with pytest.raises(InputError, match="no job named other"):
        from_fio_job(path, job="other")


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("bssplit=4k/50:8k/50", "bssplit"),
        ("bsrange=4k-64k", "bsrange"),
        ("rw=randtrim", "rw"),
        ("ioengine=mmap", "ioengine"),
        ("direct=0", "direct"),
        ("iodepth=${DEPTH}", "iodepth"),
        ("bs=huge", "bs"),
    ],
)
def test_what_cannot_be_expressed_is_refused_by_name(tmp_path: Path, line: str, field: str) -> None:
    with pytest.raises(InputError) as caught:
        from_fio_job(write(tmp_path, JOB + line + "\n"))
    assert caught.value.field == field
    assert "job.fio: [reader]" in caught.value.message


@pytest.mark.parametrize("text", ["", "bs=4k\n[a]\n", "[global]\nbs=4k\n", '{"jobs": []}\n'])
def test_other_files_are_not_job_files(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="not a fio job file"):
        from_fio_job(write(tmp_path, text))
