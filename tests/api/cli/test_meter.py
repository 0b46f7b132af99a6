"""`iojoule meter` and `iojoule top` on a host of the test's own."""

import csv
import io
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from iojoule.api.application.meter import COLUMNS
from iojoule.api.cli.app import run
from tests.meter.test_groups import Bench
from tests.meter.test_instrument import Polled


@pytest.fixture
def trees(tmp_path: Path) -> list[str]:
    """Options that name the host: a drive that rests, and one group."""
    bench = Bench(tmp_path / "host")
    bench.group("a")
    places = {"proc": bench.host.proc, "sysfs": bench.host.sysfs, "cgroups": bench.groups}
    return [word for name, path in places.items() for word in (f"--{name}", str(path))]


def test_csv_has_a_row_for_each_drive_and_group(
    trees: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["meter", *trees, "--groups", "--interval", "0.1", "--seconds", "0.2", "-o", "csv"]
    assert run(arguments) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert list(rows[0]) == list(COLUMNS)
    drives = [row for row in rows if not row["group"]]
    assert {row["serial"] for row in drives} == {"S1"}
    assert len(drives) == 2
    for row in drives:
        assert float(row["watts_low"]) < float(row["watts"]) < float(row["watts_high"])
    assert {row["group"] for row in rows} == {"", "idle", "unattributed", "ended"}


def test_json_is_an_object_a_line(trees: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["meter", *trees, "--interval", "0.1", "--seconds", "0.1", "-o", "json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    record = json.loads(line)
    assert (record["device"], record["source"]) == ("nvme0n1", "profile")
    assert record["joules"] > 0


def test_what_the_cpu_draws_is_told_where_packages_count_it(
    trees: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = ["--interval", "0.1", "--seconds", "0.1"]
    zone = tmp_path / "host" / "sys" / "class" / "powercap" / "intel-rapl:0"
    zone.mkdir(parents=True)
    (zone / "energy_uj").write_text("1000000\n")
    assert run(["meter", *trees, *seconds]) == 0
    assert str(zone) in capsys.readouterr().err  # why it is not known
    (zone / "name").write_text("package-0\n")
    (zone / "max_energy_range_uj").write_text("262143328850\n")
    (tmp_path / "host" / "proc" / "stat").write_text("cpu  1 0 1 9 0 0 0 0\n")
    assert run(["meter", *trees, *seconds, "-o", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["cpu_joules"] is None  # counters that stand tell nothing


@pytest.mark.parametrize("option", ["--drive", "--power"])
def test_a_drive_that_is_not_there_is_named(
    trees: list[str], option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    value = "nvme7n1" if option == "--drive" else "nvme7n1=diskstats:nvme7n1"
    assert run(["meter", *trees, option, value, "--seconds", "0.1"]) == 3
    assert "nvme7n1" in capsys.readouterr().err


def test_top_prints_one_view(trees: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["top", *trees, "--once", "--interval", "0.1"]) == 0
    out = capsys.readouterr().out
    assert "nvme0n1" in out
    assert "W" in out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    "words", [["meter", "--interval", "0.1", "-o", "json"], ["exporter", "--port", "0"]]
)
def test_a_signal_ends_it_in_order(
    trees: list[str], words: list[str], number: signal.Signals
) -> None:
    iojoule = Path(sys.executable).with_name("iojoule")
    with subprocess.Popen(
        [iojoule, *words, *trees], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.send_signal(number)
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_an_exporter_that_does_not_start_releases_its_instrument(
    trees: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = list[str]()

    class Sensor(Polled):
        def end(self) -> None:
            ended.append(self.name)

    monkeypatch.setattr(
        "iojoule.api.application.meter.open_sensor", lambda _: Sensor(lambda _: 5.0)
    )
    power = ["--power", "nvme0n1=polled", "--textfile", str(tmp_path / "nowhere" / "file.prom")]
    assert run(["exporter", *trees, *power]) == 3
    assert ended == ["polled"]
