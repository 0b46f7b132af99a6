"""The lab's NVMe controller: answers admin commands with the bytes of a real one.

`Controller.submit` is the logic; `ControllerSocket` serves it to the preloaded library
(measure/lab/preload/nvme.c), which forwards NVMe ioctls of any program.
"""

from __future__ import annotations

import errno
import socket
import socketserver
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from iojoule.measure.drive.power_measurement import (
    POWER_LIMIT,
    POWER_MEASUREMENT,
    limit_watts,
)
from iojoule.measure.errors import LabError
from iojoule.measure.lab import nvme_bytes
from iojoule.measure.lab.disk_control import DiskControl
from iojoule.measure.lab.nvme_bytes import Health, Identity
from iojoule.measure.lab.power_meter import PowerMeter
from iojoule.sim.physical_options import PowerOptions, PowerTransition

# Status field without phase, as the driver returns it (NVMe Base Specification 2.0c, figures 94 to
# 97); 4000h is Do Not Retry.
DO_NOT_RETRY = 0x4000
INVALID_OPCODE = DO_NOT_RETRY | 0x01
INVALID_FIELD = DO_NOT_RETRY | 0x02
INVALID_NAMESPACE = DO_NOT_RETRY | 0x0B
INTERNAL_ERROR = 0x06
INVALID_LOG_PAGE = DO_NOT_RETRY | 0x109
INVALID_FORMAT = DO_NOT_RETRY | 0x10A
NOT_SAVEABLE = DO_NOT_RETRY | 0x10D
NOT_CHANGEABLE = DO_NOT_RETRY | 0x10E
INVALID_POWER_LIMIT = DO_NOT_RETRY | 0x13E

GET_LOG, IDENTIFY, SET_FEATURES, GET_FEATURES, FORMAT = 0x02, 0x06, 0x09, 0x0A, 0x80
FLUSH, WRITE, READ, DATASET_MANAGEMENT = 0x00, 0x01, 0x02, 0x09
POWER_THRESHOLD = 0x24
POWER_MANAGEMENT, TEMPERATURE, WRITE_CACHE, QUEUES, TRANSITIONS = 0x02, 0x04, 0x06, 0x07, 0x0C
ALL_NAMESPACES = 0xFFFFFFFF
_OF_POWER = (POWER_MANAGEMENT, TRANSITIONS, POWER_LIMIT, POWER_THRESHOLD, POWER_MEASUREMENT)


class Command(NamedTuple):
    """The words of an admin command that count."""

    opcode: int
    namespace: int
    cdw10: int = 0
    cdw11: int = 0
    cdw12: int = 0
    cdw13: int = 0
    data_bytes: int = 0


class Answer(NamedTuple):
    """Status (0: success), dword 0 of the completion, data for the host."""

    status: int = 0
    result: int = 0
    data: bytes | bytearray = b""


class ControllerFault(StrEnum):
    """How the controller may misbehave."""

    NONE = "none"
    REFUSE = "refuse"
    """Set Features fails with Feature Not Changeable."""
    IGNORE = "ignore"
    """Set Features says success and changes nothing."""
    VANISH = "vanish"
    """No command is answered; ioctls fail with ENODEV."""
    SERIAL = "serial"
    """Identify tells another serial number."""


