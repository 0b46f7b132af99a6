"""What the fio importer warns about and refuses, and how it says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iojoule.datasets.errors import DataQualityError, InputError
from iojoule.datasets.importers.fio import import_fio
from iojoule.datasets.importers.fio_file import NOT_FIO
from iojoule.datasets.importers.fio_options import job_setup
from tests.datasets.fio_runs import RUNS, Document, changed, complaint, document, only

# Little's law ---------------------------------------------------------------------------------


def at_depth(depth: str) -> Callable[[Document], None]:
    def change(run: Document) -> None:
        for job in run["jobs"]:
            job["job options"]["iodepth"] = depth

    return change


def test_a_wrong_depth_is_refused_with_job_ratio_and_causes(tmp_path: Path) -> None:
    message = complaint(changed(tmp_path, "clones", at_depth("8")), DataQualityError)
    assert "job 'clones'" in message
    assert "= 0.49" in message or "= 0.50" in message
    assert "think time" in message


def test_without_strict_a_wrong_depth_is_doubtful(tmp_path: Path) -> None:
    found = only(import_fio([changed(tmp_path, "clones", at_depth("8"))]))
    assert found.judgement.verdict_reasons == "littles_law"
    assert found.observations.iops == only(import_fio([RUNS / "clones.json"])).observations.iops


def test_merged_jobs_that_ended_apart_explain_littles_law(tmp_path: Path) -> None:
    def end_apart(run: Document) -> None:
        job = run["jobs"][0]
        job["job_runtime"] = round(2.4 * job["read"]["runtime"])
        job["read"]["iops"] *= 2.4 / 3

    found = only(import_fio([changed(tmp_path, "phases", lambda run: lone(run, end_apart))]))
    assert found.configuration.jobs == 3
    assert found.judgement.verdict_reasons == "partial_overlap"


def lone(run: Document, change: Callable[[Document], None]) -> None:
    del run["jobs"][1:]
    change(run)


def test_a_clock_that_ran_on_is_no_sign_of_merged_jobs(tmp_path: Path) -> None:
    def wait(run: Document) -> None:
        run["jobs"][0]["job_runtime"] *= 2

    found = only(import_fio([changed(tmp_path, "phases", lambda run: lone(run, wait))]))
    assert found.configuration.jobs == 3
    assert found.judgement.verdict_reasons is None


def test_sections_of_a_modified_fio_are_not_guessed(tmp_path: Path) -> None:
    def rename(run: Document) -> None:
        run["jobs"][0]["finish"] = run["jobs"][0].pop("read")
        run["jobs"][0].pop("write")

    path = changed(tmp_path, "phases", lambda run: lone(run, rename))
    with pytest.raises(InputError) as caught:
        import_fio([path])
    assert caught.value.field == "written by a modified fio"


def test_a_small_distance_is_a_warning(tmp_path: Path) -> None:
    def faster(run: Document) -> None:
        run["jobs"][0]["read"]["iops"] *= 1.08

    dataset = import_fio([changed(tmp_path, "clones", faster)])
    assert "off Little's law" in dataset.provenance.warnings[0]


@pytest.mark.parametrize(
    ("option", "value", "field", "expected"),
    [
        ("thinktime", "1ms", "think_time_ns", 1e6),
        ("rate_iops", "1000", "demand_operations_per_second", 1000 * 2 * 2),
        ("rate", "10m,5m", "demand_bytes_per_second", 15 * 2**20 * 2),
    ],
)
def test_the_law_is_not_asked_of_a_run_that_is_held_back(
    tmp_path: Path, option: str, value: str, field: str, expected: float
) -> None:
    def hold_back(run: Document) -> None:
        at_depth("64")(run)
        for job in run["jobs"]:
            job["job options"][option] = value

    workload = only(import_fio([changed(tmp_path, "clones", hold_back)])).workload
    assert getattr(workload, field) == pytest.approx(expected)


def test_the_time_of_flushes_counts(tmp_path: Path) -> None:
    def flush(run: Document) -> None:
        job = run["jobs"].pop()
        job["read"], job["write"] = job["write"], job["read"]
        job["job options"] |= {"rw": "randwrite", "fsync": "1"}
        part, seconds = job["write"], job["write"]["runtime"] / 1000
        part["iops"] /= 4
        part["total_ios"] //= 4
        mean = 0.75 / (part["total_ios"] / seconds) * 1e9
        job["sync"] = {"total_ios": part["total_ios"], "lat_ns": {"mean": mean}}
        run["jobs"] = [job]

    workload = only(import_fio([changed(tmp_path, "phases", flush)])).workload
    assert workload.flush_every_writes == 1


# Bad input ------------------------------------------------------------------------------------


def test_a_failed_job_is_named() -> None:
    message = complaint(RUNS / "failed.json", DataQualityError)
    assert "job 'failed': fio reports error 22 (Invalid argument)" in message


def stop(run: Document) -> None:
    for job in run["jobs"]:
        job["read"] |= {"runtime": 0, "total_ios": 0, "iops": 0.0}


def merge_others(run: Document) -> None:
    run["jobs"][0]["job_runtime"] *= 2
    run["jobs"][0]["read"]["iops"] *= 1.5


def trim(run: Document) -> None:
    run["jobs"][0]["trim"] = {"total_ios": 5}


def forget_options(run: Document) -> None:
    run.pop("global options")
    run["jobs"][0].pop("job options")


def lose_a_clone(run: Document) -> None:
    run["jobs"][0]["job options"]["numjobs"] = "3"
    run["jobs"][1]["job options"]["numjobs"] = "3"


def shorten(run: Document) -> None:
    run["jobs"][1]["write"]["runtime"] //= 2
    run["jobs"][1]["job_runtime"] //= 2


def option(name: str, value: str) -> Callable[[Document], None]:
    return lambda run: run["jobs"][0]["job options"].update({name: value})


@pytest.mark.parametrize(
    ("name", "change", "kind", "expected"),
    [
        ("phases", stop, DataQualityError, ("grouped", "runtime 0")),
        ("phases", merge_others, DataQualityError, ("about 6 jobs", "group_reporting")),
        ("phases", option("rw", "randwrite"), DataQualityError, ("asked to write", "did read")),
        ("phases", trim, InputError, ("trims",)),
        ("phases", option("rw", "randtrim"), InputError, ("rw=randtrim", "trims")),
        ("phases", option("rw", "randread:8"), InputError, ("rw=randread:8", "randrw")),
        ("phases", option("bssplit", "4k/50:8k/50"), InputError, ("bssplit=4k/50", "one size")),
        ("phases", option("blocksize_range", "4k-8k"), InputError, ("bsrange=4k-8k",)),
        ("phases", option("bs", "4k-8k"), InputError, ("bs=4k-8k mixes request sizes",)),
        ("phases", option("bs", "many"), InputError, ("bs=many", "4k")),
        ("phases", option("bs", "0"), InputError, ("bs=0", "4k")),
        ("phases", option("iodepth", "0"), InputError, ("iodepth=0", "at least one")),
        ("phases", option("ioengine", "mmap"), InputError, ("ioengine=mmap", "libaio")),
        ("phases", option("thinktime", "soon"), InputError, ("thinktime=soon", "100us")),
        ("phases", option("bs", "100"), InputError, ("request_bytes", "512", "grouped")),
        ("phases", forget_options, InputError, ("fio-3.33", "does not record", "column map")),
        ("clones", option("bs", "4k,8k"), InputError, ("bs=4k,8k", "reads and writes")),
        ("clones", lose_a_clone, DataQualityError, ("2 entries for numjobs=3",)),
        ("side_by_side", option("iodepth", "1"), DataQualityError, ("job 'reader'",)),
        ("side_by_side", option("ioengine", "io_uring"), InputError, ("'writer'", "engine")),
        ("side_by_side", option("rate_iops", "9"), InputError, ("'writer'", "demand_operations")),
        ("side_by_side", shorten, DataQualityError, ("part of the time", "time_based")),
    ],
)
def test_what_cannot_be_expressed_names_file_job_option_and_remedy(
    tmp_path: Path,
    name: str,
    change: Callable[[Document], None],
    kind: type[InputError],
    expected: tuple[str, ...],
) -> None:
    message = complaint(changed(tmp_path, name, change), kind)
    for part in expected:
        assert part in message


def test_groups_that_overlap_in_an_unknown_way_are_refused(tmp_path: Path) -> None:
    def third(run: Document) -> None:
        run["jobs"].append(run["jobs"][1] | {"groupid": 2, "jobname": "late"})
        for job in run["jobs"]:
            job["elapsed"] = 4
            job["job_runtime"] = job["read"]["runtime"] = 2000

    message = complaint(changed(tmp_path, "phases", third))
    assert "stonewall=1 or new_group=1" in message

    def recorded(run: Document) -> None:
        third(run)
        for job in run["jobs"][1:]:
            job["job options"]["stonewall"] = "1"
        run["jobs"][0]["job_runtime"] = 6000

    assert len(import_fio([changed(tmp_path, "phases", recorded)])) == 3


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5, 0.9, 0.999])
def test_a_cut_off_file_is_named_with_its_line(tmp_path: Path, share: float) -> None:
    text = (RUNS / "phases.json").read_text().rstrip()
    path = tmp_path / "cut.json"
    path.write_text(text[: int(len(text) * share)])
    message = complaint(path, DataQualityError)
    assert "line " in message
    assert "cut off" in message


def test_a_cumulative_file_whose_end_is_cut_off_is_refused_too(tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    path.write_text((RUNS / "cumulative.json").read_text()[:-200])
    assert "cut off" in complaint(path, DataQualityError)


@pytest.mark.parametrize(
    ("content", "kind", "expected"),
    [
        (b"", DataQualityError, "empty"),
        (b" \n", DataQualityError, "empty"),
        (b"hello\n", InputError, "not fio's JSON"),
        (b'{"a": 1}', InputError, "not fio's JSON"),
        (b"[1, 2]", InputError, "not fio's JSON"),
        (b"{not json", InputError, "not fio's JSON"),
        (b"\xff\xfe\x00", InputError, "not text"),
        (b'{"fio version": "fio-3.33"}', InputError, "jobs"),
        (b'{"fio version": "fio-3.33", "jobs": []}', DataQualityError, "no job"),
        (b'{"fio version": "fio-3.33", "jobs": [{"jobname": 3}]}', InputError, "jobs.0.jobname"),
        (
            b'{"fio version": "fio-3.33", "jobs": [{"jobname": "a", "read": {"iops": -1}}]}',
            InputError,
            "jobs.0.read.iops",
        ),
        (
            b'{"fio version": "fio-3.33", "jobs": [{"jobname": "a", "error": 99999999999}]}',
            DataQualityError,
            "error 99999999999",
        ),
        (b'{"fio version": "fio-3.33", "client_stats": []}', InputError, "clients"),
    ],
)
def test_a_file_that_is_not_fios_is_named_with_the_remedy(
    tmp_path: Path, content: bytes, kind: type[InputError], expected: str
) -> None:
    path = tmp_path / "runs.json"
    path.write_bytes(content)
    assert expected in complaint(path, kind)


def test_a_missing_path_and_an_empty_folder(tmp_path: Path) -> None:
    assert "no such file or folder" in complaint(tmp_path / "nowhere")
    assert "no results of fio in this folder" in complaint(tmp_path)


def test_what_is_bad_is_left_out_and_counted(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    for name in ("clones", "failed", "phases"):
        (folder / f"{name}.json").write_text((RUNS / f"{name}.json").read_text())
    (folder / "empty.json").write_text("")
    (folder / "package.json").write_text('{"name": "not fio"}')
    half_bad = document("phases")
    half_bad["jobs"][0]["job options"]["ioengine"] = "mmap"
    (folder / "half.json").write_text(json.dumps(half_bad))
    with pytest.raises(DataQualityError):
        import_fio([folder], strict=True)
    dataset = import_fio([folder])
    assert len(dataset) == 1 + 2 + 1
    assert {(row.source, row.reason) for row in dataset.provenance.excluded} == {
        ("empty.json", "empty file"),
        ("failed.json", "fio reports an error"),
        ("half.json", "ioengine"),
        ("package.json", NOT_FIO),
    }
    assert not any(str(tmp_path) in item for item in dataset.provenance.warnings)
    with pytest.raises(DataQualityError, match="empty"):
        import_fio([folder / "empty.json"])


# Options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"operation": "read", "engine": "psync", "request_bytes": 4096, "queue_depth": 1}),
        ({"ioengine": "sync"}, {"engine": "psync"}),
        ({"ioengine": "pvsync2", "hipri": "1"}, {"engine": "psync", "completion": "interrupt"}),
        ({"ioengine": "posixaio", "iodepth": "8"}, {"engine": "posixaio", "queue_depth": 8}),
        ({"ioengine": "io_uring", "hipri": "1"}, {"completion": "polled"}),
        ({"ioengine": "libaio", "ioscheduler": "mq-deadline"}, {"scheduler": "mq-deadline"}),
        ({"cpus_allowed": "0-3,8"}, {"cpu_cores_available": 5}),
        ({"ioengine": "io_uring_cmd", "hipri": "0"}, {"completion": "interrupt"}),
        ({"ioengine": "io_uring", "sqthread_poll": "1"}, {"submission_polling": True}),
        ({"ioengine": "/opt/spdk/build/fio/spdk_nvme"}, {"engine": "spdk", "completion": "polled"}),
        ({"ioengine": "external:/x/spdk_bdev"}, {"engine": "spdk"}),
        (
            {"readwrite": "write", "blocksize": "1m"},
            {"pattern": "sequential", "request_bytes": 1 << 20},
        ),
        ({"rw": "write", "bs": "4k,16k"}, {"request_bytes": 16384}),
        ({"rw": "randrw"}, {"read_fraction": 0.5, "mix_dispatch": "interleaved"}),
        ({"rw": "randrw", "rwmixwrite": "20"}, {"read_fraction": 0.8}),
        ({"rw": "rw", "rwmixread": "100"}, {"operation": "read"}),
        ({"rw": "randwrite", "fdatasync": "4"}, {"flush_every_writes": 4}),
        ({"rw": "randwrite", "sync": "dsync"}, {"force_unit_access": True}),
        ({"thinktime": "50", "thinktime_blocks": "5"}, {"think_time_ns": 10_000}),
        ({"rate": "8m", "rate_process": "poisson"}, {"arrival_process": "poisson"}),
        ({"rate": "8m", "rate_iops": "100"}, {"demand_bytes_per_second": 8 * 2**20}),
        ({"filename": "/dev/nvme0n1", "size": "1g"}, {"working_set_bytes": 2**30}),
    ],
)
def test_options_become_workload_and_configuration(
    options: dict[str, str], expected: dict[str, Any]
) -> None:
    fields = job_setup({"direct": "1", **options}, "test").fields
    assert {name: fields.get(name) for name in expected} == expected


def test_options_without_a_field_are_mentioned() -> None:
    notes = job_setup({"random_distribution": "zipf:1.2"}, "test").notes
    assert any("direct=0" in note for note in notes)
    assert any("random_distribution=zipf:1.2" in note for note in notes)
    assert job_setup({"direct": "1"}, "test").notes == ()


def test_io_uring_without_a_record_of_hipri_is_unknown() -> None:
    fields = job_setup({"ioengine": "io_uring"}, "test").fields
    assert "completion" not in fields
    assert "submission_polling" not in fields


@pytest.mark.parametrize("number", ["9" * 5000, "[" * 100_000], ids=["digits", "lists"])
def test_json_that_python_does_not_read_is_refused(tmp_path: Path, number: str) -> None:
    (tmp_path / "run.json").write_text('{"fio version": "fio-3.33",\n"jobs": ' + number + "}")
    with pytest.raises(DataQualityError):
        import_fio([tmp_path / "run.json"])
