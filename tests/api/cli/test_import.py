import json
from pathlib import Path

import pytest

from iojoule.datasets.store import read_dataset

MAP = """
schema_version = 1
[source]
citation = "Doe 2024"
licence = "MIT"
[constants]
operation = "read"
engine = "libaio"
[columns]
queue_depth = "depth"
request_bytes = { column = "size", unit = "B" }
iops = { column = "rate", unit = "UNIT" }
"""


@pytest.fixture
def fio_files(root: Path) -> Path:
    return root / "tests" / "datasets" / "fio"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "sweep.csv"
    path.write_text("depth,size,rate\n1,4096,10000\n4,4096,35000\n")
    return path


def column_map(folder: Path, unit: str = "IOPS", text: str = MAP) -> Path:
    path = folder / "map.toml"
    path.write_text(text.replace("UNIT", unit))
    return path


def test_fio_files_become_a_dataset(iojoule, fio_files: Path, tmp_path: Path) -> None:
    done = iojoule(
        "import", "fio", fio_files / "clones.json", "-o", tmp_path / "runs",
        "--set", "device_model=samsung-980-pro-1tb", "--set", "power_state=1",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "1 measurements from 1 file" in done.out
    dataset = read_dataset(tmp_path / "runs")
    assert list(dataset.column("device_model")) == ["samsung-980-pro-1tb"]
    assert list(dataset.column("power_state")) == [1.0]


def test_what_failed_is_refused_or_named(iojoule, fio_files: Path, tmp_path: Path) -> None:
    paths = (fio_files / "clones.json", fio_files / "failed.json")
    refused = iojoule("import", "fio", *paths, "-o", tmp_path / "runs", "--strict")
    assert refused.code == 8
    assert "failed.json" in refused.err
    assert not list(tmp_path.iterdir())
    kept = iojoule("import", "fio", *paths, "-o", tmp_path / "runs")
    assert kept.code == 0
    assert "left out: 1 x fio reports an error" in kept.out
    assert "failed.json" in kept.err
    assert f"iojoule fit {tmp_path / 'runs'}" in kept.err


def test_a_table_of_fields_needs_no_map(iojoule, tmp_path: Path) -> None:
    table = tmp_path / "own.csv"
    table.write_text("request_bytes;queue_depth;iops\n4096;1;9000\n4096;4;30000\n")
    command = ("import", "csv", table, "-o", tmp_path / "out")
    lacking = iojoule(*command)
    assert lacking.code == 3
    assert "operation" in lacking.err
    assert iojoule(*command, "--set", "operation=read").code == 0
    assert read_dataset(tmp_path / "out").column("iops").tolist() == [9000, 30000]
    table.write_text("request_bytes,depth,operation\n4096,1,read\n")
    foreign = iojoule(*command)
    assert foreign.code == 3
    assert "'depth'" in foreign.err
    assert "schema_version = 1" in foreign.err
    table.write_text("x" * 200_000 + "\n1\n")
    assert iojoule(*command).code == 3


def test_a_profile_does_not_overwrite_a_dataset(iojoule, fio_files: Path, tmp_path: Path) -> None:
    name = tmp_path / "x"
    iojoule("import", "fio", fio_files / "phases.json", "-o", name)
    before = name.with_suffix(".json").read_text()
    done = iojoule("fit", name, "-o", name.with_suffix(".json"), "--device", "samsung-980-pro-1tb")
    assert done.code == 3
    assert "metadata file" in done.err
    assert name.with_suffix(".json").read_text() == before
    other = tmp_path / "profile.json"
    other.write_text('{"device": "x"}')
    done = iojoule("import", "fio", fio_files / "phases.json", "-o", tmp_path / "profile")
    assert done.code == 3
    assert other.read_text() == '{"device": "x"}'


@pytest.mark.parametrize("content", [None, "", '{"fio version": "fio-3.3', "hello", "{}", "[1]"])
def test_a_file_that_is_no_result_of_fio(content: str | None, iojoule, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    if content is not None:
        path.write_text(content)
    done = iojoule("import", "fio", path, "-o", tmp_path / "runs")
    assert done.code in (3, 8)
    assert "x.json" in done.err
    assert "Traceback" not in done.err
    assert not list(tmp_path.glob("*runs*"))


def test_constants_are_fields_of_the_schema(iojoule, fio_files: Path, tmp_path: Path) -> None:
    for given, said in (
        ("device_modell=x", "did you mean device_model"),
        ("power_state=-1", "power_state"),
        ("engine=aio", "engine"),
        ("iops=5", "iops"),
    ):
        done = iojoule(
            "import", "fio", fio_files / "clones.json", "-o", tmp_path / "r", "--set", given
        )
        assert done.code == 3
        assert said in done.err
    assert not list(tmp_path.iterdir())


def test_a_table_becomes_a_dataset(iojoule, table: Path, tmp_path: Path) -> None:
    done = iojoule(
        "import", "csv", table, "--columns", column_map(tmp_path), "-o", tmp_path / "out"
    )
    assert done.code == 0, done.err
    assert "2 measurements from 1 file" in done.out
    assert list(read_dataset(tmp_path / "out").column("iops")) == [10000.0, 35000.0]


def test_excluded_rows_are_counted_by_reason(iojoule, table: Path, tmp_path: Path) -> None:
    rule = '[[rows]]\nexclude = "warm-up"\nwhere = { column = "depth", equals = "1" }\n'
    done = iojoule(
        "import", "csv", table, "--columns", column_map(tmp_path, text=MAP + rule),
        "-o", tmp_path / "out",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "left out: 1 x warm-up" in done.out


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("UNIT", "ms"), "iops"),
        (("UNIT", "parsecs"), "parsecs"),
        (('column = "rate"', 'column = "raet"'), "raet"),
        (("iops =", "iop ="), "iop"),
    ],
)
def test_a_wrong_unit_or_column(
    change: tuple[str, str], said: str, iojoule, table: Path, tmp_path: Path
) -> None:
    wrong = column_map(tmp_path, text=MAP.replace(*change))
    done = iojoule("import", "csv", table, "--columns", wrong, "-o", tmp_path / "out")
    assert done.code == 3
    assert said in done.err
    assert not list(tmp_path.glob("*out*"))


@pytest.mark.parametrize("cells", ["0,4096,1", "1,-4096,1", "1,4096,many", "1,4096"])
def test_impossible_cells_are_named_by_line(
    cells: str, iojoule, table: Path, tmp_path: Path
) -> None:
    table.write_text(f"depth,size,rate\n1,4096,10000\n{cells}\n")
    done = iojoule(
        "import", "csv", table, "--columns", column_map(tmp_path), "-o", tmp_path / "out"
    )
    assert done.code == 3
    assert "line 3" in done.err
    assert not list(tmp_path.glob("*out*"))


def test_a_folder_that_does_not_exist(iojoule, table: Path, tmp_path: Path) -> None:
    done = iojoule(
        "import", "csv", table, "--columns", column_map(tmp_path), "-o", tmp_path / "no" / "out"
    )
    assert done.code == 3
    assert str(tmp_path / "no" / "out") in done.err


def test_the_side_car_keeps_the_provenance(iojoule, table: Path, tmp_path: Path) -> None:
    iojoule("import", "csv", table, "--columns", column_map(tmp_path), "-o", tmp_path / "out")
    sidecar = json.loads((tmp_path / "out.json").read_text())
    assert sidecar["provenance"]["sources"][0]["name"] == "sweep.csv"
