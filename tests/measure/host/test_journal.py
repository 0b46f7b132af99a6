"""Everything that is changed is put back, on every way out."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from iojoule.measure.errors import CampaignError, HostStateError
from iojoule.measure.host.changes import NvmeFeature, StandbyTimer, SysfsValue
from iojoule.measure.host.journal import HostState, process_start, restore_abandoned
from tests.measure.sata import fake_hdparm
from tests.stand_ins import SYSTEM, look_in


@pytest.fixture
def knob(tmp_path: Path) -> Path:
    file = tmp_path / "nr_requests"
    file.write_text("256\n")
    return file


@pytest.fixture
def journals(tmp_path: Path) -> Path:
    return tmp_path / "journals"


def test_the_first_value_is_put_back_whatever_came_between(knob: Path, journals: Path) -> None:
    with HostState("drive", journals) as state:
        for value in ("64", "128", "64"):
            state.set(SysfsValue(str(knob)), value)
            assert knob.read_text() == value
        assert list(journals.iterdir()), "the journal is there while something is changed"
    assert knob.read_text() == "256"
    assert list(journals.iterdir()) == []


def test_an_error_restores_too(knob: Path, journals: Path) -> None:
    def campaign() -> None:
        with HostState("drive", journals) as state:
            state.set(SysfsValue(str(knob)), "64")
            raise RuntimeError("fio is gone")

    with pytest.raises(RuntimeError):
        campaign()
    assert knob.read_text() == "256"


def test_what_is_in_force_already_is_not_written(knob: Path, journals: Path) -> None:
    with HostState("drive", journals) as state:
        knob.chmod(0o444)
        state.set(SysfsValue(str(knob)), "256")
        assert not journals.exists()


def test_changes_are_undone_last_first_and_one_failure_does_not_stop_the_others(
    tmp_path: Path, journals: Path
) -> None:
    files = [tmp_path / name for name in "abc"]
    for file in files:
        file.write_text("before")
    state = HostState("drive", journals)
    for file in files:
        state.set(SysfsValue(str(file)), "after")
    files[1].unlink()
    files[1].mkdir()
    with pytest.raises(HostStateError, match=f"echo before > {files[1]}"):
        state.restore()
    assert [files[0].read_text(), files[2].read_text()] == ["before", "before"]
    (left,) = journals.iterdir()
    assert len(json.loads(left.read_text())["changes"]) == 1, "what failed stays in the journal"


def test_a_choice_is_read_by_its_brackets(tmp_path: Path) -> None:
    file = tmp_path / "scheduler"
    file.write_text("[none] mq-deadline kyber bfq\n")
    assert SysfsValue(str(file)).get() == "none"


def test_a_setting_that_does_not_stick_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HostStateError, match="was set to '1' but says ''"):
        SysfsValue("/dev/null").set("1")


def test_a_missing_setting_says_so(tmp_path: Path) -> None:
    with pytest.raises(HostStateError, match="no such setting"):
        SysfsValue(str(tmp_path / "absent")).get()


KILLED = """
import os, signal, sys
from pathlib import Path
from iojoule.measure.host.changes import SysfsValue
from iojoule.measure.host.journal import HostState
from tests.settable import declare_all_below
declare_all_below(Path(sys.argv[1]))
state = HostState("drive", Path(sys.argv[2]))
state.set(SysfsValue(sys.argv[1]), "64")
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(knob: Path, journals: Path) -> None:
    """Set the knob in a process that is killed."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])}
    command = [sys.executable, "-c", KILLED, str(knob), str(journals)]
    subprocess.run(command, check=False, env=environment)


def test_after_a_kill_the_next_start_restores(knob: Path, journals: Path) -> None:
    killed(knob, journals)
    assert knob.read_text() == "64"
    (said,) = restore_abandoned(journals)
    assert "restored after a crash" in said
    assert knob.read_text() == "256"
    assert restore_abandoned(journals) == []


def test_what_no_command_reads_is_restored_all_the_same(
    tmp_path: Path, journals: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_in(monkeypatch, fake_hdparm(tmp_path / "disk"), *SYSTEM)
    timer = StandbyTimer(str(tmp_path / "disk" / "sda"))
    with HostState("drive", journals) as state:
        state.set(timer, "600")
        assert (tmp_path / "disk" / "timer").read_text() == "120\n"
    assert (tmp_path / "disk" / "timer").read_text() == "0\n"


def of_a_living_process(journals: Path) -> None:
    """Let the journal be that of the process that started this one."""
    (path,) = journals.iterdir()
    other = {"pid": os.getppid(), "pid_started": process_start(os.getppid())}
    path.write_text(json.dumps({**json.loads(path.read_text()), **other}))


def test_what_another_process_will_put_back_is_not_changed(knob: Path, journals: Path) -> None:
    killed(knob, journals)
    of_a_living_process(journals)
    assert restore_abandoned(journals) == []
    state = HostState("drive", journals)
    with pytest.raises(HostStateError, match=str(knob)):
        state.set(SysfsValue(str(knob)), "32")
    state.restore()
    assert knob.read_text() == "64"
    other = knob.with_name("other")
    other.write_text("1")
    with state:
        state.set(SysfsValue(str(other)), "2")
    assert other.read_text() == "1"


def test_a_journal_that_cannot_be_removed_is_named(
    knob: Path, journals: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(path: Path, missing_ok: bool = False) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    state = HostState("drive", journals)
    state.set(SysfsValue(str(knob)), "64")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuses)
        with HostState("drive", journals) as other:
            other.set(SysfsValue(str(knob)), "64")  # is in force, so that there is no journal
        with pytest.raises(HostStateError, match=str(journals)):
            state.restore()
    assert knob.read_text() == "256"


def test_a_folder_of_journals_that_is_none_is_named(knob: Path) -> None:
    with pytest.raises(HostStateError, match=str(knob)):
        restore_abandoned(knob)


def test_what_is_gone_is_not_restored(knob: Path, journals: Path) -> None:
    killed(knob, journals)
    knob.unlink()
    (said,) = restore_abandoned(journals)
    assert "is gone" in said
    assert restore_abandoned(journals) == []


def test_what_cannot_be_put_back_names_the_command_and_the_journal(
    knob: Path, journals: Path
) -> None:
    killed(knob, journals)
    knob.unlink()
    knob.mkdir()
    (journal,) = journals.iterdir()
    with pytest.raises(HostStateError, match=f"echo 256 > {knob}.*remove {journal}"):
        restore_abandoned(journals)
    assert journal.exists()


def test_what_fails_keeps_nothing_else_from_being_put_back(
    tmp_path: Path, knob: Path, journals: Path
) -> None:
    killed(knob, journals)
    (path,) = journals.iterdir()
    content = json.loads(path.read_text())
    stuck = tmp_path / "stuck"
    stuck.mkdir()
    first = {**content["changes"][0], "target": {"path": str(stuck)}}
    path.write_text(json.dumps({**content, "changes": [*content["changes"], first]}))
    (journals / "restore-0-0.json").write_text("not a journal")
    with pytest.raises(CampaignError) as caught:
        restore_abandoned(journals)
    assert knob.read_text() == "256"
    assert str(stuck) in caught.value.message
    assert len(list(journals.iterdir())) == 2


def test_a_living_campaign_is_left_alone(knob: Path, journals: Path) -> None:
    with HostState("drive", journals) as state:
        state.set(SysfsValue(str(knob)), "64")
        assert restore_abandoned(journals) == []
        assert knob.read_text() == "64"


def test_after_a_restart_of_the_host_nothing_is_written(knob: Path, journals: Path) -> None:
    killed(knob, journals)
    (path,) = journals.iterdir()
    path.write_text(json.dumps({**json.loads(path.read_text()), "boot_id": "another"}))
    (said,) = restore_abandoned(journals)
    assert "restarted" in said
    assert knob.read_text() == "64"


def test_a_damaged_journal_is_named_and_kept(journals: Path) -> None:
    journals.mkdir()
    (journals / "restore-1-2.json").write_text("{")
    with pytest.raises(CampaignError, match=r"restore-1-2\.json"):
        restore_abandoned(journals)
    assert list(journals.iterdir())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
def test_a_missing_permission_names_the_remedy(knob: Path, journals: Path) -> None:
    knob.chmod(0o444)
    with pytest.raises(HostStateError, match="udev rule"), HostState("drive", journals) as state:
        state.set(SysfsValue(str(knob)), "64")


class Queue:
    """A request queue as Linux keeps it: every scheduler comes with a depth and settings anew."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "queue"
        (self.folder / "iosched").mkdir(parents=True)
        self.write(scheduler="[none] mq-deadline", nr_requests="64", wbt_lat_usec="1000")

    def write(self, **values: str) -> None:
        for name, value in values.items():
            (self.folder / name).write_text(value)

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()

    def scheduler(self, monkeypatch: pytest.MonkeyPatch) -> SysfsValue:
        write = Path.write_text

        def as_linux(path: Path, text: str) -> int:
            if path != self.folder / "scheduler":
                return write(path, text)
            self.write_depth(write, text)
            names = ("none", "mq-deadline")
            return write(path, " ".join(f"[{one}]" if one == text else one for one in names))

        monkeypatch.setattr(Path, "write_text", as_linux)
        return SysfsValue(str(self.folder / "scheduler"))

    def write_depth(self, write: Callable[[Path, str], int], scheduler: str) -> None:
        write(self.folder / "nr_requests", "128" if scheduler == "none" else "256")
        for file in (self.folder / "iosched").glob("*"):
            file.unlink()
        if scheduler == "mq-deadline":
            write(self.folder / "iosched" / "read_expire", "500")


