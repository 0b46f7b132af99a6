"""The layout of the IISWC 2026 data set, both generations of it, on folders built to it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iojoule.api.cli.app import run as command_line
from iojoule.datasets.errors import DataQualityError, InputError
from iojoule.datasets.importers import thesis_sensors
from iojoule.datasets.importers.thesis import import_thesis
from iojoule.datasets.importers.thesis_folder import readme_label
from iojoule.datasets.schema import Measurement
from iojoule.datasets.store import Dataset, read_dataset
from tests.datasets.thesis_runs import (
    IOPS,
    RAMP_MS,
    RUNTIME_MS,
    SENSORS,
    START_MS,
    csv_text,
    fio_document,
    newer_config,
    sensor_rows,
    write_info,
    write_newer,
    write_older,
    write_run,
)

NEWER = "qd-2025-11-06_14-48-52"
OLDER = "qd-2025-07-01_10-00-00"
POWER_ONLY = ("powersensor3.csv",)


def only(path: Path) -> Measurement:
    (found,) = import_thesis([path]).measurements()
    return found


def notes(dataset: Dataset) -> str:
    return "\n".join(dataset.provenance.warnings)


def replace_rows(run: Path, name: str, change: Callable[[list[float]], list[float]]) -> None:
    header, rows = sensor_rows(name)
    (run / name).write_text(csv_text(header, [change(list(row)) for row in rows]))


# Where the experiments are --------------------------------------------------------------------


@pytest.mark.parametrize("below", [".", "results", "data/results", "data/processed/results"])
def test_the_results_root_is_found(tmp_path: Path, below: str) -> None:
    write_newer(tmp_path / below / NEWER, files=())
    write_older(tmp_path / below / OLDER, files=())
    dataset = import_thesis([tmp_path])
    assert {one.conditions.session_id for one in dataset.measurements()} == {NEWER, OLDER}


def test_a_second_results_root_is_not_read_beside_the_first(tmp_path: Path) -> None:
    for below in ("data/results", "data/processed/results"):
        write_newer(tmp_path / below / NEWER, files=())
    assert len(import_thesis([tmp_path])) == 1


def test_experiments_run_folders_and_data_folders_can_be_named(tmp_path: Path) -> None:
    run = write_newer(tmp_path / NEWER, files=())
    for path in (tmp_path / NEWER, tmp_path / NEWER / "data", run):
        assert only(path).conditions.session_id == NEWER
    assert len(import_thesis([run, tmp_path, run])) == 1


@pytest.mark.parametrize("folder", ["data/packages", "."])
def test_a_data_set_that_is_not_extracted_is_refused(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    package = tmp_path / folder / "base_000001.tar.zst"
    package.write_bytes(b"\x28\xb5\x2f\xfd")
    for path in (tmp_path, package):
        with pytest.raises(InputError) as caught:
            import_thesis([path])
        assert "tar --zstd -xf" in caught.value.message


def test_an_incomplete_data_set_is_refused_from_wherever_it_is_named(tmp_path: Path) -> None:
    write_newer(tmp_path / "data" / "results" / NEWER, files=())
    (tmp_path / "metadata").mkdir()
    (tmp_path / "INCOMPLETE").touch()
    run = tmp_path / "data" / "results" / NEWER / "data" / "iodepth-4-ps0-i0-2"
    for path in (tmp_path, run.parents[2], run.parents[1], run):
        with pytest.raises(InputError) as caught:
            import_thesis([path])
        assert str(tmp_path / "INCOMPLETE") in caught.value.message
    (tmp_path / "INCOMPLETE").unlink()
    assert len(import_thesis([tmp_path])) == 1


def test_experiments_that_were_not_extracted_are_counted(tmp_path: Path) -> None:
    write_newer(tmp_path / "data" / "results" / NEWER, files=())
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "base_directories.txt").write_text(f"{NEWER}\n{OLDER}\nx-1\n")
    dataset = import_thesis([tmp_path])
    assert any(one.startswith("2 of") and OLDER in one for one in dataset.provenance.warnings)


def test_runs_that_info_json_lists_and_that_are_not_there_are_counted(tmp_path: Path) -> None:
    kept = write_newer(tmp_path / NEWER, files=())
    gone = write_newer(tmp_path / NEWER, files=(), iteration=1)
    shutil.rmtree(gone)
    assert "lists 1 runs" in notes(import_thesis([tmp_path]))
    assert "lists 1 runs" not in notes(import_thesis([kept]))


# Generations ----------------------------------------------------------------------------------


def test_the_older_generation_is_read(tmp_path: Path) -> None:
    run = write_older(tmp_path / OLDER, state=1, iteration=2)
    header = ["voltage", "current", "total_load", "output1_load", "output2_load"]
    rows = [[t, 230.0 + t % 1000, 0.4, 94.0, 50.0, 44.0] for t in range(500, 23_500, 500)]
    (run / "netio-http.csv").write_text(csv_text(header, rows))
    measured = only(tmp_path)
    assert measured.configuration.power_state == 1
    assert measured.configuration.job_numa_node == 1
    assert measured.configuration.scheduler is None  # that version left it as it was
    assert measured.configuration.completion == "interrupt"
    assert measured.conditions.repeat_index == 2
    # the sum of all three load columns would be 188 W
    assert measured.observations.system_power_watts == pytest.approx(94.0)
    assert measured.observations.device_power_watts == pytest.approx(4.02, abs=1e-3)


def test_the_newer_generation_is_read(tmp_path: Path) -> None:
    settings = (
        "scheduler: mq-deadline\ncpu_freq: {freq: 1440000, default_governor: schedutil}\n"
        "sleep_between_experiments: 60"
    )
    run = write_newer(tmp_path / NEWER, state=-1, settings=settings)
    header = ["a-voltage", "a-current", "load-a-1", "b-voltage", "b-current", "load-b-1"]
    rows = [[t, 230.0 + t % 1000, 1, 460.0, 231.0, 1, 60.0] for t in range(500, 23_500, 500)]
    (run / "netio-http.csv").write_text(csv_text(header, rows))
    dataset = import_thesis([tmp_path])
    (measured,) = dataset.measurements()
    configuration = measured.configuration
    assert configuration.power_state is None
    assert configuration.scheduler == "mq-deadline"
    assert configuration.cpu_frequency_max_hertz == 1.44e9
    assert measured.conditions.cpu_cores_available == 20  # node 1 of cpu_topology
    # 460 W on one column: above twice cpu_max_power_watts, which the tool would drop
    assert measured.observations.system_power_watts == pytest.approx(520.0)
    assert "sleep_between_experiments = 60 s" in notes(dataset)


def test_throughput_is_fios_own_and_no_mean_over_log_samples(tmp_path: Path) -> None:
    document = fio_document()
    document["jobs"][0]["read"] |= {"bw_mean": 1.0, "iops_mean": 1.0}
    write_newer(tmp_path / NEWER, files=(), fio=document)
    seen = only(tmp_path).observations
    assert seen.iops == IOPS
    assert seen.throughput_bytes_per_second == IOPS * 4096


def two_jobs(*, bins: bool) -> dict[str, Any]:
    """30,000 requests/s at 133 us beside 10,000 at 400 us: Little's law for depth 4 each."""
    document = fio_document()
    document["global options"]["numjobs"] = "2"
    jobs = []
    for iops, microseconds in ((30_000.0, 133), (10_000.0, 400)):
        job = fio_document(iops=iops)["jobs"][0]
        if bins:
            requests = job["read"]["total_ios"]
            job["read"]["clat_ns"]["bins"] = {str(microseconds * 1000): requests}
        jobs.append(job)
    return document | {"jobs": jobs}


