"""The command as people run it: its own process, its pipes, its signals."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

IOJOULE = (str(Path(sys.executable).with_name("iojoule")),)
DEVICE = ("--device", "samsung-980-pro-1tb")


def run(*arguments: str | Path, given: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*IOJOULE, *map(str, arguments)], input=given, capture_output=True, text=True, check=False
    )


def test_the_main_question(root: Path, tmp_path: Path) -> None:
    done = run(
        "recommend", *DEVICE, "--workload", root / "examples" / "kv-reads.toml",
        "--set", "current.completion=polled", "--plot", tmp_path / "front.svg",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "recommended" in done.stdout
    assert "Next, " in done.stdout
    assert (tmp_path / "front.svg").is_file()


def test_predictions_through_a_pipe() -> None:
    done = run("predict", *DEVICE, "--configurations", "-", "-o", "csv", given="jobs\n1\n2\n")
    assert done.returncode == 0, done.stderr
    assert [row["jobs"] for row in csv.DictReader(io.StringIO(done.stdout))] == ["1", "2"]
    assert "defaults" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("devices", "show", "nonsense"), 4),
        (("predict", "--device", "virtualbox-nvme"), 5),
        (("predict", *DEVICE, "--set", "queue_depth=0"), 3),
        (("predict", *DEVICE, "--queue-depth", "1"), 2),
        (("devices", "list"), 0),
    ],
)
def test_the_process_leaves_with_the_documented_code(arguments: tuple[str, ...], code: int) -> None:
    done = run(*arguments)
    assert done.returncode == code
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    questions = tmp_path / "q.csv"
    questions.write_text("jobs\n" + "1\n" * 5000)
    with subprocess.Popen(
        [*IOJOULE, "predict", *DEVICE, "--configurations", questions, "-o", "csv"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
    assert process.returncode == 141
    assert "Traceback" not in said
    assert "rror" not in said


@pytest.mark.parametrize(
    ("streams", "code"),
    [
        ((">/dev/full",), 47),
        ((">&-",), 3),
        (("<&-",), 0),
        (("2>&-", ">/dev/full"), 47),
        ((">&-", "2>/dev/full", "<&-"), 3),
    ],
)
@pytest.mark.parametrize("arguments", ["devices list", "--help", "meter --help"])
def test_an_answer_that_cannot_be_written_is_an_error_of_its_own(
    arguments: str, streams: tuple[str, ...], code: int
) -> None:
    line = f"{shlex.join(IOJOULE)} {arguments} {' '.join(streams)}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == code
    said = bool(code) and not any(stream.startswith("2>") for stream in streams)
    assert len(done.stderr.splitlines()) == said


@pytest.mark.parametrize("streams", ["2>&-", "2>/dev/full"])
def test_the_exit_code_does_not_depend_on_standard_error(streams: str) -> None:
    line = f"{shlex.join(IOJOULE)} nonsense {streams}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == 2


def test_the_service_answers_until_it_is_interrupted() -> None:
    with subprocess.Popen(
        [*IOJOULE, "serve", "--port", "0"], stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        said = re.search(r"http://127\.0\.0\.1:\d+", server.stderr.readline())
        assert said
        try:
            with urllib.request.urlopen(f"{said[0]}/healthz", timeout=30) as answer:
                assert json.load(answer)["status"] == "ok"
        finally:
            server.send_signal(signal.SIGINT)
        rest = server.stderr.read()
    assert "Traceback" not in rest
    assert server.returncode in (0, 130)
