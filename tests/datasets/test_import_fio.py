"""The fio importer, on real output of fio 3.33 (fio/*.json, shortened) and on changed copies."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.datasets.errors import InputError
from iojoule.datasets.importers import ImportOptions, importer
from iojoule.datasets.importers.fio import import_fio
from iojoule.datasets.importers.fio_file import FioRun, bin_middle, merge_bins, percentile
from iojoule.datasets.store import read_dataset, write_dataset
from tests.datasets.fio_runs import RUNS, Document, changed, document, only
from tests.errors import having

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
    with pytest.raises(InputError, check=having(field="colour")):
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
