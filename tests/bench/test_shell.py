"""Budgets of the command line, interpreter and imports included."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

RUNS = 5
ROWS = 100_000

DEVICE = ("--device", "samsung-980-pro-1tb")


def run(*arguments: str | Path) -> float:
    """Seconds that one command takes."""
    command = [sys.executable, "-c", "from iojoule.api.cli import main; main()"]
    start = time.perf_counter()
    done = subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - start
    assert done.returncode == 0, done.stderr
    return seconds


@pytest.mark.parametrize(
    ("name", "arguments", "budget"),
    [
        ("--version", ("--version",), 0.3),
        ("devices list", ("devices", "list"), 0.6),
        ("predict", ("predict", *DEVICE, "--set", "queue_depth=16"), 1.0),
    ],
)
def test_small_commands_are_quick(name: str, arguments: tuple[str, ...], budget: float) -> None:
    median = statistics.median(run(*arguments) for _ in range(RUNS))
    print(f"\niojoule {name}: median {median * 1e3:.0f} ms")
    assert median <= budget


def test_recommend_takes_less_than_a_second(root: Path) -> None:
    workload = root / "examples" / "page-reads.toml"
    median = statistics.median(
        run("recommend", *DEVICE, "--workload", workload) for _ in range(RUNS)
    )
    print(f"\niojoule recommend: median {median * 1e3:.0f} ms")
    assert median <= 1.0


def test_a_hundred_thousand_predictions_take_seconds(tmp_path: Path) -> None:
    questions = tmp_path / "questions.csv"
    lines = (
        f"{512 * (1 + i % 2048)},{1 + i % 256},{1 + i % 16},{i % 101 / 100}" for i in range(ROWS)
    )
    questions.write_text(
        "operation,request_bytes,queue_depth,jobs,read_fraction\n"
        + "".join(f"mixed,{line}\n" for line in lines)
    )
    seconds = run("predict", *DEVICE, "--configurations", questions, "-o", "csv")
    print(f"\niojoule predict, {ROWS:,} rows: {seconds:.1f} s")
    assert seconds <= 15.0