def two_job_folder(root: Path, **more: Any) -> None:
    write_run(root, files=(), fio=two_jobs(**more))
    write_info(root, num_jobs=[2])
    (root / "config.yaml").write_text(newer_config(benches="  []"))


def test_latencies_of_jobs_are_weighted_and_never_summed(tmp_path: Path) -> None:
    two_job_folder(tmp_path / NEWER, bins=True)
    measured = only(tmp_path)
    assert measured.configuration.jobs == 2
    assert measured.observations.iops == pytest.approx(40_000)
    # the sum of the means is 533 us, their plain mean 267 us
    assert measured.observations.latency_mean_ns == pytest.approx(200_000, rel=1e-6)
    assert measured.observations.latency_p50_ns == 133_000
    assert measured.observations.latency_p99_ns == 400_000


def test_percentiles_of_jobs_without_histograms_are_unknown(tmp_path: Path) -> None:
    two_job_folder(tmp_path / NEWER, bins=False)
    assert only(tmp_path).observations.latency_p99_ns is None


# Sensors --------------------------------------------------------------------------------------


def naive_mean(run: Path) -> float:
    """The mean over a whole file of the drive's power, nothing cut."""
    return float(np.loadtxt(run / "powersensor3.csv", delimiter=",", skiprows=1)[:, 1].mean())


