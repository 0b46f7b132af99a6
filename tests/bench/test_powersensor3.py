"""Budgets of recording a PowerSensor3 at 20 kHz: every frame accounted for, little CPU and memory.

The emulated device runs in this process, the recorder in one of its own, so that its CPU time and
memory are its own too.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from iojoule.measure.lab.powersensor3 import ConstantPower, EmulatedPowerSensor3

SECONDS = 60
CPU_SHARE = 0.10
EMULATOR_CPU_SHARE = 0.10
GROWTH_BYTES = 16e6
WATTS = (1.5, 4.0)

RECORD = """
import json, sys, time
from pathlib import Path
from iojoule.measure.recording.recorder import Recorder
from iojoule.measure.sensors import open_sensor
from iojoule.measure.sensors.protocol import Scope

def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

seconds = float(sys.argv[3])
recorder = Recorder([open_sensor(f"powersensor3:{sys.argv[1]}")], Path(sys.argv[2]))
recorder.start()
cpu, begin = time.process_time(), time.monotonic_ns()
time.sleep(seconds / 3)
early = resident_bytes()
time.sleep(seconds * 2 / 3)
late = resident_bytes()
end, cpu = time.monotonic_ns(), time.process_time() - cpu
recording = recorder.stop()
delivery = recording.delivery(recording.sensors[0])
power = recording.power(Scope.DEVICE, begin, end)
print(json.dumps({
    "samples": delivery.samples, "lost": delivery.lost, "errors": delivery.errors,
    "failed": recorder.failed(), "cpu_share": cpu / ((end - begin) * 1e-9),
    "early_bytes": early, "late_bytes": late, "mean_watts": power.mean_watts,
    "standard_error_watts": power.standard_error_watts,
    "file_bytes": sum(file.stat().st_size for file in Path(sys.argv[2]).glob("*.parquet")),
}))
"""


def test_a_minute_at_20_khz(tmp_path: Path) -> None:
    with EmulatedPowerSensor3(tmp_path, ConstantPower(*WATTS)) as device:
        began, cpu = time.monotonic(), time.process_time()
        done = subprocess.run(
            [sys.executable, "-c", RECORD, device.path, tmp_path / "run", str(SECONDS)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        emulator_share = (time.process_time() - cpu) / (time.monotonic() - began)
        sent, dropped = device.frames_sent, device.frames_dropped
    found = json.loads(done.stdout)
    print(
        f"\n{SECONDS} s: {sent} frames sent ({dropped} never left the device), "
        f"{found['samples']} received, {found['lost']} lost; "
        f"CPU {100 * found['cpu_share']:.1f} % of a core, emulator {100 * emulator_share:.1f} %; "
        f"memory {found['early_bytes'] / 1e6:.0f} -> {found['late_bytes'] / 1e6:.0f} MB, "
        f"file {found['file_bytes'] / 1e6:.1f} MB; "
        f"{found['mean_watts']:.4f} +- {found['standard_error_watts']:.4f} W of {sum(WATTS)} W"
    )
    assert found["failed"] is None
    assert not found["errors"]
    assert found["samples"] + found["lost"] == sent
    assert found["cpu_share"] < CPU_SHARE
    assert emulator_share < EMULATOR_CPU_SHARE
    assert found["late_bytes"] - found["early_bytes"] < GROWTH_BYTES
