"""Running fio under watch, through programs that stand in for a good, a bad and a hanging one."""

import time
from pathlib import Path

import pytest

from iojoule.measure import fio as program
from iojoule.measure.errors import FioError
from iojoule.measure.fio import Fio, find_fio, run_fio
from iojoule.measure.host.host_files import process_start
from tests.stand_ins import look_in

# its job's name is no UTF-8
HANGS = """#!/bin/sh
trap '' TERM
setsid sh -c 'trap "" TERM; printf "\\377" > /proc/$$/comm; echo $$ > job.pid
while :; do sleep 0.05; done' &
while :; do sleep 0.05; done
"""


@pytest.fixture
def stand_in(tmp_path: Path):
    def make(text: str) -> Fio:
        path = tmp_path / "fio"
        path.write_text(text)
        path.chmod(0o755)
        return Fio(str(path), (3, 33))

    return make


def test_a_failing_fio_is_quoted_with_a_hint(stand_in, tmp_path: Path) -> None:
    bad = stand_in("#!/bin/sh\necho 'fio: pid=7, err=13/file:x, error=Permission denied'\nexit 1\n")
    with pytest.raises(FioError, match=r"status 1: .*give this user read and write permission"):
        run_fio(bad, tmp_path, 1.0)


def test_a_reason_ends_fio_and_jobs_that_left_its_session(
    stand_in, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "_TERMINATE_SECONDS", 0.3)
    job = tmp_path / "job.pid"

    def watch() -> str | None:
        return "the meter is unplugged" if job.exists() and job.read_text().strip() else None

    with pytest.raises(FioError, match="the meter is unplugged"):
        run_fio(stand_in(HANGS), tmp_path, 60.0, watch)
    number = int(job.read_text())
    deadline = time.monotonic() + 10
    while process_start(number) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert process_start(number) is None


def test_a_missing_fio_names_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("IOJOULE_FIO", raising=False)
    look_in(monkeypatch, tmp_path)
    with pytest.raises(FioError, match="apt-get install fio"):
        find_fio()
