"""Tracing with programs that stand in for blktrace and blkparse."""

from __future__ import annotations

from pathlib import Path

import pytest

from iojoule.measure.drive.block_io import Disk
from iojoule.measure.errors import HostStateError
from iojoule.measure.observe import capture
from tests.stand_ins import SYSTEM, look_in

DISK = Disk(Path("/dev/x"), Path("/sys/block/x"))


def stand_in(folder: Path, name: str, script: str) -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_what_is_traced_goes_through_blkparse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_in(monkeypatch, tmp_path, *SYSTEM)
    stand_in(tmp_path, "blktrace", 'echo "traced $*"')
    stand_in(tmp_path, "blkparse", 'cat; echo "parsed $*"')
    traced = capture(DISK, 2.5)
    assert traced.text == "traced -d /dev/x -w 3 -o -\nparsed -q -i -\n"


def test_a_host_that_refuses_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look_in(monkeypatch, tmp_path, *SYSTEM)
    stand_in(tmp_path, "blktrace", "echo 'Operation not permitted' >&2; exit 1")
    stand_in(tmp_path, "blkparse", "cat")
    with pytest.raises(HostStateError, match=r"/dev/x: .* Operation not permitted; .*debugfs"):
        capture(DISK, 1)


def test_a_trace_that_never_ends_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look_in(monkeypatch, tmp_path, *SYSTEM)
    stand_in(tmp_path, "blktrace", "echo 'FAILED to start thread' >&2; exec sleep 600")
    stand_in(tmp_path, "blkparse", "exec cat")
    with pytest.raises(HostStateError, match="FAILED to start thread"):
        capture(DISK, 0.1, patience_seconds=0.5)


def test_a_missing_program_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look_in(monkeypatch, tmp_path)
    with pytest.raises(HostStateError, match="apt-get install blktrace"):
        capture(DISK, 1)