def test_what_a_scheduler_takes_away_is_put_back_with_it(
    tmp_path: Path, journals: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = Queue(tmp_path)
    scheduler = queue.scheduler(monkeypatch)
    with HostState("drive", journals) as state:
        state.set(scheduler, "mq-deadline")
        assert queue.read("nr_requests") == "256"
    assert [queue.read(name) for name in ("scheduler", "nr_requests", "wbt_lat_usec")] == [
        "[none] mq-deadline",
        "64",
        "1000",
    ]


def test_the_settings_of_a_scheduler_that_was_tuned_are_put_back(
    tmp_path: Path, journals: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = Queue(tmp_path)
    scheduler = queue.scheduler(monkeypatch)
    scheduler.set("mq-deadline")
    (queue.folder / "iosched" / "read_expire").write_text("77")
    with HostState("drive", journals) as state:
        state.set(scheduler, "none")
        assert not (queue.folder / "iosched" / "read_expire").exists()
    assert queue.read("iosched/read_expire") == "77"


def test_a_depth_that_was_asked_for_outlasts_the_next_scheduler(
    tmp_path: Path, journals: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = Queue(tmp_path)
    scheduler = queue.scheduler(monkeypatch)
    with HostState("drive", journals) as state:
        state.set(SysfsValue(str(queue.folder / "nr_requests")), "32")
        state.set(scheduler, "mq-deadline")
        assert queue.read("nr_requests") == "32"
    assert queue.read("nr_requests") == "64"


def test_what_is_released_stays_as_it_is(knob: Path, journals: Path) -> None:
    with HostState("drive", journals) as state:
        state.set(SysfsValue(str(knob)), "64")
        state.release()
    assert knob.read_text() == "64"
    assert list(journals.iterdir()) == []


def of_drive(folder: Path, serial: str) -> Path:
    """The depth of a queue in a tree of sysfs, of a drive with this serial number."""
    drive = folder / "class" / "block" / "nvme0n1"
    for file, text in (("device/serial", f"{serial}  "), ("queue/nr_requests", "256")):
        (drive / file).parent.mkdir(parents=True, exist_ok=True)
        (drive / file).write_text(f"{text}\n")
    return drive / "queue" / "nr_requests"


def test_a_value_is_put_back_only_on_the_drive_it_was_taken_from(
    tmp_path: Path, journals: Path
) -> None:
    depth = of_drive(tmp_path, "S1")
    killed(depth, journals)
    of_drive(tmp_path, "S2").write_text("64\n")
    (said,) = restore_abandoned(journals)
    assert said == (
        "drive: not restored, drive S2 has taken the place of S1: echo 256 > " + str(depth)
    )
    assert depth.read_text() == "64\n"
    assert list(journals.iterdir()) == []
    killed(of_drive(tmp_path, "S1"), journals)
    (said,) = restore_abandoned(journals)
    assert "restored after a crash" in said
    assert depth.read_text() == "256"


def test_a_drive_exchanged_meanwhile_is_left_as_it_is(tmp_path: Path, journals: Path) -> None:
    depth, said = of_drive(tmp_path, "S1"), []
    state = HostState("drive", journals, said.append)
    state.set(SysfsValue(str(depth)), "64")
    of_drive(tmp_path, "S2").write_text("64\n")
    assert state.restore() == 0
    assert "S2 has taken the place of S1" in said[0]
    assert depth.read_text() == "64\n"


def test_a_controller_is_asked_for_its_serial_number(
    tmp_path: Path, journals: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "programs" / "nvme"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\n"
        f"cd {tmp_path}\n"
        'case "$1" in\n'
        "id-ctrl) cat identity ;;\n"
        "get-feature) echo get-feature:0x6, Current value:$(cat cache) ;;\n"
        "set-feature) for each; do\n"
        "  case $each in --value=*) echo ${each#*=} >cache ;; esac\n"
        "done ;;\n"
        "esac\n"
    )
    program.chmod(0o755)
    look_in(monkeypatch, program.parent, *SYSTEM)

    def plug(serial: str, cache: str) -> None:
        identity = bytearray(4096)
        identity[4:24] = serial.encode().ljust(20)
        (tmp_path / "identity").write_bytes(identity)
        (tmp_path / "cache").write_text(cache)

    plug("S1", "0x1")
    node = tmp_path / "nvme0"
    node.touch()
    state = HostState("drive", journals)
    cache = NvmeFeature(str(node), 1, 6)
    state.set(cache, "0")
    plug("S2", "0x0")
    assert state.restore() == 0
    assert cache.get() == "0"
    plug("S1", "0x1")
    state.set(cache, "0")
    assert state.restore() == 1
    assert cache.get() == "1"


def test_the_energy_preference_that_a_governor_takes_away_is_put_back(
    tmp_path: Path, journals: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    governor = tmp_path / "cpu0" / "cpufreq" / "scaling_governor"
    preference = governor.with_name("energy_performance_preference")
    governor.parent.mkdir(parents=True)
    governor.write_text("powersave\n")
    preference.write_text("balance_power\n")
    write = Path.write_text

    def as_amd_pstate(path: Path, text: str) -> int:
        if path == governor and text == "performance":
            write(preference, "performance\n")
        return write(path, text)

    monkeypatch.setattr(Path, "write_text", as_amd_pstate)
    with HostState("drive", journals) as state:
        state.set(SysfsValue(str(governor)), "performance")
        assert preference.read_text() == "performance\n"
    assert (governor.read_text(), preference.read_text()) == ("powersave", "balance_power")
