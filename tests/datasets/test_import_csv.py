"""The csv importer: column maps, units, messages, and the public data sets."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.datasets.errors import DataQualityError, InputError, SchemaVersionError
from iojoule.datasets.importers import ImportOptions, importer
from iojoule.datasets.importers.column_map import parse_column_map, public_map, public_maps
from iojoule.datasets.importers.csv import import_csv
from iojoule.datasets.importers.units import UNITS, conversion, parse_fio_size
from iojoule.datasets.littles_law import littles_ratios
from iojoule.datasets.store import Dataset
from tests.errors import having
from tests.reference_data import PUBLIC_DATA, needs_public_data

MAP = """
schema_version = 1
[source]
citation = "Doe 2024"
licence = "MIT"
[constants]
operation = "read"
request_bytes = 4096
[columns]
queue_depth = "depth"
iops = { column = "iops", unit = "IOPS" }
latency_mean_ns = { column = "lat", unit = "us" }
"""
TABLE = "depth,iops,lat,note\n1,10000,100,a\n4,20000,200,b\n"


def load(tmp_path: Path, table: str = TABLE, column_map: str = MAP) -> Dataset:
    file = tmp_path / "runs.csv"
    file.write_text(table, encoding="utf-8")
    return import_csv(file, parse_column_map(column_map, "test", "test.toml"))


def complaint(tmp_path: Path, table: str = TABLE, column_map: str = MAP) -> str:
    with pytest.raises(InputError) as caught:
        load(tmp_path, table, column_map)
    return caught.value.message


def test_reads_rows_in_order_and_names_the_source(tmp_path: Path) -> None:
    dataset = load(tmp_path)
    assert dataset.column("queue_depth").tolist() == [1, 4]
    assert dataset.column("latency_mean_ns").tolist() == [100_000, 200_000]
    assert dataset.column("jobs").tolist() == [1, 1]
    source = dataset.provenance.sources[0]
    assert (source.name, source.licence, source.citation) == ("runs.csv", "MIT", "Doe 2024")
    assert len(source.sha256) == 64
    assert dataset.provenance.warnings == ()


def test_the_registry_finds_it_and_asks_for_a_map(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text(TABLE)
    (tmp_path / "map.toml").write_text(MAP)
    run = importer("csv")
    options = ImportOptions(columns=tmp_path / "map.toml")
    assert len(run([tmp_path / "runs.csv", tmp_path / "runs.csv"], options)) == 4
    with pytest.raises(InputError, match=r"--columns MAP\.toml"):
        run([tmp_path / "runs.csv"], ImportOptions())
    with pytest.raises(InputError, match=r"no importer 'xls'; there are: .*csv"):
        importer("xls")


def test_values_defaults_sums_and_factors(tmp_path: Path) -> None:
    table = (
        "rw,bs,poll,usr,sys,jobs,bw,ctx,ms\n"
        "randread,4k,1,10,15,4,40.96,3000,1500\n"
        "write,1m,,0,50,2,1.048576,,\n"
    )
    column_map = """
schema_version = 1
[columns]
operation = { column = "rw", values = { randread = "read", write = "write" } }
pattern = { column = "rw", values = { randread = "random", write = "sequential" } }
request_bytes = { column = "bs", unit = "fio-size" }
engine = { column = "poll", values = { "1" = "spdk" }, default = "libaio" }
jobs = "jobs"
cpu_utilisation = { columns = ["usr", "sys"], unit = "%", times = { field = "jobs" } }
iops = { column = "bw", unit = "MB/s", divided_by = { field = "request_bytes" } }
throughput_bytes_per_second = { column = "bw", unit = "MB/s" }
context_switches_per_second = { column = "ctx", unit = "1", divided_by = { column = "ms", unit = "ms" } }
host_bytes_written_since_purge = { column = "bw", unit = "MB/s", cumulative_seconds = 2 }
"""  # noqa: E501
    dataset = load(tmp_path, table, column_map)
    assert dataset.column("operation").tolist() == ["read", "write"]
    assert dataset.column("pattern").tolist() == ["random", "sequential"]
    assert dataset.column("request_bytes").tolist() == [4096, 1 << 20]
    assert dataset.column("engine").tolist() == ["spdk", "libaio"]
    assert dataset.column("cpu_utilisation").tolist() == pytest.approx([1.0, 1.0])
    assert dataset.column("iops").tolist() == pytest.approx([10_000, 1])
    assert dataset.column("throughput_bytes_per_second").tolist() == pytest.approx(
        [40.96e6, 1048576]
    )
    np.testing.assert_allclose(dataset.column("context_switches_per_second"), [2000, np.nan])
    written = dataset.column("host_bytes_written_since_purge")
    assert written.tolist() == pytest.approx([0, 81.92e6])


def test_row_rules_set_and_exclude(tmp_path: Path) -> None:
    rules = """
