"""Layouts of fio's output that people have: several runs, hosts, drives and clones in a file,
merged jobs, terse lines, folders of sweeps. Where fio is installed, what it really writes."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from iojoule.datasets.errors import DataQualityError, InputError
from iojoule.datasets.importers.fio import import_fio
from iojoule.datasets.importers.fio_file import (
    NOT_FIO,
    FioJob,
    Found,
    direction_stats,
    holds_fio,
    load_runs,
)
from iojoule.datasets.schema import Measurement
from tests.datasets.fio_runs import RUNS, Document, changed, document, only

FIO = shutil.which("fio")


def rows(*paths: Path) -> list[Measurement]:
    return list(import_fio(list(paths)).measurements())


def write(path: Path, *documents: Document, before: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(before + "\n".join(json.dumps(each) for each in documents))
    return path


# Several runs and hosts -----------------------------------------------------------------------


def test_runs_one_after_the_other_in_a_file_are_runs(tmp_path: Path) -> None:
    one, two = document("clones"), document("phases")
    path = write(tmp_path / "log", one, two, before="Starting 2 processes\n")
    expected = [*rows(RUNS / "clones.json"), *rows(RUNS / "phases.json")]
    assert [row.observations for row in rows(path)] == [row.observations for row in expected]


def test_the_same_job_run_again_is_no_cumulative_document(tmp_path: Path) -> None:
    first = document("clones")
    again = json.loads(json.dumps(first))
    for clock, unit in (("timestamp", 1), ("timestamp_ms", 1000)):
        again[clock] = first.get(clock, 0) + 60 * unit
        first.setdefault(clock, 0)
    assert len(rows(write(tmp_path / "twice.json", first, again))) == 2


def test_fio_inside_another_document_is_found(tmp_path: Path) -> None:
    wrapped = {"tool": "bench", "results": [{"fio": document("phases")}]}
    found = rows(write(tmp_path / "wrapped.json", wrapped))
    expected = rows(RUNS / "phases.json")
    assert [row.observations for row in found] == [row.observations for row in expected]


def test_each_client_is_a_run_on_a_host_of_its_own(tmp_path: Path) -> None:
    run = document("phases")
    jobs = run.pop("jobs")
    run["client_stats"] = [
        {**job, "hostname": host, "port": 8765} for host in ("alpha", "beta") for job in jobs
    ]
    # fio 3.33 gives the sum the address of the last client and no options
    total = {**run["client_stats"][-1], "jobname": "All clients"}
    del total["job options"]
    run["client_stats"].append(total)
    dataset = import_fio([write(tmp_path / "clients.json", run)])
    assert len(dataset) == 2 * len(rows(RUNS / "phases.json"))
    assert len(set(dataset.column("host_id"))) == len(set(dataset.column("session_id"))) == 2
    assert not any("alpha" in str(name) for name in dataset.column("session_id"))


# Drives and clones ----------------------------------------------------------------------------


def test_jobs_on_drives_of_their_own_are_a_measurement_each(tmp_path: Path) -> None:
    def two_drives(run: Document) -> None:
        run["jobs"][1]["job options"]["filename"] = "/dev/nvme1n1"

    dataset = import_fio([changed(tmp_path, "side_by_side", two_drives)])
    assert dataset.column("operation").tolist() == ["read", "write"]
    assert len(set(dataset.column("session_id"))) == 2


def test_one_job_on_several_drives_is_read_and_not_fitted(tmp_path: Path) -> None:
    def stripe(run: Document) -> None:
        for job in run["jobs"]:
            job["job options"]["filename"] = "/dev/nvme0n1:/dev/nvme1n1"

    found = only(import_fio([changed(tmp_path, "clones", stripe)]))
    assert found.judgement.verdict_reasons == "several_drives"
    alone = only(import_fio([RUNS / "clones.json"]))
    assert found.observations.iops == alone.observations.iops


def test_buffered_runs_are_read_and_not_fitted(tmp_path: Path) -> None:
    def buffer(run: Document) -> None:
        for job in run["jobs"]:
            job["job options"]["direct"] = "0"

    found = only(import_fio([changed(tmp_path, "clones", buffer)]))
    assert found.judgement.verdict_reasons == "page_cache"


def clones_that_end(run: Document, shares: list[float]) -> None:
    """As many alike readers, each at 1,000 IOPS for its share of 60 s."""
    (first, *_) = run["jobs"]
    options = {"rw": "randread", "bs": "4k", "iodepth": "2", "numjobs": str(len(shares))}
    options |= {"direct": "1", "ioengine": "libaio"}
    run["global options"] = {}
    part: dict[str, Any] = first["read"]
    run["jobs"] = []
    for share in shares:
        read = {name: value for name, value in part.items() if name in ("clat_ns", "slat_ns")}
        read |= {"iops": 1000.0, "bw_bytes": 4096000, "runtime": round(6e4 * share)}
        read |= {"total_ios": round(6e4 * share), "lat_ns": {"mean": 2e6, "N": 1}, "bw": 4000}
        idle = {"total_ios": 0}
        job = {"jobname": "a", "groupid": 0, "error": 0, "job options": options, "read": read}
        run["jobs"].append({**job, "write": idle, "trim": idle, "ctx": 5, "usr_cpu": 1.0})


def test_clones_that_reach_steady_state_by_themselves_count_while_all_ran(tmp_path: Path) -> None:
    found = only(
        import_fio([changed(tmp_path, "phases", lambda run: clones_that_end(run, [0.3] * 3 + [1]))])
    )
    assert found.configuration.jobs == 4
    assert found.observations.iops == pytest.approx(4000)
    assert found.judgement.verdict is None


def test_clones_that_end_one_by_one_are_averaged_over_the_run_and_not_fitted(
    tmp_path: Path,
) -> None:
    shares = [0.2, 0.4, 0.6, 0.8, 1.0]
    found = only(
        import_fio([changed(tmp_path, "phases", lambda run: clones_that_end(run, shares))])
    )
    assert found.observations.iops == pytest.approx(1000 * sum(shares))
    assert found.judgement.verdict_reasons == "partial_overlap"


# group_reporting ------------------------------------------------------------------------------


def merged(run: Document, readers: float, writers: float) -> None:
    """A writer and others as group_reporting merges them: the options of the first alone."""
    clones_that_end(run, [1.0])
    (job,) = run["jobs"]
    job["job options"] |= {"rw": "randwrite"}
    job["job_runtime"] = 60_000 * round(readers + writers)
    read = job["read"]
    for name, count in (("read", readers), ("write", writers)):
        job[name] = {**read, "iops": 1000.0 * count, "bw_bytes": 4096000 * count}


def test_merged_jobs_are_undone_where_littles_law_counts_them(tmp_path: Path) -> None:
    found = only(import_fio([changed(tmp_path, "phases", lambda run: merged(run, 2, 1))]))
    assert found.workload.mix_dispatch == "separated"
    assert found.configuration.jobs == 3
    assert found.workload.read_fraction == pytest.approx(2 / 3)
    assert found.judgement.verdict_reasons == "merged_jobs"


def test_merged_jobs_that_do_not_add_up_are_refused(tmp_path: Path) -> None:
    path = changed(tmp_path, "phases", lambda run: merged(run, 1.4, 1))
    with pytest.raises(DataQualityError) as caught:
        import_fio([path])
    assert caught.value.field == "group_reporting merged different jobs"


# Sessions -------------------------------------------------------------------------------------


def test_folders_drives_and_days_are_sessions_and_what_was_swept_is_not(tmp_path: Path) -> None:
    def run(hours: float) -> Document:
        found = document("clones")
        found["timestamp_ms"] = round((1_700_000_000 + 3600 * hours) * 1000)
        return found

    for name, hours in (
        ("a/4k/randread-1-1", 0.0),
        ("a/64k/randread-1-1", 1.0),
        ("a/bs=4k/qd32/numjobs-4/randread", 1.5),
        ("a/4k/randread-2-1", 20.0),
        ("b/4k/randread-1-1", 0.5),
    ):
        write(tmp_path / f"{name}.json", run(hours))
    dataset = import_fio([tmp_path])
    by_name = dict(zip(dataset.column("series_id"), dataset.column("session_id"), strict=True))
    names = list(dataset.column("session_id"))
    assert len(set(names)) == 3
    assert by_name["a/64k"] == by_name["a/bs=4k/qd32/numjobs-4"]
    assert names.count(by_name["a/64k"]) == 3


# Terse ----------------------------------------------------------------------------------------


@pytest.mark.skipif(FIO is None, reason="needs fio")
@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_terse_lines_of_the_real_fio(version: int, tmp_path: Path) -> None:
    assert FIO is not None
    words = [FIO, "--name=x", f"--filename={tmp_path / 'target'}", "--size=1m", "--rw=randrw"]
    words += ["--bs=8k", "--ioengine=psync", "--runtime=1", "--io_size=8m", "--thread"]
    words += ["--output-format=terse,json", f"--terse-version={version}"]
    path = tmp_path / "both.txt"
    subprocess.run([*words, f"--output={path}"], check=True, capture_output=True, timeout=60)
    text = path.read_text()
    terse = tmp_path / "randrw-1-1.txt"
    terse.write_text(text[: text.index("{\n")])
    (path.parent / "run.json").write_text(text[text.index("{\n") :])
    full = FioJob.model_validate(json.loads((tmp_path / "run.json").read_text())["jobs"][0])
    (short,) = load_runs(Found(terse, terse.name, None))[0].run.jobs
    # rates are cut to whole numbers, latencies written in us
    for seen, wanted in ((short.read, full.read), (short.write, full.write)):
        stated, exact = direction_stats(seen), direction_stats(wanted)
        assert stated.iops == pytest.approx(exact.iops, abs=1)
        assert stated.mean_ns == pytest.approx(exact.mean_ns, rel=1e-3, abs=2)
        assert stated.percentiles_ns["p99"] == pytest.approx(exact.percentiles_ns["p99"], abs=1000)


def test_terse_lines_bear_no_options_so_the_name_tells_them(tmp_path: Path) -> None:
    table = ";".join(f"{percent}.0%=99" for percent in range(1, 21))
    busy = f"40000;4000;1000;10000;0;0;0.0;0.0;1;1;2000.0;0.0;{table};1;1;2000.0;0.0;0;0;0%;0.0;0.0"
    idle = f"0;0;0;0;0;0;0.0;0.0;0;0;0.0;0.0;{table};0;0;0.0;0.0;0;0;0%;0.0;0.0"
    line = f"3;fio-3.33;x;0;0;{busy};{idle};1.0%;2.0%;77;0;0\n"
    (tmp_path / "randread-2-2.txt").write_text(2 * line)
    found = only(import_fio([tmp_path]))
    assert (found.workload.operation, found.workload.pattern) == ("read", "random")
    assert (found.configuration.queue_depth, found.configuration.jobs) == (2, 2)
    assert found.configuration.request_bytes == 4096
    assert found.configuration.engine is None
    assert found.observations.iops == 2000
    assert found.observations.latency_mean_ns == pytest.approx(2e6)


def test_a_terse_line_that_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "randread-1-1"
    path.write_text("3;fio-3.33;x;0;0;100;100;25;1000;1;2\n")
    with pytest.raises(DataQualityError, match="line 1"):
        import_fio([path])


# Public results -------------------------------------------------------------------------------

CORPUS = os.environ.get("IOJOULE_FIO_CORPUS")


def raw_jobs(text: str) -> list[tuple[float, float, float]]:
    """IOPS, bytes a second and seconds of each job, read with nothing of iojoule's."""
    decoder, found, place = json.JSONDecoder(), [], text.find('"fio version"')
    while place >= 0:
        run, end = decoder.raw_decode(text, text.rindex("{", 0, place))
        for job in run.get("jobs", []):
            parts = [job[name] for name in ("read", "write") if job[name].get("iops")]
            rate = sum(part["iops"] for part in parts)
            moved = sum(part.get("bw_bytes") or part["bw"] * 1024 for part in parts)
            found.append((rate, moved, max((part["runtime"] for part in parts), default=0) / 1e3))
        place = text.find('"fio version"', end)
    return found


