"""A known fio job on the virtual drive, watched by `iojoule workload observe`.

What really reached the drive is the lab's own record, and what was asked for is the job. A machine
that keeps everybody waiting shows in both alike: the job comes late, and the record says so.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from iojoule.datasets.io_summary import IoWindow, parse_summary
from iojoule.measure.lab.client import LabClient
from iojoule.recommender.request import WorkloadProfile, load_workload
from tests.measure.lab.conftest import awake_lab, need

IOJOULE = str(Path(sys.executable).parent / "iojoule")
SECONDS = 30
DEMAND_WITHIN = 0.05
GAPS_WITHIN = 0.10
PERCENTS = (10, 50, 90, 99)
FEWEST_GAPS = 100
READ, WRITE, FLUSH = 0, 1, 3


@dataclass(frozen=True)
class Job:
    """A fio job and what is known of it beforehand.

    Attributes:
        name: How a test calls it.
        options: Of fio.
        demand_bytes_per_second: What it asks for, where it does not go as fast as it can.
        gap_seconds: Its one pause.
        flush_every_writes: How often it flushes.
        replays: Whether it replays `bursts` from an iolog.
    """

    name: str
    options: tuple[str, ...]
    demand_bytes_per_second: float | None = None
    gap_seconds: float | None = None
    flush_every_writes: int | None = None
    replays: bool = False


JOBS = (
    Job(
        "open loop with flushes",
        ("--rw=randrw", "--rwmixread=70", "--bs=8k", "--ioengine=libaio", "--iodepth=16",
         "--rate_iops=28,12", "--rate_process=poisson", "--fsync=6"),
        demand_bytes_per_second=40 * 8192,
    ),
    Job(
        "bursts with one pause",
        ("--rw=randwrite", "--bs=16k", "--ioengine=psync", "--thinktime=150ms",
         "--thinktime_blocks=12", "--fsync=4"),
        gap_seconds=0.15,
        flush_every_writes=4,
    ),
    Job("bursts with many pauses", ("--ioengine=psync",), replays=True),
    Job(
        "full speed",
        ("--rw=randread", "--bssplit=4k/60:16k/40", "--ioengine=libaio", "--iodepth=8"),
    ),
)  # fmt: skip


def bursts(path: Path, seconds: float) -> None:
    """An iolog of up to twelve requests at a time, a flush, and log-normal pauses of 0.15 s."""
    chance = np.random.default_rng(6)
    lines, at = ["fio version 3 iolog", "0 drive add", "0 drive open"], 1000
    while at < seconds * 1e6:
        for _ in range(chance.integers(1, 13)):
            action = "read" if chance.random() < 0.5 else "write"
            lines.append(f"{at} drive {action} {4096 * chance.integers(100_000)} 4096")
            at += 1
        lines.append(f"{at} drive sync 0 0")
        at += 100_000 + int(1e5 * chance.lognormal(0, 0.5))
    path.write_text("\n".join([*lines, f"{at} drive close", ""]))


@dataclass(frozen=True)
class Seen:
    """What was observed, and what the drive recorded in the same time."""

    job: Job
    profile: WorkloadProfile
    window: IoWindow
    truth: NDArray[np.void]
    seconds: float

    def counted(self, kind: int) -> int:
        return int((self.kinds == kind).sum())

    @property
    def kinds(self) -> NDArray[np.uint64]:
        return (self.truth["packed"] >> 1) & 7

    @property
    def bytes(self) -> int:
        moved = self.kinds <= WRITE
        return int(((self.truth["packed"][moved] >> 4) & 0xFFFFF).sum()) * 512

    @property
    def gaps(self) -> NDArray[np.float64]:
        """Times with nothing at the drive, as its record has them."""
        replied = self.truth["done_ns"].astype(np.int64)
        arrived = replied - (self.truth["packed"] >> 24).astype(np.int64)
        order = np.argsort(arrived)
        gaps = arrived[order][1:] - np.maximum.accumulate(replied[order])[:-1]
        return gaps[gaps >= self.window.gap_floor_seconds * 1e9] * 1e-9


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabClient]:
    need("fio")
    with awake_lab(tmp_path_factory.mktemp("observe") / "lab") as client:
        yield client


@pytest.fixture(scope="module", params=JOBS, ids=lambda job: job.name.replace(" ", "-"))
def seen(
    request: pytest.FixtureRequest, lab: LabClient, tmp_path_factory: pytest.TempPathFactory
) -> Seen:
    """The job replays for longer than it is watched."""
    job: Job = request.param
    folder = tmp_path_factory.mktemp("seen")
    length = SECONDS + 10
    if job.replays:
        bursts(folder / "iolog", length)
        words = [f"--read_iolog={folder / 'iolog'}", f"--replay_redirect={lab.state['drive']}"]
    else:
        words = [f"--filename={lab.state['drive']}", "--size=100%", "--randseed=7"]
        words += ["--time_based", f"--runtime={length}"]
    fio = subprocess.Popen(
        ["fio", "--name=known", "--direct=1", *words, *job.options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        time.sleep(3)
        profile, summary = folder / "seen.toml", folder / "seen.json"
        done = subprocess.run(
            [IOJOULE, "workload", "observe", lab.state["drive"], "--seconds", str(SECONDS),
             "--out", profile, "--histograms", summary, "-o", "json"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert fio.poll() is None, "the job ended before it was watched"
    finally:
        fio.terminate()
        fio.wait()
    window = parse_summary(summary.read_text(), str(summary)).windows[0]
    assert window.began_unix_seconds is not None
    assert window.seconds is not None
    began = window.began_unix_seconds - (time.time() - time.monotonic())
    truth = lab.disk.completions(int(began * 1e9), int((began + window.seconds) * 1e9))
    stated: dict[str, Any] = json.loads(done.stdout)
    assert load_workload(profile).model_dump() == WorkloadProfile(**stated).model_dump()
    return Seen(job, load_workload(profile), window, truth, window.seconds)


def test_the_demand_is_what_was_done(seen: Seen) -> None:
    demand = seen.profile.workload.demand_bytes_per_second
    assert demand == pytest.approx(seen.bytes / seen.seconds, rel=DEMAND_WITHIN)
    if seen.job.demand_bytes_per_second is not None:
        assert demand == pytest.approx(seen.job.demand_bytes_per_second, rel=DEMAND_WITHIN)


def test_mix_and_size_are_those_of_the_job(seen: Seen) -> None:
    reads = seen.counted(READ)
    total = reads + seen.counted(WRITE)
    assert seen.profile.read_fraction == pytest.approx(reads / total, abs=0.01)
    # in whole blocks of 512 bytes
    assert seen.profile.workload.useful_request_bytes == pytest.approx(seen.bytes / total, abs=256)


def test_flushes_are_exact(seen: Seen) -> None:
    assert seen.window.flushes == seen.counted(FLUSH)
    assert seen.window.writes == pytest.approx(seen.counted(WRITE), rel=0.01, abs=1)
    if seen.job.flush_every_writes is not None:
        assert seen.profile.workload.flush_every_writes == seen.job.flush_every_writes


def test_gaps_are_those_of_the_drive(seen: Seen) -> None:
    gaps = seen.gaps
    assert seen.window.gaps is not None
    found = seen.window.gaps.count + seen.window.unsure_gaps
    assert found == pytest.approx(len(gaps), rel=0.1, abs=5)
    if len(gaps) < FEWEST_GAPS:
        assert seen.job.name == "full speed", "the others pause often enough to have percentiles"
        return
    for percent in PERCENTS:
        truth = np.percentile(gaps, percent, method="inverted_cdf")
        assert seen.window.gaps.percentile(percent) == pytest.approx(truth, rel=GAPS_WITHIN)
    if seen.job.gap_seconds is not None:
        stated = seen.profile.workload.idle_gap_seconds_p50
        assert stated == pytest.approx(seen.job.gap_seconds, rel=GAPS_WITHIN)