[[rows]]
where = { column = "note", equals = "a" }
set = { session_id = "first", cpu_cores_available = 2 }
[[rows]]
where = [{ column = "note", matches = "^b" }, { column = "depth", equals = "4" }]
exclude = "warming up"
"""
    dataset = load(tmp_path, column_map=MAP + rules)
    assert len(dataset) == 1
    assert dataset.column("session_id").tolist() == ["first"]
    assert dataset.column("cpu_cores_available").tolist() == [2]
    excluded = dataset.provenance.excluded[0]
    assert (excluded.source, excluded.row, excluded.reason) == ("runs.csv", 3, "warming up")


def test_cells_of_excluded_rows_are_not_judged(tmp_path: Path) -> None:
    rule = '\n[[rows]]\nwhere = { column = "note", equals = "b" }\nexclude = "broken"\n'
    assert len(load(tmp_path, TABLE.replace("20000", "broken"), MAP + rule)) == 1


def test_an_unknown_column_names_the_close_ones_and_the_header(tmp_path: Path) -> None:
    message = complaint(tmp_path, column_map=MAP.replace('"depth"', '"dept"'))
    assert "runs.csv: no column 'dept'" in message
    assert "columns.queue_depth" in message
    assert "did you mean depth?" in message
    assert "depth, iops, lat, note" in message


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (TABLE.replace("20000", "fast"), ("line 3, column 'iops'", "'fast' is not a number")),
        (TABLE.replace("20000", "nan"), ("line 3, column 'iops'", "missing")),
        (TABLE.replace("4,20000", "0,20000"), ("line 3", "queue_depth", "found 0")),
        (TABLE.replace("10000", "-1"), ("line 2", "iops", "found -1")),
        (TABLE.replace("4,", "4.5,"), ("line 3", "queue_depth", "whole number")),
        (TABLE + "8,3\n", ("line 4", "2 cells", "4 columns", "cut off")),
        (TABLE + '8,30000,"100', ("line 4", "not CSV", "quotes")),
        ("depth,iops,lat,lat\n1,1,1,1\n", ("line 1", "'lat' is named twice")),
        ("", ("no rows",)),
        ("depth,iops,lat,note\n", ("no rows",)),
    ],
)
def test_a_bad_table_is_named_with_line_and_column(
    tmp_path: Path, table: str, expected: tuple[str, ...]
) -> None:
    message = complaint(tmp_path, table)
    assert "runs.csv" in message
    for part in expected:
        assert part in message


def test_an_empty_cell_is_unknown_unless_it_is_needed(tmp_path: Path) -> None:
    table = TABLE.replace("200,b", ",b")
    assert math.isnan(load(tmp_path, table).column("latency_mean_ns")[1])
    needed = MAP.replace('"lat", unit = "us"', '"lat", unit = "us", required = true')
    message = complaint(tmp_path, table, needed)
    assert "line 3, column 'lat'" in message
    assert "latency_mean_ns is needed" in message


def test_a_file_that_is_missing_or_not_utf8(tmp_path: Path) -> None:
    column_map = parse_column_map(MAP, "test", "test.toml")
    with pytest.raises(InputError, match=r"nowhere\.csv: no such file"):
        import_csv(tmp_path / "nowhere.csv", column_map)
    file = tmp_path / "latin.csv"
    file.write_bytes(TABLE.encode() + "8,1,1,\xe9\n".encode("latin1"))
    with pytest.raises(InputError, match=r"latin\.csv, line 4: not UTF-8 .*iconv"):
        import_csv(file, column_map)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('unit = "us"', 'unit = "uz"', ("column 'lat'", "unknown unit 'uz'", "ns, us, ms, s")),
        ('unit = "us"', 'unit = "W"', ("column 'lat'", "'W' cannot become ns", "us")),
        (', unit = "us"', "", ("column 'lat'", "say its unit", "us")),
        ('{ column = "lat", unit = "us" }', '{ column = "lat", unit = "KB" }', ("kB or KiB",)),
        ('"depth"', '{ column = "depth", unit = "us" }', ("queue_depth has no unit",)),
        ("queue_depth", "queue_deph", ("unknown field 'queue_deph'", "queue_depth")),
        ("[source]", "[sauce]", ("sauce",)),
        ("[constants]", "[constants", ("not TOML", "line")),
        ("schema_version = 1", "", ("schema_version = 1",)),
        (
            "[constants]",
            '[gate]\nlittles_law = "skip"\n[constants]',
            ("gate", "reason"),
        ),
    ],
)
def test_a_bad_map_is_named_with_place_and_remedy(
    old: str, new: str, expected: tuple[str, ...]
) -> None:
    with pytest.raises(InputError) as caught:
        parse_column_map(MAP.replace(old, new), "test", "test.toml")
    assert caught.value.message.startswith("test.toml: ")
    for part in expected:
        assert part in caught.value.message


def test_a_newer_map_is_refused() -> None:
    with pytest.raises(SchemaVersionError, check=having(field="schema_version")):
        parse_column_map("schema_version = 2\nnovel = true", "test", "test.toml")


def test_littles_law_warns_then_refuses(tmp_path: Path) -> None:
    warnings = load(tmp_path, TABLE.replace("10000", "9500")).provenance.warnings
    assert "runs.csv: line 2: " in warnings[0]
    assert "0.950" in warnings[0]
    with pytest.raises(DataQualityError, match=r"runs\.csv, line 2: .*= 0\.900, .*think time"):
        load(tmp_path, TABLE.replace("10000", "9000"))


def test_a_map_may_skip_the_law_with_a_reason(tmp_path: Path) -> None:
    gate = '\n[gate]\nlittles_law = "skip"\nreason = "read off a plot"\n'
    dataset = load(tmp_path, TABLE.replace("10000", "9000"), MAP + gate)
    assert "read off a plot" in dataset.provenance.warnings[0]


@given(st.sampled_from(sorted(UNITS)), st.sampled_from(sorted(UNITS)), st.floats(1e-6, 1e9))
def test_conversion_there_and_back_is_the_identity(first: str, second: str, value: float) -> None:
    a, b = UNITS[first], UNITS[second]
    if a.dimension == b.dimension:
        assert value * conversion(a, b) * conversion(b, a) == pytest.approx(value, rel=1e-12)


@given(st.integers(1, 10**6), st.sampled_from(["", "k", "K", "m", "g", "kb", "Ki"]))
def test_fio_sizes(number: int, suffix: str) -> None:
    power = {"": 0, "k": 1, "m": 2, "g": 3}[suffix[:1].lower()]
    assert parse_fio_size(f"{number}{suffix}") == number * 1024**power


def test_odd_fio_sizes() -> None:
    assert parse_fio_size("4kib") == 4000
    assert [parse_fio_size(text) for text in ("", "4x", "4k-8k", "-4k", "4.5k")] == [None] * 5


LONG = (
    MAP
    + """
