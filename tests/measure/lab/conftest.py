"""One lab for all tests that only look at it or put back what they change."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from iojoule.measure.lab import life
from iojoule.measure.lab import system as programs
from iojoule.measure.lab.client import LabClient


def missing_for_a_disk() -> str | None:
    """Why there can be no lab with a block device here."""
    if os.getuid() != 0:
        return "a loop device needs root"
    for device in ("/dev/fuse", "/dev/loop-control"):
        if not Path(device).exists():
            return f"there is no {device}"
    for name in (programs.DISK, programs.PRELOAD):
        if not (programs.BUILT / name).exists():
            return f"{name} was not built"
    return None


def need(program: str) -> None:
    if shutil.which(program) is None and shutil.which(program, path="/usr/sbin") is None:
        pytest.skip(f"{program} is not installed")


@pytest.fixture(scope="session")
def disk_possible() -> None:
    if reason := missing_for_a_disk():
        pytest.skip(reason)


@contextmanager
def awake_lab(folder: Path) -> Iterator[LabClient]:
    """A lab in a folder of its own, taken down at the end; skips where there can be none."""
    if reason := missing_for_a_disk():
        pytest.skip(reason)
    try:
        with life.up(folder) as client:
            # asleep the drive would answer late and draw less, depending on what ran before
            client.disk.ask("moves")
            yield client
    finally:
        life.down(folder)


@pytest.fixture(scope="session")
def shared_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabClient]:
    with awake_lab(tmp_path_factory.mktemp("lab") / "lab") as client:
        yield client


@pytest.fixture
def lab(shared_lab: LabClient) -> Iterator[LabClient]:
    """The shared lab, healthy and in its first power state before and after."""
    yield shared_lab
    for part in ("disk", "controller", "powersensor3", "rapl"):
        shared_lab.fault(part, "none")
    shared_lab.disk.ask("state", 0)


@pytest.fixture
def run_in(lab: LabClient):
    """Run a program with the lab's environment; standard output and error are one text."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        need(words[0])
        return subprocess.run(
            [programs.program(words[0]) if words[0] == "nvme" else words[0], *words[1:]],
            env={**os.environ, **lab.environment()},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    return run
