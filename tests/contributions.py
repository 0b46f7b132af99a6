"""Campaigns as `iojoule measure run` leaves them; the drive behaves as a shipped profile says."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.measured_drive import MeasuredDrive
from iojoule.datasets.profile import load_shipped_profile
from iojoule.datasets.schema import from_row
from iojoule.measure.campaign.folder import (
    CampaignFolder,
    CampaignOptions,
    PowerRecord,
    RunRecord,
    Status,
)
from iojoule.measure.recording.series import Spool
from iojoule.measure.sensors.protocol import Chunk, Delivery, Kind, Probe, Rail, Scope
from iojoule.model.evaluate.predictor import Predictor

MODEL = "Samsung SSD 980 PRO 1TB"
SERIAL = "S5GXNX0T123456K"
HOST = "db-server-17.example.org"
SENSOR = "powersensor3:/dev/serial/by-id/usb-PowerSensor3_385A357C3433-if00"
HERTZ, SECONDS = 2000.0, 1.0
NOISE_WATTS, FULL_SCALE = 0.15, 45.4
BEGAN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)

STATES = [(8.49, True), (4.48, True), (3.18, True), (0.04, False), (0.005, False)]

DRIVE: dict[str, Any] = {
    "schema_version": 1,
    "model": MODEL,
    "firmware": "1B2QGXA7",
    "capacity_bytes": 1_000_204_886_016,
    "block_bytes": 512,
    "max_transfer_bytes": 524_288,
    "volatile_write_cache": True,
    "power_states": [
        {
            "index": index,
            "max_power_watts": watts,
            "operational": operational,
            "entry_latency_us": 0,
            "exit_latency_us": 0,
        }
        for index, (watts, operational) in enumerate(STATES)
    ],
}

CONDITIONS: dict[str, Any] = {
    "series_id": "plan/reads",
    "session_id": "plan 2026-03-02",
    "device_model": MODEL,
    "device_serial_hash": "7a22d69702548104",
    "firmware": "1B2QGXA7",
    "percentage_used": 1.0,
    "temperature_celsius_start": 40.0,
    "temperature_celsius_mean": 42.0,
    "temperature_celsius_max": 44.0,
    "thermal_throttle_seconds": 0.0,
    "pcie_generation": 4,
    "pcie_lanes": 4,
    "aspm_policy": "performance",
    "max_transfer_bytes": 524_288.0,
    "host_id": "host-0658c62b1471",
    "cpu_model": "AMD EPYC 7302P 16-Core Processor",
    "cpu_cores_available": 20,
    "kernel_version": f"6.1.0-18-{HOST}",
    "power_state_verified": True,
}

GRID = [
    ("random", size, depth) for size in (4096, 16384, 65536) for depth in (1, 8, 32)
] + [("sequential", 131072, depth) for depth in (1, 4, 16)]  # fmt: skip


@dataclass
class One:
    """One run: its row of the schema, and the samples of its drive power."""

    row: dict[str, Any]
    watts: NDArray[np.float64]
    began: datetime = BEGAN
    moved: NDArray[np.float64] = field(default_factory=lambda: np.ones(5))


def runs(repeats: int = 1) -> list[One]:
    """Every run of a small plan, as the shipped profile predicts it, but for one percent."""
    random = np.random.default_rng(1)
    grid = GRID * repeats
    asked = {
        "operation": ["read"] * len(grid),
        "pattern": [pattern for pattern, _, _ in grid],
        "request_bytes": [size for _, size, _ in grid],
        "queue_depth": [depth for _, _, depth in grid],
        "jobs": [1] * len(grid),
        "engine": ["io_uring"] * len(grid),
        "power_state": [0] * len(grid),
    }
    predictor = Predictor(load_shipped_profile("samsung-980-pro-1tb"))
    found, _ = predictor.predict_columns(asked, len(grid))
    made = []
    for place in range(len(grid)):
        row = {name: values[place] for name, values in asked.items()}
        off = float(np.exp(0.01 * random.standard_normal()))
        iops = float(found["iops"].value[place]) * off
        watts = float(found["device_power_watts"].value[place])
        cpu = float(found["cpu_power_watts"].value[place])
        samples = watts + NOISE_WATTS * random.standard_normal(int(HERTZ * SECONDS))
        row |= CONDITIONS | {
            "repeat_index": place // len(GRID),
            "iops": iops,
            "throughput_bytes_per_second": iops * row["request_bytes"],
            "latency_mean_ns": row["queue_depth"] / iops * 1e9,
            "latency_p99_ns": float(found["latency_p99_ns"].value[place]),
            "device_power_watts": float(samples.mean()),
            "cpu_power_watts": cpu,
            "system_power_watts": 30.0 + 1.15 * (cpu + watts),
            "idle_power_watts": 1.7,
        }
        made.append(One(row, samples, BEGAN + timedelta(seconds=5 * place)))
    return made


def write_campaign(
    folder: Path, made: Iterable[One], *, drive: dict[str, Any] | None = None
) -> Path:
    """Store runs as a campaign's folder."""
    campaign = CampaignFolder(folder)
    campaign.create(
        'schema_version = 1\nname = "plan"\n',
        CampaignOptions(drive="/dev/nvme0n1", serial=SERIAL, sensors=[SENSOR]),
    )
    told = MeasuredDrive.model_validate(DRIVE | (drive or {}))
    campaign.write("drive.json", told)
    for number, one in enumerate(made, 1):
        _write_run(campaign, number, one)
    campaign.write_measurements(campaign.records(), "plan")
    return folder