[long]
quantity = "name"
value = "value"
by = ["depth"]
[gate]
littles_law = "skip"
reason = "test"
"""
)


def test_rows_that_state_one_quantity_each_become_one_measurement(tmp_path: Path) -> None:
    table = "depth,name,value\n1,iops,10000\n4,iops,20000\n4,lat,200\n1,lat,100\n"
    dataset = load(tmp_path, table, LONG)
    assert dataset.column("queue_depth").tolist() == [1, 4]
    assert dataset.column("iops").tolist() == [10000, 20000]
    assert dataset.column("latency_mean_ns").tolist() == [100_000, 200_000]


def test_one_quantity_twice_or_a_missing_column_is_refused(tmp_path: Path) -> None:
    twice = "depth,name,value\n1,iops,10000\n1,lat,100\n1,iops,20000\n"
    assert "line 4" in complaint(tmp_path, twice, LONG)
    with pytest.raises(InputError) as caught:
        load(tmp_path, "depth,what,value\n1,iops,1\n", LONG)
    assert caught.value.field == "long"


def test_every_public_map_loads() -> None:
    assert "mixratio" in public_maps()
    for name in public_maps():
        assert public_map(name).source.licence
    with pytest.raises(InputError, match="did you mean 980pro_fio_randread"):
        public_map("980pro_fio_randreads")


@needs_public_data
@pytest.mark.parametrize(
    ("name", "rows", "excluded", "warnings"),
    [
        ("980pro_fio_randread", 65, 0, 0),
        ("980pro_fio_schedulers", 36, 0, 0),
        ("980pro_fio_write_interference", 0, 360, 1),
        ("980pro_randread_power_by_request_size", 65, 0, 0),
        ("980pro_randwrite_power_over_time", 600, 0, 0),
        ("low_latency_ssd_engines", 18, 0, 1),
        ("mixratio", 135, 115, 0),
        ("other_nvme_fio", 282, 0, 1),
        ("sata_ssd_fio_grids", 196, 0, 1),
        ("thesis_figures", 91, 183, 1),
        ("iiswc_figures", 1224, 132, 1),
    ],
)
def test_the_public_data_as_a_whole(name: str, rows: int, excluded: int, warnings: int) -> None:
    dataset = import_csv(PUBLIC_DATA / f"{name}.csv", public_map(name))
    assert len(dataset) == rows
    assert len(dataset.provenance.excluded) == excluded
    assert len(dataset.provenance.warnings) == warnings
    assert len(dataset.measurements()) == rows


@needs_public_data
def test_the_980_pro_read_grid() -> None:
    dataset = import_csv(PUBLIC_DATA / "980pro_fio_randread.csv", public_map("980pro_fio_randread"))
    ratios = littles_ratios(dataset)
    assert 0.98 <= ratios.min() <= ratios.max() <= 1.0
    sessions = dataset.column("session_id").tolist()
    assert {name: sessions.count(name) for name in set(sessions)} == {
        "processes": 25,
        "sizes": 20,
        "sizes-unsteady": 20,
    }
    polled = dataset.column("completion") == "polled"
    assert set(dataset.filter(polled).column("engine")) == {"spdk"}
    first = dataset.measurements()[0].observations
    assert first.iops == 14483
    assert first.throughput_bytes_per_second == 57931 * 1024
    assert first.latency_p99_ns == pytest.approx(78_336)
    assert first.cpu_utilisation == pytest.approx(0.111308)


@needs_public_data
def test_the_processes_of_the_scheduler_series_share_one_core() -> None:
    dataset = import_csv(
        PUBLIC_DATA / "980pro_fio_schedulers.csv", public_map("980pro_fio_schedulers")
    )
    one_core = dataset.filter(dataset.column("cpu_cores_available") == 1)
    assert len(one_core) == 18
    many = one_core.filter(one_core.column("jobs") >= 16)
    assert many.column("cpu_utilisation") == pytest.approx(1.0, rel=0.01)


@needs_public_data
def test_the_write_series_counts_the_bytes_written_before() -> None:
    name = "980pro_randwrite_power_over_time"
    dataset = import_csv(PUBLIC_DATA / f"{name}.csv", public_map(name))
    written = dataset.column("host_bytes_written_since_purge")
    rate = dataset.column("throughput_bytes_per_second")
    assert written[0] == 0
    np.testing.assert_allclose(np.diff(written), rate[:-1])
    np.testing.assert_allclose(dataset.column("iops") * 4096, rate)


@needs_public_data
def test_polling_in_the_low_latency_runs() -> None:
    name = "low_latency_ssd_engines"
    dataset = import_csv(PUBLIC_DATA / f"{name}.csv", public_map(name))
    polling = dataset.filter(dataset.column("submission_polling") == 1)
    assert len(polling) == 3
    assert polling.column("latency_mean_ns").max() < 9000
    completion = dataset.column("completion").tolist()
    assert (completion.count("polled"), completion.count("interrupt")) == (6, 12)
