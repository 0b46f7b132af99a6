"""Datasets in memory and as files."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iojoule.datasets.arrow import columns
from iojoule.datasets.errors import InputError, SchemaVersionError
from iojoule.datasets.provenance import ExcludedRow, SourceFile
from iojoule.datasets.schema import COLUMNS, SCHEMA_VERSION, Measurement, from_row
from iojoule.datasets.store import Dataset, Provenance, concat, read_dataset, write_dataset
from tests.errors import having

PROVENANCE = Provenance(
    importer="test",
    sources=(SourceFile(name="a.json", sha256="0" * 64, licence="MIT"),),
    warnings=("line 3 is odd",),
    excluded=(ExcludedRow(source="a.json", row=7, reason="a ramp"),),
)

FLOATS = st.one_of(st.none(), st.floats(-1.0, 2e9, allow_nan=False))
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "operation": st.sampled_from(["read", "write", "mixed"]),
            "request_bytes": st.sampled_from([512, 4096, 1000, 1 << 20, 1 << 31]),
        },
        optional={
            "read_fraction": st.sampled_from([None, 0.0, 0.5, 1.0, 1.2]),
            "queue_depth": st.sampled_from([1, 2, 65535, 0, 65536]),
            "engine": st.sampled_from([None, "psync", "spdk", "io_uring", "dd"]),
            "completion": st.sampled_from([None, "interrupt", "polled"]),
            "submission_polling": st.sampled_from([None, True, False]),
            "iops": FLOATS,
            "latency_mean_ns": FLOATS,
            "latency_p50_ns": FLOATS,
            "latency_p99_ns": FLOATS,
            "power_state": st.sampled_from([None, 0, 31, 32]),
            "host_id": st.sampled_from([None, "lab", ""]),
        },
    ),
    min_size=1,
    max_size=6,
)
VALID = {
    "operation": "read",
    "request_bytes": 4096,
    "queue_depth": 4,
    "engine": "io_uring",
    "submission_polling": True,
    "iops": 1000.0,
    "host_id": "lab",
}


def some(count: int = 3) -> Dataset:
    data = {name: [value] * count for name, value in VALID.items()}
    data["iops"] = [1000.0 + index for index in range(count)]
    return Dataset.from_columns(data, PROVENANCE)


def as_columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    names = {name for row in rows for name in row}
    # What a row leaves out takes the default, as it does in a model.
    defaults = {name: column.default for name, column in columns().items()}
    return {name: [row.get(name, defaults[name]) for row in rows] for name in names}


def verdict(rows: list[dict[str, Any]]) -> list[Measurement] | str:
    try:
        return [from_row(row, where=f"row {number}") for number, row in enumerate(rows, 1)]
    except InputError as error:
        return error.message


def possible(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of the rows that can be true; few lists have no other."""
    return [row for row in rows if not isinstance(verdict([row]), str)]


@settings(max_examples=300)
@given(ROWS)
def test_columns_are_judged_exactly_like_rows(rows: list[dict[str, Any]]) -> None:
    expected = verdict(rows)
    if isinstance(expected, str):
        with pytest.raises(InputError):
            Dataset.from_columns(as_columns(rows), PROVENANCE)
    else:
        dataset = Dataset.from_columns(as_columns(rows), PROVENANCE)
        assert dataset.measurements() == expected
        assert dataset == Dataset.from_measurements(expected, PROVENANCE)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
    max_examples=50,
)
@given(ROWS.map(possible).filter(bool))
def test_what_is_written_is_read_again(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    dataset = Dataset.from_columns(as_columns(rows), PROVENANCE)
    write_dataset(dataset, tmp_path / "runs")
    again = read_dataset(tmp_path / "runs")
    assert again == dataset
    assert again.provenance == PROVENANCE


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"iops": [1.0, -2.0, -3.0]}, ("row 2", "iops", "-2")),
        ({"engine": ["spdk", "dd", "dd"]}, ("row 2", "engine", "dd")),
        ({"queue_depth": [1, 2.5, 3]}, ("row 2", "queue_depth", "whole number", "2.5")),
        ({"queue_depth": np.array([1, 2.5, 3])}, ("row 2", "queue_depth", "2.5")),
        ({"iops": ["1", "fast", "3"]}, ("row 1", "iops", "number")),
        ({"request_bytes": [512, None, 512]}, ("row 2", "request_bytes")),
        ({"iops": [1.0, math.inf, 1.0]}, ("row 2", "iops")),
        ({"engine": ["libaio"] * 3}, ("row 1", "submission_polling", "libaio")),
        ({"ipos": [1.0] * 3}, ("'ipos'", "did you mean iops")),
        ({"iops": [1.0]}, ("differ in length",)),
    ],
)
def test_an_impossible_column_names_row_and_field(
    change: dict[str, Any], expected: tuple[str, ...]
) -> None:
    data = {name: [value] * 3 for name, value in VALID.items()}
    with pytest.raises(InputError) as caught:
        Dataset.from_columns({**data, **change}, PROVENANCE)
    for part in expected:
        assert part in caught.value.message


