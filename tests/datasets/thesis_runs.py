"""Result folders as energy-benchmark writes them, made small by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

SESSION = "qd-2025-11-06_14-48-52"
DEPTH = 4
IOPS = 40_000.0
RUNTIME_MS = 20_000
RAMP_MS = 3_000
START_MS = 400
"""From the start of the recording to the start of fio's work."""
END_MS = 100
RECORDED_MS = START_MS + RAMP_MS + RUNTIME_MS + END_MS


def fio_document(
    *, engine: str = "io_uring", iops: float = IOPS, latency_ns: float | None = None
) -> dict[str, Any]:
    """What fio 3.38 wrote for the tool's command line (shortened)."""
    requests = int(iops * RUNTIME_MS / 1000)
    latency = latency_ns or DEPTH / iops * 1e9
    done = {
        "io_bytes": requests * 4096,
        "bw_bytes": int(iops * 4096),
        "bw": int(iops * 4),
        "iops": iops,
        "runtime": RUNTIME_MS,
        "total_ios": requests,
        "slat_ns": {"mean": 900.0, "N": requests},
        "clat_ns": {
            "mean": latency - 900.0,
            "N": requests,
            "percentile": {"50.000000": 95_000, "99.000000": 180_000, "99.900000": 240_000},
        },
        "lat_ns": {"mean": latency, "N": requests},
    }
    return {
        "fio version": "fio-3.38",
        "timestamp_ms": 1762440532000,
        "global options": {
            "filename": "/dev/nvme2n1",
            "direct": "1",
            "bs": "4k",
            "ioengine": engine,
            "time_based": "1",
            "iodepth": str(DEPTH),
            "log_avg_msec": "10",
            "size": "100%",
            "runtime": "20s",
            "ramp_time": "3s",
            "rw": "randread",
            "unit_base": "0",
            "numjobs": "1",
        },
        "jobs": [
            {
                "jobname": "iodepth",
                "groupid": 0,
                "error": 0,
                "elapsed": 24,
                "job options": {"name": "iodepth", "write_bw_log": "log"},
                "read": done,
                "write": {"total_ios": 0},
                "trim": {"total_ios": 0},
                "job_runtime": RUNTIME_MS,
                "usr_cpu": 12.0,
                "sys_cpu": 23.0,
                "ctx": requests,
            }
        ],
    }


def level(time_ms: float, busy: float, *, idle: float) -> float:
    """`busy` within fio's measured time, something else before and after it."""
    begin = START_MS + RAMP_MS
    return busy if begin <= time_ms <= begin + RUNTIME_MS else idle


@cache
def sensor_text(name: str) -> str:
    """A whole sensor file."""
    return csv_text(*sensor_rows(name))


