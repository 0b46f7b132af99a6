"""The curl lines of the documents, run as they are printed: only the port is another one."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from iojoule.api.http.datasets import UPLOAD
from iojoule.api.state import api_keys
from iojoule.api.state.place import Place, State
from tests.service import ServiceProcess

DOCUMENTS = ("docs/service.md",)
ID = re.compile(r"\b[0-9a-f]{28}\b")
PROBLEM = re.compile(r'"type":"(urn:iojoule:problem|about:blank)')

pytestmark = pytest.mark.skipif(
    shutil.which("curl") is None, reason="curl is not installed: apt-get install curl"
)


@dataclass
class Line:
    """A command, and what is printed below it."""

    command: str
    printed: list[str] = field(default_factory=list)


def lines(text: str) -> Iterator[Line]:
    """The curl lines of a document, continued ones whole, in order."""
    current: Line | None = None
    for line in text.splitlines():
        inside = line.startswith("    ")
        said = line.strip().removeprefix("$ ")
        if current is not None and current.command.endswith("\\"):
            current.command += f"\n{said}"
        elif inside and said.startswith("curl "):
            if current is not None:
                yield current
            current = Line(said)
        elif current is not None and inside and not re.match(r"iojoule |podman |\$ ", line.strip()):
            current.printed.append(said)
        elif current is not None:
            yield current
            current = None
    if current is not None:
        yield current


def pattern(printed: list[str]) -> re.Pattern[str]:
    """What is printed, where `...` stands for anything and no id is the same twice."""
    text = re.escape(" ".join(printed))
    text = re.sub(r"(?:\\ )*\\\.\\\.\\\.(?:\\ )*", ".*", text)
    text = re.sub(r"\b[0-9a-f]{28}\b", r"([0-9a-f]{28})", text)
    text = re.sub(r"\b[0-9a-f]{12}\b", r"[0-9a-f]{12}", text)
    text = re.sub(r"\bid:\\ \d+", r"id:\\ \\d+", text)
    return re.compile(text.replace("\\ ", r"\s*"), re.DOTALL)


class Shell:
    """Runs commands one by one, with the ids that came in place of those that are printed."""

    def __init__(self, folder: Path, service: ServiceProcess, key: str = "") -> None:
        self.folder, self._service, self._key = folder, service, key
        self._ids: dict[str, str] = {}
        self._etag = ""

    def run(self, line: Line) -> None:
        command = line.command.replace("localhost:8080", f"localhost:{self._service.port}")
        command = ID.sub(lambda one: self._ids[one[0]], command)
        command = re.sub(r'if-match: "\d+"', f'if-match: "{self._etag}"', command)
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, capture_output=True, text=True, check=False,
            env={"PATH": "/usr/bin:/bin", "KEY": self._key}, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, (command, done.stderr)
        said = done.stdout
        if not PROBLEM.search(" ".join(line.printed)):
            assert not PROBLEM.search(said), (command, said)
        if (etag := re.search(r'^etag: "(\d+)"', said, re.IGNORECASE | re.MULTILINE)) is not None:
            self._etag = etag[1]
        if line.printed:
            found = pattern(line.printed).search(said)
            assert found is not None, (command, line.printed, said)
            documented = ID.findall(" ".join(line.printed))
            self._ids |= dict(zip(documented, found.groups(), strict=True))


@pytest.fixture
def folder(tmp_path: Path, root: Path) -> Path:
    """Where somebody stands who types these lines: the checkout, with measurements of theirs."""
    made = tmp_path / "here"
    made.mkdir()
    (made / "examples").symlink_to(root / "examples")
    table = UPLOAD["requestBody"]["content"]["text/csv"]["examples"]["worked"]["value"]
    (made / "runs.csv").write_text(table)
    return made


@pytest.mark.parametrize("document", DOCUMENTS)
def test_curl_lines_work_as_they_are_printed(
    root: Path, folder: Path, tmp_path: Path, document: str
) -> None:
    found = list(lines((root / document).read_text()))
    assert len(found) >= 5
    assert any(line.printed for line in found)
    state = State(Place.of(tmp_path / "locked"))
    state.open()
    with state.database.write() as connection:
        key = api_keys.create(connection, "demo", api_keys.Scope.READ)[1]
    state.close()
    service = ServiceProcess(tmp_path / "open")
    locked = ServiceProcess(tmp_path / "locked", "--workers", "0", "--require-key")
    try:
        shells = {True: Shell(folder, locked, key), False: Shell(folder, service)}
        for line in found:
            shells["$KEY" in line.command].run(line)
    finally:
        service.stop()
        locked.stop()


def test_lines_are_taken_whole_and_with_what_is_below_them() -> None:
    text = """
    iojoule serve
    curl -s a \\
      -d 'b'
    {"id": ...
     "c"}

text
    $ curl d   # comment
"""
    assert list(lines(text)) == [
        Line("curl -s a \\\n-d 'b'", ['{"id": ...', '"c"}']),
        Line("curl d   # comment"),
    ]
    assert pattern(['{"a":1, ...', '"b":2}']).search('{"a":1,"x":[],"b":2}')
    assert not pattern(['{"a":1, ...', '"b":2}']).search('{"a":2,"b":2}')
