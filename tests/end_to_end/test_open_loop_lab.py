"""fio's Poisson arrivals on the virtual drive against the open loop of its closed-loop figures.

fio counts latency from the arrival of a request only where workers of its own send it
(`io_submit_mode=offload`). They sometimes never end (fio 3.33; later versions mend some of it), so
such a run is ended and made again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from iojoule.model.evaluate.latency import ArrivalProcess, ClosedLoop, sojourn
from tests.measure.lab.conftest import awake_lab, need
from tests.pressure import CpuPressure, skip_if_busy

pytestmark = pytest.mark.soak

SLOTS, LOADS = 16, (0.3, 0.6, 0.8)
SHARPNESS = 1.5
SECONDS, TRIES, GRACE_SECONDS = 12, 8, 8
WITHIN = 0.15
QUANTITIES = {"latency": "mean", "p50": "50.000000", "p99": "99.000000"}


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    need("fio")
    with awake_lab(tmp_path_factory.mktemp("open-loop") / "lab") as client:
        yield client.state["drive"]


def run(drive: str, *options: str) -> dict[str, float]:
    """Rate and latencies in ns of 4 KiB random reads."""
    command = [
        "fio", "--name=reads", f"--filename={drive}", "--direct=1", "--rw=randread", "--bs=4k",
        "--size=256M", f"--runtime={SECONDS}", "--time_based", "--output-format=json",
        "--lat_percentiles=1", "--clat_percentiles=0", "--thread", *options,
    ]  # fmt: skip
    for _ in range(TRIES):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            told, _ = process.communicate(timeout=SECONDS + GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            continue
        seen = json.loads(told[told.index(b"{") :])["jobs"][0]["read"]
        late = seen["lat_ns"] | seen["lat_ns"]["percentile"]
        return {"rate": seen["iops"]} | {name: late[key] for name, key in QUANTITIES.items()}
    pytest.skip(f"fio did not end in any of {TRIES} tries")


def test_poisson_arrivals_wait_as_the_closed_loop_says(drive: str) -> None:
    pressure = CpuPressure()
    alone, full = (run(drive, "--ioengine=libaio", f"--iodepth={n}") for n in (1, SLOTS))
    loop = ClosedLoop(
        np.array([full["rate"]]),
        np.array([float(SLOTS)]),
        {name: np.array([alone[name]]) for name in QUANTITIES},
        {name: np.array([full[name]]) for name in ("p50", "p99")},
        SHARPNESS,
    )
    errors = []
    for load in LOADS:
        seen = run(
            drive, "--ioengine=psync", "--io_submit_mode=offload", f"--iodepth={SLOTS}",
            f"--rate_iops={round(load * full['rate'])}", "--rate_process=poisson",
        )  # fmt: skip
        told = sojourn(loop, ArrivalProcess(np.array([seen["rate"]])), tuple(QUANTITIES))
        words = (
            f"{name} {seen[name] * 1e-6:.1f} ms, told {told[name][0] * 1e-6:.1f}"
            for name in QUANTITIES
        )
        sys.stdout.write(f"\nload {load:.0%}: {'; '.join(words)}\n")
        errors.append([abs(np.log(told[name][0] / seen[name])) for name in ("latency", "p99")])
    skip_if_busy(pressure.share())
    assert (np.median(errors, axis=0) < np.log1p(WITHIN)).all()