class Controller:
    """The controller of the drive behind `control`; the capacity is the daemon's."""

    def __init__(self, power: PowerOptions, control: DiskControl, identity: Identity) -> None:
        self.identity = identity
        self.fault = ControllerFault.NONE
        self._control = control
        self._power = power
        self._states = self._power.states
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._defaults: dict[int, Any] = {
            TRANSITIONS: tuple(self._power.autonomous_transitions),
            WRITE_CACHE: 1,
            TEMPERATURE: 70 + nvme_bytes.KELVIN,
            POWER_LIMIT: 0,
            POWER_THRESHOLD: 0,
            POWER_MEASUREMENT: 0,
        }
        self._meter = PowerMeter(control)
        self._unlimited_state: int | None = None
        self._features = dict(self._defaults)
        self._transitions_on = bool(self._power.autonomous_transitions)

    def submit(self, command: Command, data: bytes = b"") -> Answer:
        """The controller's answer to an admin command with the host's data, if it brings any."""
        handlers: dict[int, Callable[[Command, bytes], Answer]] = {
            IDENTIFY: self._identify,
            GET_LOG: self._get_log,
            GET_FEATURES: self._get_features,
            SET_FEATURES: self._set_features,
            FORMAT: self._format,
        }
        handler = handlers.get(command.opcode)
        if handler is None:
            return Answer(INVALID_OPCODE)
        with self._lock:
            try:
                return handler(command, data)
            except LabError:
                return Answer(INTERNAL_ERROR)

    # --- identify

    def _identify(self, command: Command, _: bytes) -> Answer:
        identity = self.identity
        if self.fault is ControllerFault.SERIAL:
            identity = replace(identity, serial="WRONG" + identity.serial[:15])
        structure = command.cdw10 & 0xFF
        if structure in (0x00, 0x03, 0x11) and command.namespace not in (1, ALL_NAMESPACES):
            return Answer(INVALID_NAMESPACE)
        match structure:
            case 0x00 | 0x11:
                used = self._control.status()["written_bytes"] // nvme_bytes.SECTOR_BYTES
                data = nvme_bytes.identify_namespace(identity, used)
            case 0x01:
                apst = bool(self._states) and any(not state.operational for state in self._states)
                data = nvme_bytes.identify_controller(identity, self._states, apst=apst)
            case 0x02 | 0x10:  # namespaces above the one that is named
                data = nvme_bytes.number_list(*([1] if command.namespace < 1 else []))
            case 0x03:
                data = nvme_bytes.namespace_descriptors(identity)
            case 0x12 | 0x13:
                data = nvme_bytes.number_list(1, counted=True)
            case _:
                return Answer(INVALID_FIELD)
        return Answer(data=data[: command.data_bytes])

    # --- log pages

    def _get_log(self, command: Command, _: bytes) -> Answer:
        match command.cdw10 & 0xFF:
            case 0x01:
                data = nvme_bytes.error_log(self._control.status()["failed_commands"])
            case 0x02:
                data = nvme_bytes.smart_log(self._health())
            case 0x03:
                data = nvme_bytes.firmware_log(self.identity)
            case 0x05:
                admin = (GET_LOG, IDENTIFY, SET_FEATURES, GET_FEATURES, FORMAT)
                data = nvme_bytes.commands_log(admin, (FLUSH, WRITE, READ, DATASET_MANAGEMENT))
            case 0x25 if self._states:
                data = self._meter.log()
            case _:
                return Answer(INVALID_LOG_PAGE)
        length = ((command.cdw10 >> 16 | (command.cdw11 & 0xFFFF) << 16) + 1) * 4
        offset = command.cdw12 | command.cdw13 << 32
        if offset > len(data):
            return Answer(INVALID_FIELD)
        return Answer(data=data[offset : offset + min(length, command.data_bytes)])

    def _health(self) -> Health:
        status = self._control.status()
        worn = status["erased_blocks"] / (status["blocks"] * status["erase_cycles_limit"])
        return Health(
            temperature_celsius=status["temperature_celsius"],
            percentage_used=int(100 * worn),
            read_bytes=status["read_bytes"],
            written_bytes=status["written_bytes"],
            read_commands=status["read_commands"],
            write_commands=status["write_commands"],
            busy_seconds=status["busy_ns"] / 1e9,
            power_on_seconds=time.monotonic() - self._began,
            errors_logged=status["failed_commands"],
            lifetime_joules=status["joules"] if self._states else 0.0,
            last_second_word=self._meter.last_second() if self._states else 0,
        )

    # --- features

    def _get_features(self, command: Command, _: bytes) -> Answer:
        feature, select = command.cdw10 & 0xFF, command.cdw10 >> 8 & 7
        if select == 3:  # capabilities: changeable, nothing is saveable
            return Answer(result=1 << 2) if self._knows(feature) else Answer(INVALID_FIELD)
        values = self._features if select == 0 else self._defaults
        match feature:
            case _ if not self._knows(feature):
                return Answer(INVALID_FIELD)
            case _ if feature == POWER_MANAGEMENT:
                default = self._power.initial_state
                state = self._control.status()["power_state"] if select == 0 else default
                return Answer(result=int(state))
            case _ if feature == TRANSITIONS:
                on = self._transitions_on if select == 0 else bool(values[TRANSITIONS])
                table = nvme_bytes.transition_table(values[TRANSITIONS])
                return Answer(result=int(on), data=table[: command.data_bytes])
            case _ if feature == POWER_MEASUREMENT and select == 0:
                return Answer(result=self._meter.feature)
            case _ if feature == QUEUES:
                return Answer(result=127 << 16 | 127)
            case _:
                return Answer(result=int(values[feature]))

    def _knows(self, feature: int) -> bool:
        if feature in _OF_POWER:
            return bool(self._states)
        return feature in (TEMPERATURE, WRITE_CACHE, QUEUES)

    def _set_features(self, command: Command, data: bytes) -> Answer:
        feature = command.cdw10 & 0xFF
        if not self._knows(feature):
            return Answer(INVALID_FIELD)
        if command.cdw10 >> 31:
            return Answer(NOT_SAVEABLE)
        if feature == QUEUES or self.fault is ControllerFault.REFUSE:
            return Answer(NOT_CHANGEABLE)
        if feature == POWER_MANAGEMENT and not self._available(command.cdw11 & 0x1F):
            return Answer(INVALID_FIELD)
        if self.fault is ControllerFault.IGNORE:
            return Answer()
        if feature == POWER_MANAGEMENT:
            self._unlimited_state = None
            self._control.ask("state", command.cdw11 & 0x1F)
        elif feature == POWER_LIMIT:
            return self._set_limit(command.cdw11)
        elif feature == POWER_MEASUREMENT:
            return self._set_measurement(command.cdw11)
        elif feature == TRANSITIONS:
            return self._set_transitions(bool(command.cdw11 & 1), data)
        elif feature == WRITE_CACHE:
            self._features[WRITE_CACHE] = command.cdw11 & 1
            self._control.ask("cache", command.cdw11 & 1)
        else:
            self._features[feature] = command.cdw11
        return Answer()

    def _available(self, state: int) -> bool:
        """Whether there is such a power state and the Power Limit allows it."""
        if state >= len(self._states):
            return False
        limit = limit_watts(self._features[POWER_LIMIT])
        return limit is None or self._states[state].max_power_watts <= limit

    def _set_measurement(self, value: int) -> Answer:
        """Start or stop a measurement of the whole subsystem: there is no other."""
        known = not value >> 4 & 0xF and self._meter.set(value & 0xF, value >> 16)
        return Answer() if known else Answer(INVALID_FIELD)

    def _set_limit(self, value: int) -> Answer:
        """Cap the power by the highest state within the limit, as the power states do."""
        limit = limit_watts(value)
        within = [
            number
            for number, state in enumerate(self._states)
            if state.operational and (limit is None or state.max_power_watts <= limit)
        ]
        if not within:
            return Answer(INVALID_POWER_LIMIT)
        self._features[POWER_LIMIT] = value
        present = int(self._control.status()["power_state"])
        wanted = present if self._unlimited_state is None else self._unlimited_state
        if not self._states[wanted].operational:  # it sleeps, and draws less than any limit
            wanted = min(within)
        state = min((number for number in within if number >= wanted), default=max(within))
        self._unlimited_state = wanted if state != wanted else None
        if state != present:
            self._control.ask("state", state)
        return Answer()

    def _set_transitions(self, on: bool, data: bytes) -> Answer:
        moves = self._features[TRANSITIONS]
        if len(data) >= 256:
            moves = tuple(nvme_bytes.read_transition_table(data))
        if any(self._useless(move) for move in moves):
            return Answer(INVALID_FIELD)
        self._features[TRANSITIONS], self._transitions_on = moves, on
        words = [
            word
            for move in (moves if on else ())
            for word in (move.from_state, move.to_state, move.idle_ns)
        ]
        self._control.ask("moves", *words)
        return Answer()

    def _useless(self, move: PowerTransition) -> bool:
        """A transition leads from a state of the table to one that is not operational."""
        last = len(self._states) - 1
        if move.from_state > last or move.to_state > last:
            return True
        return self._states[move.to_state].operational

    # --- format

    def _format(self, command: Command, _: bytes) -> Answer:
        if command.namespace not in (1, ALL_NAMESPACES):
            return Answer(INVALID_NAMESPACE)
        if command.cdw10 & 0xF:
            return Answer(INVALID_FORMAT)
        self._control.ask("format")
        return Answer()