def test_ramp_and_what_follows_the_job_are_in_no_mean(tmp_path: Path) -> None:
    run = write_newer(tmp_path / NEWER, files=POWER_ONLY)
    header, rows = sensor_rows("powersensor3.csv")
    end = int(rows[-1][0])
    rows = [*rows, *([t, 50.0, 20.0, 30.0] for t in range(end + 1, end + 4_000))]
    (run / "powersensor3.csv").write_text(csv_text(header, rows))
    seen = only(tmp_path).observations
    assert naive_mean(run) > 15
    # as the tool does it: the ramp is cut, the end stays in
    tool = [row[1] for row in rows if row[0] >= RAMP_MS]
    assert np.mean(tool) > 8
    assert seen.device_power_watts == pytest.approx(4.02, abs=2e-3)
    assert seen.device_power_p99_watts == pytest.approx(5.0, abs=0.01)


def test_the_ramp_of_info_json_counts_where_fios_options_leave_it_out(tmp_path: Path) -> None:
    document = fio_document()
    del document["global options"]["ramp_time"]
    write_newer(tmp_path / NEWER, files=POWER_ONLY, fio=document)
    assert only(tmp_path).observations.device_power_watts == pytest.approx(4.02, abs=1e-3)


def test_spikes_above_the_rating_stay_in_the_mean(tmp_path: Path) -> None:
    run = write_newer(tmp_path / NEWER, files=POWER_ONLY)

    def spike(row: list[float]) -> list[float]:
        return [row[0], 12.0, 3.0, 9.0] if row[0] % 20 == 0 else [row[0], 4.0, 1.0, 3.0]

    replace_rows(run, "powersensor3.csv", spike)
    dataset = import_thesis([tmp_path])
    (measured,) = dataset.measurements()
    # without the readings above 8.49 W it would be 4 W
    assert measured.observations.device_power_watts == pytest.approx(4.4, abs=2e-3)
    assert measured.observations.device_power_p99_watts == 12.0
    assert "above its rating" in notes(dataset)


def stuck(row: list[float]) -> list[float]:
    return [row[0], 4.0, 1.0, 3.0]


def clipped(row: list[float]) -> list[float]:
    watts = min(4.0 + row[0] % 100 / 20, 6.0)
    return [row[0], watts, 1.0, watts - 1.0]


@pytest.mark.parametrize("damage", [stuck, clipped])
def test_a_stuck_or_clipped_sensor_gives_no_power(
    tmp_path: Path, damage: Callable[[list[float]], list[float]]
) -> None:
    run = write_newer(tmp_path / NEWER, files=(*POWER_ONLY, "rapl.csv"))
    replace_rows(run, "powersensor3.csv", damage)
    dataset = import_thesis([tmp_path])
    (measured,) = dataset.measurements()
    assert measured.observations.device_power_watts is None
    assert measured.observations.device_power_p99_watts is None
    assert measured.observations.cpu_power_watts == pytest.approx(55.0)
    assert f"the sensor is {damage.__name__}" in notes(dataset)


def test_dram_is_no_power_of_the_packages(tmp_path: Path) -> None:
    write_newer(tmp_path / NEWER, files=("rapl.csv",))
    seen = only(tmp_path).observations
    assert (seen.cpu_power_watts, seen.dram_power_watts) == (55.0, 7.0)  # Total says 66 W


def test_a_file_of_several_blocks_is_read_as_a_whole_one(tmp_path: Path) -> None:
    times = np.arange(1, 700_001)
    lines = [f"{t},{t % 7},1" for t in times]
    path = tmp_path / "powersensor3.csv"
    path.write_text("time,Total,rail\n" + "\n".join(lines) + "\n")
    assert path.stat().st_size > 1.5 * thesis_sensors._BLOCK_BYTES
    recording = thesis_sensors.look_at(path)
    assert recording is not None
    assert recording.last_ms == 700_000
    window = thesis_sensors.Window(200_000, 600_000)
    series = recording.within(window)
    assert series.times_ms.tolist() == list(range(200_000, 600_001))
    assert np.array_equal(series.columns["Total"], series.times_ms % 7)
    assert series.constant == {"rail"}
    lines[650_000] = "3,1,1"
    path.write_text("time,Total,rail\n" + "\n".join(lines) + "\n")
    with pytest.raises(DataQualityError) as caught:
        recording.within(window)
    assert "line 650002:" in caught.value.message


