"""Files that set the same after a restart, in the formats of udev(7) and tmpfiles.d(5)."""

from pathlib import Path

import pytest

from iojoule.api.acting.persistence import persistent
from iojoule.api.acting.proposal import Proposal, Step, propose
from iojoule.measure.host.changes import MountOption, NvmeFeature
from tests.api.acting.answers import answer
from tests.api.acting.hosts import SERIAL, host


def test_the_drive_is_found_by_its_serial_number(tmp_path: Path) -> None:
    found = propose(
        answer({"scheduler": "none", "cpu_governor": "powersave"}), host(tmp_path), None
    )
    feature = Step("power_state", NvmeFeature("/dev/nvme0", 1, 2), "0", "2")
    whole = Proposal(found.drive, (*found.steps, feature), (), ())
    (rules, values), left = persistent(whole, tmp_path / "etc")
    assert left == ()
    assert rules.change.path == str(tmp_path / "etc/udev/rules.d/71-iojoule-S5GX-1.rules")
    heading, queue, power = rules.then.splitlines()
    assert heading.startswith("# ")
    assert f'ATTRS{{serial}}=="{SERIAL}", ATTR{{queue/scheduler}}="none"' in queue
    assert f'ATTR{{serial}}=="{SERIAL}", RUN+="/' in power
    assert power.endswith('/nvme set-feature /dev/%k --feature-id=0x2 --value=2"')
    cpu = tmp_path / "devices/system/cpu"
    assert values.then.splitlines()[1:] == [
        f"w {cpu}/cpu{number}/cpufreq/scaling_governor - - - - powersave" for number in (0, 1)
    ]
    assert (rules.now, values.now) == ("", "")


def test_what_is_there_already_is_not_written_again(tmp_path: Path) -> None:
    found = propose(answer({"scheduler": "none"}), host(tmp_path / "sys"), None)
    (tmp_path / "udev/rules.d").mkdir(parents=True)
    [step], _ = persistent(found, tmp_path)
    step.change.set(step.then)
    assert persistent(found, tmp_path) == ((), ())


@pytest.mark.parametrize("serial", ["", "S*", 'S1", RUN+="/x', "S1\nX"])
def test_what_no_file_can_keep_says_what_can(tmp_path: Path, serial: str) -> None:
    found = propose(answer({"scheduler": "none"}), host(tmp_path, serial=serial), None)
    option = Step("mount option of /srv", MountOption("/srv", "1:1", "discard"), "a", "b")
    steps, left = persistent(Proposal(found.drive, (*found.steps, option), (), ()), tmp_path)
    assert steps == ()
    assert [one.value for one in left] == ["none", "b"]
