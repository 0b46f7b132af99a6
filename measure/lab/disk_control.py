"""The control socket of the lab's disk daemon (`iojoule-lab-disk`, `DIR/disk.sock`).

A request is a line; the reply is a line of JSON, then as many raw bytes as its field `bytes` says.
Threads may share a connection.

* `status`: power state, joules, temperature, counters
* `state N`, `cache 0|1`, `moves FROM TO IDLE_NS ...`, `format`: settings of the controller
* `watts FROM_NS`: `start_ns`, `step_ns` (50 us), float32 watts
* `joules BEGIN_NS END_NS`: `joules`, `oldest_ns`
* `completions BEGIN_NS END_NS [SKIP]`: `more`, `oldest_ns`, then two uint64 each: time of the
  reply; latency in ns (40 bits), sectors (20), kind (3: read, write, trim, flush), failed (1)
* `fault eio N|stall NS|vanish|none`, `quit`
"""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.measure.errors import LabError

COMPLETION = np.dtype([("done_ns", "<u8"), ("packed", "<u8")])
"""As the daemon packs a completion; see measure/lab/disk/record.hpp."""


class DiskControl:
    """A connection to the daemon behind the socket `path`, opened on demand.

    Every method raises LabError when the daemon is missing, does not answer or refuses.
    """

    def __init__(self, path: Path, timeout_seconds: float = 10.0) -> None:
        self.path = path
        self._timeout_seconds = timeout_seconds
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def close(self) -> None:
        """End the connection; the next question opens another one."""
        with self._lock:
            self._close()

    def ask(self, *words: object) -> dict[str, Any]:
        """The answer to one command."""
        return self._exchange(words)[0]

    def status(self) -> dict[str, Any]:
        """What the drive is and has done so far."""
        return self.ask("status")

    def joules(self, begin_ns: int, end_ns: int) -> float:
        """Joules that were drawn between two times (CLOCK_MONOTONIC)."""
        response = self.ask("joules", begin_ns, end_ns)
        if begin_ns < response["oldest_ns"]:
            raise LabError(
                f"the lab no longer knows what was {begin_ns} ns; ask within about two hours"
            )
        return float(response["joules"])

    def watts(self, from_ns: int) -> tuple[int, int, NDArray[np.float32]]:
        """Mean watts of the steps from then on: begin of the first, length of one, values."""
        response, data = self._exchange(("watts", from_ns))
        return response["start_ns"], response["step_ns"], np.frombuffer(data, dtype="<f4")

    def completions(self, begin_ns: int, end_ns: int) -> NDArray[np.void]:
        """What was answered in [begin_ns, end_ns), in order: array of `COMPLETION`."""
        parts: list[NDArray[np.void]] = []
        more = True
        while more:
            skip = sum(len(part) for part in parts)
            response, data = self._exchange(("completions", begin_ns, end_ns, skip))
            if begin_ns < response["oldest_ns"]:
                raise LabError(
                    f"the lab no longer knows what was completed at {begin_ns} ns; ask earlier"
                )
            parts.append(np.frombuffer(data, dtype=COMPLETION))
            more = response["more"]
        return np.concatenate(parts)

    def _exchange(self, words: tuple[object, ...]) -> tuple[dict[str, Any], bytes]:
        line = " ".join(str(word) for word in words)
        with self._lock:
            try:
                response, data = self._try(line)
            except (OSError, ValueError, EOFError) as error:
                self._close()
                raise LabError(
                    f"the lab's disk does not answer at {self.path} ({error}); see its disk.log, "
                    "and start it anew: iojoule lab down; iojoule lab up"
                ) from error
        if "error" in response:
            raise LabError(f"the lab's disk refuses `{line}`: {response['error']}")
        return response, data

    def _try(self, line: str) -> tuple[dict[str, Any], bytes]:
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.settimeout(self._timeout_seconds)
            self._socket.connect(str(self.path))
        self._socket.sendall(line.encode() + b"\n")
        received = b""
        while b"\n" not in received:
            received += self._receive(65536)
        head, _, data = received.partition(b"\n")
        response: dict[str, Any] = json.loads(head)
        missing = response.pop("bytes", 0) - len(data)
        parts = [data]
        while missing > 0:
            parts.append(self._receive(missing))
            missing -= len(parts[-1])
        return response, b"".join(parts)

    def _receive(self, count: int) -> bytes:
        assert self._socket is not None
        received = self._socket.recv(count)
        if not received:
            raise EOFError("it closed the connection")
        return received

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class DiskPower:
    """The drive's watts as a `PowerSource` with one rail."""

    step_ns = 50_000

    def __init__(self, control: DiskControl) -> None:
        self._control = control
        self._next_ns = int(control.status()["now_ns"])

    def watts(self, until_ns: int) -> tuple[int, NDArray[np.float64]]:
        """See `PowerSource`; a drive that has vanished draws nothing."""
        try:
            begin, step, values = self._control.watts(self._next_ns)
        except LabError:
            begin, step = self._next_ns, self.step_ns
            values = np.zeros(max(until_ns - begin, 0) // step, dtype=np.float32)
        count = min(len(values), max(until_ns - begin, 0) // step)
        self._next_ns = begin + count * step
        return begin, values[:count, np.newaxis].astype(np.float64)