def sensor_rows(name: str) -> tuple[list[str], list[list[float]]]:
    """Header and rows of a sensor file; the ramp draws other powers than the measured time."""
    if name == "powersensor3.csv":
        times = range(1, RECORDED_MS, 1)
        rows = []
        for time in times:
            on12 = level(time, 3.0, idle=30.0)
            on3v3 = level(time, 1.0 if time % 50 else 2.0, idle=10.0)
            rows.append([time, on3v3 + on12, on3v3, on12])
        return ["Total", "PCIe_3V3", "PCIe_12V"], rows
    if name == "rapl.csv":
        rows = [
            [t, 66.0, level(t, 30.0, idle=90.0), 4.0, level(t, 25.0, idle=90.0), 3.0]
            for t in range(2, RECORDED_MS, 2)
        ]
        return ["Total", "package-0", "dram-0", "package-1", "dram-1"], rows
    if name == "netio-http.csv":
        rows = [
            [t, 230.1 + 0.1 * (place % 2), 0.45, level(t, 94.0, idle=150.0)]
            for place, t in enumerate(range(500, RECORDED_MS, 500))
        ]
        return ["pdu-voltage", "pdu-current", "load-pdu-server"], rows
    if name == "diskstat.csv":
        rows = []
        for t in range(10, RECORDED_MS, 10):
            ios = int(IOPS * t / 1000)
            rows.append([t, ios * 8, 0, 1.6e8, 0, ios, 0, ios // 100, 0, 5, 6, 0])
        header = ["bytes_read", "bytes_write", "read", "write", "read_ios", "write_ios"]
        header += ["read_merges", "write_merges", "time_in_queue", "read_ticks", "write_ticks"]
        return header, rows
    rows = [[t, 2400.0, 2395.0, 35.0, 1.0] for t in range(10, RECORDED_MS, 10)]
    return ["cpu-0-freq", "cpu-1-freq", "cpu-0-load", "cpu-1-load"], rows


SENSORS = ("powersensor3.csv", "rapl.csv", "netio-http.csv", "diskstat.csv", "sysinfo.csv")


def csv_text(header: Sequence[str], rows: Sequence[Sequence[float]]) -> str:
    lines = [f"time,{','.join(header)}"]
    lines += [
        ",".join(format(cell, "g" if abs(cell) < 1e6 else ".0f") for cell in row) for row in rows
    ]
    return "\n".join(lines) + "\n"


def write_run(
    folder: Path,
    *,
    bench: str = "iodepth-4",
    state: int = 0,
    iteration: int = 0,
    index: int = 2,
    fio: Mapping[str, Any] | None = None,
    files: Sequence[str] = SENSORS,
) -> Path:
    """One run below the results folder `folder`."""
    run = folder / "data" / f"{bench}-ps{state}-i{iteration}-{index}"
    run.mkdir(parents=True)
    (run / "results.json").write_text(json.dumps(fio or fio_document()))
    (run / "log_bw.1.log").write_text("10, 160000, 0, 0, 0\n")
    for name in files:
        (run / name).write_text(sensor_text(name))
    return run


def parts_of(run: str) -> tuple[dict[str, Any], str]:
    """What a run's name states of bench, power state and iteration, and its last part."""
    match = re.fullmatch(r"(.+)-ps(-?\d+)-i(\d+)-(\w+)", run)
    assert match
    fields = {"name": match[1], "power_state": int(match[2]), "iteration": int(match[3])}
    return fields, match[4]


def write_info(folder: Path, **more: Any) -> None:
    """`info.json` that knows every run below the folder."""
    arguments = {
        "type": "Fio",
        "test_type": {"type": "randread", "args": None},
        "request_sizes": ["4k"],
        "io_engines": ["io_uring"],
        "io_depths": [4],
        "num_jobs": [1],
        "ramp_time": "3s",
        "extra_options": [["--unit_base=0"]],
        "job_specific_extra_options": None,
        "matched_args": None,
        "fs": None,
    } | more
    runs = {}
    for run in (folder / "data").iterdir():
        fields, index = parts_of(run.name)
        runs[run.name] = {**fields, "idx": int(index), "args": arguments}
    info = {
        "param_map": runs,
        "device_power_states": [[8.49, "8.49W"], [4.48, "4.48W"]],
        "cpu_freq_limits": [800000, 3200000],
        "cpu_topology": {"0": 20, "1": 20},
    }
    (folder / "info.json").write_text(json.dumps(info))


CONFIG = """\
name: qd
settings:
  device: /dev/nvme2n1          # the drive
  numa:
    cpunodebind: 1
    membind: '1'
  nvme_power_states: [0, 1]
  cpu_freq:
    freq: 2400000
    default_governor: schedutil
  cpu_max_power_watts: 200
  scheduler: none
bench_args:
  - type: FioConfig
    scheduler: kyber
"""

OLDER_CONFIG = """\
name: qd
settings:
  numa:
    cpunodebind: 1
    membind: 1
  device: /dev/nvme2n1
  nvme_power_states: [0, 1]
  nvme_cli_device: /dev/nvme2
benches:
  - name: iodepth
    repeat: 3
    bench: {type: Fio, request_sizes: [4k], io_depths: [1, 4], io_engines: [io_uring]}
bench_args: []
sensors: [Powersensor3, Rapl, NetioHttp]
sensor_args: []
"""
"""As before October 2025: no scheduler, no limits."""


def newer_config(settings: str = "", *, benches: str | None = None) -> str:
    """`config.yaml` of the newer generation; `settings` are further lines of that block."""
    lines = [
        "name: qd",
        "settings:",
        "  device: /dev/nvme2n1",
        "  numa: {cpunodebind: 1, membind: '1'}",
        "  cpu_max_power_watts: 200.0",
        *(f"  {line}" for line in settings.splitlines()),
        "benches:",
        *(benches or DEPTH_BENCH).splitlines(),
        "bench_args: [{type: FioConfig}]",
        "sensors: [{sensor: Powersensor3, args: {type: Powersensor3Config, device: /dev/ttyACM0}}]",
    ]
    return "\n".join(lines) + "\n"


DEPTH_BENCH = """\
  - name: iodepth-4
    repeat: 1
    bench:
      type: Fio
      test_type: {type: randread}
      request_sizes:
        - 4k
      io_engines: [io_uring]
      io_depths: [1, 2, 4, 8]
      num_jobs: [1]
"""
"""Depth 4 is combination 2, the number in the name of `write_run`'s folder."""


def write_older(folder: Path, **more: Any) -> Path:
    """A run of the older generation: a hash for N, a bare map of runs, one distribution unit."""
    run = write_run(folder, **more)
    run = run.rename(run.with_name(run.name[: -len("2")] + "9f86d081884c7d65"))
    fields, hashed = parts_of(run.name)
    arguments = {"type": "Fio", "extra_options": [["--unit_base=0"]]}
    entry = {**fields, "hash": hashed, "args": arguments}
    (folder / "info.json").write_text(json.dumps({run.name: entry}))
    (folder / "config.yaml").write_text(OLDER_CONFIG)
    return run


def write_newer(
    folder: Path, *, settings: str = "", benches: str | None = None, **more: Any
) -> Path:
    """A run of the newer generation, with everything the layout demands beside it."""
    run = write_run(folder, **more)
    write_info(folder)
    (folder / "config.yaml").write_text(newer_config(settings, benches=benches))
    return run
