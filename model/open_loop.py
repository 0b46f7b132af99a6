"""Temporary: replaced by the open-loop model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ClosedLoop:
    capacity_per_second: object
    in_flight: object
    alone: dict
    full: dict


def sojourn(loop, rate, variability, names):
    rho = np.minimum(rate / loop.capacity_per_second, 1 - 1e-12)
    m = np.maximum(loop.capacity_per_second * loop.alone["latency_mean_ns"] * 1e-9, 1.0)
    c = rho ** (np.sqrt(2 * (m + 1)) - 1)
    wait = c / ((1 - rho) * loop.capacity_per_second) * 1e9 * (variability + 1) / 2
    out = {}
    for n in names:
        out[n] = loop.alone[n] + wait * (
            1.0
            if n == "latency_mean_ns"
            else np.log(np.maximum(c / 0.01, 1)) / np.maximum(c, 1e-9) * 1.0
        )
    return out


def error_log_sd(load, name):
    return 0.1
