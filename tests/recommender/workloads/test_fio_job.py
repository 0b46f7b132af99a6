"""fio job files as fio takes them."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis.strategies import dictionaries, sampled_from, text

from iojoule.datasets.errors import InputError
from iojoule.recommender.request import load_workload
from iojoule.recommender.workloads.fio_job import (
    JOBS_MAX,
    OPTIONS_MAX,
    each_fio_job,
    from_fio_job,
    one_size,
    parse_fio_job,
    sections,
)
from tests.errors import having

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
        ("bssplit=4k/50:8k/40", "bssplit"),
        ("bssplit=4k/half:8k/", "bssplit"),
        ("bsrange=64k-4k", "bsrange"),
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


@pytest.mark.parametrize(
    "written", ["", "bs=4k\n[a]\n", "[global]\nbs=4k\n", "[[[[]]]]\n", '{"jobs": []}\n']
)
def test_other_files_are_not_job_files(tmp_path: Path, written: str) -> None:
    with pytest.raises(InputError, match="not a fio job file"):
        from_fio_job(write(tmp_path, written))


@pytest.mark.parametrize(
    "written",
    ["".join(f"[job{number}]\nrw=read\n" for number in range(JOBS_MAX + 1)),
     "[global]\n" + "".join(f"x{number}=1\n" for number in range(OPTIONS_MAX + 1)) + "[job]\n"],
    ids=["jobs", "options"],
)  # fmt: skip
def test_more_than_fio_runs_is_refused_before_it_is_read(tmp_path: Path, written: str) -> None:
    path = tmp_path / "job.fio"
    path.write_text(written)
    with pytest.raises(InputError, match="more than"):
        from_fio_job(path)


def test_mixed_sizes_become_their_mean_and_their_distribution(tmp_path: Path) -> None:
    question = from_fio_job(write(tmp_path, JOB + "bssplit=4k/75:64k/\n"))
    assert question.workload.useful_request_bytes == (3 * 4096 + 65536) // 4
    assert question.workload.request_bytes_mix == "4096/75:65536/25"
    assert any("bssplit=4k/75:64k/" in note for note in question.notes)
    uniform = from_fio_job(write(tmp_path, JOB + "bsrange=4k-64k\n"))
    assert uniform.workload.useful_request_bytes == 34 * 1024
    assert uniform.workload.request_bytes_mix is None


def test_sizes_of_reads_and_writes_weigh_by_their_share(tmp_path: Path) -> None:
    question = from_fio_job(write(tmp_path, JOB + "rw=randrw\nrate_iops=125,375\nbs=4k,8k\n"))
    assert question.workload.useful_request_bytes == 7168
    assert question.workload.request_bytes_mix == "4096/25:8192/75"


RATED = """\
[global]
ioengine=libaio
direct=1
[reader]
rw=randread
bs=4k
iodepth=8
rate_iops=300
numjobs=2
[log]
rw=write
bs=16k
iodepth=1
rate=1600k
fsync=4
"""


def test_jobs_with_rates_are_taken_together(tmp_path: Path) -> None:
    question = load_workload(write(tmp_path, RATED))
    assert question.workload.operation == "mixed"
    assert question.workload.read_fraction == pytest.approx(600 / 700)
    assert question.workload.demand_bytes_per_second == 600 * 4096 + 1600 * 1024
    assert question.workload.flush_every_writes == 4
    assert question.workload.pattern == "random"
    assert (question.current.queue_depth, question.current.jobs) == (6, 3)
    assert any("reader, log are taken together" in note for note in question.notes)
    with pytest.raises(InputError, check=having(field="job")):
        from_fio_job(write(tmp_path, RATED + "stonewall\n"))


def test_every_job_by_itself(tmp_path: Path) -> None:
    reader, log = each_fio_job(write(tmp_path, RATED))
    assert (reader.name, log.name) == ("reader", "log")
    assert reader.workload.demand_operations_per_second == 600
    assert log.workload.useful_request_bytes == 16384


def test_a_pause_after_so_many_requests_is_a_gap(tmp_path: Path) -> None:
    single = JOB.replace("numjobs=2\n", "") + "thinktime=50ms\nthinktime_blocks=20\n"
    question = from_fio_job(write(tmp_path, single))
    assert question.workload.burst_bytes == 20 * 16384
    assert question.workload.idle_gap_seconds_p50 == 0.05
    assert question.workload.think_time_ns == 50e6 / 20
    clones = from_fio_job(write(tmp_path, JOB + "thinktime=50ms\nthinktime_blocks=20\n"))
    assert clones.workload.burst_bytes is None, "clones fill each other's gaps"


@given(text())
def test_any_text_is_a_job_file_or_refused(written: str) -> None:
    with contextlib.suppress(InputError):
        assert sections(written, "job.fio")


@given(dictionaries(sampled_from(("bs", "bsrange", "bssplit")), text("0123456789kmg/:,-. ")))
def test_any_sizes_are_read_or_refused(options: dict[str, str]) -> None:
    with contextlib.suppress(InputError):
        assert one_size(options, 0.5, "job.fio: [a]").mean_bytes > 0


@pytest.mark.parametrize("option", ["direct=0", "ioengine=mmap", "rw=randtrim"])
def test_a_job_that_cannot_be_converted_has_a_way_on(option: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="iojoule workload observe"):
        from_fio_job(write(tmp_path, f"[a]\nioengine=libaio\ndirect=1\n{option}\n"))


def test_a_comment_ends_a_line_as_in_fio(tmp_path: Path) -> None:
    job = from_fio_job(write(tmp_path, "[a]\ndirect=1\nnumjobs=4\t; threads\nbs=8k # size\n"))
    assert job.current.jobs == 4
    assert job.workload.useful_request_bytes == 8192


@pytest.mark.parametrize(
    ("lines", "field", "way"),
    [
        ("ioengine=null", "ioengine", "--job"),
        ("ioengine=rbd", "ioengine", "other hosts"),
        ("ioengine=falloc\ndirect=0", "ioengine", "observe"),
        ("bs=${SIZE}", "bs", "write its value"),
        ("bs=4160", "bs", "metadata"),
    ],
)
def test_what_cannot_be_converted_says_why_and_what_instead(
    lines: str, field: str, way: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as caught:
        from_fio_job(write(tmp_path, f"[a]\nioengine=libaio\ndirect=1\n{lines}\n"))
    assert caught.value.field == field
    assert way in caught.value.message


def test_a_variable_in_what_is_not_converted_is_no_obstacle(tmp_path: Path) -> None:
    text = "[a]\nioengine=libaio\ndirect=1\ndirectory=${DIR}\nfilename=${DEV}\n"
    assert from_fio_job(write(tmp_path, text)).current.engine == "libaio"


@pytest.mark.parametrize(
    ("options", "reads", "size", "a_second"),
    # what fio 3.33 did with `ioengine=null`
    [
        ("rw=rw\nbs=4k\nrwmixread=90\nrate_iops=2000", 0.5, 4096, 4000),
        ("rw=randrw\nbs=8k\nrwmixread=90\nrate=4m,2m", 2 / 3, 8192, 768),
        ("rw=write\nbssplit=4k/50:8k/50\nrate_iops=3000", 0.0, 6144, 2000),
        ("rw=randwrite\nbsrange=8k-64k,4k-8k\nrate_iops=3000", 0.0, 6144, 2000),
        ("rw=read\nbs=4k\nrate=4m\nrate_iops=100", 1.0, 4096, 1024),
        ("rw=write\nbs=8k,\nrate_iops=100", 0.0, 4096, 100),
        ("rw=read\nbs=,8k\nrate_iops=100", 1.0, 4096, 100),
        ("rw=randread\nbs=16k\nbssplit=,8k/100\nrate_iops=100", 1.0, 16384, 100),
    ],
)
def test_rates_and_sizes_of_each_direction_are_those_of_fio(
    options: str, reads: float, size: int, a_second: float
) -> None:
    asked = parse_fio_job(f"[j]\ndirect=1\nioengine=libaio\n{options}\n", "j.fio").workload
    share = {"read": 1.0, "write": 0.0}.get(asked.operation.value, asked.read_fraction)
    assert share == pytest.approx(reads)
    assert asked.useful_request_bytes == size
    rate = asked.demand_operations_per_second
    if rate is None:
        assert asked.demand_bytes_per_second is not None
        rate = asked.demand_bytes_per_second / size
    assert rate == pytest.approx(a_second)


def test_a_rate_of_one_direction_of_a_mix_is_no_demand() -> None:
    with pytest.raises(InputError) as refused:
        parse_fio_job("[j]\ndirect=1\nioengine=libaio\nrw=rw\nbs=4k\nrate=,3m\n", "j.fio")
    assert refused.value.field == "rate"
