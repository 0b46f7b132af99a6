"""What QEMU's drive lacks: a second power state, and watts that follow it.

QEMU refuses Set Features for power management, so the lab's preloaded library asks this server
instead of the driver. It passes every other command on to the true controller, and lends it a power
state 1 that draws less. A PowerSensor3 of the lab says what the drive draws.
"""

import array
import fcntl
import os
import signal
import socket
import socketserver
import struct
import sys
import threading
from pathlib import Path

from iojoule.measure.lab.controller import ANSWER, QUESTION
from iojoule.measure.lab.powersensor3 import ConstantPower, EmulatedPair, EmulatedPowerSensor3

ADMIN_COMMAND = 0xC0484E41
COMMAND = struct.Struct("=BBHIIIQQIIIIIIIIII")  # struct nvme_passthru_cmd
IDENTIFY, SET_FEATURES, GET_FEATURES, FORMAT = 0x06, 0x09, 0x0A, 0x80
POWER_MANAGEMENT = 0x02
WATTS = (3.0, 2.0)
SENSOR_HERTZ = 4000.0
"""Of the true 20 kHz an emulated processor would lose most, and have no time for anything else."""
SECOND_STATE = struct.pack("<HBBII", 200, 0, 0, 10, 10)  # 2.00 W, operational


class Drive:
    """The true controller with its borrowed power state; `commands` are those it was sent."""

    def __init__(self, node: str, power: ConstantPower) -> None:
        self.handle = os.open(node, os.O_RDWR)
        self.power = power
        self.state = 0
        self.commands: list[tuple[int, int, int]] = []
        self.lock = threading.Lock()

    def submit(self, question: bytes, data: bytes) -> tuple[int, int, bytes]:
        fields = list(COMMAND.unpack(question[8:]))
        opcode, size, word10, word11 = fields[0], fields[9], fields[10], fields[11]
        self.commands.append((opcode, word10, word11))
        if opcode in (SET_FEATURES, GET_FEATURES) and word10 & 0xFF == POWER_MANAGEMENT:
            if opcode == SET_FEATURES:
                self.state = word11 & 0x1F
                self.power.set(WATTS[self.state])
            return 0, self.state, b""
        buffer = array.array("B", data.ljust(size, b"\0"))
        fields[7] = buffer.buffer_info()[0] if size else 0
        command = bytearray(COMMAND.pack(*fields))
        try:
            status = fcntl.ioctl(self.handle, ADMIN_COMMAND, command)
        except OSError as error:
            status = -(error.errno or 5)
        result = COMMAND.unpack(command)[-1]
        answer = bytearray(buffer)
        if opcode == IDENTIFY and word10 & 0xFF == 1 and status == 0:
            answer[263] = 1
            answer[2080 : 2080 + len(SECOND_STATE)] = SECOND_STATE
        return status, result, bytes(answer)


class _Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        link: socket.socket = self.request
        question = _receive(link, QUESTION.size)
        if len(question) < QUESTION.size:
            return
        size = QUESTION.unpack(question)[11]
        data = _receive(link, size) if question[8] & 3 == 1 else b""
        drive: Drive = self.server.drive  # type: ignore[attr-defined]
        with drive.lock:
            status, result, answer = drive.submit(question, data)
        if question[8] & 3 != 2:
            answer = b""
        link.sendall(ANSWER.pack(status, len(answer), result) + answer)


def _receive(link: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count and (more := link.recv(count - len(received))):
        received += more
    return received


def serve(node: str, folder: Path) -> tuple[Drive, EmulatedPowerSensor3]:
    """Serve both; the socket is folder/controller.sock, the sensor folder/ttyACM0."""
    power = ConstantPower(WATTS[0])
    drive = Drive(node, power)
    server = socketserver.ThreadingUnixStreamServer(str(folder / "controller.sock"), _Handler)
    server.drive = drive  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    pairs = [EmulatedPair("m2-3v3", 3.3, gain=0.3)]
    sensor = EmulatedPowerSensor3(folder, power, pairs=pairs, hertz=SENSOR_HERTZ)
    sensor.start()
    return drive, sensor


def main() -> None:
    """Serve the controller node that is named until a signal comes."""
    node, folder = sys.argv[1:]
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    drive, sensor = serve(node, Path(folder))
    signal.sigwait({signal.SIGTERM})
    sensor.close()
    for opcode, word10, word11 in drive.commands:
        sys.stdout.write(f"{opcode:#04x} {word10:#x} {word11:#x}\n")
    sys.stdout.write(f"frames {sensor.frames_sent} dropped {sensor.frames_dropped}\n")


if __name__ == "__main__":
    main()
