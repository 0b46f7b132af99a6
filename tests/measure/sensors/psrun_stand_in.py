"""Behaves like the vendor's psrun: same arguments, same lines, same bad habits.

`psrun -d DEVICE -f FILE -- COMMAND`; as told by STAND_IN it exits or hangs when the device is
unplugged, ends at once, or writes the lines of an old version.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from iojoule.measure.errors import SensorError
from iojoule.measure.sensors.powersensor3_protocol import FrameDecoder, SensorRecord
from iojoule.measure.sensors.serial_port import SerialPort

MODE = os.environ.get("STAND_IN", "")


def main() -> int:
    assert sys.argv[1::2][:3] == ["-d", "-f", "--"], sys.argv
    device, dump, command = sys.argv[2], sys.argv[4], sys.argv[6:]
    sys.stdout.write("psrun version 1.6.1\n\n")
    sys.stdout.flush()
    if MODE == "ends":
        sys.stderr.write(f"{device}: No such device\n")
        return 1
    if MODE == "old":
        Path(dump).write_text("marker time dt_micro power_total\n", encoding="ascii")
        return 0
    port = SerialPort(device)
    port.write(b"R")
    records = []
    for _ in range(8):
        records.append(SensorRecord.decode(port.exactly(41, 2.0)))
        port.write(b"s")
    assert port.exactly(1, 2.0) == b"D"
    port.write(b"S")
    with Path(dump).open("w", encoding="ascii") as lines:
        try:
            run(port, records, lines, subprocess.Popen(command))
        except SensorError:
            if MODE == "hangs":
                time.sleep(60)
            sys.stderr.write("read: Input/output error\n")
            return 1
    port.write(b"T")
    port.drain(0.05, 1.0)
    return 0


def run(port, records, lines, child) -> None:  # type: ignore[no-untyped-def]
    in_use = [pair for pair in range(4) if records[2 * pair].in_use]
    columns = "".join(f" current{n} voltage{n} power{n}" for n in in_use)
    lines.write(f"marker time dt_micro device_timestamp{columns} power_total\n")
    lines.flush()
    decoder = FrameDecoder()
    while child.poll() is None:
        time.sleep(0.005)
        frames = decoder.feed(port.available())
        values = [
            record.values(frames.levels[:, n]) if record.in_use else None
            for n, record in enumerate(records)
        ]
        for row, stamp_us in enumerate(frames.stamps_us.tolist()):
            text, total = f"S {0.1:g} 50 {stamp_us}", 0.0
            for pair in in_use:
                current, voltage = values[2 * pair][row], values[2 * pair + 1][row]
                total += current * voltage
                text += f" {current:g} {voltage:g} {current * voltage:g}"
            lines.write(f"{text} {total:g}\n")
        lines.flush()


if __name__ == "__main__":
    sys.exit(main())
