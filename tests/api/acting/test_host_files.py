"""Every step writes only files that are declared, and every declaration is of a step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from iojoule.api.acting.persistence import persistent
from iojoule.api.acting.proposal import propose
from iojoule.datasets.schema import Configuration
from iojoule.measure.campaign.plan import HostPlan, Plan
from iojoule.measure.campaign.settings import of_campaign, of_run
from iojoule.measure.host import host_files
from iojoule.measure.host.changes import Change, SysfsValue, TextFile, to_record
from iojoule.measure.host.facts import HostControls
from iojoule.measure.host.host_files import (
    FREQUENCY_MAX,
    OF_KNOBS,
    OF_PLANS,
    OWN,
    QUEUE,
    SETTABLE,
    HostFiles,
)
from tests.api.acting.answers import answer
from tests.api.acting.hosts import host
from tests.measure.sata import fake_hdparm, sata
from tests.stand_ins import SYSTEM, look_in

REFUSED = (
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/sys/kernel/uevent_helper",
    "/sys/module/firmware_class/parameters/path",
    "/sys/class/block/nvme0n1/uevent",
    "/sys/class/block/nvme0n1/queue/../uevent",
    "/etc/cron.d/x",
)
SETTINGS = {
    "scheduler": "none",
    "cpu_governor": "powersave",
    "cpu_frequency_max_hertz": 2e9,
    "cstate_limit": 1,
}
RESTING = {"link_power_policy": "medium_power", "standby_timer_seconds": 600}


@pytest.fixture(autouse=True)
def declared_alone(settable: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what the other tests here add."""
    monkeypatch.setattr(host_files, "SETTABLE", SETTABLE)
    monkeypatch.setattr(host_files, "OWN", OWN)


def plan(**of_host: object) -> Plan:
    sweep = {"name": "s", "operation": "read", "request_bytes": 4096}
    return Plan.model_validate(
        {"schema_version": 1, "name": "p", "host": of_host, "sweep": [sweep]}
    )


def an_example(files: HostFiles) -> str:
    return str(files).replace("[0-9]*", "0").replace("*", "x")


def changes(folder: Path) -> Iterator[Change]:
    """Everything that the steps of apply and measure set, on a host whose /sys is a folder."""
    disk = sata(folder, folder / "sda")
    drive = host(folder)
    asked = Configuration.model_validate({"request_bytes": 4096, **SETTINGS})
    resting = Configuration.model_validate({"request_bytes": 4096, **RESTING})
    controls = HostControls(folder)
    deep = answer({**SETTINGS, "queue_depth": 64, "jobs": 2})
    for change, _ in (
        *of_campaign(plan(queue={"nomerges": 2}), [], drive.device, None, has_apst=False),
        *of_run(asked, drive.device, None),
        *of_run(resting, disk.device, None),
        *controls.governor("powersave"),
        *controls.frequency(2e9),
        *controls.sleep_limit(1),
        *controls.sleep_states_up_to(1),
    ):
        yield change
    found = propose(deep, drive, None)
    yield from (step.change for step in found.steps)
    yield from (step.change for step in propose(answer(RESTING), disk, None).steps)
    yield from (step.change for step in persistent(found, folder)[0])


def seen_from_the_host(folder: Path) -> Iterator[SysfsValue | TextFile]:
    """The same with what it disturbs, where it would be on a real host."""
    for change in changes(folder):
        for one in (change, *change.disturbs()):
            if isinstance(one, SysfsValue | TextFile):
                root = Path("/sys") if isinstance(one, SysfsValue) else Path("/etc")
                yield type(one)(str(root / Path(one.path).relative_to(folder)))


def test_steps_and_declarations_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_in(monkeypatch, fake_hdparm(tmp_path / "programs"), *SYSTEM)
    written = list(seen_from_the_host(tmp_path / "sys"))
    used = set()
    for change in written:
        assert to_record(change, "x").change() == change
        used |= {one for one in (*OF_KNOBS, *OWN) if one.hold(Path(change.path))}
    assert used == {*OF_KNOBS, *OWN}


@pytest.mark.parametrize("files", OF_PLANS, ids=str)
def test_what_a_plan_may_name_is_put_back(files: HostFiles, tmp_path: Path) -> None:
    path = an_example(files)
    settings = list(
        of_campaign(plan(files={path: 1}), [], host(tmp_path).device, None, has_apst=False)
    )
    assert settings == [(SysfsValue(path), "1")]
    assert to_record(settings[0][0], "x").change() == SysfsValue(path)


@pytest.mark.parametrize("path", REFUSED)
def test_what_no_step_writes_is_refused_everywhere(path: str) -> None:
    with pytest.raises(ValidationError, match="pcie_aspm"):
        HostPlan(files={path: 1})
    assert not SysfsValue(path).is_settable()
    assert not TextFile(path).is_settable()


def test_a_link_leads_nowhere_else(tmp_path: Path) -> None:
    tree = HostFiles(tmp_path / "sys", QUEUE.below)
    queue = tmp_path / "sys/class/block/nvme0n1/queue"
    queue.mkdir(parents=True)
    (queue / "scheduler").touch()
    (tmp_path / "elsewhere").touch()
    (queue / "link").symlink_to(tmp_path / "elsewhere")
    assert tree.hold(queue / "scheduler")
    assert not tree.hold(queue / "link")
    assert FREQUENCY_MAX.find(tmp_path / "sys") == []


def test_a_file_of_ones_own_is_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = HostFiles(tmp_path, "tmpfiles.d/iojoule-*.conf")
    monkeypatch.setattr(host_files, "OWN", (own,))
    file, link = (own.path(tmp_path, name) for name in ("a", "b"))
    file.parent.mkdir()
    file.touch()
    link.symlink_to(file)
    assert TextFile(str(file)).is_settable()
    assert not TextFile(str(link)).is_settable()
