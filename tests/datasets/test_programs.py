"""Root runs what only root can have put there, nobody runs what lies in the current folder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from iojoule.datasets import programs
from iojoule.datasets.errors import InputError
from iojoule.datasets.programs import (
    find_program,
    optional_program,
    program_environment,
    python_command,
    require_safe,
    run_program,
    safe_import_path,
)
from iojoule.measure.host.host_files import process_start
from tests.stand_ins import look_in

NOBODY = 65534
HUNG = InputError("it hangs")

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")


def put(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def find(name: str) -> str:
    return find_program(name, "install it", InputError)


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The same program in two folders that are searched."""
    look_in(monkeypatch, tmp_path / "first", tmp_path / "second")
    return put(tmp_path / "first" / "tool"), put(tmp_path / "second" / "tool")


def test_the_first_that_may_be_run_is_taken(two: tuple[Path, Path]) -> None:
    first, second = two
    assert find("tool") == str(first)
    first.chmod(0o644)
    assert find("tool") == str(second)
    assert program_environment()["PATH"] == f"{first.parent}:{second.parent}"


def test_a_missing_program_is_named_with_place_and_remedy(two: tuple[Path, Path]) -> None:
    with pytest.raises(InputError) as missing:
        find("tools")
    for word in ("tools", str(two[0].parent), str(two[1].parent), "install it"):
        assert word in missing.value.message
    assert optional_program("tools") is None


@pytest.mark.parametrize("entry", ["", ".", "bin", "./bin"])
def test_no_entry_of_the_path_means_the_current_folder(
    entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (tmp_path, tmp_path / "bin"):
        put(folder / "tool")
    monkeypatch.setattr(programs, "FOLDERS", ())
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{entry}:/nowhere")
    assert optional_program("tool") is None
    monkeypatch.setenv("PATH", f"{entry}:{tmp_path}")
    assert optional_program("tool") == str(tmp_path / "tool")
    assert program_environment()["PATH"] == str(tmp_path)


def test_a_stated_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "tool")
    monkeypatch.chdir(tmp_path)
    assert find("./tool") == str(tmp_path / "tool")


def test_root_does_not_search_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "tool")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert optional_program("tool") is None
    assert str(tmp_path) not in program_environment()["PATH"]


@needs_root
@pytest.mark.parametrize("what", ["file", "folder", "above"])
@pytest.mark.parametrize("how", ["owner", "group", "others"])
def test_root_passes_over_what_somebody_else_could_have_put_there(
    what: str, how: str, two: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, second = two
    folder = tmp_path / "open" / "bin"
    tool = put(folder / "tool")
    look_in(monkeypatch, folder, second.parent)
    spoilt = {"file": tool, "folder": folder, "above": folder.parent}[what]
    if how == "owner":
        os.chown(spoilt, NOBODY, NOBODY)
    else:
        spoilt.chmod(0o775 if how == "group" else 0o757)
    assert find("tool") == str(second)
    look_in(monkeypatch, folder)
    for named in ("tool", str(tool)):
        with pytest.raises(InputError) as refused:
            find(named)
        assert str(spoilt) in refused.value.message
    with pytest.raises(InputError):
        require_safe(str(tool), InputError)
    require_safe(str(second), InputError)


@needs_root
def test_a_link_is_as_safe_as_everything_on_its_way(two: tuple[Path, Path], tmp_path: Path) -> None:
    first, second = two
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "tool").symlink_to(second)
    first.unlink()
    first.symlink_to(theirs / "tool")
    assert find("tool") == str(first)
    os.chown(theirs, NOBODY, NOBODY)
    assert find("tool") == str(second)
    first.unlink()
    first.symlink_to("../second/tool")
    assert find("tool") == str(first)
    os.lchown(first, NOBODY, NOBODY)
    assert find("tool") == str(second)
    first.unlink()
    first.symlink_to(first)
    assert find("tool") == str(second)


@needs_root
def test_in_a_folder_that_all_may_fill_nothing_is_run(two: tuple[Path, Path]) -> None:
    first, second = two
    first.parent.chmod(0o1777)
    assert find("tool") == str(second)
    deeper = put(first.parent / "mine" / "tool")
    assert find(str(deeper)) == str(deeper)  # nobody can move what is root's in a sticky folder


def test_python_is_started_without_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('taken from here')")
    done = subprocess.run(python_command("-c", "import json"), cwd=tmp_path, check=False)
    assert done.returncode == 0


def test_the_variable_for_other_pythons_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    with safe_import_path():
        assert os.environ["PYTHONSAFEPATH"]
    assert "PYTHONSAFEPATH" not in os.environ
    monkeypatch.setenv("PYTHONSAFEPATH", "")
    with safe_import_path():
        assert os.environ["PYTHONSAFEPATH"]
    assert os.environ["PYTHONSAFEPATH"] == ""


def test_a_program_gives_both_outputs_and_its_status_and_reads(tmp_path: Path) -> None:
    script = "cat; echo wrong >&2; exit 3"
    done = run_program(["/bin/sh", "-c", script], seconds=20, hangs=HUNG, stdin=b"table")
    assert (done.returncode, done.stdout, done.stderr) == (3, b"table", b"wrong\n")


def test_a_program_that_does_not_read_is_no_error() -> None:
    done = run_program(["/bin/true"], seconds=20, hangs=HUNG, stdin=b"x" * 4096)
    assert done.returncode == 0


def test_what_a_program_that_hangs_has_started_ends_with_it(tmp_path: Path) -> None:
    script = f"sleep 600 & echo $! >{tmp_path}/pid; wait"
    with pytest.raises(InputError, match="hangs"):
        run_program(["/bin/sh", "-c", script], seconds=0.5, hangs=HUNG)
    pid = int((tmp_path / "pid").read_text())
    while process_start(pid) is not None:  # a signal is delivered when its time has come
        pass


def test_a_program_that_prints_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "OUTPUT_BYTES_MAX", 1 << 20)
    with pytest.raises(InputError, match="yes printed more than 1 MiB"):
        run_program(["/usr/bin/yes"], seconds=60, hangs=HUNG)
