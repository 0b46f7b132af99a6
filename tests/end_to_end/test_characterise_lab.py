"""The lab's drive characterised in a minute or two, beside what its TOML file says it is.

On a busy machine fio itself is held up now and then, so that rates have wide bounds here; what is
read off watts and units does not depend on that.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from iojoule.datasets.characteristics import Characteristics, Status, read_characteristics
from iojoule.measure.lab import life
from iojoule.measure.lab.client import LabClient
from iojoule.measure.lab.drives import find
from tests.measure.lab.conftest import missing_for_a_disk, need

IOJOULE = str(Path(sys.executable).parent / "iojoule")
ROOT = Path(__file__).resolve().parents[2]
MEBIBYTE = 1 << 20
TRUTH = find("lab-nvme").device

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabClient]:
    if reason := missing_for_a_disk():
        pytest.skip(reason)
    for program in ("fio", "nvme"):
        need(program)
    folder = tmp_path_factory.mktemp("characterise") / "lab"
    try:
        with life.up(folder) as client:
            yield client
    finally:
        life.down(folder)


def characterise(lab: LabClient, out: Path, *words: str) -> subprocess.CompletedProcess[str]:
    state = lab.state
    return subprocess.run(
        [
            IOJOULE, "measure", "characterise",
            "--drive", state["drive"], "--controller", state["controller"],
            "--power", f"powersensor3:{state['powersensor3']}",
            "--rapl-root", state["rapl_root"], "--serial", state["serial"],
            "--scale", "quick", "--out", str(out), *words,
        ],
        env={**os.environ, **lab.environment(), "IOJOULE_JOURNALS": str(out.parent / "state")},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def out(lab: LabClient, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("characteristics") / "out"
    # in two calls: the second one goes on where the first one ended
    first = characterise(lab, folder, "--only", "idle")
    assert first.returncode == 0, first.stderr[-3000:]
    before = (folder / "questions/idle/answer.json").stat().st_mtime_ns
    second = characterise(lab, folder)
    assert second.returncode == 0, second.stderr[-3000:]
    assert (folder / "questions/idle/answer.json").stat().st_mtime_ns == before
    assert "question 1 of 9" in second.stderr
    return folder


@pytest.fixture(scope="module")
def found(out: Path) -> Characteristics:
    told = read_characteristics(out)
    assert told is not None
    assert {one.status for one in told.answers.values()} == {Status.ANSWERED}
    return told


def value(found: Characteristics, question: str, name: str) -> float:
    one = found.answers[question].estimates[name]
    assert one.value is not None, one.reason
    return one.value


def test_every_state_draws_what_it_draws(found: Characteristics) -> None:
    for index, state in enumerate(TRUTH.physical.power.states):
        watts = value(found, "idle", f"idle_watts_ps{index}")
        assert watts == pytest.approx(state.idle_power_watts, rel=0.03, abs=0.003)
    wake = value(found, "idle", "wake_seconds_ps4")
    assert wake == pytest.approx(TRUTH.physical.power.states[4].exit_latency_ns * 1e-9, rel=0.2)


def test_the_write_cache_and_its_folding(found: Characteristics) -> None:
    """32 MiB of flash; the host sees a little more, since the write buffer still takes it."""
    size = found.answers["slc-cache"].estimates["cache_bytes_by_power"]
    assert size.low is not None
    assert size.high is not None
    assert size.low <= 32 * MEBIBYTE <= size.high
    assert size.value == pytest.approx(32 * MEBIBYTE, rel=0.15)
    assert 32 <= value(found, "slc-cache", "cache_bytes") / MEBIBYTE <= 40
    delay = value(found, "slc-cache", "fold_delay_seconds")
    assert delay == pytest.approx(TRUTH.physical.slc.fold_idle_ns * 1e-9, abs=0.3)
    # 2048 pages on eight dies: an SLC read, two transfers and a program each
    assert value(found, "slc-cache", "fold_seconds") == pytest.approx(3.6, rel=0.2)


def test_units_are_exact_or_not_found(found: Characteristics) -> None:
    """A busy machine may hide them; it must not make up others."""
    for name, truth in (
        ("mapping_unit_bytes", TRUTH.physical.nand.mapping_unit_bytes),
        ("read_unit_bytes", TRUTH.page_bytes),
    ):
        one = found.answers["alignment"].estimates[name]
        if one.value is not None:
            assert one.low is not None
            assert one.high is not None
            assert one.low <= truth <= one.high


def test_the_drive_saturates_where_the_model_says(found: Characteristics) -> None:
    """8.1 ms alone and 1600 a second together meet at 13 requests in flight."""
    assert value(found, "saturation", "saturation_depth_4096") == pytest.approx(13, rel=0.4)
    unloaded = value(found, "saturation", "unloaded_latency_seconds_4096")
    assert unloaded == pytest.approx(8.1e-3, rel=0.25)


def test_the_order_of_writes_matters_and_writes_cost_more(found: Characteristics) -> None:
    """A page of 16 KiB holds four scattered units, so that reads in order need more pages."""
    assert value(found, "write-pattern", "shuffled_over_ordered") < 0.6
    assert value(found, "asymmetry", "write_over_read_joules_65536") > 1.2
    assert value(found, "background", "background_joules_per_byte") > 0


def test_power_follows_load_from_idle_to_the_peak(found: Characteristics) -> None:
    assert value(found, "proportionality", "dynamic_range") == pytest.approx(0.67, abs=0.12)


def test_what_was_written_is_what_was_said_beforehand(
    lab: LabClient, found: Characteristics, out: Path
) -> None:
    said = characterise(lab, out.parent / "other", "--dry-run")
    assert said.returncode == 0
    total = sum(one.bytes_written for one in found.answers.values()) / 1e6
    assert f"written in all: {total:,.1f} MB" in said.stdout
    assert not (out.parent / "other").exists()


def test_the_files_are_of_use(lab: LabClient, out: Path, tmp_path: Path) -> None:
    report = (out / "report.md").read_text()
    assert "idle_watts_ps0" in report
    for name in ("idle", "slc-cache", "saturation"):
        assert (out / f"plots/{name}.svg").read_text().startswith("<?xml")
    profile = tmp_path / "profile.json"
    for words in (
        ("fit", str(out), "-o", str(profile)),
        ("simulate", "--ssd", str(out / "preset.toml"), "--workload",
         str(ROOT / "examples/simulator/oltp.toml")),
    ):  # fmt: skip
        done = subprocess.run(
            [IOJOULE, *words],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
    idle = json.loads(profile.read_text())["device_power"]["idle_watts"]
    assert [one["source"].split(" (")[0] for one in idle] == ["idle power measured for itself"] * 3
    assert not list((out.parent / "state").glob("restore-*.json"))
