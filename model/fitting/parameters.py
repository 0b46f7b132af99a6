"""The least-squares vector of a surface: what it holds, where it starts, what pulls it back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.model.curve import log_smooth_max

Floats = NDArray[np.float64]
PathKey = tuple[str, str, bool]


@dataclass(frozen=True)
class Priors:
    """Centres and log standard deviations of what data may not identify.

    Latencies in ns, rates in operations and bytes per second; sd in log units. `physical_sd`
    belongs to the four rates and latencies above it, `knot_sd` and `slope_sd` to the knots of
    unloaded latency, capacity and sharpness, `session_sd` to a session's unloaded latency, core
    time and sharpness; a session that stands apart has `apart_factor` times as much.
    `knots` are sizes (log2 bytes) at which the curve is wanted whether or not there are rows.
    """

    unloaded_ns: float = 60_000.0
    transfer_bytes_per_second: float = 3.2e9
    operations_per_second: float = 8e5
    bytes_per_second: float = 3.2e9
    physical_sd: tuple[float, float, float, float] = (1.5, 0.7, 1.0, 0.5)
    sharpness: float = 1.8
    sharpness_sd: float = 0.4
    host_sharpness: float = 6.0
    host_sharpness_sd: float = 0.6
    knot_sd: tuple[float, float, float] = (0.5, 0.3, 0.3)
    slope_sd: tuple[float, float] = (0.15, 0.3)
    session_sd: tuple[float, float, float] = (0.08, 0.056, 0.12)
    apart_factor: float = 5.0
    access_unit_bytes: int = 4096
    knots: tuple[float, ...] = ()


@dataclass(frozen=True)
class PathPrior:
    """What a host path is expected to cost: added latency, core time and wake-up, ns; log sd."""

    added_latency_ns: float
    core_time_ns: float
    wakeup_ns: float
    log_sd: float


def physical_unloaded(physical: Floats, size: Floats) -> Floats:
    """log(a + bytes / b), ns."""
    return np.asarray(np.log(np.exp(physical[..., 0:1]) + size / np.exp(physical[..., 1:2])))


def physical_capacity(physical: Floats, size: Floats) -> Floats:
    """Log min(Imax, B / bytes), smooth, commands per ns."""
    return -log_smooth_max(-physical[..., 2:3], np.log(size) - physical[..., 3:4], 4.0)


class Layout:
    """Names the slices of the vector and knows its start and its penalties.

    Slices: physical (4), log_k (2: drive, host), unloaded, capacity and sharpness (a knot each),
    added, core and wakeup (a path each), scheduler (2 each), session (3 rows).
    """

    def __init__(
        self,
        priors: Priors,
        knots: Floats,
        paths: list[PathPrior],
        schedulers: list[tuple[float, float]],
        apart: list[bool],
    ) -> None:
        self.priors = priors
        self.size = np.exp2(knots)
        self.step = np.sqrt(np.maximum(np.diff(knots), 0.25))
        self.path_sd = np.array([path.log_sd for path in paths])
        self.session_sd = np.outer(
            priors.session_sd, [priors.apart_factor if flag else 1.0 for flag in apart]
        ).ravel()
        physical = np.log(
            [
                priors.unloaded_ns,
                priors.transfer_bytes_per_second * 1e-9,
                priors.operations_per_second * 1e-9,
                priors.bytes_per_second * 1e-9,
            ]
        )
        parts = {
            "physical": physical,
            "log_k": np.log([priors.sharpness, priors.host_sharpness]),
            "unloaded": physical_unloaded(physical, self.size),
            "capacity": physical_capacity(physical, self.size),
            "sharpness": np.full(len(knots), np.log(priors.sharpness)),
            "added": np.log([path.added_latency_ns for path in paths]),
            "core": np.log([path.core_time_ns for path in paths]),
            "wakeup": np.log([path.wakeup_ns for path in paths]),
            "scheduler": np.log(np.maximum(np.array(schedulers).reshape(-1), 1.0)),
            "session": np.zeros(self.session_sd.size),
        }
        self.slices: dict[str, slice] = {}
        position = 0
        for name, part in parts.items():
            self.slices[name] = slice(position, position + part.size)
            position += part.size
        self.start: Floats = np.concatenate(list(parts.values()))

    def part(self, vector: Floats, name: str) -> Floats:
        """One named part of a vector, or of each of several, (..., parameters)."""
        return vector[..., self.slices[name]]

    def penalties(self, vector: Floats) -> Floats:
        """Distance of vectors, (..., parameters), from the priors, in standard deviations."""
        priors = self.priors
        physical = self.part(vector, "physical")
        unloaded = self.part(vector, "unloaded") - physical_unloaded(physical, self.size)
        capacity = self.part(vector, "capacity") - physical_capacity(physical, self.size)
        sharpness = self.part(vector, "sharpness") - self.part(vector, "log_k")[..., 0:1]
        moved = vector - self.start
        k_sd = np.array([priors.sharpness_sd, priors.host_sharpness_sd])
        return np.concatenate(
            [
                self.part(moved, "physical") / np.array(priors.physical_sd),
                self.part(moved, "log_k") / k_sd,
                unloaded / priors.knot_sd[0],
                capacity / priors.knot_sd[1],
                sharpness / priors.knot_sd[2],
                np.diff(capacity) / (priors.slope_sd[0] * self.step),
                np.diff(sharpness) / (priors.slope_sd[1] * self.step),
                self.part(moved, "added") / self.path_sd,
                self.part(moved, "core") / self.path_sd,
                self.part(moved, "wakeup") / self.path_sd,
                self.part(moved, "scheduler") / 0.6,
                self.part(moved, "session") / self.session_sd,
            ],
            axis=-1,
        )
