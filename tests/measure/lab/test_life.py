"""A lab leaves nothing behind, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iojoule.datasets.errors import InputError
from iojoule.measure.errors import LabError
from iojoule.measure.lab import drives, life, system
from iojoule.measure.lab.client import LabClient
from iojoule.measure.lab.paths import LabPaths, Process, default_folder, open_own
from tests.stand_ins import look_in


def traces(folder: Path) -> list[str]:
    """Mounts, loop devices and processes that have to do with the folder."""
    word = str(folder)
    found = [line for line in Path("/proc/self/mounts").read_text().splitlines() if word in line]
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        found += [text for text in [backing.read_text()] if word in text]
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [text for text in [command.read_text()] if word in text]
        except OSError:
            continue
    return found


def limit_of_free(loop: str) -> str:
    """Its limit while it is over no file; another test's lab may have taken it meanwhile."""
    block = Path("/sys/block", Path(loop).name)
    for _ in range(600):
        if not (block / "loop").exists():
            limit = (block / "queue/max_sectors_kb").read_text()
            if not (block / "loop").exists():
                return limit
        time.sleep(0.1)
    raise AssertionError(f"{loop} is never free")


def kill(state: dict[str, Any], *names: str) -> None:
    """End processes of a lab as a crash would, and wait until they are dead."""
    for name in names:
        process = Process(**state["processes"][name])
        os.kill(process.pid, signal.SIGKILL)
        process.end()


