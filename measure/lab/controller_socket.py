"""Serves a `Controller` to the preloaded library, one connection a command."""

from __future__ import annotations

import errno
import socket
import socketserver
import threading
from pathlib import Path

from iojoule.measure.lab.controller import (
    ANSWER,
    INVALID_OPCODE,
    QUESTION,
    Answer,
    Controller,
    ControllerFault,
    command_of,
)

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
        question = _receive(link, QUESTION.size)
        if len(question) < QUESTION.size:
            return
        request = QUESTION.unpack(question)[0]
        command = command_of(question)
        to_controller = command.opcode & 3 == 1
        wanted = min(command.data_bytes, _DATA_LIMIT) if to_controller else 0
        data = _receive(link, wanted)
        if controller.fault is ControllerFault.VANISH or len(data) < wanted:
            link.sendall(ANSWER.pack(-errno.ENODEV, 0, 0))
            return
        if request == ADMIN_COMMAND:
            answer = controller.submit(command, data)
        else:  # data go through the block device
            answer = Answer(INVALID_OPCODE)
        link.sendall(ANSWER.pack(answer.status, len(answer.data), answer.result) + answer.data)


def _receive(link: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        more = link.recv(count - len(received))
        if not more:
            break
        received += more
    return received
