"""A running lab from outside: its state, its record of what happened, its faults."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.measure.drive.block_device import SECTOR_BYTES
from iojoule.measure.errors import LabError
from iojoule.measure.lab.disk_control import DiskControl
from iojoule.measure.lab.host_power import host_joules
from iojoule.measure.lab.parts import FAULTS
from iojoule.measure.lab.paths import LabPaths, Process, open_own

KINDS = ("read", "write", "trim", "flush")
_PERCENTILES = {"latency_p50_ns": 50, "latency_p99_ns": 99, "latency_p999_ns": 99.9}


def record(control: DiskControl, begin_ns: int, end_ns: int) -> dict[str, Any]:
    """I/O and energy of drive and host in [begin_ns, end_ns), CLOCK_MONOTONIC: the ground truth.

    Latencies run from a command's arrival to the end of its reply; `iops` and throughput are over
    the whole time. Raises LabError if the daemon does not answer, or no longer knows that time.
    """
    completions = control.completions(begin_ns, end_ns)
    seconds = (end_ns - begin_ns) / 1e9
    packed = completions["packed"]
    failed = (packed & 1).astype(bool)
    kinds = (packed >> 1) & 7
    joules = control.joules(begin_ns, end_ns)
    fields: dict[str, Any] = {
        "begin_ns": begin_ns,
        "end_ns": end_ns,
        "device_energy_joules": joules,
        "device_power_watts": joules / seconds if seconds > 0 else None,
        "failed": int(failed.sum()),
    }
    for number, name in enumerate(KINDS):
        fields[name] = _one_kind(packed[(kinds == number) & ~failed], seconds)
    commands = sum(fields[name]["completions"] for name in KINDS)
    moved = fields["read"]["bytes"] + fields["write"]["bytes"]
    fields["host_energy_joules"] = host_joules(seconds, commands, moved)
    return fields


def _one_kind(packed: NDArray[np.uint64], seconds: float) -> dict[str, Any]:
    latencies = (packed >> 24).astype(np.float64)
    moved = int(((packed >> 4) & 0xFFFFF).sum()) * SECTOR_BYTES
    count = len(packed)
    fields: dict[str, Any] = {"completions": count, "bytes": moved}
    if count == 0:
        return fields
    fields["latency_mean_ns"] = float(latencies.mean())
    fields["latency_min_ns"], fields["latency_max_ns"] = (
        float(latencies.min()),
        float(latencies.max()),
    )
    values = np.percentile(latencies, list(_PERCENTILES.values()))
    fields |= dict(zip(_PERCENTILES, map(float, values), strict=True))
    # bins of a factor of 2 ** (1/8), by their lower edge
    octaves = np.floor(np.log2(np.maximum(latencies, 1)) * 8).astype(int)
    bins, counts = np.unique(octaves, return_counts=True)
    edges = np.exp2(bins / 8)
    fields["latency_histogram_ns"] = {
        f"{edge:.0f}": int(each) for edge, each in zip(edges, counts, strict=True)
    }
    if seconds > 0:
        fields["iops"] = count / seconds
        fields["throughput_bytes_per_second"] = moved / seconds
    return fields


_TIMEOUT_SECONDS = 10.0


class LabClient:
    """The lab in `folder`; docs/lab.md lists the fields of `state` (lab.json).

    Raises LabError if there is none, it did not start, or its folder is another user's.
    """

    def __init__(self, folder: Path) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.close(open_own(folder.absolute()))
        self.paths = LabPaths(folder.absolute().resolve())
        state = self.paths.read_state()
        if state is None or state.get("status") != "ready":
            raise LabError(f"there is no lab in {folder}; begin one: iojoule lab up")
        self.state = state
        self.disk = DiskControl(self.paths.socket("disk"))

    def __enter__(self) -> LabClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection to the disk; the lab stays."""
        self.disk.close()

    def environment(self) -> dict[str, str]:
        """What a program needs in its environment, beside its own, to find the controller."""
        added: dict[str, str] = dict(self.state["environment"])
        earlier = os.environ.get("LD_PRELOAD", "")
        if earlier and added["LD_PRELOAD"] not in earlier.split(":"):
            added["LD_PRELOAD"] += f":{earlier}"
        return added

    def record(self, begin_ns: int, end_ns: int | None = None) -> dict[str, Any]:
        """What really happened between two times (CLOCK_MONOTONIC; None: now); see `record`."""
        end = time.monotonic_ns() if end_ns is None else end_ns
        if not begin_ns < end:
            raise LabError(f"{begin_ns} to {end} is no time; the end comes after the beginning")
        return record(self.disk, begin_ns, end)

    def status(self) -> dict[str, Any]:
        """Whether the processes run, and what the drive does now."""
        processes = {
            name: Process(**process).runs() for name, process in self.state["processes"].items()
        }
        status: dict[str, Any] = {"folder": str(self.paths.folder), "running": processes}
        status |= {
            key: self.state[key] for key in ("drive", "controller", "powersensor3", "serial")
        }
        if "rehearsal" in self.state:
            status["rehearsal"] = self.state["rehearsal"]
        if processes.get("disk"):
            status["disk"] = self.disk.status()
        return status

    def fault(self, part: str, kind: str, value: float | None = None) -> None:
        """Inject a fault of `FAULTS` into a part of the lab; `none` ends its faults.

        `value`: number of failing requests (disk eio), seconds without an answer (disk stall),
        bytes or frames of 100 lost, seconds of lost or full-scale frames, watts of zero drift
        (powersensor3). Raises LabError if there is no such fault, or the lab does not answer.
        """
        if part not in FAULTS:
            raise LabError(f"the lab has no part {part}; parts are {', '.join(FAULTS)}")
        if kind not in FAULTS[part]:
            raise LabError(f"{part} has no fault {kind}; there are {', '.join(FAULTS[part])}")
        if part != "disk":
            self._ask_server({"part": part, "kind": kind, "value": value})
        elif kind == "eio":
            self.disk.ask("fault", "eio", 1 if value is None else int(value))
        elif kind == "stall":
            self.disk.ask("fault", "stall", int(1e9 * (1.0 if value is None else value)))
        else:
            self.disk.ask("fault", kind)

    def _ask_server(self, request: dict[str, Any]) -> None:
        path = self.paths.socket("server")
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
                link.settimeout(_TIMEOUT_SECONDS)
                link.connect(str(path))
                link.sendall(json.dumps(request).encode() + b"\n")
                with link.makefile("rb") as lines:
                    response = json.loads(lines.readline())
        except (OSError, ValueError) as error:
            raise LabError(f"the lab does not answer at {path}: {error}") from error
        if "error" in response:
            raise LabError(response["error"])