QUESTION = struct.Struct("=IIBBHIIIQQIIIIIIIIII")
"""`struct question` of the preloaded library: request, bytes, struct nvme_passthru_cmd."""
ANSWER = struct.Struct("=iIQ")


def command_of(request: bytes) -> Command:
    """The admin command within a question."""
    fields = QUESTION.unpack(request)
    opcode, namespace = fields[2], fields[5]
    data_bytes = fields[11]
    cdw10, cdw11, cdw12, cdw13 = fields[12:16]
    return Command(opcode, namespace, cdw10, cdw11, cdw12, cdw13, data_bytes)


ADMIN_COMMAND = 0xC0484E41
"""NVME_IOCTL_ADMIN_CMD (linux/nvme_ioctl.h)."""
_DATA_LIMIT = 1 << 20


class ControllerSocket:
    """Listens at `path` until `close`."""

    def __init__(self, path: Path, controller: Controller) -> None:
        path.unlink(missing_ok=True)
        self._server = _Server(str(path), _Handler)
        self._server.controller = controller
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="lab-controller", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """End the thread; the socket's file stays."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    controller: Controller


class _Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, _Server)
        controller = self.server.controller
        link: socket.socket = self.request
        link.settimeout(5.0)
        request = _receive(link, QUESTION.size)
        if len(request) < QUESTION.size:
            return
        kind = QUESTION.unpack(request)[0]
        command = command_of(request)
        to_controller = command.opcode & 3 == 1
        wanted = min(command.data_bytes, _DATA_LIMIT) if to_controller else 0
        data = _receive(link, wanted)
        if controller.fault is ControllerFault.VANISH or len(data) < wanted:
            link.sendall(ANSWER.pack(-errno.ENODEV, 0, 0))
            return
        if kind == ADMIN_COMMAND:
            response = controller.submit(command, data)
        else:  # data go through the block device
            response = Answer(INVALID_OPCODE)
        link.sendall(
            ANSWER.pack(response.status, len(response.data), response.result) + response.data
        )


def _receive(link: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        more = link.recv(count - len(received))
        if not more:
            break
        received += more
    return received