# Settings that change the meaning -------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "demand", "operations"),
    [
        ("{bps: {r: 81920000, w: 1}}", 81_920_000.0, None),
        ("{iops: {r: 10000}}", None, 10_000.0),
        ("{bps: {r: 81920000}, iops: {r: 30000}}", None, 20_000.0),
        ("{bps: {w: 81920000}}", None, None),  # writes only
    ],
)
def test_a_limit_of_the_control_group_is_no_full_speed(
    tmp_path: Path, limits: str, demand: float | None, operations: float | None
) -> None:
    write_newer(tmp_path / NEWER, files=(), settings=f"cgroup: {{io: {{max: {limits}}}}}")
    measured = only(tmp_path)
    assert measured.workload.demand_bytes_per_second == demand
    assert measured.workload.demand_operations_per_second == operations
    assert measured.at_full_speed == (demand is None and operations is None)


def test_a_limit_in_block_style_and_the_cores_of_the_group_are_read(tmp_path: Path) -> None:
    settings = (
        "cgroup:\n  io:\n    max:\n      bps:\n        r: 1000000\n    weight: 50\n"
        "  cpuset:\n    cpus:\n      - [0, 3]\n      - [8, null]\n"
    )
    write_newer(tmp_path / NEWER, files=(), settings=settings)
    dataset = import_thesis([tmp_path])
    (measured,) = dataset.measurements()
    assert not measured.at_full_speed
    assert measured.conditions.cpu_cores_available == 5
    assert "io.weight=50" in notes(dataset)


@pytest.mark.parametrize(
    ("rate", "demand"), [("40m", 10_240.0), ("400m", 20_000.0)]
)  # 40 MiB/s are 10,240 requests of 4 KiB
def test_the_smaller_of_fios_rate_and_the_groups_limit_counts(
    tmp_path: Path, rate: str, demand: float
) -> None:
    document = fio_document()
    document["global options"]["rate"] = rate
    settings = "cgroup: {io: {max: {iops: {r: 20000}}}}"
    write_newer(tmp_path / NEWER, files=(), fio=document, settings=settings)
    workload = only(tmp_path).workload
    assert workload.demand_bytes_per_second is None
    assert workload.demand_operations_per_second == demand


def test_the_limit_of_one_direction_holds_a_mix_back(tmp_path: Path) -> None:
    document = fio_document()
    document["global options"] |= {"rw": "randrw", "rwmixread": "75"}
    job = document["jobs"][0]
    whole = job["read"]
    for name, share in (("read", 0.75), ("write", 0.25)):
        count = int(whole["total_ios"] * share)
        job[name] = whole | {
            "total_ios": count,
            "iops": IOPS * share,
            "bw_bytes": IOPS * 4096 * share,
        }
    settings = "cgroup: {io: {max: {iops: {w: 5000}}}}"
    write_newer(tmp_path / NEWER, files=(), fio=document, settings=settings)
    assert only(tmp_path).workload.demand_operations_per_second == 20_000


@pytest.mark.parametrize(("qos", "left_out"), [("Auto", False), ("!User\n  pct: {r: 45}", True)])
def test_runs_under_a_cost_model_are_left_out(tmp_path: Path, qos: str, left_out: bool) -> None:
    nested = qos.replace("\n", "\n        ")
    settings = f"cgroup:\n  io:\n    cost:\n      model: Auto\n      qos: {nested}"
    write_newer(tmp_path / NEWER, files=(), settings=settings)
    write_newer(tmp_path / OLDER, files=())
    dataset = import_thesis([tmp_path])
    assert len(dataset.provenance.excluded) == left_out
    assert len(dataset) == 2 - left_out