def test_columns_as_numpy_sees_them() -> None:
    data: dict[str, Any] = {name: [value] * 3 for name, value in VALID.items()}
    data["iops"] = np.array([1.0, np.nan, 3.0])
    data["engine"] = np.array(["spdk", None, "io_uring"], dtype=object)
    data["submission_polling"] = [None, True, False]
    dataset = Dataset.from_columns(data, PROVENANCE)
    np.testing.assert_array_equal(dataset.column("iops"), [1.0, np.nan, 3.0])
    np.testing.assert_array_equal(dataset.column("submission_polling"), [np.nan, 1.0, 0.0])
    assert dataset.column("engine").tolist() == ["spdk", None, "io_uring"]
    assert dataset.column("queue_depth").dtype == np.float64
    assert np.isnan(dataset.column("power_state")).all()
    assert dataset.column("firmware").tolist() == [None] * 3
    assert "power_state" not in dataset.columns
    assert list(dataset.columns) == [name for name in COLUMNS if name in dataset.columns]
    with pytest.raises(InputError, match=r"did you mean .*iops"):
        dataset.column("iop")


def test_filter_keeps_the_provenance_and_wants_booleans() -> None:
    dataset = some(4)
    part = dataset.filter(dataset.column("iops") > 1001)
    assert part.column("iops").tolist() == [1002, 1003]
    assert part.provenance == PROVENANCE
    with pytest.raises(InputError, match="give 4 booleans"):
        dataset.filter(np.array([0, 1]))  # type: ignore[arg-type]


def test_concat_fills_what_one_of_them_does_not_know() -> None:
    other = Dataset.from_columns(
        {"operation": ["write"], "request_bytes": [512], "device_power_watts": [2.5]},
        Provenance(importer="other", sources=PROVENANCE.sources, warnings=("w",)),
    )
    both = concat([some(2), other])
    assert len(both) == 3
    np.testing.assert_array_equal(both.column("device_power_watts"), [np.nan, np.nan, 2.5])
    assert both.measurements()[2] == other.measurements()[0]
    assert both.provenance.importer == "test + other"
    assert both.provenance.sources == PROVENANCE.sources
    assert both.provenance.warnings == ("line 3 is odd", "w")
    with pytest.raises(InputError, match="at least one"):
        concat([])


def test_an_empty_dataset_can_be_stored(tmp_path: Path) -> None:
    empty = some().filter(np.zeros(3, dtype=bool))
    write_dataset(empty, tmp_path / "none")
    assert len(read_dataset(tmp_path / "none")) == 0
    assert len(concat([empty, some(1)])) == 1
    assert Dataset.from_columns({}, PROVENANCE).measurements() == []


def test_the_parquet_file_speaks_for_itself(tmp_path: Path) -> None:
    data_file, sidecar_file = write_dataset(some(), tmp_path / "run.v1.5.parquet")
    assert (data_file.name, sidecar_file.name) == ("run.v1.5.parquet", "run.v1.5.json")
    schema = pq.read_schema(data_file)
    assert schema.names == list(COLUMNS)
    assert schema.field("latency_mean_ns").metadata[b"unit"] == b"ns"
    sidecar = json.loads(sidecar_file.read_text())
    assert sidecar["provenance"]["sources"][0]["licence"] == "MIT"
    assert sidecar["rows"] == 3
    for path in (data_file, sidecar_file, tmp_path / "run.v1.5"):
        assert read_dataset(path) == some()


