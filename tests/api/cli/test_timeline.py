"""`iojoule timeline` on the shipped 980 PRO."""

import csv
import io
import json

import pytest

WRITES = [
    "--set", "pattern=sequential", "--set", "request_bytes=1048576", "--set", "queue_depth=32",
]  # fmt: skip


@pytest.fixture
def follow(iojoule):
    def run(*arguments: str):
        return iojoule("timeline", "--device", "samsung-980-pro-1tb", *arguments)

    return run


def test_the_table_takes_together_what_the_drive_does(follow) -> None:
    done = follow(*WRITES, "--set", "fill_fraction=1", "write=60", "idle=60")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0].split("   ")[0] == "from"
    for doing in ("caching", "collecting", "background work", "rest"):
        assert any(doing in line for line in lines[2:])
    assert any(line.startswith("energy of the drive: ") for line in lines)
    assert "in brackets: 90 % interval" in done.out.lower()


def test_csv_has_one_row_a_step(follow) -> None:
    done = follow(*WRITES, "write=2", "idle=1.5", "--step", "0.5", "-o", "csv")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [float(row["seconds"]) for row in rows] == [0.25 + 0.5 * i for i in range(7)]
    assert float(rows[0]["throughput_bytes_per_second"]) > 1e9
    assert float(rows[-1]["throughput_bytes_per_second"]) == 0.0
    for row in rows:
        low, value, high = (float(row["device_power_watts" + e]) for e in ("_low", "", "_high"))
        assert low <= value <= high


def test_json_has_totals_that_are_the_sums_of_the_steps(follow) -> None:
    done = follow(*WRITES, "write=20", "idle=5", "write=5@1e8", "-o", "json")
    found = json.loads(done.out)
    steps, totals = found["steps"], found["totals"]
    assert len(steps) == 30
    energy = totals["device_energy_joules"]
    assert energy["value"] == pytest.approx(sum(one["device_power_watts"] for one in steps))
    assert energy["low"] < energy["value"] < energy["high"]
    written = sum(one["throughput_bytes_per_second"] for one in steps)
    assert totals["bytes_written"]["value"] == pytest.approx(written)
    assert steps[-1]["throughput_bytes_per_second"] == pytest.approx(1e8)
    assert totals["second_collecting_seconds"] is None
    last = found["stretches"][-1]
    assert (last["end_seconds"], last["doing"]) == (30.0, "caching")


def test_a_fuller_drive_and_one_that_begins_with_a_full_cache_take_less(follow) -> None:
    def written(*fields: str) -> float:
        said = [part for field in fields for part in ("--set", field)]
        done = follow(*WRITES, *said, "write=30", "-o", "json")
        return float(json.loads(done.out)["totals"]["bytes_written"]["value"])

    empty = written("fill_fraction=0")
    assert written("fill_fraction=1") < 0.9 * empty
    assert written("fill_fraction=0", "host_bytes_written_since_purge=1.05e11") < 0.9 * empty


def test_defaults_are_said_on_standard_error(follow) -> None:
    done = follow("write=1")
    assert "request_bytes = 4096" in done.err
    assert "operation" not in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sleep=5"], "phase 'sleep=5': write it as"),
        (["write=5s"], "phase 'write=5s': write it as"),
        (["idle=5@1e8"], "phase 'idle=5@1e8': write it as"),
        (["write=5@0"], "phase 'write=5@0': write it as"),
        (["write=nan"], "phase 'write=nan': write it as"),
        (["write=0"], "a phase of 0.0 s"),
        (["write=5", "--step", "0"], "in steps of 0.0 s"),
        (["write=5", "--set", "operation=read"], "a time line follows writes"),
        (["write=5", "--set", "burst_bytes=4096"], "burst_bytes: the phases say it"),
        (["write=5", "--set", "fill_fraction=2"], "fill_fraction"),
        (["write=5", "--set", "queue_deph=2"], "did you mean queue_depth"),
    ],
)
def test_what_cannot_be_followed_is_refused_by_name(follow, arguments, said: str) -> None:
    done = follow(*arguments)
    assert done.code == 3
    assert said in done.err
    assert done.out == ""


def test_a_drive_whose_writes_nobody_saw_over_time_says_what_to_measure(iojoule) -> None:
    done = iojoule("timeline", "--device", "wd-zn540", "write=5")
    assert done.code == 3
    assert "measure writes over time with a power meter" in done.err