@pytest.mark.parametrize("program", ["Filebench", "Ycsb", "H5Bench"])
def test_other_benchmarks_are_left_out_by_name_and_counted(
    tmp_path: Path, program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / NEWER
    write_newer(root, files=())
    for iteration in (0, 1):
        other = root / "data" / f"app-ps0-i{iteration}-0"
        other.mkdir()
        if program != "H5Bench":
            (other / "results.json").write_text('{"ops": 5}')
    write_info(root)
    info = json.loads((root / "info.json").read_text())
    for name, entry in info["param_map"].items():
        if name.startswith("app"):
            entry["args"] = {"type": program}
    (root / "info.json").write_text(json.dumps(info))
    assert command_line(["import", "thesis", str(tmp_path), "-o", str(tmp_path / "out")]) == 0
    assert f"2 x a run of {program}" in capsys.readouterr().out


def test_another_benchmark_is_known_by_its_files_where_no_record_names_it(tmp_path: Path) -> None:
    root = tmp_path / NEWER
    write_newer(root, files=())
    other = root / "data" / "app-ps0-i0-0"
    other.mkdir()
    (other / "results.json").write_text('{"ops": 5}')
    (other / "markers.csv").write_text("time,marker_name\n10,init\n")
    dataset = import_thesis([tmp_path])
    assert len(dataset) == len(dataset.provenance.excluded) == 1


def test_missing_records_are_named(tmp_path: Path) -> None:
    write_run(tmp_path / NEWER, files=SENSORS)
    dataset = import_thesis([tmp_path])
    for name in ("config.yaml", "info.json"):
        assert f"no {name} in 1 of 1 runs" in notes(dataset)


# Contradictions and damage --------------------------------------------------------------------


def out_of_range(root: Path) -> None:
    write_newer(root, files=(), iteration=1, index=4)  # four depths: 0 to 3


def another_index(root: Path) -> None:
    name = "iodepth-4-ps0-i0-2"
    info = json.loads((root / "info.json").read_text())
    info["param_map"][name]["idx"] = 1
    (root / "info.json").write_text(json.dumps(info))


def swapped(root: Path) -> None:
    write_info(root, io_depths=[8])  # fio says depth 4


def swapped_and_unlisted(root: Path) -> None:
    run = write_run(root, files=(), index=3)  # combination 3 has depth 8, fio says 4
    assert run.name not in (root / "info.json").read_text()


def empty_data(root: Path) -> None:
    run = write_newer(root.with_name("empty-2025-11-06_15-00-00"), files=())
    shutil.rmtree(run)


def broken_config(root: Path) -> None:
    (root / "config.yaml").write_text("settings: [1, 2")


def no_settings(root: Path) -> None:
    (root / "config.yaml").write_text("name: qd\n")


def unreadable_limit(root: Path) -> None:
    limits = "cgroup: {io: {max: {bps: {r: 80M}}}}"  # must not pass for no limit
    (root / "config.yaml").write_text(newer_config(limits))


def broken_info(root: Path) -> None:
    (root / "info.json").write_text('{"param_map": {')


def info_is_a_list(root: Path) -> None:
    (root / "info.json").write_text("[]")


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (out_of_range, "index 4 is out of range"),
        (another_index, "idx = 1"),
        (swapped, "iodepth=4"),
        (swapped_and_unlisted, "iodepth=4"),
        (empty_data, "data/ holds no run"),
        (broken_config, "config.yaml"),
        (no_settings, "no block settings"),
        (unreadable_limit, "settings.cgroup.io.max.bps.r"),
        (broken_info, "info.json"),
        (info_is_a_list, "info.json"),
    ],
)
def test_contradictions_are_refused_by_name_or_skipped_alone(
    tmp_path: Path, damage: Callable[[Path], None], named: str
) -> None:
    root = tmp_path / "results" / NEWER
    write_newer(root, files=())
    write_newer(root.with_name("rq-2025-11-07_01-00-00"), files=())
    damage(root)
    with pytest.raises(InputError) as caught:
        import_thesis([tmp_path])
    assert named in caught.value.message
    dataset = import_thesis([tmp_path], keep_going=True)
    skipped = [one for one in dataset.provenance.warnings if one.startswith("skipped: ")]
    assert len(skipped) == 1
    assert named in skipped[0]
    assert str(tmp_path) not in skipped[0]
    assert "rq-2025-11-07_01-00-00" in {one.conditions.session_id for one in dataset.measurements()}


@pytest.mark.parametrize("content", ["", "time,Total\n1,2\n5", "time,Total\n1,x\n", "time\n"])
def test_a_damaged_sensor_file_is_refused(tmp_path: Path, content: str) -> None:
    run = write_newer(tmp_path / NEWER)
    (run / "rapl.csv").write_text(content)
    with pytest.raises(DataQualityError) as caught:
        import_thesis([tmp_path])
    assert "rapl.csv" in caught.value.message


