"""The importer of energy-benchmark's result folders, on folders made by `thesis_runs`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from iojoule.api.cli.app import run as command_line
from iojoule.datasets.errors import DataQualityError, InputError
from iojoule.datasets.importers.thesis import import_thesis
from iojoule.datasets.schema import Measurement
from iojoule.datasets.store import read_dataset
from tests.datasets.thesis_runs import (
    CONFIG,
    IOPS,
    RUNTIME_MS,
    SENSORS,
    SESSION,
    csv_text,
    fio_document,
    sensor_rows,
    write_info,
    write_run,
)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / SESSION


def only(path: Path) -> Measurement:
    (found,) = import_thesis([path]).measurements()
    return found


def rewritten(run: Path, name: str, change: Callable[[list[float]], list[float]]) -> None:
    header, rows = sensor_rows(name)
    (run / name).write_text(csv_text(header, [change(row) for row in rows]))


# What a run becomes ---------------------------------------------------------------------------


def test_a_run_becomes_a_measurement_with_the_powers_of_its_measured_time(results: Path) -> None:
    write_run(results, state=1, iteration=3)
    write_info(results)
    (results / "config.yaml").write_text(CONFIG)
    measured = only(results)
    assert measured.workload.operation == "read"
    configuration = measured.configuration
    assert (configuration.request_bytes, configuration.queue_depth) == (4096, 4)
    assert (configuration.engine, configuration.scheduler) == ("io_uring", "none")
    assert (configuration.power_state, configuration.job_numa_node) == (1, 1)
    assert configuration.completion == "interrupt"  # info.json knows that --hipri was not given
    assert configuration.cpu_frequency_max_hertz == 2.4e9
    conditions = measured.conditions
    assert (conditions.session_id, conditions.repeat_index) == (SESSION, 3)
    assert conditions.series_id == f"{SESSION}/iodepth-4"
    seen = measured.observations
    assert seen.iops == IOPS
    # nothing of the ramp's 40 W is in them
    assert seen.device_power_watts == pytest.approx(4.02, abs=1e-3)
    assert seen.device_power_p99_watts == pytest.approx(5.0, abs=0.01)
    assert seen.cpu_power_watts == pytest.approx(55.0)
    assert seen.dram_power_watts == pytest.approx(7.0)
    assert seen.system_power_watts == pytest.approx(94.0)
    assert seen.device_commands_per_second == pytest.approx(IOPS, rel=1e-3)
    assert seen.merged_requests_per_second == pytest.approx(IOPS / 100, rel=1e-2)
    assert seen.cpu_utilisation == pytest.approx(0.35)


def test_iterations_states_and_sessions_are_told_apart(tmp_path: Path) -> None:
    for session in (SESSION, "qd-2025-11-07_09-00-00"):
        for state in (0, -1):
            for iteration in (0, 1):
                write_run(tmp_path / session, state=state, iteration=iteration, files=())
    dataset = import_thesis([tmp_path])
    told = {
        (
            one.conditions.session_id,
            one.configuration.power_state,
            one.conditions.repeat_index,
        )
        for one in dataset.measurements()
    }
    assert len(told) == len(dataset) == 8
    assert {state for _, state, _ in told} == {0, None}


def test_a_single_run_and_a_data_folder_are_found_too(results: Path) -> None:
    run = write_run(results, files=())
    (results / "config.yaml").write_text(CONFIG)
    for path in (run, results / "data", results.parent):
        measured = only(path)
        assert measured.conditions.session_id == SESSION
        assert measured.configuration.job_numa_node == 1
    assert len(import_thesis([run, results])) == 1  # named twice, read once


def test_the_provenance_says_what_was_cut_and_names_no_private_folder(results: Path) -> None:
    write_run(results)
    write_info(results)
    provenance = import_thesis([results]).provenance
    assert any("certainly lies within fio's measured time" in one for one in provenance.warnings)
    assert any("19.5 to 19.5 s" in one for one in provenance.warnings)
    names = [source.name for source in provenance.sources]
    assert f"{SESSION}/info.json" in names
    assert f"{SESSION}/iodepth-4-ps0-i0-2/powersensor3.csv" in names
    assert not any(str(results.parent) in text for text in (*names, *provenance.warnings))


def test_switches_that_fio_does_not_record_come_from_the_tool(results: Path) -> None:
    write_run(results, files=())
    write_info(results, extra_options=[["--hipri", "--sqthread_poll=1"]], fs="Xfs")
    measured = only(results)
    assert measured.configuration.completion == "polled"
    assert measured.configuration.submission_polling is True
    assert measured.configuration.filesystem == "xfs"


def test_the_first_versions_info_is_understood(results: Path) -> None:
    write_run(results, files=())
    write_info(results)
    path = results / "info.json"
    path.write_text(json.dumps(json.loads(path.read_text())["param_map"]))
    assert only(results).configuration.completion == "interrupt"


# Sensors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("gone", SENSORS)
def test_a_missing_sensor_file_leaves_only_its_fields_out(results: Path, gone: str) -> None:
    write_run(results, files=[name for name in SENSORS if name != gone])
    dataset = import_thesis([results])
    (measured,) = dataset.measurements()
    seen = measured.observations
    known = {
        "powersensor3.csv": seen.device_power_watts,
        "rapl.csv": seen.cpu_power_watts,
        "netio-http.csv": seen.system_power_watts,
        "diskstat.csv": seen.device_commands_per_second,
    }
    assert all((value is None) == (name == gone) for name, value in known.items())
    assert any(f"no {gone} in 1 of 1 runs" in one for one in dataset.provenance.warnings)


def test_a_wrapped_rapl_counter_is_left_out(results: Path) -> None:
    run = write_run(results)

    def wrap(row: list[float]) -> list[float]:
        # release builds of the tool subtract modulo 2^64
        return [*row[:3], 1.8446744073709552e16, *row[4:]] if row[0] == 12_000 else row

    rewritten(run, "rapl.csv", wrap)
    dataset = import_thesis([results])
    (measured,) = dataset.measurements()
    assert measured.observations.dram_power_watts == pytest.approx(7.0)
    assert any("1 of " in one and "wrapped" in one for one in dataset.provenance.warnings)


def test_cores_that_the_tool_calls_dram_are_left_out(results: Path) -> None:
    run = write_run(results)
    rewritten(run, "rapl.csv", lambda row: [*row[:3], 26.0, row[4], 20.0])
    seen = only(results).observations
    assert seen.dram_power_watts is None
    assert seen.cpu_power_watts == pytest.approx(55.0)


def test_readings_without_new_data_are_left_out_and_counted(results: Path) -> None:
    run = write_run(results)
    nan = float("nan")
    rewritten(run, "powersensor3.csv", lambda r: [r[0], nan, nan, nan] if r[0] % 100 == 7 else r)
    dataset = import_thesis([results])
    (measured,) = dataset.measurements()
    assert measured.observations.device_power_watts == pytest.approx(4.02, abs=2e-3)
    assert any("cannot be true" in one for one in dataset.provenance.warnings)


def test_no_99th_percentile_of_samples_of_another_width(results: Path) -> None:
    run = write_run(results)
    header, rows = sensor_rows("powersensor3.csv")
    (run / "powersensor3.csv").write_text(csv_text(header, rows[::2]))
    dataset = import_thesis([results])
    (measured,) = dataset.measurements()
    assert measured.observations.device_power_watts is not None
    assert measured.observations.device_power_p99_watts is None
    assert any("2.00 ms apart" in one for one in dataset.provenance.warnings)


def test_another_rail_in_the_total_is_not_the_drive(results: Path) -> None:
    run = write_run(results)
    rewritten(run, "powersensor3.csv", lambda row: [row[0], row[1] + 5, *row[2:]])
    dataset = import_thesis([results])
    (measured,) = dataset.measurements()
    assert measured.observations.device_power_watts == pytest.approx(4.02, abs=1e-3)
    assert any("Total is 9.02 W" in one for one in dataset.provenance.warnings)


@pytest.mark.parametrize(
    ("header", "loads", "watts"),
    [
        (["voltage", "current", "load"], [94.0], 94.0),
        (["a-voltage", "a-current", "load-a-1", "b-voltage", "load-b-1"], None, 90.0),
        (["voltage", "current", "total_load", "output1_load", "output2_load"], [94, 50, 44], 94.0),
        (["voltage", "current", "total_load", "output1_load", "output2_load"], [300, 50, 44], None),
    ],
)
def test_every_versions_wall_power(
    results: Path, header: list[str], loads: list[float] | None, watts: float | None
) -> None:
    run = write_run(results, files=["powersensor3.csv"])
    rows = [
        [t, 230.0 + t % 1000, 0.4, *(loads if loads else [60.0, 231.0, 30.0])]
        for t in range(500, 23_500, 500)
    ]
    (run / "netio-http.csv").write_text(csv_text(header, rows))
    assert only(results).observations.system_power_watts == watts


def test_readings_that_repeat_are_too_few_for_a_mean(results: Path) -> None:
    run = write_run(results)
    rewritten(run, "netio-http.csv", lambda row: [row[0], 230.0, 0.4, 94.0])
    assert only(results).observations.system_power_watts is None


def test_a_drive_that_moved_other_bytes_than_fio_is_doubted(results: Path) -> None:
    run = write_run(results)
    rewritten(run, "diskstat.csv", lambda row: [row[0], row[1] / 2, *row[2:]])
    warnings = import_thesis([results]).provenance.warnings
    assert any("a cache, a file system or another program" in one for one in warnings)


def test_a_start_as_long_as_the_run_gives_no_powers(results: Path) -> None:
    run = write_run(results)
    header, rows = sensor_rows("powersensor3.csv")
    late = [[row[0] + 15_000, *row[1:]] for row in rows]
    (run / "powersensor3.csv").write_text(csv_text(header, late))
    dataset = import_thesis([results])
    (measured,) = dataset.measurements()
    assert measured.observations.device_power_watts is None
    assert any("which part was measured is not known" in one for one in dataset.provenance.warnings)


# Damage ---------------------------------------------------------------------------------------


def cut_off(run: Path) -> None:
    path = run / "powersensor3.csv"
    path.write_text(path.read_text()[:-3])


def short_line(run: Path) -> None:
    path = run / "rapl.csv"
    path.write_text(path.read_text() + "23499,1,2\n")


def backwards(run: Path) -> None:
    path = run / "sysinfo.csv"
    path.write_text(path.read_text() + "3,1,2,3,4\n")


def another_file(run: Path) -> None:
    (run / "diskstat.csv").write_text("hello\n1\n")


def shortened(run: Path) -> None:
    for name in SENSORS:
        header, rows = sensor_rows(name)
        half = [row for row in rows if row[0] < RUNTIME_MS / 2]
        (run / name).write_text(csv_text(header, half))


def no_result(run: Path) -> None:
    (run / "results.json").unlink()


def half_a_result(run: Path) -> None:
    path = run / "results.json"
    path.write_text(path.read_text()[:700])


def contradicting(run: Path) -> None:
    path = run.parent.parent / "info.json"
    info = json.loads(path.read_text())
    info["param_map"][run.name]["power_state"] = 2
    path.write_text(json.dumps(info))


def off_littles_law(run: Path) -> None:
    (run / "results.json").write_text(json.dumps(fio_document(latency_ns=150_000.0)))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (cut_off, "powersensor3.csv, line"),
        (short_line, "rapl.csv"),
        (backwards, "sysinfo.csv, line"),
        (another_file, "diskstat.csv, line 1"),
        (shortened, "the sensors recorded"),
        (no_result, "no results.json"),
        (half_a_result, "cut off or damaged"),
        (contradicting, "the folder's name says 0"),
        (off_littles_law, "Little's law"),
    ],
)
def test_damage_is_refused_with_its_place_or_skipped(
    results: Path, damage: Callable[[Path], None], said: str
) -> None:
    write_run(results, iteration=0, files=())
    run = write_run(results, iteration=1)
    write_info(results)
    damage(run)
    with pytest.raises(DataQualityError) as caught:
        import_thesis([results])
    assert said in caught.value.message
    dataset = import_thesis([results], keep_going=True)
    assert len(dataset) == 1
    (skipped,) = [one for one in dataset.provenance.warnings if one.startswith("skipped: ")]
    assert said in skipped
    assert str(results.parent) not in skipped


def test_runs_of_other_benchmarks_are_left_out_by_name(results: Path) -> None:
    write_run(results, bench="read", files=())
    write_info(results)
    path = results / "info.json"
    info = json.loads(path.read_text())
    other = results / "data" / "rocksdb-ps0-i0-0"
    other.mkdir()
    info["param_map"][other.name] = {
        "power_state": 0,
        "iteration": 0,
        "name": "rocksdb",
        "idx": 0,
        "args": {"type": "Ycsb"},
    }
    path.write_text(json.dumps(info))
    dataset = import_thesis([results])
    assert len(dataset) == 1
    (left_out,) = dataset.provenance.excluded
    assert "Ycsb" in left_out.reason


@pytest.mark.parametrize("make", [lambda p: p.mkdir(), lambda p: None, lambda p: p.write_text("")])
def test_a_path_without_runs_is_refused(tmp_path: Path, make: Callable[[Path], object]) -> None:
    path = tmp_path / "results"
    make(path)
    with pytest.raises(InputError, match=str(path)):
        import_thesis([path])


def test_the_command_writes_a_dataset(results: Path, tmp_path: Path) -> None:
    write_run(results, files=["powersensor3.csv"])
    out = tmp_path / "thesis"
    arguments = ["import", "thesis", str(results), "-o", str(out)]
    assert command_line([*arguments, "--set", "device_model=samsung-980-pro-1tb"]) == 0
    (measured,) = read_dataset(out).measurements()
    assert measured.conditions.device_model == "samsung-980-pro-1tb"
    assert measured.observations.device_power_watts == pytest.approx(4.02, abs=1e-3)
