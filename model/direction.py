"""Throughput and latency of reads or of writes, as if the workload were nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.model.columns import Codes, Floats


@dataclass(frozen=True)
class Direction:
    """One direction's prediction: log values and log half widths of 90 %, shape (n,)."""

    log_value: dict[str, Floats]
    half_width: dict[str, Floats]
    evidence: Codes


def merge(parts: list[tuple[NDArray[np.bool_], Direction]], rows: int) -> Direction:
    """Rows of one prediction from several, each for the rows of its mask."""
    names = tuple(parts[0][1].log_value)
    value = {name: np.empty(rows) for name in names}
    half = {name: np.empty(rows) for name in names}
    evidence = np.empty(rows, dtype=np.intp)
    for mask, part in parts:
        for name in names:
            value[name][mask] = part.log_value[name]
            half[name][mask] = part.half_width[name]
        evidence[mask] = part.evidence
    return Direction(value, half, evidence)