@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_crash_between_the_files_is_seen_and_leaves_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    write_dataset(some(2), tmp_path / "runs")
    calls = 0
    really_replace = os.replace

    def replace(source: Any, target: Any, **more: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == fails_at:
            raise KeyboardInterrupt
        really_replace(source, target, **more)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        write_dataset(some(3), tmp_path / "runs")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs.json", "runs.parquet"]
    if fails_at == 1:
        assert read_dataset(tmp_path / "runs") == some(2)
    else:
        with pytest.raises(InputError, match=r"half written.*import the measurements again"):
            read_dataset(tmp_path / "runs")


def test_a_full_disk_is_named_and_leaves_the_old_pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_dataset(some(2), tmp_path / "runs")

    def fsync(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(InputError, match=r"runs\.parquet: cannot be written \(No space left"):
        write_dataset(some(3), tmp_path / "runs")
    monkeypatch.undo()
    assert read_dataset(tmp_path / "runs") == some(2)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_a_place_that_cannot_hold_the_metadata_is_refused_before_the_data(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "runs.json")
    with pytest.raises(InputError):
        write_dataset(some(), tmp_path / "runs")
    assert [path.name for path in tmp_path.iterdir()] == ["runs.json"]


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be written .*check the folder"):
        write_dataset(some(), tmp_path / "nowhere" / "runs")


@pytest.mark.parametrize("path", ["", ".", "/"])
def test_a_path_without_a_name(path: str) -> None:
    with pytest.raises(InputError, match="NAME"):
        write_dataset(some(), path)


def edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_newer_schema_is_refused_with_the_remedy(tmp_path: Path) -> None:
    _, sidecar_file = write_dataset(some(), tmp_path / "runs")
    edit(sidecar_file, schema_version=SCHEMA_VERSION + 1, provenance={"novel": True})
    with pytest.raises(SchemaVersionError, check=having(field="schema_version")):
        read_dataset(tmp_path / "runs")


def test_a_dataset_of_version_1_is_read_and_not_judged(tmp_path: Path) -> None:
    data_file, sidecar_file = write_dataset(some(), tmp_path / "runs")
    table = pq.read_table(data_file).drop_columns(["verdict", "verdict_reasons"])
    pq.write_table(table, data_file)
    digest = hashlib.sha256(data_file.read_bytes()).hexdigest()
    edit(sidecar_file, schema_version=1, data_sha256=digest)
    rows = read_dataset(tmp_path / "runs").measurements()
    assert rows == some().measurements()
    assert {one.judgement.verdict for one in rows} == {None}


def test_broken_pairs_are_named_with_the_remedy(tmp_path: Path) -> None:
    data_file, sidecar_file = write_dataset(some(), tmp_path / "runs")
    good, good_sidecar = data_file.read_bytes(), sidecar_file.read_bytes()

    def complaint() -> str:
        with pytest.raises(InputError) as caught:
            read_dataset(tmp_path / "runs")
        assert str(tmp_path) in caught.value.message
        return caught.value.message

    data_file.write_bytes(good[: len(good) // 2])
    assert "runs.parquet: does not match its metadata file" in complaint()
    data_file.unlink()
    assert "runs.parquet: no such file" in complaint()
    data_file.write_bytes(good)
    for text, expected in [
        (b"", "not JSON"),
        (good_sidecar[:40], "not JSON"),
        (b"[]", "format"),
        (b'{"format": "other"}', "format"),
    ]:
        sidecar_file.write_bytes(text)
        assert expected in complaint()
    for change, expected in [
        ({"schema_version": None}, "schema_version is None"),
        ({"provenance": {"importer": 3}}, "provenance.importer"),
    ]:
        sidecar_file.write_bytes(good_sidecar)
        edit(sidecar_file, **change)
        assert expected in complaint()
    sidecar_file.unlink()
    assert "metadata file is missing" in complaint()
    data_file.unlink()
    assert "there is no such dataset" in complaint()


def test_a_foreign_parquet_file_behind_a_right_hash(tmp_path: Path) -> None:
    import hashlib

    data_file, sidecar_file = write_dataset(some(), tmp_path / "runs")
    data_file.write_bytes(b"PAR1 not really")
    edit(sidecar_file, data_sha256=hashlib.sha256(data_file.read_bytes()).hexdigest())
    with pytest.raises(InputError, match="not a readable Parquet file"):
        read_dataset(tmp_path / "runs")
    pq.write_table(pa.table({"colour": ["red"]}), data_file)
    edit(sidecar_file, data_sha256=hashlib.sha256(data_file.read_bytes()).hexdigest())
    with pytest.raises(InputError, check=having(field="colour")):
        read_dataset(tmp_path / "runs")


def test_it_is_immutable() -> None:
    dataset = some()
    with pytest.raises(AttributeError):
        dataset.provenance = PROVENANCE  # type: ignore[misc]
    with pytest.raises(AttributeError):
        dataset.extra = 1  # type: ignore[attr-defined]
