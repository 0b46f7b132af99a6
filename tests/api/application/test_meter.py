"""The meter of a host whose drives are asked, and come and go."""

from dataclasses import replace
from pathlib import Path

import pytest

from iojoule.api.application.meter import INSTRUMENT_FAILED, LiveMeter, MeterOptions
from iojoule.api.application.meter_basis import DriveState
from iojoule.measure.drive.nvme import NvmeController
from iojoule.measure.errors import DriveError
from iojoule.meter.drives import STACKED
from tests.api.application.test_meter_basis import STATES, TABLE
from tests.meter.hosts import Host
from tests.meter.test_instrument import Polled, wait_for

SAID = DriveState(STATES, 0, TABLE)


class Drives:
    """What controllers say, by node; a node that is not here does not answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.states = dict[str, int]()
        self.asked = list[str]()
        for name in ("ask", "ask_again"):
            monkeypatch.setattr(f"iojoule.api.application.meter.{name}", self.say)
        monkeypatch.setattr("iojoule.api.application.meter.ASK_SECONDS", 0.0)

    def say(self, nvme: NvmeController, _: object = None) -> DriveState:
        self.asked.append(nvme.node.name)
        if nvme.node.name not in self.states:
            raise DriveError("it does not answer")
        return replace(SAID, power_state=self.states[nvme.node.name])


@pytest.fixture
def drives(monkeypatch: pytest.MonkeyPatch) -> Drives:
    return Drives(monkeypatch)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    made = Host(tmp_path)
    made.nvme("nvme0n1", "S1")
    return made


def options(host: Host) -> MeterOptions:
    return MeterOptions(proc=host.proc, sysfs=host.sysfs, ask_drives=True)


def test_what_is_stated_for_a_name_stays_with_the_drive_that_had_it(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    sensor = Polled(lambda number: 50.0 + number % 2)
    monkeypatch.setattr("iojoule.api.application.meter.open_sensor", lambda _: sensor)
    stated = MeterOptions(
        proc=host.proc,
        sysfs=host.sysfs,
        profiles={"nvme0n1": "wd-zn540"},
        instruments={"nvme0n1": "polled"},
    )
    with LiveMeter(stated) as live:
        wait_for(lambda: live.step()[0].watts > 40)
        assert live.readings[0].basis.profile.device == "wd-zn540"
        host.swap("nvme0n1", "S2")
        host.nvme("nvme1n1", "S1")
        live.step()
        wait_for(lambda: [one for one in live.step() if one.watts > 40])
        told = {one.drive.serial: one for one in live.readings}
        assert told["S1"].watts > 40 > told["S2"].watts > 0
        assert {serial: one.basis.profile.device for serial, one in told.items()} == {
            "S1": "wd-zn540",
            "S2": "samsung-980-pro-1tb",
        }
        assert INSTRUMENT_FAILED in told["S2"].reasons
        assert INSTRUMENT_FAILED not in told["S1"].reasons


def test_block_devices_that_come_later_are_left_out_and_told(host: Host) -> None:
    with LiveMeter(MeterOptions(proc=host.proc, sysfs=host.sysfs)) as live:
        host.disk("dm-0", below="")
        live.step()
        assert live.left_out == {"dm-0": STACKED}


def power_states(live: LiveMeter) -> dict[str | None, int]:
    return {reading.drive.serial: reading.basis.power_state for reading in live.step()}


def test_a_silent_drive_that_comes_later_is_metered_all_the_same(
    host: Host, drives: Drives
) -> None:
    with pytest.raises(DriveError):
        LiveMeter(options(host))
    drives.states["nvme0"] = 1
    with LiveMeter(options(host)) as live:
        host.nvme("nvme1n1", "S2")
        live.step()
        host.did("nvme1n1", reads=10)
        assert power_states(live) == {"S1": 1, "S2": 0}
        assert all(reading.joules > 0 for reading in live.readings)
        assert drives.asked.count("nvme1") == 1


def test_a_drive_that_comes_back_is_asked_again_where_it_is_now(host: Host, drives: Drives) -> None:
    drives.states = {"nvme0": 1, "nvme7": 0}
    with LiveMeter(options(host)) as live:
        assert power_states(live) == {"S1": 1}
        host.remove("nvme0n1")
        live.step()
        host.nvme("nvme7n1", "S1")
        live.step()
        assert power_states(live) == {"S1": 0}
        host.did("nvme7n1", reads=10)
        drives.states["nvme7"] = 1
        live.step()
        assert power_states(live) == {"S1": 1}
        assert drives.asked == ["nvme0", "nvme7", "nvme7"]
