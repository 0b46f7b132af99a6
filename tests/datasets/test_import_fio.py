"""The fio importer, on real output of fio 3.33 (fio/*.json, shortened) and on changed copies."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.datasets.errors import DataQualityError, InputError
from iojoule.datasets.importers import ImportOptions, importer
from iojoule.datasets.importers.fio import import_fio
from iojoule.datasets.importers.fio_file import FioRun
from iojoule.datasets.importers.fio_options import job_setup
from iojoule.datasets.importers.fio_stats import bin_middle, merge_bins, percentile
from iojoule.datasets.schema import Measurement
from iojoule.datasets.store import Dataset, read_dataset, write_dataset

RUNS = Path(__file__).parent / "fio"

Document = dict[str, Any]


def document(name: str) -> Document:
    text = (RUNS / f"{name}.json").read_text()
    found: Document = json.loads(text[text.index("{") :])
    return found


def changed(tmp_path: Path, name: str, change: Callable[[Document], object]) -> Path:
    """A copy of a run in which something is different."""
    run = document(name)
    change(run)
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps(run))
    return path


def only(dataset: Dataset) -> Measurement:
    (measurement,) = dataset.measurements()
    return measurement


def complaint(path: Path, kind: type[InputError] = InputError) -> str:
    with pytest.raises(kind) as caught:
        import_fio([path])
    assert type(caught.value) is kind
    assert str(path) in caught.value.message
    return caught.value.message


# Histograms -----------------------------------------------------------------------------------


@given(
    st.lists(st.lists(st.integers(0, 1500), min_size=1, max_size=40), min_size=1, max_size=5),
    st.sampled_from([50.0, 99.0, 99.9]),
)
def test_merged_bins_give_the_percentile_of_all_samples(
    jobs: list[list[int]], percent: float
) -> None:
    binned = [[bin_middle(index, 6) for index in job] for job in jobs]
    everything = sorted(value for job in binned for value in job)
    rank = max(1, math.ceil(percent / 100.0 * len(everything)))
    merged = merge_bins(Counter(job) for job in binned)
    assert percentile(merged, percent) == everything[rank - 1]
    assert sum(merged.values()) == len(everything)


def test_one_jobs_bins_give_the_percentiles_that_fio_printed() -> None:
    compared = 0
    for job in FioRun.model_validate(document("clones")).jobs:
        for direction in (job.read, job.write):
            assert direction.clat_ns is not None
            bins = {float(key): count for key, count in direction.clat_ns.bins.items()}
            for percent, value in direction.clat_ns.percentile.items():
                assert percentile(bins, float(percent)) == value
                compared += 1
    assert compared == 4 * 17


def test_numbered_bins_lie_where_fio_puts_them() -> None:
    grid = {bin_middle(index, 6) for index in range(29 * 64)}
    job = FioRun.model_validate(document("clones")).jobs[0]
    assert job.read.clat_ns is not None
    assert {float(key) for key in job.read.clat_ns.bins} <= grid


# What a run becomes ---------------------------------------------------------------------------


def test_clones_of_a_mixed_job_become_one_measurement() -> None:
    measurement = only(import_fio([RUNS / "clones.json"]))
    workload, configuration = measurement.workload, measurement.configuration
    assert (workload.operation, workload.read_fraction) == ("mixed", 0.7)
    assert (workload.mix_dispatch, workload.pattern) == ("interleaved", "random")
    assert (configuration.request_bytes, configuration.engine) == (4096, "libaio")
    assert (configuration.queue_depth, configuration.jobs) == (4, 2)
    assert configuration.completion == "interrupt"
    seen = measurement.observations
    jobs = document("clones")["jobs"]
    for name in ("read", "write"):
        assert getattr(seen, f"{name}_iops") == pytest.approx(sum(j[name]["iops"] for j in jobs))
        requests = [j[name]["total_ios"] for j in jobs]
        means = [j[name]["lat_ns"]["mean"] for j in jobs]
        weighted = sum(n * m for n, m in zip(requests, means, strict=True)) / sum(requests)
        assert getattr(seen, f"{name}_latency_mean_ns") == pytest.approx(weighted)
    assert seen.read_iops is not None
    assert seen.write_iops is not None
    assert seen.iops == pytest.approx(seen.read_iops + seen.write_iops)
    assert seen.throughput_bytes_per_second == pytest.approx(4096 * seen.iops, rel=1e-3)
    histograms = [
        {int(k): v for k, v in job[name]["clat_ns"]["bins"].items()}
        for job in jobs
        for name in ("read", "write")
    ]
    assert seen.latency_p99_ns == percentile(merge_bins(histograms), 99)
    assert measurement.littles_ratio() == pytest.approx(1, abs=0.01)
    assert seen.cpu_utilisation == pytest.approx(
        sum(j["usr_cpu"] + j["sys_cpu"] for j in jobs) / 100
    )


def test_jobs_after_a_stonewall_are_their_own_measurement() -> None:
    dataset = import_fio([RUNS / "phases.json"])
    assert dataset.column("jobs").tolist() == [3, 1]
    assert dataset.column("queue_depth").tolist() == [4, 1]
    assert dataset.column("engine").tolist() == ["libaio", "psync"]
    assert dataset.column("request_bytes").tolist() == [4096, 8192]
    grouped = document("phases")["jobs"][0]  # fio states the mean share of its three jobs
    assert dataset.column("cpu_utilisation")[0] == pytest.approx(
        3 * (grouped["usr_cpu"] + grouped["sys_cpu"]) / 100
    )
    assert (
        dataset.column("latency_p99_ns")[0] == grouped["read"]["clat_ns"]["percentile"]["99.000000"]
    )


def test_readers_beside_writers_become_a_separated_mix() -> None:
    measurement = only(import_fio([RUNS / "side_by_side.json"]))
    assert (measurement.workload.operation, measurement.workload.mix_dispatch) == (
        "mixed",
        "separated",
    )
    seen = measurement.observations
    assert seen.read_iops is not None
    assert seen.iops is not None
    assert measurement.workload.read_fraction == pytest.approx(seen.read_iops / seen.iops)
    assert measurement.concurrency() == 4
    assert seen.read_latency_p99_ns != seen.write_latency_p99_ns


def test_the_last_cumulative_document_is_the_run_and_psync_holds_one_request() -> None:
    dataset = import_fio([RUNS / "cumulative.json"])
    text = (RUNS / "cumulative.json").read_text()
    assert text.startswith("note: ")
    last = json.loads(text[text.rindex('{"fio version"') :])
    assert dataset.column("iops")[0] == last["jobs"][0]["read"]["iops"]
    assert dataset.column("queue_depth")[0] == 1
    assert any("3 cumulative documents" in item for item in dataset.provenance.warnings)
    assert any("depth 1, not 8" in item for item in dataset.provenance.warnings)


def test_the_broken_percentiles_of_sqthread_poll_are_left_out() -> None:
    dataset = import_fio([RUNS / "sqpoll.json"])
    measurement = only(dataset)
    assert measurement.configuration.submission_polling is True
    assert measurement.configuration.completion == "interrupt"  # hipri=0 is on record
    assert measurement.observations.latency_mean_ns == pytest.approx(176_699.6)
    assert measurement.observations.latency_p99_ns is None
    assert "sqthread_poll" in dataset.provenance.warnings[0]


def test_a_bare_hipri_is_not_on_record_so_only_sleeping_shows(tmp_path: Path) -> None:
    def unrecorded(run: Document, switches: int) -> None:
        del run["global options"]["hipri"]
        run["jobs"][0]["ctx"] = switches

    busy = import_fio([changed(tmp_path, "sqpoll", lambda run: unrecorded(run, 10))])
    assert only(busy).configuration.completion is None
    assert "hipri=1 or hipri=0" in " ".join(busy.provenance.warnings)
    sleeping = import_fio([changed(tmp_path, "sqpoll", lambda run: unrecorded(run, 10**6))])
    assert only(sleeping).configuration.completion == "interrupt"


def to_version_2(run: Document) -> None:
    """fio 2 counts in us, writes io_bytes in KiB and has no json+ bins in ns."""
    run["fio version"] = "fio-2.21"
    for job in run["jobs"]:
        for name in ("read", "write"):
            part = job[name]
            part.pop("bw_bytes", None)
            part["io_bytes"] = part.pop("io_kbytes", 0)
            for latency in ("slat", "clat", "lat"):
                old = part.pop(f"{latency}_ns", None)
                if old:
                    old.pop("bins", None)
                    old.pop("N")
                    old["mean"] /= 1000
                    if "percentile" in old:
                        table = {k: v / 1000 for k, v in old["percentile"].items()}
                        old["percentile"] = table | {"0.00": 0}
                    part[latency] = old
        del job["job_runtime"], job["sync"]


def test_the_microseconds_of_fio_2_are_converted(tmp_path: Path) -> None:
    modern = import_fio([RUNS / "phases.json"])
    old = import_fio([changed(tmp_path, "phases", to_version_2)])
    for name in ("latency_mean_ns", "latency_p50_ns", "latency_p99_ns", "latency_p999_ns"):
        assert old.column(name) == pytest.approx(modern.column(name))
    assert old.column("iops") == pytest.approx(modern.column("iops"))
    throughput = "throughput_bytes_per_second"
    assert old.column(throughput) == pytest.approx(modern.column(throughput), rel=1e-4)


def test_bins_numbered_by_index_are_understood(tmp_path: Path) -> None:
    index_of = {int(bin_middle(index, 6)): index for index in range(29 * 64)}

    def number(run: Document) -> None:
        latency = run["jobs"][0]["read"]["clat_ns"]
        bins = {str(index_of[int(key)]): count for key, count in latency["bins"].items()}
        latency["bins"] = {"FIO_IO_U_PLAT_BITS": 6, "FIO_IO_U_PLAT_VAL": 64, "0": 0} | bins
        latency["percentile"] = {}

    path = changed(tmp_path, "phases", number)
    expected = import_fio([RUNS / "phases.json"]).column("latency_p99_ns")
    assert import_fio([path]).column("latency_p99_ns").tolist() == expected.tolist()


def without_bins(run: Document) -> None:
    for job in run["jobs"]:
        for name in ("read", "write"):
            job[name].get("clat_ns", {}).pop("bins", None)


def test_percentiles_of_several_jobs_are_never_averaged(tmp_path: Path) -> None:
    dataset = import_fio([changed(tmp_path, "clones", without_bins)])
    seen = only(dataset).observations
    assert seen.latency_p99_ns is None
    assert seen.read_latency_p99_ns is None
    assert seen.latency_mean_ns is not None
    assert "--output-format=json+" in " ".join(dataset.provenance.warnings)


def test_the_percentiles_of_one_job_are_taken_from_its_table(tmp_path: Path) -> None:
    dataset = import_fio([changed(tmp_path, "phases", without_bins)])
    expected = import_fio([RUNS / "phases.json"]).column("latency_p999_ns")
    assert dataset.column("latency_p999_ns").tolist() == expected.tolist()


def test_lat_percentiles_are_preferred(tmp_path: Path) -> None:
    def prefer(run: Document) -> None:
        for job in run["jobs"]:
            job["read"]["lat_ns"]["percentile"] = {"50.000000": 1, "99.000000": 2, "99.900000": 3}

    dataset = import_fio([changed(tmp_path, "phases", prefer)])
    assert dataset.column("latency_p99_ns").tolist() == [2, 2]


def test_latency_falls_back_to_submission_plus_completion(tmp_path: Path) -> None:
    def disable_lat(run: Document) -> None:
        for job in run["jobs"]:
            job["read"]["lat_ns"] = {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}

    dataset = import_fio([changed(tmp_path, "phases", disable_lat)])
    expected = import_fio([RUNS / "phases.json"]).column("latency_mean_ns")
    assert dataset.column("latency_mean_ns") == pytest.approx(expected, rel=0.01)


def test_unified_reporting_gives_no_directions(tmp_path: Path) -> None:
    def unify(run: Document) -> None:
        job = run["jobs"][0]
        del run["jobs"][1]
        job["mixed"], job["job options"]["numjobs"] = job.pop("read"), "1"
        del job["write"]
        job["mixed"]["iops"] = 4 / (job["mixed"]["lat_ns"]["mean"] * 1e-9)

    seen = only(import_fio([changed(tmp_path, "clones", unify)])).observations
    assert seen.read_iops is None
    assert seen.latency_p99_ns is not None


def test_device_counters_of_a_long_run_alone(tmp_path: Path) -> None:
    def run_for(run: Document, seconds: int) -> None:
        for job in run["jobs"]:
            job["job_runtime"] = seconds * 1000
            for name in ("read", "write"):
                job[name]["runtime"] = seconds * 1000
        run["disk_util"] = [
            {"name": "nvme0n1", "read_ios": 6000, "write_ios": 3000, "read_merges": 60}
        ]

    short = only(import_fio([changed(tmp_path, "clones", lambda run: run_for(run, 3))]))
    assert short.observations.device_commands_per_second is None
    seen = only(import_fio([changed(tmp_path, "clones", lambda run: run_for(run, 60))]))
    assert seen.observations.device_commands_per_second == 150
    assert seen.observations.merged_requests_per_second == 1


def test_constants_fill_what_the_files_do_not_state() -> None:
    constants = {"device_model": "samsung-980-pro-1tb", "power_state": 2, "queue_depth": 7}
    run = importer("fio")
    dataset = run([RUNS / "phases.json"], ImportOptions(constants=constants))
    assert set(dataset.column("device_model")) == {"samsung-980-pro-1tb"}
    assert dataset.column("power_state").tolist() == [2, 2]
    assert dataset.column("queue_depth").tolist() == [4, 1]
    with pytest.raises(InputError, match="unknown field 'colour'"):
        import_fio([RUNS / "phases.json"], constants={"colour": "red"})


def test_folders_are_searched_and_nothing_private_is_kept(tmp_path: Path) -> None:
    deep = tmp_path / "home of alice" / "campaign" / "night 1"
    deep.mkdir(parents=True)
    (deep / "a.json").write_text((RUNS / "clones.json").read_text())
    (deep.parent / "b.log").write_text((RUNS / "cumulative.json").read_text())
    (deep.parent / "notes.txt").write_text("not fio's")
    dataset = import_fio([deep.parent])
    assert [source.name for source in dataset.provenance.sources] == ["b.log", "night 1/a.json"]
    assert dataset.column("series_id").tolist() == ["campaign", "night 1"]
    _, sidecar = write_dataset(dataset, tmp_path / "out")
    stored = sidecar.read_text() + str(read_dataset(tmp_path / "out").table.to_pylist())
    for private in ("alice", str(tmp_path), "/dev/", "nvme0n1"):
        assert private not in stored


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


def trim(run: Document) -> None:
    run["jobs"][0]["trim"] = {"total_ios": 5}


def forget_options(run: Document) -> None:
    run.pop("global options")
    run["jobs"][0].pop("job options")


def lose_a_clone(run: Document) -> None:
    run["jobs"][0]["job options"]["numjobs"] = "3"
    run["jobs"][1]["job options"]["numjobs"] = "3"


def two_drives(run: Document) -> None:
    run["jobs"][1]["job options"]["filename"] = "/dev/nvme1n1"


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
        ("side_by_side", two_drives, InputError, ("nvme0, nvme1", "one drive")),
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


def test_several_runs_in_one_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "two.json"
    one = (RUNS / "clones.json").read_text()
    path.write_text(one + (RUNS / "phases.json").read_text())
    assert "one file per run" in complaint(path)


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
        (b'{"fio version": "fio-3.33", "client_stats": []}', InputError, "client"),
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
    assert "no fio JSON in this folder" in complaint(tmp_path)


def test_keep_going_leaves_out_what_is_bad_and_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    for name in ("clones", "failed", "phases"):
        (folder / f"{name}.json").write_text((RUNS / f"{name}.json").read_text())
    (folder / "empty.json").write_text("")
    half_bad = document("phases")
    half_bad["jobs"][0]["job options"]["ioengine"] = "mmap"
    (folder / "half.json").write_text(json.dumps(half_bad))
    with pytest.raises(DataQualityError):
        import_fio([folder])
    dataset = import_fio([folder], keep_going=True)
    assert len(dataset) == 1 + 2 + 1
    skipped = [item for item in dataset.provenance.warnings if item.startswith("skipped: ")]
    assert [item.split()[1].strip(":,") for item in skipped] == [
        "empty.json",
        "failed.json",
        "half.json",
    ]
    assert not any(str(tmp_path) in item for item in skipped)
    with pytest.raises(InputError, match="nothing could be imported"):
        import_fio([folder / "empty.json"], keep_going=True)


# Options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"operation": "read", "engine": "psync", "request_bytes": 4096, "queue_depth": 1}),
        ({"ioengine": "sync"}, {"engine": "psync"}),
        ({"ioengine": "pvsync2", "hipri": "1"}, {"engine": "psync", "completion": "interrupt"}),
        ({"ioengine": "posixaio", "iodepth": "8"}, {"engine": "posixaio", "queue_depth": 8}),
        ({"ioengine": "io_uring", "hipri": "1"}, {"completion": "polled"}),
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
        ({"rate": "8m", "rate_iops": "100"}, {"demand_operations_per_second": 100}),
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