@pytest.mark.parametrize("load", ["NaN", "-4"])
def test_loads_that_are_no_power_give_none(tmp_path: Path, load: str) -> None:
    run = write_newer(tmp_path / NEWER)
    lines = [f"{t},{230 + t % 7},{load}" for t in range(500, 23_500, 500)]
    (run / "netio-http.csv").write_text("time,a-voltage,load-a-1\n" + "\n".join(lines) + "\n")
    seen = only(tmp_path).observations
    assert seen.system_power_watts is None
    assert seen.device_power_watts is not None


@pytest.mark.parametrize("name", SENSORS)
def test_a_sensor_file_without_readings_gives_nothing(tmp_path: Path, name: str) -> None:
    run = write_newer(tmp_path / NEWER)
    (run / name).write_text("time," + ",".join(sensor_rows(name)[0]) + "\n")
    seen = only(tmp_path).observations
    assert seen.iops == IOPS
    assert (seen.device_power_watts is None) == (name == "powersensor3.csv")
    assert (seen.system_power_watts is None) == (name == "netio-http.csv")


# Which SSD ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("date", "label"),
    [
        ("2025-07-01_10-00-00", "A"),
        ("2025-10-07_23-59-59", "A"),
        ("2025-10-08_00-00-00", None),
        ("2025-10-08_14-31-15", "C"),
        ("2025-11-07_11-51-15", "C"),
        ("2025-11-07_12-00-00", None),
        ("2025-11-07_13-26-38", "D"),
        ("2025-11-14_10-37-01", "D"),
        ("2025-11-14_11-44-36", "E"),
        ("2025-11-25_07-30-56", "E"),
        ("2025-11-25_10-20-27", "B"),
        ("2025-12-02_02-42-57", "B"),
        ("2025-12-05_12-24-56", "D"),
        ("2025-12-10_17-45-38", "D"),
        ("2025-12-10_17-45-39", None),
        ("2025-13-40_00-00-00", None),
    ],
)
def test_the_readme_names_the_drive_of_a_date(date: str, label: str | None) -> None:
    assert readme_label(f"qd-{date}") == (label and f"{label} (readme)")


def test_no_label_without_a_date() -> None:
    assert readme_label("qd") is None
    assert readme_label("2025-11-06") is None


def test_runs_of_several_drives_never_share_a_name(tmp_path: Path) -> None:
    sessions = {
        "qd-2025-07-01_10-00-00": "A (readme)",
        "nvme-pst-eff-2025-11-16_18-44-20": "E (readme)",  # the scripts say C
        "access-patterns-2025-11-18_00-31-53": "E (readme)",  # the scripts say A and E
        "qd-2025-12-02_02-42-57": "B (readme)",  # the scripts say A
        "access-patterns-randwrite-2025-12-06_00-00-05": "D (readme)",
        "qd-2025-12-31_00-00-00": None,
    }
    for session in sessions:
        write_newer(tmp_path / session, files=())
    dataset = import_thesis([tmp_path])
    labels = {
        one.conditions.session_id: one.conditions.device_model for one in dataset.measurements()
    }
    assert labels == sessions
    warnings = dataset.provenance.warnings
    for session in list(sessions)[1:3]:
        assert any(one.startswith(f"{session}: drive in doubt") for one in warnings)
    assert any("exchange A and B" in one and "Samsung 980 PRO" in one for one in warnings)
    assert any("a second time" in one for one in warnings)
    assert any("qd-2025-12-31_00-00-00" in one and "no period" in one for one in warnings)


def test_the_user_may_name_the_drive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for session in (NEWER, OLDER):
        write_newer(tmp_path / session, files=())
    out = tmp_path / "out"
    arguments = ["import", "thesis", str(tmp_path), "-o", str(out), "--device", "my-drive"]
    assert command_line(arguments) == 0
    assert set(read_dataset(out).column("device_model")) == {"my-drive"}
    assert "A (readme): 1, C (readme): 1" in capsys.readouterr().err


def test_the_measured_time_lies_within_the_recording() -> None:
    """Wherever fio began, the window is inside its measured time (START_MS of the fixture)."""
    for start in (0, START_MS, 2_000):
        for end in (0, 100, 3_000):
            recorded = start + RAMP_MS + RUNTIME_MS + end
            window = thesis_sensors.measured_window(recorded, RAMP_MS, RUNTIME_MS)
            assert window is not None
            assert start + RAMP_MS <= window.begin_ms
            assert window.end_ms <= start + RAMP_MS + RUNTIME_MS
