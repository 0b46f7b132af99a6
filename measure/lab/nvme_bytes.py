"""Data structures of the NVMe Base Specification 2.0 as bytes: identify, SMART, features, logs.

Figures are those of revision 2.0c; fields that are not named are 0, "not supported" or "not
reported".
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from iojoule.measure.lab.power_meter import LARGEST_MINUTES
from iojoule.sim.physical_options import PowerState, PowerTransition

SECTOR_BYTES = 512
IDENTIFY_BYTES = 4096
PAGE_BYTES = 4096
"""Smallest memory page (CAP.MPSMIN), the unit of MDTS."""
KELVIN = 273
JOULES_PER_WATT_HOUR = 3600.0
NVME_VERSION = 0x00020000


@dataclass(frozen=True)
class Identity:
    """Serial number (20 characters), model (40), firmware (8), sizes; no transfer limit = 0."""

    serial: str
    model: str
    firmware: str
    capacity_bytes: int
    max_transfer_bytes: int


def identify_controller(
    identity: Identity, states: Sequence[PowerState], *, apst: bool
) -> bytearray:
    """Identify Controller (figure 275), with the power state descriptors (figure 276)."""
    data = bytearray(IDENTIFY_BYTES)

    def put(offset: int, form: str, *values: int) -> None:
        struct.pack_into("<" + form, data, offset, *values)

    data[4:24] = _text(identity.serial, 20)
    data[24:64] = _text(identity.model, 40)
    data[64:72] = _text(identity.firmware, 8)
    if identity.max_transfer_bytes:
        data[77] = round(math.log2(identity.max_transfer_bytes / PAGE_BYTES))
    put(78, "H", 1)  # CNTLID
    put(80, "I", NVME_VERSION)
    if states:
        put(96, "I", 1 << 20 | 1 << 21)  # CTRATT: Power Limit, Power Measurement
        (most,) = struct.unpack_from("<H", power_state_descriptor(states[0], 0))
        put(390, "HBBH", most, 50, 1, LARGEST_MINUTES)  # MUP, IPMSR (50 us), MSMT
    data[111] = 1  # CNTRLTYPE: an I/O controller
    put(256, "H", 1 << 1)  # OACS: Format NVM
    data[258] = data[259] = 3  # ACL, AERL
    data[260] = 1 << 1 | 1  # FRMW: one slot, read only
    data[261] = 1 << 1 | 1 << 2  # LPA: commands supported, extended data
    data[262] = 63  # ELPE: 64 entries of the error log
    data[263] = max(len(states), 1) - 1  # NPSS
    data[265] = int(apst)  # APSTA
    put(266, "HH", 70 + KELVIN, 80 + KELVIN)  # WCTEMP, CCTEMP
    data[280:296] = identity.capacity_bytes.to_bytes(16, "little")  # TNVMCAP
    data[512], data[513] = 0x66, 0x44  # SQES, CQES: 64 and 16 bytes
    put(516, "I", 1)  # NN
    put(520, "H", 1 << 2)  # ONCS: Dataset Management
    data[525] = 1  # VWC: present
    name = f"nqn.2014.08.org.nvmexpress:iojoule-lab:{identity.serial}".encode()
    data[768 : 768 + len(name)] = name  # SUBNQN
    for number, state in enumerate(states):
        data[2048 + 32 * number : 2080 + 32 * number] = power_state_descriptor(state, number)
    return data


def power_state_descriptor(state: PowerState, rank: int) -> bytes:
    """Power State Descriptor (figure 276), 32 bytes; small powers in 0.0001 W (MXPS, IPS)."""
    fine = 0 < state.max_power_watts < 1
    maximum = round(state.max_power_watts * (1e4 if fine else 1e2))
    flags = int(fine) | int(not state.operational) << 1
    idle, idle_scale = _scaled(state.idle_power_watts)
    active, active_scale = _scaled(state.active_power_watts)
    relative = min(rank, 31)
    return struct.pack(
        "<HxBIIBBBBHBxHB9x",
        maximum,
        flags,
        round(state.entry_latency_ns / 1e3),
        round(state.exit_latency_ns / 1e3),
        relative,
        relative,
        relative,
        relative,
        idle,
        idle_scale << 6,
        active,
        active_scale << 6,
    )


def _scaled(watts: float) -> tuple[int, int]:
    """Value and scale: 1 = 0.0001 W, 2 = 0.01 W, 0 = not reported."""
    if watts <= 0:
        return 0, 0
    return (round(watts * 1e4), 1) if watts < 1 else (round(watts * 1e2), 2)


def identify_namespace(identity: Identity, used_sectors: int) -> bytearray:
    """Identify Namespace (NVM Command Set Specification 1.0c, figure 97)."""
    data = bytearray(IDENTIFY_BYTES)
    sectors = identity.capacity_bytes // SECTOR_BYTES
    struct.pack_into("<QQQ", data, 0, sectors, sectors, min(used_sectors, sectors))
    data[48:64] = identity.capacity_bytes.to_bytes(16, "little")  # NVMCAP
    data[120:128] = _eui64(identity)
    struct.pack_into("<HBB", data, 128, 0, int(math.log2(SECTOR_BYTES)), 0)  # LBAF0
    return data


def namespace_descriptors(identity: Identity) -> bytearray:
    """Namespace Identification Descriptor list (figure 284): one EUI-64."""
    data = bytearray(IDENTIFY_BYTES)
    data[0:12] = bytes([1, 8, 0, 0]) + _eui64(identity)
    return data


def number_list(*numbers: int, counted: bool = False) -> bytearray:
    """A list of namespaces (32 bits each), or with `counted` of controllers (16 bits each)."""
    data = bytearray(IDENTIFY_BYTES)
    if counted:
        struct.pack_into(f"<H{len(numbers)}H", data, 0, len(numbers), *numbers)
    else:
        struct.pack_into(f"<{len(numbers)}I", data, 0, *numbers)
    return data


@dataclass(frozen=True)
class Health:
    """What the SMART log tells."""

    temperature_celsius: float
    percentage_used: int
    read_bytes: int
    written_bytes: int
    read_commands: int
    write_commands: int
    busy_seconds: float
    power_on_seconds: float
    errors_logged: int
    lifetime_joules: float
    last_second_word: int


def smart_log(health: Health) -> bytearray:
    """SMART / Health Information (log page 02h, figure 207), 512 bytes."""
    data = bytearray(512)
    kelvin = round(health.temperature_celsius + KELVIN)
    struct.pack_into("<BHBBB", data, 0, 0, kelvin, 100, 10, min(health.percentage_used, 255))

    def wide(offset: int, value: int) -> None:
        data[offset : offset + 16] = value.to_bytes(16, "little")

    wide(32, math.ceil(health.read_bytes / 512_000))  # thousands of 512 bytes, rounded up
    wide(48, math.ceil(health.written_bytes / 512_000))
    wide(64, health.read_commands)
    wide(80, health.write_commands)
    wide(96, int(health.busy_seconds // 60))
    wide(112, 1)  # power cycles
    wide(128, int(health.power_on_seconds // 3600))
    wide(176, health.errors_logged)
    struct.pack_into("<H", data, 200, kelvin)  # temperature sensor 1
    hours = math.ceil(health.lifetime_joules / JOULES_PER_WATT_HOUR)
    struct.pack_into("<QI", data, 232, hours, health.last_second_word)
    return data


def error_log(errors: int) -> bytearray:
    """Error Information (log page 01h, figure 206): 64 entries, the newest first."""
    data = bytearray(64 * 64)
    for place in range(min(errors, 64)):
        # error count, queue, command, status field (internal error), parameter, LBA, namespace
        struct.pack_into(
            "<QHHHHQI", data, 64 * place, errors - place, 1, place, 6 << 1, 0xFFFF, 0, 1
        )
    return data


def firmware_log(identity: Identity) -> bytearray:
    """Firmware Slot Information (log page 03h, figure 208)."""
    data = bytearray(512)
    data[0] = 1
    data[8:16] = _text(identity.firmware, 8)
    return data


def commands_log(admin: Sequence[int], io: Sequence[int]) -> bytearray:
    """Commands Supported and Effects (log page 05h, figure 210)."""
    data = bytearray(4096)
    for offset, opcodes in ((0, admin), (1024, io)):
        for opcode in opcodes:
            struct.pack_into("<I", data, offset + 4 * opcode, 1)
    return data


def transition_table(moves: Sequence[PowerTransition]) -> bytearray:
    """Data of Autonomous Power State Transition (feature 0Ch, figure 328), 256 bytes."""
    data = bytearray(256)
    for move in moves:
        milliseconds = min(round(move.idle_ns / 1e6), 0xFFFFFF)
        struct.pack_into("<Q", data, 8 * move.from_state, move.to_state << 3 | milliseconds << 8)
    return data


def read_transition_table(data: bytes) -> list[PowerTransition]:
    """What a host has set; an idle time of 0 switches a state's transition off."""
    moves = []
    for state, entry in enumerate(struct.unpack_from("<32Q", data)):
        milliseconds = entry >> 8 & 0xFFFFFF
        if milliseconds:
            to_state = entry >> 3 & 0x1F
            idle_ns = milliseconds * 1_000_000
            moves.append(PowerTransition(from_state=state, to_state=to_state, idle_ns=idle_ns))
    return moves


def _text(value: str, width: int) -> bytes:
    """ASCII, cut or filled with blanks (NVMe strings)."""
    return value.encode("ascii", "replace")[:width].ljust(width)


def _eui64(identity: Identity) -> bytes:
    """A number of the drive's own, derived from its serial number."""
    return identity.serial.encode("ascii", "replace")[-8:].rjust(8, b"\0")
