"""A power meter's log beside runs of fio: each run has the mean of its own time."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from iojoule.datasets.errors import InputError
from iojoule.datasets.importers import ImportOptions, importer
from iojoule.datasets.importers.power_log import parse_power_log
from tests.datasets.test_import_fio_layouts import changed
from tests.errors import having

ENDED = 1_790_000_000.0
SECONDS = 20.0
BUSY, IDLE = 6.0, 2.0


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A result of fio that ended at `ENDED` after `SECONDS`."""

    def timed(document) -> None:
        document["timestamp"], document["timestamp_ms"] = int(ENDED), round(1e3 * ENDED)
        for job in document["jobs"]:
            for direction in ("read", "write"):
                job[direction]["runtime"] = round(1e3 * SECONDS) if job[direction]["iops"] else 0

    return changed(tmp_path, "clones", timed)


def log(path: Path, *, ahead: float = 0.0, hertz: float = 10.0, iso: bool = False) -> Path:
    """Readings of the drive and of the wall, `ahead` of the clock of fio's host."""
    times = np.arange(ENDED - 60.0, ENDED + 60.0, 1.0 / hertz)
    busy = (times >= ENDED - SECONDS) & (times <= ENDED)
    lines = ["time,volts,device_power_watts,system_power_watts"]
    for at, works in zip(times + ahead, busy, strict=True):
        stamp = datetime.fromtimestamp(at, UTC).isoformat() if iso else f"{at:.3f}"
        watts = BUSY if works else IDLE
        lines.append(f"{stamp},12.0,{watts},{100.0 + watts}")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_run_has_the_mean_of_its_own_time(run: Path, tmp_path: Path) -> None:
    for iso in (False, True):
        path = log(tmp_path / "power.csv", iso=iso)
        found = importer("fio")([run], ImportOptions(power=str(path)))
        (watts,) = found.column("device_power_watts")
        (wall,) = found.column("system_power_watts")
        assert (watts, wall) == (pytest.approx(BUSY), pytest.approx(100.0 + BUSY))
        assert [one.name for one in found.provenance.sources][-1] == "power.csv"


def test_a_clock_that_is_ahead_is_named_with_the_remedy(run: Path, tmp_path: Path) -> None:
    path = log(tmp_path / "power.csv", ahead=7237.0)
    with pytest.raises(InputError, match="clock=SECONDS", check=having(field="power")):
        importer("fio")([run], ImportOptions(power=str(path)))
    found = importer("fio")([run], ImportOptions(power=f"{path},clock=7237"))
    assert found.column("device_power_watts")[0] == pytest.approx(BUSY)


def test_too_few_readings_are_no_mean(run: Path, tmp_path: Path) -> None:
    path = log(tmp_path / "power.csv", hertz=1.0)
    with pytest.raises(InputError, match="30 readings", check=having(field="power")):
        importer("fio")([run], ImportOptions(power=str(path)))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Time,Power (W)\n1,2\n", "Power \\(W\\): rename"),
        ("time,device_power_watts\n1,2\n", "1 readings are too few"),
        ("time,device_power_watts\nyesterday,2\n", "line 2"),
        ("time,device_power_watts\n1,nan\n", "line 2"),
        ("time,device_power_watts\n" + "1,2\n" * 40, "does not rise"),
        ("", "none: rename"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "power.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=says, check=having(field="power")):
        parse_power_log(str(path))
    with pytest.raises(InputError, match="clock=SECONDS"):
        parse_power_log(f"{path},clock=soon")