def _write_run(campaign: CampaignFolder, number: int, one: One) -> None:
    path = campaign.path / "runs" / f"{number:05d}-reads"
    path.mkdir(parents=True)
    step, begin = int(1e9 / HERTZ), 10**12 * number
    times = begin + step * np.arange(len(one.watts), dtype=np.int64)
    meter = Rail("SN0042-rail", "watts", Kind.POWER, Scope.DEVICE, 0.05, full_scale=FULL_SCALE)
    _spool(path, 0, SENSOR, meter, times, one.watts)
    rate = one.row["throughput_bytes_per_second"]
    moved = np.concatenate([[0.0], np.cumsum(one.moved)]) * rate * SECONDS / 5
    edges = (begin + np.linspace(0, SECONDS * 1e9, 6)).astype(np.int64)
    _spool(path, 1, "diskstats:nvme0n1",
           Rail("disk-read-bytes", "bytes", Kind.COUNTER, Scope.HOST), edges, moved,
           Rail("disk-write-bytes", "bytes", Kind.COUNTER, Scope.HOST))  # fmt: skip
    record = RunRecord(
        number=number,
        sweep="reads",
        repeat=one.row.get("repeat_index") or 0,
        point=f"{number}",
        status=Status.DONE,
        started_utc=one.began,
        wall_seconds=4.0,
        begin_monotonic_ns=begin,
        end_monotonic_ns=begin + int(SECONDS * 1e9),
        measurement=from_row(one.row),
        power={"device": _power(one.watts)},
        notes=[f"{SENSOR} on {HOST}"],
    )
    (path / "run.json").write_text(record.model_dump_json())


def _spool(
    path: Path,
    number: int,
    sensor: str,
    rail: Rail,
    times: NDArray[np.int64],
    values: NDArray[np.float64],
    *silent: Rail,
) -> None:
    rails = (rail, *silent)
    probe = Probe(rails, HERTZ, {
        "version": "F411-1.6.1", "host": HOST,
        "pair 0 current": "SN0042-MLX, vref 1.65 V, sensitivity 0.12",
    })  # fmt: skip
    spool = Spool(path, number, sensor, probe)
    table = np.column_stack([values, *(np.zeros(len(values)) for _ in silent)])
    spool.add(Chunk(times, table, np.zeros(len(times), dtype=np.uint8)))
    spool.finish(Delivery(len(times), 0, (), int(times[0]), int(times[-1])), None)


def _power(watts: NDArray[np.float64]) -> PowerRecord:
    return PowerRecord(
        sensor=SENSOR,
        rails=["SN0042-rail"],
        mean_watts=float(watts.mean()),
        standard_error_watts=0.01,
        calibration_uncertainty_watts=None,
        energy_joules=float(watts.mean()) * SECONDS,
        over_1_ms=None,
        over_10_ms=None,
        over_10_s=None,
        samples=len(watts),
        lost=0,
        coverage=1.0,
        gaps=[],
        reason=None,
    )


def changed(one: One, **values: Any) -> One:
    """The run with other values in its row."""
    return replace(one, row=one.row | values)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def write_identify(path: Path, **changes: Any) -> Path:
    """What `nvme id-ctrl -o json` prints of the drive, serial number and all."""
    states = [
        {"max_power": round(watts * (1e2 if operational else 1e4)), "entry_lat": 0,
         "exit_lat": 0, "max_power_scale": int(not operational),
         "non-operational_state": int(not operational)}
        for watts, operational in STATES
    ]  # fmt: skip
    told = {"sn": SERIAL, "mn": MODEL, "fr": "1B2QGXA7", "mdts": 7, "psds": states}
    path.write_text(json.dumps({"tnvmcap": 1_000_204_886_016, **told, **changes}))
    return path
