"""The lab's background process: starts the disk, serves the other parts, injects their faults.

`python -m iojoule.measure.lab.server FOLDER BACKEND preset NAME`, or `... profile FILE SLOW_DOWN`,
started by `life.up`. It writes lab.json as soon as there is something to clean up, and again when
the lab is ready or has failed. It ends on SIGTERM; `life.down` cleans up, also after a killed lab.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import socketserver
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from iojoule.datasets.errors import IojouleError
from iojoule.datasets.programs import program_environment
from iojoule.measure.errors import LabError
from iojoule.measure.lab import system
from iojoule.measure.lab.disk_control import DiskControl
from iojoule.measure.lab.nvme_bytes import Identity
from iojoule.measure.lab.parts import Parts
from iojoule.measure.lab.paths import LabPaths, Process
from iojoule.measure.lab.rehearsal import ServedDrive, find_profile, rehearsal, simulated
from iojoule.measure.lab.system import DISK, NBD_PLUGIN, PRELOAD, built, program

FIRMWARE = "LAB1.0"
START_SECONDS = 15.0


class Lab:
    """One lab while it is being served."""

    def __init__(self, paths: LabPaths, backend: str, drive: ServedDrive) -> None:
        self.paths = paths
        self.backend = backend
        self.drive = drive
        self.parts: Parts | None = None
        self.state: dict[str, Any] = {
            "status": "starting",
            "backend": backend,
            **drive.facts,
            "processes": {"server": Process.of(os.getpid()).as_json()},
        }
        self._faults: _FaultServer | None = None

    def start_disk(self) -> None:
        """Start the daemon and its block device. Raises IojouleError if it does not start."""
        self.paths.write_state(self.state)
        preload = built(PRELOAD)
        self.paths.drive_text.write_text(self.drive.text, encoding="utf-8")
        self._start_disk()
        self._status = self._wait_for(DiskControl(self.paths.socket("disk")))
        self._identity = self._identify(int(self._status["capacity_bytes"]))
        self._describe(preload)

    def start_parts(self) -> None:
        """Start everything else, in threads of this process."""
        self.parts = Parts(self.paths, self.drive.power, self._identity)
        for stand_in in (self.paths.controller, self.paths.namespace):
            stand_in.touch(mode=0o600)
        self._faults = _FaultServer(self.paths.socket("server"), self.parts)
        self.state |= {"status": "ready", "began_ns": self._status["now_ns"]}
        self.paths.write_state(self.state)

    def close(self) -> None:
        """End the threads; processes and mounts are `life.down`'s business."""
        if self._faults is not None:
            self._faults.close()
        if self.parts is not None:
            self.parts.close()

    def _start_disk(self) -> None:
        paths = self.paths
        arguments = [str(paths.drive_text), str(paths.mount), str(paths.socket("disk"))]
        if self.backend == "fuse":
            paths.mount.mkdir(exist_ok=True)
            words = [str(built(DISK)), *arguments]
        else:
            words = [
                program("nbdkit"),
                "--foreground",
                "--threads",
                "256",
                "--unix",
                str(paths.socket("nbd")),
                str(built(NBD_PLUGIN)),
                f"drive={arguments[0]}",
                f"control={arguments[2]}",
            ]
        with paths.log("disk").open("wb") as log:
            started = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=program_environment(),
            )
        self._disk = started
        self.state["processes"]["disk"] = Process.of(started.pid).as_json()
        self.paths.write_state(self.state)

    def _wait_for(self, control: DiskControl) -> dict[str, Any]:
        until = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(LabError):
                status = control.status()
                control.close()
                return status
            if self._disk.poll() is not None or time.monotonic() > until:
                log = self.paths.log("disk").read_text(errors="replace").strip()
                hint = "" if self.backend == "nbdkit" else " (without FUSE: --backend nbdkit)"
                raise LabError(f"the lab's disk does not start: {log or 'its log is empty'}{hint}")
            time.sleep(0.01)

    def _identify(self, capacity_bytes: int) -> Identity:
        place = hashlib.sha256(str(self.paths.folder).encode()).hexdigest()
        return Identity(
            serial=f"LAB{place[:12].upper()}",
            model=self.drive.model,
            firmware=FIRMWARE,
            capacity_bytes=capacity_bytes,
            max_transfer_bytes=self.drive.max_transfer_bytes,
        )

    def _describe(self, preload: Path) -> None:
        paths, identity = self.paths, self._identity
        if self.backend == "fuse" and os.getuid() == 0:
            path = system.attach(paths.image, identity.max_transfer_bytes)
        elif self.backend == "fuse":
            path = str(paths.image)  # a file: fio takes it, guards for block devices will not
        else:
            path = f"nbd+unix:///?socket={paths.socket('nbd')}"
        nodes = [str(paths.controller), str(paths.namespace)]
        if path.startswith("/dev/"):
            nodes.append(path)
        self.state |= {
            "drive": path,
            "controller": str(paths.controller),
            "namespace": str(paths.namespace),
            "powersensor3": str(paths.power_sensor),
            "powersensor3_pairs": ["m2-3v3"],
            "rapl_root": str(paths.rapl),
            "serial": identity.serial,
            "model": identity.model,
            "firmware": identity.firmware,
            "capacity_bytes": identity.capacity_bytes,
            "max_transfer_bytes": identity.max_transfer_bytes,
            "power_states": len(self.drive.power.states),
            "environment": {
                "LD_PRELOAD": str(preload),
                "IOJOULE_LAB": str(paths.folder),
                "IOJOULE_LAB_NODES": ":".join(nodes),
                "IOJOULE_LAB_CONTROLLER": str(paths.socket("controller")),
            },
        }
        self.paths.write_state(self.state)


class _FaultServer:
    """Takes `{"part", "kind", "value"}` lines and answers `{}` or `{"error"}`."""

    def __init__(self, path: Path, parts: Parts) -> None:
        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                for line in self.rfile:
                    try:
                        request = json.loads(line)
                        parts.fault(request["part"], request["kind"], request.get("value"))
                        response: dict[str, str] = {}
                    except (IojouleError, KeyError, ValueError, OSError) as error:
                        response = {"error": str(error)}
                    self.wfile.write(json.dumps(response).encode() + b"\n")

        path.unlink(missing_ok=True)
        self._server = socketserver.ThreadingUnixStreamServer(str(path), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="lab-faults", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve one lab until SIGTERM."""
    folder, backend, kind, name, *slow_down = arguments or sys.argv[1:]
    if kind == "profile":
        drive = rehearsal(find_profile(name), name, *map(float, slow_down))
    else:
        drive = simulated(name)
    lab = Lab(LabPaths(Path(folder)), backend, drive)
    signals = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}
    signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        lab.start_disk()
        # after the disk, which would inherit it, and before any thread
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        lab.start_parts()
        while signal.sigwait(signals) == signal.SIGCHLD:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(-1, os.WNOHANG)  # the disk is dead; `status` tells
        return 0
    except (IojouleError, OSError) as error:
        sys.stderr.write(traceback.format_exc())
        lab.paths.write_state({**lab.state, "status": "failed", "reason": str(error)})
        return 1
    finally:
        lab.close()


if __name__ == "__main__":
    sys.exit(main())