@pytest.fixture
def folder(disk_possible: None, tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "lab"
    life.down(tmp_path / "lab")


def test_nothing_is_left_behind(folder: Path) -> None:
    with life.up(folder) as lab:
        assert len(traces(folder)) == 4  # mount, loop device, two processes
        for name in ("controller", "namespace", "powersensor3", "rapl_root", "drive"):
            assert Path(lab.state[name]).exists(), name
        loop = lab.state["drive"]
        with pytest.raises(LabError, match=r"there is a lab in .* already"):
            life.up(folder)
    assert life.down(folder)
    assert traces(folder) == []
    assert not folder.exists()
    assert limit_of_free(loop) != "128\n"
    assert not life.down(folder)


def test_what_was_killed_is_cleaned_away(folder: Path) -> None:
    with life.up(folder) as first:
        kill(first.state, "server", "disk")
    with life.up(folder) as second:
        assert all(second.status()["running"].values())
        kill(second.state, "disk")
    assert life.down(folder)
    assert traces(folder) == []
    assert not folder.exists()


@pytest.mark.parametrize("how", ["stall", "SIGSTOP"])
def test_a_disk_that_does_not_answer_goes_too(folder: Path, how: str) -> None:
    with life.up(folder) as lab:
        if how == "stall":
            lab.fault("disk", "stall", 3600)
        else:
            os.kill(lab.state["processes"]["disk"]["pid"], signal.SIGSTOP)
        reads = ["dd", f"if={lab.state['drive']}", "of=/dev/null", "iflag=direct", "count=1"]
        with subprocess.Popen(reads, stderr=subprocess.DEVNULL) as reader:
            with pytest.raises(subprocess.TimeoutExpired):
                reader.wait(0.2)
            assert life.down(folder)
    assert traces(folder) == []
    assert not folder.exists()


def test_several_labs_do_not_disturb_each_other(folder: Path, lab: LabClient) -> None:
    with life.up(folder) as other:
        assert other.state["serial"] != lab.state["serial"]
        assert other.state["drive"] != lab.state["drive"]
    life.down(folder)
    assert all(lab.status()["running"].values())


def test_files_of_others_are_not_touched(folder: Path) -> None:
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine")
    with pytest.raises(LabError, match=r"holds other files \(thesis.txt\)"):
        life.up(folder)
    assert not life.down(folder)
    assert (folder / "thesis.txt").read_text() == "mine"


@pytest.fixture(params=["link", "dangling link", "file", "writable by all", "of somebody else"])
def prepared(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """What somebody else could have put where the lab's folder is to be."""
    place, elsewhere = tmp_path / "lab", tmp_path / "elsewhere"
    if "link" in request.param:
        place.symlink_to(elsewhere)
        if request.param == "link":
            elsewhere.mkdir(mode=0o700)
    elif request.param == "file":
        place.touch()
    else:
        place.mkdir()
        if request.param == "writable by all":
            place.chmod(0o777)
        elif os.geteuid() == 0:
            os.chown(place, 65534, 65534)
        else:
            pytest.skip("only root may give files away")
    return place


def test_a_folder_that_is_not_ones_own_is_refused(
    prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system, "built", lambda name: prepared)
    before = prepared.lstat()
    for refused in (life.up, life.down, LabClient):
        with pytest.raises(LabError, match=f"{prepared}.*--dir"):
            refused(prepared)
    assert prepared.lstat() == before
    assert not (prepared.parent / "elsewhere" / "lab.json").exists()


def test_the_folder_is_for_its_user_alone(folder: Path) -> None:
    before = os.umask(0)
    try:
        life.up(folder).close()
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o700


def test_the_folder_is_asked_for_again_after_it_was_cleared(
    disk_possible: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, elsewhere = tmp_path / "lab", tmp_path / "elsewhere"
    elsewhere.mkdir()

    def replaced(folder: Path) -> bool:
        if not folder.is_symlink():
            folder.rmdir()
            folder.symlink_to(elsewhere)
        return False

    monkeypatch.setattr(life, "_clear", replaced)
    with pytest.raises(LabError, match="symbolic link"):
        life.up(place)
    assert list(elsewhere.iterdir()) == []


def test_a_runtime_folder_of_somebody_else_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert default_folder() == tmp_path / "iojoule-lab"
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    assert default_folder() == Path("/tmp/iojoule-lab-4242")
    with pytest.raises(LabError, match="belongs to user"):
        open_own(tmp_path)


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        ("cap_window_ns = 1000000000", "cap_window_ns = 150000000", "cap_burst_ns"),
        # state 2, which the host may ask for later, is below what the drive draws without flash
        ("controller_busy_watts = 1.0", "controller_busy_watts = 1.6", "state 2"),
    ],
)
def test_a_disk_that_does_not_start_says_why_and_leaves_nothing(
    folder: Path, tmp_path: Path, before: str, after: str, named: str
) -> None:
    broken = tmp_path / "broken.toml"
    text = drives.find(drives.DEFAULT).path.read_text()
    broken.write_text(text.replace(before, after))
    with pytest.raises(LabError, match=rf"the lab's disk does not start: .*{named}"):
        life.up(folder, str(broken))
    assert traces(folder) == []
    assert not folder.exists()


def test_without_a_block_device_there_is_nbd(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    for name in (system.NBD_PLUGIN, system.PRELOAD):
        if not (system.BUILT / name).exists():
            pytest.skip(f"{name} was not built")
    folder = tmp_path / "lab"
    request.addfinalizer(lambda: life.down(folder))
    with life.up(folder, backend="nbdkit") as lab:
        assert lab.state["drive"].startswith("nbd+unix:///?socket=")
        assert lab.disk.status()["capacity_bytes"] == lab.state["capacity_bytes"]
    assert life.down(folder)
    assert traces(folder) == []


def test_a_part_that_was_not_built_names_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(system, "BUILT", tmp_path)
    with pytest.raises(LabError, match=r"apt-get install libfuse3-dev pkg-config; .* make core"):
        system.built(system.DISK)
    look_in(monkeypatch, tmp_path)
    with pytest.raises(LabError, match="apt-get install nbdkit"):
        system.program("nbdkit")


def test_a_drive_must_exist_and_have_watts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="drives of the lab's own are lab-nvme"):
        life.up(tmp_path / "lab", "lab-nwme")
    text = drives.find(drives.DEFAULT).path.read_text()
    compat = tmp_path / "compat.toml"
    compat.write_text(text.replace('mode = "physical"', 'mode = "compat"'))
    with pytest.raises(LabError, match="is a drive in compat mode"):
        life.up(tmp_path / "lab", str(compat))
    with pytest.raises(LabError, match="cuse is no backend"):
        life.up(tmp_path / "lab", backend="cuse")
    assert not (tmp_path / "lab").exists()


def test_a_process_of_the_same_number_is_another_one() -> None:
    own = Process.of(os.getpid())
    assert own.runs()
    later = Process(own.pid, own.started + 1)
    assert not later.runs()
    later.end()  # or this test would end here
    assert own.runs()


def test_a_state_of_another_version_is_refused(tmp_path: Path) -> None:
    places = LabPaths(tmp_path)
    places.state.write_text('{"schema_version": 99}')
    with pytest.raises(LabError, match="of another version"):
        places.read_state()
    places.state.write_text("{")
    with pytest.raises(LabError, match="cannot be read"):
        LabClient(tmp_path)
    assert not system.mounted(places.mount)


def test_a_loop_device_over_a_file_of_any_name_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backing = tmp_path / "loop0" / "loop" / "backing_file"
    backing.parent.mkdir(parents=True)
    backing.write_bytes(b"/srv/\xff\n")
    monkeypatch.setattr(system, "_SYS_BLOCK", tmp_path)
    system.detach(LabPaths(tmp_path / "lab"))
