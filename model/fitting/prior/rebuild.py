"""Learning the prior that ships, from the catalogue and the public fio runs."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path

from threadpoolctl import threadpool_limits

from iojoule.datasets.schema import Measurement
from iojoule.model.fitting.prior.learn import catalogue_drives, learn
from iojoule.model.fitting.prior.measured import measured_drives, with_measurements
from iojoule.model.prior.document import LearnedPrior
from iojoule.model.prior.facts import DriveFacts


def learned_prior(folder: Path) -> LearnedPrior:
    """Learn from everything.

    Raises:
        InputError: A file of public measurements is missing.
    """
    return prior_without((), measured_drives(folder))


def prior_without(
    left_out: Collection[str], measurements: Mapping[str, list[Measurement]]
) -> LearnedPrior:
    """Learn without what was measured of some drives; their identify data and data sheets stay."""
    with threadpool_limits(1):  # sums in one order, so that every machine finds the same digits
        drives = {
            drive.device: drive.without_measurements() if drive.device in left_out else drive
            for drive in catalogue_drives()
        }
        stated = learn(list(drives.values()), rounds=1)  # only a start for the curves' fits
        for name, rows in measurements.items():
            if name in drives and name not in left_out:
                drives[name] = with_measurements(drives[name], rows, stated)
        return learn(list(drives.values()))


def known_drive(device: str) -> DriveFacts:
    """A drive of the catalogue by identify data and data sheet only."""
    found = next(drive for drive in catalogue_drives() if drive.device == device)
    return found.without_measurements()


def write_prior(prior: LearnedPrior, path: Path) -> None:
    """Write the learned prior as JSON, one line a row of numbers."""
    data = prior.model_dump(mode="json")
    lines = [f" {json.dumps(key)}: {_nested(data[key])}" for key in sorted(data)]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _nested(value: object) -> str:
    if isinstance(value, list) and value and isinstance(value[0], list | dict):
        return "[\n  " + ",\n  ".join(json.dumps(one) for one in value) + "\n ]"
    return json.dumps(value)
