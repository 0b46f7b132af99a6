"""docs/client.md as it is typed: its Python and its commands, against a service."""

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from iojoule.api.http.datasets import UPLOAD
from tests.service import ServiceProcess

VARYING = re.compile(r"[0-9a-f]{28}|\d{4}-\d\d-\d\dT[0-9:+]+")


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServiceProcess]:
    """A service that the environment names, and measurements in the current folder."""
    process = ServiceProcess(tmp_path / "state")
    table = UPLOAD["requestBody"]["content"]["text/csv"]["examples"]["worked"]["value"]
    (tmp_path / "runs.csv").write_text(table)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IOJOULE_SERVER", process.url)
    monkeypatch.delenv("IOJOULE_KEY", raising=False)
    yield process
    process.stop()


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Commands after a `$`, and what is printed below each."""
    found: list[tuple[str, list[str]]] = []
    inside = False
    for line in text.splitlines():
        inside = line.startswith("    ") and (inside or line.startswith("    $ "))
        if line.startswith("    $ "):
            found.append((line.removeprefix("    $ "), []))
        elif inside:
            found[-1][1].append(line.removeprefix("    "))
    yield from found


def test_the_document_says_what_happens(root: Path, service: ServiceProcess) -> None:
    text = (root / "docs" / "client.md").read_text()
    examples = doctest.DocTestParser().get_doctest(text, {}, "docs/client.md", None, 0)
    runner = doctest.DocTestRunner(
        optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL, verbose=False
    )
    assert len(examples.examples) > 10
    said: list[str] = []
    done = runner.run(examples, out=said.append, clear_globs=False)
    examples.globs["client"].close()
    assert done.failed == 0, "".join(said)

    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    typed = list(commands(text))
    assert len(typed) >= 5
    for command, printed in typed:
        left = subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, check=False,
            env={**os.environ, "PATH": path},
        )  # fmt: skip
        answered = left.stdout.rstrip("\n") or left.stderr.splitlines()[0]
        answered = answered.replace(service.url, "http://127.0.0.1:8080")
        assert VARYING.sub("...", answered) == VARYING.sub("...", "\n".join(printed))
