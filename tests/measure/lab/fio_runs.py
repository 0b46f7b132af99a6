"""fio on the lab's drive, and beside it what the lab itself recorded."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass

import numpy as np

from iojoule.measure.lab.client import KINDS, LabClient
from tests.measure.lab.conftest import need


@dataclass(frozen=True)
class Comparison:
    """The same quantity as fio saw it and as it was."""

    fio_bytes_per_second: float
    true_bytes_per_second: float
    fio_median_ns: float
    true_median_ns: float

    @property
    def throughput_error(self) -> float:
        return self.fio_bytes_per_second / self.true_bytes_per_second - 1

    @property
    def latency_error(self) -> float:
        return self.fio_median_ns / self.true_median_ns - 1

    def within(self, tolerance: float) -> bool:
        return max(abs(self.throughput_error), abs(self.latency_error)) <= tolerance


def compare(
    lab: LabClient, engine: str, operation: str, size: str, depth: int, seconds: float
) -> Comparison:
    need("fio")
    begin_ns = time.monotonic_ns()
    done = subprocess.run(
        [
            "fio",
            "--name=x",
            f"--filename={lab.state['drive']}",
            "--direct=1",
            f"--rw={operation}",
            f"--ioengine={engine}",
            f"--bs={size}",
            f"--iodepth={depth}",
            "--time_based",
            f"--runtime={seconds}s",
            "--norandommap",
            "--allow_file_create=0",
            "--output-format=json",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    end_ns = time.monotonic_ns()
    text = done.stdout
    direction = "write" if "write" in operation else "read"
    seen = json.loads(text[text.index("{") :])["jobs"][0][direction]
    found = lab.disk.completions(begin_ns, end_ns)
    found = found[(found["packed"] >> 1 & 7) == KINDS.index(direction)]
    latencies = found["packed"] >> 24
    # fio counts from its first request to its last completion
    span_ns = int(found["done_ns"].max() - (found["done_ns"] - latencies).min())
    moved = int((found["packed"] >> 4 & 0xFFFFF).sum()) * 512
    return Comparison(
        fio_bytes_per_second=seen["bw_bytes"],
        true_bytes_per_second=moved / span_ns * 1e9,
        fio_median_ns=seen["clat_ns"]["percentile"]["50.000000"],
        true_median_ns=float(np.median(latencies)),
    )
