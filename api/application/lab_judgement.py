"""Compares predictions of a virtual drive and a recommendation for it with its true physics."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import Configuration
from iojoule.measure.lab import drives
from iojoule.measure.lab.truth import TrueFigures, random_reads
from iojoule.model.evaluate.predictor import Predictor
from iojoule.recommender.request import WorkloadProfile

QUANTITIES = ("throughput_bytes_per_second", "latency_mean_ns", "device_power_watts")
REQUEST_BYTES = (4096, 8192, 16384, 32768, 49152, 65536, 131072)
"""What the plan `quick-lab` measures, and sizes between; each is one command of the drive."""
QUEUE_DEPTHS = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class JudgedPrediction:
    """One configuration: predicted over true, minus 1, and whether the interval holds the truth."""

    request_bytes: int
    queue_depth: int
    power_state: int
    evidence: str
    errors: Mapping[str, float]
    inside: Mapping[str, bool]


@dataclass(frozen=True)
class JudgedRecommendation:
    """What was recommended beside the best that the drive really offers."""

    recommended: Mapping[str, int]
    best: Mapping[str, int]
    joules_per_gb: float
    best_joules_per_gb: float
    latency_mean_ns: float
    keeps_sla: bool

    @property
    def regret(self) -> float:
        """Energy above the best's, as a fraction."""
        return self.joules_per_gb / self.best_joules_per_gb - 1


def judge_predictions(
    profile: DeviceProfile, drive: str = drives.DEFAULT, power_states: Sequence[int] = (0, 1, 2)
) -> list[JudgedPrediction]:
    """Compare predictions of random reads with the truth over sizes, depths and power states.

    Raises:
        InputError: There is no such virtual drive, or the profile has none of these states.
        LabError: The drive has no watts.
    """
    grid = list(itertools.product(power_states, REQUEST_BYTES, QUEUE_DEPTHS))
    columns: dict[str, list[Any]] = {
        "operation": ["read"] * len(grid),
        "pattern": ["random"] * len(grid),
        "engine": ["io_uring"] * len(grid),
        "power_state": [state for state, _, _ in grid],
        "request_bytes": [size for _, size, _ in grid],
        "queue_depth": [depth for _, _, depth in grid],
    }
    prediction, _ = Predictor(profile).predict_columns(columns, len(grid))
    evidence = prediction.evidence_words()
    judged = []
    for row, (state, size, depth) in enumerate(grid):
        truth = random_reads(size, depth, state, drive)
        errors, inside = {}, {}
        for quantity in QUANTITIES:
            band, true = prediction[quantity], getattr(truth, quantity)
            errors[quantity] = float(band.value[row]) / true - 1
            inside[quantity] = bool(band.low[row] <= true <= band.high[row])
        judged.append(JudgedPrediction(size, depth, state, evidence[row], errors, inside))
    return judged


def summary(judged: Sequence[JudgedPrediction]) -> dict[str, dict[str, float]]:
    """Median and greatest distance from the truth and share of intervals that hold it."""
    return {
        quantity: {
            "median_error": float(np.median([abs(item.errors[quantity]) for item in judged])),
            "greatest_error": max(abs(item.errors[quantity]) for item in judged),
            "inside": float(np.mean([item.inside[quantity] for item in judged])),
        }
        for quantity in QUANTITIES
    }


def judge_recommendation(
    recommended: Configuration, workload: WorkloadProfile, drive: str = drives.DEFAULT
) -> JudgedRecommendation:
    """Compare what was recommended with the best free configuration on the true physics.

    Args:
        recommended: The configuration that `iojoule recommend` chose.
        workload: What it was asked: random reads as fast as the SLA allows, with `queue_depth` and
            `power_state` free.
        drive: The virtual drive.

    Raises:
        InputError: The workload is another one, or leaves depth or power state open.
    """
    free, size = workload.free, workload.workload.useful_request_bytes
    depths = [depth or 1 for depth in free.queue_depth or ()] if free else None
    states = [state or 0 for state in free.power_state or ()] if free else None
    power_state = recommended.power_state or 0
    chosen = (recommended.queue_depth, power_state)
    if not size or not depths or not states or chosen not in itertools.product(depths, states):
        raise InputError(
            f"{workload.name}: the true physics are known for random reads whose queue_depth and "
            "power_state are free; ask about such a workload, as examples/lab.toml does"
        )
    bound = workload.sla.latency_mean_ns_max or float("inf")
    truth: dict[tuple[int, int], TrueFigures] = {
        (depth, state): random_reads(size, depth, state, drive)
        for depth, state in itertools.product(depths, states)
    }
    kept = {key: value for key, value in truth.items() if value.latency_mean_ns <= bound}
    if not kept:
        raise InputError("no free configuration keeps the SLA on the true physics")
    best = min(kept, key=lambda key: kept[key].joules_per_gb)
    mine = truth[chosen]
    names = ("queue_depth", "power_state")
    return JudgedRecommendation(
        recommended=dict(zip(names, chosen, strict=True)),
        best=dict(zip(names, best, strict=True)),
        joules_per_gb=mine.joules_per_gb,
        best_joules_per_gb=kept[best].joules_per_gb,
        latency_mean_ns=mine.latency_mean_ns,
        keeps_sla=mine.latency_mean_ns <= bound,
    )
