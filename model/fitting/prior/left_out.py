"""How good the lowest rung is: drives left out of the prior, known by their facts alone.

The prior is learned again without anything that was measured of a drive; its identify data and
data sheet stay. All its public rows are then predicted, and the powers that Xie et al. measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict
from scipy.stats import binomtest

from iojoule.datasets.schema import Measurement
from iojoule.model.evidence import DATASHEET, EVIDENCE
from iojoule.model.fitting.prior.measured import flow_rows, measured_drives, predict_rows
from iojoule.model.fitting.prior.rebuild import known_drive, prior_without
from iojoule.model.fitting.rows import Rows
from iojoule.model.predictor import Predictor
from iojoule.model.prior.build import build_profile
from iojoule.model.prior.posterior import condition
from iojoule.model.prior.power import power_range

Floats = NDArray[np.float64]

NOMINAL = 0.85
"""What intervals across devices must be compatible with: a prior, not an exchangeable sample."""

QUANTITIES = ("throughput", "mean latency", "p99")

XIE_TABLE_1 = {
    "samsung-pm9a3": (("samsung-pm9a3-3-84tb-u2", "samsung-pm9a3-u2-e1s"), 3.5, 13.5),
    "intel-d7-p5510": (("intel-d7-p5510",), 5.0, 15.1),
}
"""Device -> catalogue entries whose identify data and data sheet describe it, and the least and
highest power measured over all workloads, W (Xie et al., HotStorage 2024, table 1: findings
004-002, 004-003, 004-005, 004-006). These facts are in no prior that is judged here."""


@dataclass(frozen=True)
class Scored:
    """One left-out row and quantity: its series, observed value, prediction and interval."""

    device: str
    series: str
    quantity: str
    observed: float
    value: float
    low: float
    high: float

    @property
    def inside(self) -> bool:
        """Whether the interval holds what was observed."""
        return self.low <= self.observed <= self.high


class CoverageVerdict(BaseModel):
    """Coverage of one quantity over rows of left-out drives.

    Attributes:
        effective_rows: Independent rows that the rows are worth, by how alike a series is.
        p_value: Of so little coverage or less, were the true one NOMINAL.
        median_error: Median of |log(observed / predicted)|.
        median_ratio: Median of interval high / low.
    """

    model_config = ConfigDict(frozen=True)

    device: str
    quantity: str
    rows: int
    series: int
    coverage: float
    effective_rows: float
    p_value: float
    median_error: float
    median_ratio: float


class PowerVerdict(BaseModel):
    """The interval of power over all workloads beside what was measured, W.

    Attributes:
        contains: Whether the measured range lies in it.
        times_as_wide: Width over the measured range's.
        least_low: 90 % interval of the least power; likewise of the highest.
    """

    model_config = ConfigDict(frozen=True)

    device: str
    measured_low: float
    measured_high: float
    low: float
    high: float
    contains: bool
    times_as_wide: float
    least_low: float
    least_high: float
    most_low: float
    most_high: float


def score_drive(device: str, measurements: dict[str, list[Measurement]]) -> list[Scored]:
    """Predict every row of one drive from a prior that never saw it."""
    prior = prior_without([device], measurements)
    predictor = Predictor(build_profile(known_drive(device), prior))
    scored: list[Scored] = []
    for flow, rows in flow_rows(measurements[device], predictor.profile.host.cpu_cores).items():
        scored += _score_flow(device, flow, rows, predictor)
    return scored


def _score_flow(device: str, flow: str, rows: Rows, predictor: Predictor) -> list[Scored]:
    answer = predict_rows(predictor, flow, rows)
    if any(word != EVIDENCE[DATASHEET] for word in answer.evidence_words()):
        raise AssertionError("a drive known by its facts alone answered with better evidence")
    fields = (
        ("throughput", "iops", rows.iops),
        ("mean latency", "latency_mean_ns", rows.mean_ns),
        ("p99", "latency_p99_ns", rows.p99),
    )
    return [
        Scored(
            device,
            f"{device} {flow} {rows.session[i]}",
            quantity,
            float(observed[i]),
            float(answer[name].value[i]),
            float(answer[name].low[i]),
            float(answer[name].high[i]),
        )
        for quantity, name, observed in fields
        for i in np.flatnonzero(np.isfinite(observed))
    ]


def judge_performance(folder: Path) -> list[CoverageVerdict]:
    """Coverage by quantity over all left-out drives, and by drive.

    Raises:
        InputError: A file of public measurements is missing.
    """
    measurements = measured_drives(folder)
    scored = [one for device in measurements for one in score_drive(device, measurements)]
    verdicts = []
    for device in ["all", *measurements]:
        for quantity in QUANTITIES:
            own = [
                one for one in scored if one.quantity == quantity and device in ("all", one.device)
            ]
            if own:
                verdicts.append(_verdict(device, quantity, own))
    return verdicts


def _verdict(device: str, quantity: str, scored: Sequence[Scored]) -> CoverageVerdict:
    names = sorted({one.series for one in scored})
    inside = [[one.inside for one in scored if one.series == name] for name in names]
    coverage = float(np.mean([one.inside for one in scored]))
    effective = effective_rows(inside)
    count = max(round(effective), 1)
    test = binomtest(round(coverage * count), count, NOMINAL, alternative="less")
    return CoverageVerdict(
        device=device,
        quantity=quantity,
        rows=len(scored),
        series=len(names),
        coverage=coverage,
        effective_rows=effective,
        p_value=float(test.pvalue),
        median_error=float(np.median([abs(np.log(one.observed / one.value)) for one in scored])),
        median_ratio=float(np.median([one.high / one.low for one in scored])),
    )


def effective_rows(inside: Sequence[Sequence[bool]]) -> float:
    """Independent rows that rows in series are worth: n over Kish's design effect.

    The correlation within a series is the analysis-of-variance estimate (Donner, International
    Statistical Review 54, 1986); one series alone is one row.
    """
    sizes = np.array([len(one) for one in inside], dtype=float)
    total, groups = float(sizes.sum()), len(sizes)
    if groups < 2 or total <= groups:
        return float(groups) if groups < 2 else total
    means = np.array([np.mean(one) for one in inside])
    overall = float(np.sum(sizes * means) / total)
    between = float(np.sum(sizes * (means - overall) ** 2)) / (groups - 1)
    within = float(np.sum(sizes * means * (1.0 - means))) / (total - groups)
    typical = (total - float(np.sum(sizes**2)) / total) / (groups - 1)
    spread = between + (typical - 1.0) * within
    alike = float(np.clip((between - within) / spread, 0.0, 1.0)) if spread > 0 else 0.0
    heavy = float(np.sum(sizes**2)) / total
    return float(total / (1.0 + (heavy - 1.0) * alike))


def judge_power(folder: Path) -> list[PowerVerdict]:
    """The powers of Xie et al.'s two NVMe drives, from a prior that knows nothing measured of them.

    Raises:
        InputError: A file of public measurements is missing.
    """
    measurements = measured_drives(folder)
    verdicts = []
    for device, (entries, measured_low, measured_high) in XIE_TABLE_1.items():
        prior = prior_without([device, *entries], measurements)
        first = known_drive(entries[0])
        for other in entries[1:]:
            first = first.having(known_drive(other).observations)
        (least_low, least_high), (most_low, most_high) = power_range(condition(prior, first), first)
        verdicts.append(
            PowerVerdict(
                device=device,
                measured_low=measured_low,
                measured_high=measured_high,
                low=least_low,
                high=most_high,
                contains=least_low <= measured_low and measured_high <= most_high,
                times_as_wide=(most_high - least_low) / (measured_high - measured_low),
                least_low=least_low,
                least_high=least_high,
                most_low=most_low,
                most_high=most_high,
            )
        )
    return verdicts
