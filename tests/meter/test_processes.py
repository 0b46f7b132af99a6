"""Joules of a group among its processes: what /proc/PID/io tells, and what it does not."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from iojoule.meter.attribution import Part
from iojoule.meter.processes import QUALITY, ProcessShares, ProcessSplitter

TICKS = os.sysconf("SC_CLK_TCK")
JOULES = np.array([0.0, 10.0, 4.0, 2.0, 1.0, 0.0, 0.0])


class Proc:
    """A procfs made of files."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def at(self, seconds: float) -> None:
        (self.root / "uptime").write_text(f"{seconds:.2f} 0.00\n")

    def process(
        self, pid: int, read: int, written: int, cancelled: int = 0, started: float = 1.0
    ) -> None:
        folder = self.root / str(pid)
        folder.mkdir(exist_ok=True)
        fields = ["S", *["0"] * 18, str(int(started * TICKS)), "0"]
        (folder / "stat").write_text(f"{pid} (a) b (c) {' '.join(fields)}\n")
        (folder / "io").write_text(
            f"rchar: 1\nwchar: 1\nsyscr: 1\nsyscw: 1\nread_bytes: {read}\n"
            f"write_bytes: {written}\ncancelled_write_bytes: {cancelled}\n"
        )


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    made = Proc(tmp_path)
    made.at(100.0)
    return made


def split(
    splitter: ProcessSplitter, pids: Sequence[int], read: float = 0, written: float = 0
) -> ProcessShares:
    shares = splitter.step(pids, seconds=1.0, joules=JOULES, read_bytes=read, write_bytes=written)
    total = shares.joules.sum(axis=0) + shares.remainder
    assert total == pytest.approx(JOULES)
    assert (shares.joules >= 0).all()
    assert shares.quality == QUALITY
    return shares


def test_reads_by_bytes_and_the_rest_to_those_that_are_not_seen(proc: Proc) -> None:
    splitter = ProcessSplitter(proc.root)
    for read in (1000, 1600):
        proc.process(1, read, 0)
        proc.process(2, 2 * read, 0)
        shares = split(splitter, [1, 2, 77], read=3600)
    assert shares.names == ("a) b (c", "a) b (c")
    assert shares.joules[:, Part.READ] == pytest.approx([10 / 6, 20 / 6])
    assert shares.remainder[Part.READ] == pytest.approx(5.0)
    assert shares.remainder[Part.WRITE] == pytest.approx(4.0)


def test_writes_that_were_cancelled_or_written_earlier(proc: Proc) -> None:
    splitter = ProcessSplitter(proc.root)
    for written in (0, 1 << 20):
        proc.process(1, 0, written)
        proc.process(2, 0, written, cancelled=written)
        split(splitter, [1, 2])
    shares = split(splitter, [1, 2], written=1 << 19)
    assert shares.joules[:, Part.WRITE] == pytest.approx([4.0, 0.0])
    assert shares.joules[:, Part.BACKGROUND] == pytest.approx([1.0, 0.0])


def test_the_first_interval_and_a_process_that_was_moved_in_know_nothing(proc: Proc) -> None:
    splitter = ProcessSplitter(proc.root)
    proc.process(1, 1 << 30, 0)
    assert split(splitter, [1], read=5).joules.sum() == 0.0
    proc.process(2, 1 << 30, 0)
    assert split(splitter, [1, 2], read=5).joules.sum() == 0.0


def test_a_process_that_started_in_the_interval_and_a_pid_used_again(proc: Proc) -> None:
    splitter = ProcessSplitter(proc.root)
    proc.process(1, 5000, 0)
    split(splitter, [1])
    proc.at(101.0)
    proc.process(1, 100, 0, started=100.5)
    shares = split(splitter, [1], read=100)
    assert shares.joules[0, Part.READ] == pytest.approx(10.0)
    assert shares.processes[0].started_ticks == int(100.5 * TICKS)


def test_an_empty_group(proc: Proc) -> None:
    assert split(ProcessSplitter(proc.root), []).processes == ()


def test_a_real_process(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write = f"open({str(file)!r}, 'wb').write(b'x' * (1 << 20))"
    script = f"input(); {write}; print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        splitter = ProcessSplitter()
        split(splitter, [child.pid])
        child.stdin.write(b"\n")
        child.stdin.flush()
        child.stdout.readline()
        shares = split(splitter, [child.pid])
        child.stdin.write(b"\n")
        child.stdin.flush()
    assert shares.unreadable == 0
    if shares.joules.any():  # not on a file system in memory
        assert shares.joules[0, Part.WRITE] == pytest.approx(4.0)
