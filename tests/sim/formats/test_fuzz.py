"""Whatever a file holds, its reader takes it or says why not."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iojoule.datasets.errors import IojouleError
from iojoule.sim.formats.files import known_findings, read_drive, read_workload
from tests.sim.formats.strategies import DRIVE, WORKLOAD, edited, toml_tables, trees

EXAMPLES = settings(
    max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fuzz")
    (path / "good.ssd.xml").write_text(DRIVE, encoding="ascii")
    return path


def read_both(content: bytes, suffix: str, folder: Path) -> None:
    path = folder / f"file{suffix}"
    path.write_bytes(content)
    with contextlib.suppress(IojouleError):
        read_drive(path)
    with contextlib.suppress(IojouleError):
        workload = read_workload(path)
        for number in range(len(workload.scenarios)):
            for finding in known_findings(read_drive(folder / "good.ssd.xml"), workload, number):
                assert str(finding)


@EXAMPLES
@given(st.one_of(edited(DRIVE), edited(WORKLOAD)))
def test_an_edited_file_is_read_or_refused(folder: Path, content: bytes) -> None:
    read_both(content, ".xml", folder)


@EXAMPLES
@given(trees())
def test_any_nesting_of_known_tags_is_read_or_refused(folder: Path, content: bytes) -> None:
    read_both(content, ".xml", folder)


@EXAMPLES
@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(folder: Path, content: bytes) -> None:
    read_both(content, ".xml", folder)
    read_both(b"schema_version = 1\n" + content, ".toml", folder)


@EXAMPLES
@given(toml_tables())
def test_any_tables_are_read_or_refused(folder: Path, content: bytes) -> None:
    read_both(content, ".toml", folder)
