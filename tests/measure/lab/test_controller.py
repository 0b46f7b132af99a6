"""The controller answers like a real one, byte by byte and to the real nvme command."""

from __future__ import annotations

import json
import os
import re
import struct
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from iojoule.measure.drive import power_measurement as power
from iojoule.measure.drive.nvme import parse_controller
from iojoule.measure.errors import DriveError, LabError
from iojoule.measure.host.changes import NvmeFeature
from iojoule.measure.lab import controller as nvme
from iojoule.measure.lab import drives
from iojoule.measure.lab.client import LabClient
from iojoule.measure.lab.controller import Command, Controller, ControllerFault
from iojoule.measure.lab.nvme_bytes import Identity

STATUS: dict[str, Any] = {
    "power_state": 0,
    "temperature_celsius": 41.4,
    "read_bytes": 512_001,
    "written_bytes": 4096,
    "read_commands": 3,
    "write_commands": 1,
    "busy_ns": 61_000_000_000,
    "erased_blocks": 512 * 30,
    "blocks": 512,
    "erase_cycles_limit": 3000,
    "failed_commands": 2,
    "joules": 7201.0,
    "now_ns": 100_000_000_000,
}


class FakeDisk:
    """Remembers what the controller told it."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []
        self.now_ns = STATUS["now_ns"]

    def ask(self, *words: object) -> dict[str, Any]:
        self.told.append(words)
        return {}

    def status(self) -> dict[str, Any]:
        return {**STATUS, "now_ns": self.now_ns}

    def joules(self, begin_ns: int, end_ns: int) -> float:
        """4.12 W for the first 110 s, then 20 W."""
        change_ns = 110 * 10**9
        before = max(min(end_ns, change_ns) - begin_ns, 0)
        return (4.12 * before + 20.0 * (end_ns - begin_ns - before)) / 1e9


@pytest.fixture
def disk() -> FakeDisk:
    return FakeDisk()


@pytest.fixture
def controller(disk: FakeDisk) -> Controller:
    identity = Identity("LAB42", "iojoule lab NVMe", "LAB1.0", 576 << 20, 128 << 10)
    power = drives.find(drives.DEFAULT).device.physical.power
    return Controller(power, disk, identity)  # type: ignore[arg-type]


def identify(controller: Controller, cns: int = 1, namespace: int = 0) -> bytes:
    answer = controller.submit(Command(nvme.IDENTIFY, namespace, cns, data_bytes=4096))
    assert answer.status == 0
    assert len(answer.data) == 4096
    return bytes(answer.data)


def set_feature(controller: Controller, feature: int, value: int, data: bytes = b"") -> int:
    command = Command(nvme.SET_FEATURES, 0, feature, value, data_bytes=len(data))
    return controller.submit(command, data).status


def get_feature(controller: Controller, feature: int, select: int = 0) -> nvme.Answer:
    return controller.submit(Command(nvme.GET_FEATURES, 0, feature | select << 8, data_bytes=256))


def test_identify_controller_has_each_field_at_its_place(controller: Controller) -> None:
    data = identify(controller)
    assert data[4:24] == b"LAB42".ljust(20)
    assert data[24:64] == b"iojoule lab NVMe".ljust(40)
    assert data[64:72] == b"LAB1.0  "
    assert 4096 << data[77] == 128 << 10  # MDTS
    assert data[263] == 4  # NPSS counts from 0
    assert data[265] == 1  # APSTA
    assert struct.unpack_from("<H", data, 266) == (343,)  # WCTEMP
    assert int.from_bytes(data[280:296], "little") == 576 << 20  # TNVMCAP
    assert data[525] & 1  # VWC


def test_power_states_are_those_of_the_drive(controller: Controller) -> None:
    data = identify(controller)
    states = drives.find(drives.DEFAULT).device.physical.power.states
    for number, state in enumerate(states):
        said = data[2048 + 32 * number :][:32]
        maximum, flags = struct.unpack_from("<HxB", said)
        assert maximum * (1e-4 if flags & 1 else 1e-2) == pytest.approx(state.max_power_watts)
        assert bool(flags & 2) is not state.operational
        entry_us, exit_us = struct.unpack_from("<II", said, 4)
        assert (entry_us * 1000, exit_us * 1000) == (state.entry_latency_ns, state.exit_latency_ns)
        idle, scale = struct.unpack_from("<HB", said, 16)
        assert idle * {1: 1e-4, 2: 1e-2}[scale >> 6] == pytest.approx(state.idle_power_watts)


def test_identify_namespace_and_lists(controller: Controller) -> None:
    data = identify(controller, 0, 1)
    assert struct.unpack_from("<QQ", data) == ((576 << 20) // 512,) * 2
    assert data[130] == 9  # sectors of 2 ** 9 bytes
    assert struct.unpack_from("<2I", identify(controller, 2)) == (1, 0)
    assert struct.unpack_from("<2H", identify(controller, 0x13)) == (1, 1)
    assert identify(controller, 3, 1)[:2] == b"\x01\x08"
    unknown = controller.submit(Command(nvme.IDENTIFY, 2, 0, data_bytes=4096))
    assert unknown.status == nvme.INVALID_NAMESPACE
    assert controller.submit(Command(nvme.IDENTIFY, 0, 0x77)).status == nvme.INVALID_FIELD


def log(controller: Controller, page: int, count: int, offset: int = 0) -> nvme.Answer:
    words = count // 4 - 1
    return controller.submit(
        Command(nvme.GET_LOG, 0xFFFFFFFF, page | words << 16, 0, offset, data_bytes=count)
    )


def test_the_smart_log_tells_what_the_drive_did(controller: Controller) -> None:
    data = bytes(log(controller, 2, 512).data)
    assert struct.unpack_from("<H", data, 1) == (314,)
    assert data[5] == 1  # percentage used
    wide = [int.from_bytes(data[at : at + 16], "little") for at in (32, 48, 64, 80, 96, 176)]
    assert wide == [2, 1, 3, 1, 1, 2]
    assert log(controller, 2, 16, 32).data == data[32:48]
    assert len(log(controller, 1, 64).data) == 64
    assert log(controller, 3, 512).data[8:14] == b"LAB1.0"
    assert log(controller, 5, 4096).data[4 * nvme.IDENTIFY] == 1
    assert log(controller, 0x70, 512).status == nvme.INVALID_LOG_PAGE
    assert log(controller, 2, 512, 4096).status == nvme.INVALID_FIELD


def test_setting_a_power_state_tells_the_disk(controller: Controller, disk: FakeDisk) -> None:
    assert set_feature(controller, nvme.POWER_MANAGEMENT, 2) == 0
    assert disk.told == [("state", 2)]
    assert set_feature(controller, nvme.POWER_MANAGEMENT, 5) == nvme.INVALID_FIELD
    assert get_feature(controller, nvme.POWER_MANAGEMENT).result == STATUS["power_state"]
    assert get_feature(controller, nvme.POWER_MANAGEMENT, 3).result == 4  # changeable


def test_the_drive_reports_its_own_power(controller: Controller, disk: FakeDisk) -> None:
    identified = parse_controller(identify(controller))
    assert identified.limits_power
    assert identified.measures_power
    smart = bytes(log(controller, 2, 512).data)
    assert power.interval_power(smart) == pytest.approx((4.12, 0.0001))
    assert struct.unpack_from("<Q", smart, 232) == (3,)  # lifetime watt hours, rounded up
    assert set_feature(controller, power.POWER_MEASUREMENT, power.START_VALUE) == 0
    disk.now_ns += 12 * 10**9
    assert get_feature(controller, power.POWER_MEASUREMENT).result == 1
    page = bytes(log(controller, 0x25, 576).data)
    found = power.parse_power_log(page)
    assert (found.generation, found.running, found.intervals) == (1, True, 12)
    assert found.joules == pytest.approx(10 * 4.12 + 2 * 20, rel=1e-3)
    assert struct.unpack_from("<I", page, 64 + 16 * 8) == (10,)  # of 4.00 to 4.25 W
    assert struct.unpack_from("<I", page, 32) == (2,)  # above the last bin
    assert set_feature(controller, power.POWER_MEASUREMENT, power.STOP_VALUE) == 0
    disk.now_ns += 5 * 10**9
    stopped = power.parse_power_log(bytes(log(controller, 0x25, 64).data))
    assert (stopped.running, stopped.intervals, stopped.generation) == (False, 12, 1)


def test_no_power_is_reported_within_the_first_second(
    controller: Controller, disk: FakeDisk
) -> None:
    def unknown(begin_ns: int, end_ns: int) -> float:
        raise LabError("before the begin")

    disk.joules = unknown  # type: ignore[method-assign]
    assert power.interval_power(bytes(log(controller, 2, 512).data)) is None


def test_a_measurement_stops_by_itself(controller: Controller, disk: FakeDisk) -> None:
    assert set_feature(controller, power.POWER_MEASUREMENT, power.START_VALUE | 1 << 16) == 0
    disk.now_ns += 90 * 10**9
    found = power.parse_power_log(bytes(log(controller, 0x25, 64).data))
    assert (found.running, found.intervals) == (False, 60)
    assert set_feature(controller, power.POWER_MEASUREMENT, 2) == nvme.INVALID_FIELD
    assert set_feature(controller, power.POWER_MEASUREMENT, 0x11) == nvme.INVALID_FIELD


def test_a_power_limit_holds_the_drive_in_a_lower_state(
    controller: Controller, disk: FakeDisk
) -> None:
    states = drives.find(drives.DEFAULT).device.physical.power.states
    limit = power.power_word(states[1].max_power_watts)
    assert set_feature(controller, power.POWER_LIMIT, limit) == 0
    assert disk.told == [("state", 1)]
    assert get_feature(controller, power.POWER_LIMIT).result == limit
    assert set_feature(controller, nvme.POWER_MANAGEMENT, 0) == nvme.INVALID_FIELD
    assert set_feature(controller, power.POWER_LIMIT, 1 << 16 | 1) == nvme.INVALID_POWER_LIMIT
    assert get_feature(controller, power.POWER_LIMIT).result == limit
    limited = {**STATUS, "power_state": 1}
    disk.status = lambda: limited  # type: ignore[method-assign]
    assert set_feature(controller, power.POWER_LIMIT, 0) == 0
    assert disk.told[-1] == ("state", 0)


def test_transitions_are_kept_as_they_were_set(controller: Controller, disk: FakeDisk) -> None:
    before = get_feature(controller, nvme.TRANSITIONS)
    assert before.result == 1
    entry = struct.unpack_from("<Q", before.data)[0]
    assert (entry >> 3 & 31, entry >> 8) == (3, 5000)
    assert set_feature(controller, nvme.TRANSITIONS, 0, bytes(256)) == 0
    assert disk.told == [("moves",)]
    off = get_feature(controller, nvme.TRANSITIONS)
    assert (off.result, bytes(off.data)) == (0, bytes(256))
    assert set_feature(controller, nvme.TRANSITIONS, 1, bytes(before.data)) == 0
    assert disk.told[-1][:4] == ("moves", 0, 3, 5_000_000_000)
    assert get_feature(controller, nvme.TRANSITIONS) == before
    wrong = struct.pack("<Q", 1 << 3 | 100 << 8).ljust(256, b"\0")  # to an operational state
    assert set_feature(controller, nvme.TRANSITIONS, 1, wrong) == nvme.INVALID_FIELD


def test_the_write_cache_can_be_switched(controller: Controller, disk: FakeDisk) -> None:
    assert set_feature(controller, nvme.WRITE_CACHE, 0) == 0
    assert disk.told == [("cache", 0)]
    assert get_feature(controller, nvme.WRITE_CACHE).result == 0
    assert get_feature(controller, nvme.WRITE_CACHE, 1).result == 1


def test_what_cannot_be_done_has_its_status(controller: Controller, disk: FakeDisk) -> None:
    assert controller.submit(Command(0x7F, 0)).status == nvme.INVALID_OPCODE
    assert set_feature(controller, 0x55, 1) == nvme.INVALID_FIELD
    assert set_feature(controller, nvme.WRITE_CACHE | 1 << 31, 1) == nvme.NOT_SAVEABLE
    assert set_feature(controller, nvme.QUEUES, 1) == nvme.NOT_CHANGEABLE
    assert controller.submit(Command(nvme.FORMAT, 1, 3)).status == nvme.INVALID_FORMAT
    assert controller.submit(Command(nvme.FORMAT, 7)).status == nvme.INVALID_NAMESPACE
    assert disk.told == []


def test_faults_of_the_controller(controller: Controller, disk: FakeDisk) -> None:
    controller.fault = ControllerFault.REFUSE
    assert set_feature(controller, nvme.POWER_MANAGEMENT, 1) == nvme.NOT_CHANGEABLE
    controller.fault = ControllerFault.IGNORE
    assert set_feature(controller, nvme.POWER_MANAGEMENT, 1) == 0
    assert disk.told == []
    controller.fault = ControllerFault.SERIAL
    assert identify(controller)[4:24] == b"WRONGLAB42".ljust(20)


def test_a_disk_that_is_gone_is_an_internal_error(controller: Controller, disk: FakeDisk) -> None:
    def gone() -> dict[str, Any]:
        raise LabError("gone")

    disk.status = gone  # type: ignore[method-assign]
    assert log(controller, 2, 512).status == nvme.INTERNAL_ERROR


# --- the real command -----------------------------------------------------------------------------


def test_nvme_reads_and_sets_the_power_state(lab: LabClient, run_in: Any) -> None:
    node = lab.state["controller"]
    said = json.loads(run_in("nvme", "id-ctrl", node, "-o", "json").stdout)
    assert said["sn"].strip() == lab.state["serial"]
    assert said["npss"] + 1 == lab.state["power_states"]
    assert run_in("nvme", "set-feature", node, "--feature-id=2", "--value=2").returncode == 0
    assert "0x00000002" in run_in("nvme", "get-feature", node, "--feature-id=2").stdout
    assert lab.disk.status()["power_state"] == 2
    refused = run_in("nvme", "set-feature", node, "--feature-id=2", "--value=9")
    assert refused.returncode != 0
    assert "Invalid Field" in refused.stdout


def test_nvme_reads_the_rest(lab: LabClient, run_in: Any) -> None:
    node, drive = lab.state["controller"], lab.state["drive"]
    assert "nsze    : 0x120000" in run_in("nvme", "id-ns", node, "--namespace-id=1").stdout
    assert "nsze    : 0x120000" in run_in("nvme", "id-ns", drive).stdout
    assert "Data Units Read" in run_in("nvme", "smart-log", node).stdout
    assert "ITPS): 3" in run_in("nvme", "get-feature", node, "--feature-id=0x0c", "-H").stdout
    assert run_in("nvme", "error-log", node).returncode == 0
    assert run_in("nvme", "list-ctrl", node).returncode == 0


def test_nvme_reads_the_drive_s_own_power(lab: LabClient, run_in: Any) -> None:
    node = lab.state["controller"]
    start = ("nvme", "set-feature", node, "--feature-id=0x25", "--value=0x1")
    assert run_in(*start).returncode == 0
    assert "0x00000001" in run_in("nvme", "get-feature", node, "-f", "0x25").stdout
    begin_ns = time.monotonic_ns()
    time.sleep(3.2)
    stop = ("nvme", "set-feature", node, "--feature-id=0x25", "--value=0x0")
    assert run_in(*stop).returncode == 0
    end_ns = time.monotonic_ns()
    shown = run_in("nvme", "get-log", node, "--log-id=0x25", "--log-len=64").stdout
    rows = re.findall(r"^[0-9a-f]{4}:((?: [0-9a-f]{2})+)", shown, flags=re.MULTILINE)
    found = power.parse_power_log(bytes.fromhex("".join(rows)))
    assert found.intervals >= 3
    assert not found.running
    true = lab.record(begin_ns, end_ns)["device_power_watts"]
    assert found.mean_watts == pytest.approx(true, rel=0.05)


def test_a_power_limit_is_verified_and_restored(
    lab: LabClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in lab.environment().items():
        monkeypatch.setenv(name, value)
    lab.disk.ask("state", 0)
    change = NvmeFeature(lab.state["controller"], 1, power.POWER_LIMIT)
    before = change.get()
    change.set(str(power.power_word(3.5)))
    assert power.limit_watts(int(change.get())) == pytest.approx(3.5)
    assert lab.disk.status()["power_state"] == 2
    with pytest.raises(DriveError):
        change.set(str(power.power_word(0.001)))
    change.set(before)
    assert power.limit_watts(int(change.get())) is None
    assert lab.disk.status()["power_state"] == 0


def test_nvme_formats_the_drive(lab: LabClient, run_in: Any) -> None:
    drive = lab.state["drive"]
    with Path(drive).open("r+b", buffering=0) as device:
        device.write(b"gone soon".ljust(4096))
        os.fsync(device.fileno())
    run_in("blockdev", "--flushbufs", drive)
    done = run_in("nvme", "format", lab.state["controller"], "--namespace-id=1", "--force")
    assert done.returncode == 0, done.stdout
    run_in("blockdev", "--flushbufs", drive)
    with Path(drive).open("rb", buffering=0) as device:
        assert device.read(4096) == bytes(4096)


def test_a_lower_power_state_caps_the_watts(lab: LabClient, run_in: Any) -> None:
    watts = []
    for state in (0, 2):
        node = lab.state["controller"]
        run_in("nvme", "set-feature", node, "--feature-id=2", f"--value={state}")
        done = run_in(
            "fio",
            "--name=x",
            f"--filename={lab.state['drive']}",
            "--direct=1",
            "--rw=randread",
            "--bs=16k",
            "--ioengine=libaio",
            "--iodepth=32",
            "--time_based",
            "--runtime=1s",
            "--allow_file_create=0",
        )
        assert done.returncode == 0
        end_ns = time.monotonic_ns()
        watts.append(lab.record(end_ns - 900_000_000, end_ns - 200_000_000)["device_power_watts"])
    assert watts[0] > 4.2
    assert watts[1] < 3.5


def test_faults_as_nvme_sees_them(lab: LabClient, run_in: Any) -> None:
    node = lab.state["controller"]
    lab.fault("controller", "refuse")
    refused = run_in("nvme", "set-feature", node, "--feature-id=2", "--value=1")
    assert "Feature Not Changeable" in refused.stdout
    lab.fault("controller", "ignore")
    assert run_in("nvme", "set-feature", node, "--feature-id=2", "--value=1").returncode == 0
    assert "value:00000000" in run_in("nvme", "get-feature", node, "--feature-id=2").stdout
    lab.fault("controller", "serial")
    assert "WRONG" in run_in("nvme", "id-ctrl", node).stdout
    lab.fault("controller", "vanish")
    gone = run_in("nvme", "id-ctrl", node)
    assert gone.returncode != 0
    assert "No such device" in gone.stdout


PROBE = """
import ctypes, fcntl, os, stat, struct, sys
node, drive = sys.argv[1:]
buffer = ctypes.create_string_buffer(4096)
command = bytearray(struct.pack("=BBHIIIQQIIIIIIIIII", 6, 0, 0, 0, 0, 0, 0,
                                ctypes.addressof(buffer), 0, 4096, 1, 0, 0, 0, 0, 0, 0, 0))
file = os.open(node, os.O_RDONLY)
status = fcntl.ioctl(file, 0xC0484E41, command)
print(status, buffer.raw[4:24].decode().strip(), stat.S_ISCHR(os.stat(node).st_mode),
      stat.S_ISCHR(os.fstat(file).st_mode), stat.S_ISBLK(os.stat(drive).st_mode))
"""


def test_any_program_may_send_ioctls(lab: LabClient, run_in: Any) -> None:
    said = run_in(sys.executable, "-c", PROBE, lab.state["controller"], lab.state["drive"])
    assert said.stdout.split() == ["0", lab.state["serial"], "True", "True", "True"]
