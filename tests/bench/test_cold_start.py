"""Budgets of starting: the service answers within 1.5 s, and its first answers come at once.

Bytecode is there, as wherever iojoule is installed: a first start that nobody measures writes it
below build/.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from iojoule.api.http.recommend import EXAMPLE
from tests.http_client import request
from tests.watched_service import Service

READY_SECONDS = 1.5
COMMAND_SECONDS = {"--help": 0.5, "recommend": 1.0}
RUNS = 5
PROGRAM = (sys.executable, "-c", "from iojoule.api.cli import main; main()")
QUESTION = request("POST", "/recommend", json.dumps(EXAMPLE).encode())


@pytest.fixture(scope="module")
def compiled(root: Path) -> dict[str, str]:
    """An environment in which nothing has to be compiled."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(root / "build" / "bytecode")}


@pytest.fixture
def states(tmp_path: Path) -> Iterator[Path]:
    """New folders."""
    return (tmp_path / f"state-{number}" for number in range(100))


@pytest.mark.parametrize("fresh", [True, False], ids=["first-ever", "again"])
def test_the_service_is_ready_soon(
    compiled: dict[str, str], states: Iterator[Path], *, fresh: bool
) -> None:
    state = next(states)
    with Service(state, environment=compiled):
        pass
    ready, spent, first = [], [], []
    for _ in range(RUNS):
        if fresh:
            state = next(states)
        with Service(state, environment=compiled) as service, service.connection() as connection:
            ready.append(service.ready_seconds)
            spent.append(service.ready_processor_seconds)
            start = time.perf_counter()
            assert connection.ask(QUESTION).status == 200
            first.append(time.perf_counter() - start)
    median = statistics.median(ready)
    print(
        f"\niojoule serve until /readyz, {'on a new folder' if fresh else 'again'}: median "
        f"{median:.2f} s, least {min(ready):.2f} s, processor time of the service and its workers "
        f"{statistics.median(spent):.2f} s; then the first recommendation "
        f"{statistics.median(first) * 1e3:.0f} ms (load {os.getloadavg()[0]:.1f})"
    )
    assert median <= READY_SECONDS


@pytest.mark.parametrize("command", COMMAND_SECONDS)
def test_commands_begin_soon(compiled: dict[str, str], root: Path, command: str) -> None:
    options = {
        "--help": ["--help"],
        "recommend": [
            "recommend", "--device", EXAMPLE["device"],
            "--workload", str(root / "examples" / "page-reads.toml"),
        ],
    }  # fmt: skip
    taken, spent = [], []
    for number in range(-1, RUNS):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([*PROGRAM, *options[command]], env=compiled, check=True, capture_output=True)
        seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        if number >= 0:  # the first one compiles
            taken.append(seconds)
            spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    median = statistics.median(taken)
    print(
        f"\niojoule {command}: median {median:.2f} s, processor time "
        f"{statistics.median(spent):.2f} s (load {os.getloadavg()[0]:.1f})"
    )
    assert median <= COMMAND_SECONDS[command]