def expected_rows(raw: list[tuple[float, float, float]]) -> list[tuple[float, float]]:
    """One row of jobs that ran side by side, if they are one measurement."""
    seconds = [time for _, _, time in raw]
    weights = [1.0] * len(raw)
    if max(seconds) > 1.25 * min(seconds):
        first = [time <= 1.05 * min(seconds) for time in seconds]
        weights = [len(raw) / sum(first) if one else 0.0 for one in first]
        if 2 * sum(first) < len(raw):
            weights = [time / max(seconds) for time in seconds]
    pairs = list(zip(weights, raw, strict=True))
    return [(sum(w * job[0] for w, job in pairs), sum(w * job[1] for w, job in pairs))]


@pytest.mark.slow
@pytest.mark.skipif(CORPUS is None, reason="IOJOULE_FIO_CORPUS names no folder of fio's results")
def test_random_rows_of_public_results_equal_the_raw_json() -> None:
    assert CORPUS is not None
    every = [path for path in sorted(Path(CORPUS).rglob("*")) if path.is_file() and holds_fio(path)]
    random.Random(1).shuffle(every)
    checked = 0
    for path in every:
        try:
            found = rows(path)
        except InputError:  # what is refused is no row
            continue
        raw = raw_jobs(path.read_text())
        if not raw:  # a client/server run
            continue
        expected = [(rate, moved) for rate, moved, _ in raw]
        if len(found) < len(raw):
            assert len(found) == 1, path
            expected = expected_rows(raw)
        seen = [(r.observations.iops, r.observations.throughput_bytes_per_second) for r in found]
        assert sorted(seen) == [pytest.approx(each, rel=1e-9) for each in sorted(expected)], path
        checked += len(found)
        if checked >= 1000:
            return
    pytest.fail(f"only {checked} rows in {CORPUS}")


def test_what_is_not_fios_is_listed(tmp_path: Path) -> None:
    write(tmp_path / "runs" / "good", document("clones"))
    (tmp_path / "runs" / "plot.py").write_text('"fio version"')
    (tmp_path / "runs" / "notes.txt").write_text("hello")
    found = import_fio([tmp_path / "runs"]).provenance.excluded
    assert [(row.source, row.reason) for row in found] == [
        ("notes.txt", NOT_FIO),
        ("plot.py", NOT_FIO),
    ]
