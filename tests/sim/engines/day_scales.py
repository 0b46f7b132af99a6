"""Whole days beside their scale models: `python -m tests.sim.engines.day_scales CSV`.

A day of each preset and its model at 1:16. It takes half an hour and 3 GB.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from iojoule.api.application.replay import replay_day
from iojoule.sim.engines import Limits
from iojoule.sim.formats.files import read_drive
from iojoule.sim.presets import drive_path, preset_names

SCALE = 16
REQUESTS = 200_000_000
OTHERS = {
    "intel-optane-dc-p4800x-375gb": 20_000_000,
    "samsung-980-pro-1tb": 650_000_000,
    "samsung-980-1tb": 250_000_000,
    "samsung-pm9a3-960gb": 250_000_000,
}
QUANTITIES = ("mean", "p50", "p99", "p999")


def quantities(day: Mapping[str, Any]) -> dict[str, float]:
    """What the two are compared in."""
    joules = day["energy_joules"]
    told = {"watts": sum(joules.values()) / day["simulated_seconds"]}
    if day["write_amplification"]:
        told["write amplification"] = day["write_amplification"]
    for kind in ("read", "write"):
        latency = day[f"{kind}_latency"]
        told |= {f"{kind} {name}": latency[f"{name}_ns"] for name in QUANTITIES}
    return told


def row(name: str, whole: Mapping[str, Any], model: Mapping[str, Any]) -> dict[str, Any]:
    """Relative errors of the model."""
    expected, found = quantities(whole), quantities(model)
    errors = {each: f"{found[each] / expected[each] - 1:+.3f}" for each in expected}
    return {"drive": name, "requests": whole["requests"], "scale": model["scale"], **errors}


def rows() -> Iterator[dict[str, Any]]:
    """One for each preset."""
    for name in preset_names():
        device = read_drive(drive_path(name)).device
        whole, model = (
            replay_day(
                device,
                requests=OTHERS.get(name, REQUESTS),
                volumes=1000,
                seed=1,
                scale=scale,
                interval_seconds=3600,
                limits=Limits(),
            ).document()
            for scale in (1, SCALE)
        )
        yield row(name, whole, model)


CAPTION = (
    "# Errors of scale models of synthetic days (`iojoule simulate --day N --scale 16`) beside "
    "whole days (`python -m tests.sim.engines.day_scales TABLE.csv`). A model has 16 times fewer "
    "bursts: where a drive cannot keep up with rare ones, mean and tail latencies are too low.\n"
)


def write(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """The table."""
    with path.open("w", newline="", encoding="utf-8") as file:
        file.write(CAPTION)
        table = csv.DictWriter(file, max(lines, key=len), lineterminator="\n")
        table.writeheader()
        table.writerows(lines)


if __name__ == "__main__":
    write(Path(sys.argv[1]), list(rows()))
