"""Configurations as points of the unit cube: every knob that varies, as a number from 0 to 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.schema import Configuration

Floats = NDArray[np.float64]

_DOUBLED = ("request_bytes", "queue_depth", "jobs", "cpu_frequency_max_hertz")
"""Knobs whose effect goes by factors: their log counts."""


def coordinates(configurations: Sequence[Configuration]) -> tuple[Floats, tuple[str, ...]]:
    """Coordinates, shape (n, d), and their names; what is the same everywhere is left out.

    Queue depth enters as requests in flight (depth x jobs): throughput and latency follow them,
    and what jobs change besides is the host's. Words become one switch each, but for the first.
    """
    rows = [one.model_dump(mode="json") for one in configurations]
    columns: dict[str, Floats] = {}
    for name in Configuration.model_fields:
        values = [row[name] for row in rows]
        if len(set(values)) < 2 and name != "queue_depth":
            continue
        if name in _DOUBLED and None not in values:
            columns[name] = np.log2(np.array(values, dtype=float))
        elif all(isinstance(value, int | float) for value in values):
            columns[name] = np.array(values, dtype=float)
        else:
            words = sorted({str(value) for value in values})
            for word in words[1:]:
                columns[f"{name}={word}"] = np.array([float(str(v) == word) for v in values])
    columns["queue_depth"] = columns["queue_depth"] + np.log2([float(row["jobs"]) for row in rows])
    varied = {name: one for name, one in columns.items() if np.ptp(one) > 0}
    if not varied:
        return np.zeros((len(rows), 1)), ("nothing",)
    scaled = [(one - one.min()) / np.ptp(one) for one in varied.values()]
    return np.stack(scaled, axis=1), tuple(varied)
