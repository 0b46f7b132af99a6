"""What an estimate rests on, and how a drive sleeps: from what is known, or from what it said."""

from pathlib import Path

import pytest

from iojoule.api.application.meter_basis import (
    CATALOGUE,
    CLASS,
    PROFILE,
    DriveState,
    basis_of,
    in_state,
)
from iojoule.datasets.errors import UnknownDeviceError
from iojoule.measure.drive.transition_table import Transition
from iojoule.meter.drives import MeteredDrive, find_drives
from tests.meter.hosts import Host, declared_state

STATES = (
    declared_state(0, True, 8.5, 0, 0, None),
    declared_state(1, True, 4.5, 0, 200, None),
    declared_state(2, False, 0.4, 2000, 1200, 0.4),
    declared_state(3, False, 0.05, 500, 9500, 0.05),
)
TABLE = (Transition(0, 2, 100), Transition(1, 2, 500), Transition(2, 3, 2000))


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def drive(host: Host) -> MeteredDrive:
    return find_drives(host.sysfs).drives[0]


@pytest.mark.parametrize(
    ("model", "source"),
    [
        ("Samsung SSD 980 PRO 1TB", PROFILE),
        ("Samsung SSD 970 EVO Plus 1TB", CATALOGUE),
        ("A drive that nobody knows", CLASS),
    ],
)
def test_it_rests_on_the_best_that_is_known(host: Host, model: str, source: str) -> None:
    host.nvme("nvme0n1", "S1", device__model=model)
    assert basis_of(drive(host), {}, host.sysfs).source == source


def test_without_being_asked_a_drive_sleeps_as_linux_lets_it(host: Host) -> None:
    host.nvme("nvme0n1", "S1", device__power__pm_qos_latency_tolerance_us="100000")
    sleeping = basis_of(drive(host), {}, host.sysfs)
    assert sleeping.sleep is not None
    assert len(sleeping.sleep.watts) == len(sleeping.sleep.after) + 1
    assert list(sleeping.sleep.after) == sorted(sleeping.sleep.after)


def test_where_the_kernel_does_not_let_it_it_stays_awake(host: Host) -> None:
    host.nvme("nvme0n1", "S1", device__power__pm_qos_latency_tolerance_us="0")
    assert basis_of(drive(host), {}, host.sysfs).sleep is None


def test_what_a_drive_said_counts_for_each_power_state(host: Host) -> None:
    host.nvme("nvme0n1", "S1", device__model="A drive that nobody knows")
    said = DriveState(STATES, 0, TABLE)
    basis = basis_of(drive(host), {}, host.sysfs, said)
    assert basis.sleep is not None
    assert basis.sleep.after[1:] == pytest.approx((0.102, 2.1025))
    assert basis.sleep.watts[-1].value == pytest.approx(0.05, abs=1e-6)
    other = in_state(basis, drive(host), host.sysfs, DriveState(STATES, 1, TABLE))
    assert other.power_state == 0  # this profile of a kind knows no other
    assert other.sleep is not None
    assert other.sleep.after[1] == pytest.approx(0.502)
    awake = in_state(basis, drive(host), host.sysfs, DriveState(STATES, 0, ()))
    assert awake.sleep is not None
    assert len(awake.sleep.watts) == 2


def test_a_power_limit_is_told_until_it_is_lifted(host: Host) -> None:
    host.nvme("nvme0n1", "S1")
    limited = DriveState(STATES, 0, TABLE, power_limited=True)
    basis = basis_of(drive(host), {}, host.sysfs, limited)
    lifted = in_state(basis, drive(host), host.sysfs, DriveState(STATES, 0, TABLE, False))
    assert (basis.power_limited, lifted.power_limited) == (True, False)
    assert not basis_of(drive(host), {}, host.sysfs).power_limited


def test_a_stated_profile_must_be_one(host: Host) -> None:
    host.nvme("nvme0n1", "S1")
    with pytest.raises(UnknownDeviceError):
        basis_of(drive(host), {"nvme0n1": "no-such-drive-model"}, host.sysfs)
