"""How good the lowest rung is: drives left out of the prior, known by their facts alone.

The prior is learned again without anything that was measured of a drive; its identify data and
data sheet stay. All its public rows are then predicted, and the least and the highest power that
anybody measured of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict
from scipy.stats import binomtest

from iojoule.datasets.importers.column_map import public_map
from iojoule.datasets.importers.csv import import_csv
from iojoule.datasets.schema import Measurement
from iojoule.model.evaluate.bands import DATASHEET, EVIDENCE
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.fit.hold_out import predicted
from iojoule.model.fit.learn_prior import (
    flow_rows,
    known_drive,
    measured_drives,
    predict_rows,
    prior_without,
)
from iojoule.model.fit.rows import Rows
from iojoule.model.prior.build import build_profile
from iojoule.model.prior.posterior import condition
from iojoule.model.prior.power import power_range

THESIS_CORES = 20
"""Cores of the host of those runs: two Xeon Silver 4210R, simultaneous threads off."""

NOMINAL = 0.85
"""What intervals across devices must be compatible with: a prior, not an exchangeable sample."""

QUANTITIES = ("throughput", "mean latency", "p99", "device watts")

WATTS_SETS = {"samsung-980-pro-1tb": ("980pro_randread_power_by_request_size", "thesis_figures")}
"""Public sets of runs with the drive's own watts, by drive; no other drive has any."""


@dataclass(frozen=True)
class MeasuredWatts:
    """Least and highest power measured of a drive, W; None where nobody says.

    Attributes:
        entries: Entries of the catalogue whose identify data and data sheet describe it.
        source: Where it is published. These figures are in no prior that is judged by them.
    """

    entries: tuple[str, ...]
    least: float | None
    most: float | None
    source: str


_XIE = "Xie et al., HotStorage 2024, table 1"
_IISWC = "IISWC 2026 artefact, figures 9b (idle) and 2a (greatest)"
MEASURED_WATTS = {
    "samsung-pm9a3": MeasuredWatts(
        ("samsung-pm9a3-3-84tb-u2", "samsung-pm9a3-u2-e1s"), 3.5, 13.5, _XIE
    ),
    "intel-d7-p5510": MeasuredWatts(("intel-d7-p5510",), 5.0, 15.1, _XIE),
    "intel-d3-s4510": MeasuredWatts(("intel-d3-s4510",), 1.0, 3.5, _XIE),
    "samsung-980-pro-1tb": MeasuredWatts(
        ("samsung-980-pro-1tb",), 1.75, 6.0, "Kanichai, thesis, section 5.1.1"
    ),
    "unnamed-iiswc-a": MeasuredWatts(("unnamed-iiswc-a",), 2.76, 4.52, _IISWC),
    "unnamed-iiswc-c": MeasuredWatts(("unnamed-iiswc-c",), 4.83, 9.39, _IISWC),
    "unnamed-iiswc-d": MeasuredWatts(("unnamed-iiswc-d",), 4.17, 7.3, _IISWC),
    "unnamed-iiswc-e": MeasuredWatts(("unnamed-iiswc-e",), 4.77, 13.6, _IISWC),
}
"""Every public drive with absolute watts of its own. Label B of the IISWC artefact is probably the
980 PRO and counts with it; wall power by difference (Harris and Altiparmak) is no drive's, and the
860 EVO's idle power (Xie et al.) is all that the catalogue knows of that drive."""


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
    """Intervals of the least and the highest power over all workloads beside measured ones, W.

    Attributes:
        has_sheet: Whether anything but its interface is known of the drive.
        contains: Whether each measured end lies in its own interval.
        least_low: 90 % interval of the least power; likewise of the highest.
        least_ratio: Width of that interval, high over low; likewise of the highest.
    """

    model_config = ConfigDict(frozen=True)

    device: str
    source: str
    has_sheet: bool
    measured_least: float | None
    least_low: float
    least_high: float
    least_ratio: float
    measured_most: float | None
    most_low: float
    most_high: float
    most_ratio: float
    contains: bool


def score_drive(
    device: str, measurements: dict[str, list[Measurement]], folder: Path
) -> list[Scored]:
    """Predict every row of one drive from a prior that never saw it.

    Raises:
        InputError: A file of public measurements is missing.
    """
    prior = prior_without([device], measurements)
    predictor = Predictor(build_profile(known_drive(device), prior))
    scored = [
        score
        for name in WATTS_SETS.get(device, ())
        for score in _score_watts(device, name, folder, predictor)
    ]
    for flow, rows in flow_rows(measurements[device], predictor.profile.host.cpu_cores).items():
        scored += _score_flow(device, flow, rows, predictor)
    return scored


def _score_flow(device: str, flow: str, rows: Rows, predictor: Predictor) -> list[Scored]:
    prediction = predict_rows(predictor, flow, rows)
    if any(word != EVIDENCE[DATASHEET] for word in prediction.evidence_words()):
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
            float(prediction[name].value[i]),
            float(prediction[name].low[i]),
            float(prediction[name].high[i]),
        )
        for quantity, name, observed in fields
        for i in np.flatnonzero(np.isfinite(observed))
    ]


def _score_watts(device: str, name: str, folder: Path, predictor: Predictor) -> list[Scored]:
    """Watts of the drive in the runs of one public set."""
    runs = [
        measurement
        for measurement in import_csv(folder / f"{name}.csv", public_map(name)).measurements()
        if measurement.observations.device_power_watts is not None and measurement.at_full_speed
    ]
    watts = predicted(predictor.profile, runs, THESIS_CORES)["device_power_watts"]
    return [
        Scored(
            device,
            f"{device} {name}",
            "device watts",
            float(run.observations.device_power_watts or np.nan),
            float(watts.value[i]),
            float(watts.low[i]),
            float(watts.high[i]),
        )
        for i, run in enumerate(runs)
    ]


def judge_performance(folder: Path) -> list[CoverageVerdict]:
    """Coverage by quantity over all left-out drives, and by drive.

    Raises:
        InputError: A file of public measurements is missing.
    """
    measurements = measured_drives(folder)
    scored = [
        score for device in measurements for score in score_drive(device, measurements, folder)
    ]
    verdicts = []
    for device in ["all", *measurements]:
        for quantity in QUANTITIES:
            own = [
                score
                for score in scored
                if score.quantity == quantity and device in ("all", score.device)
            ]
            if own:
                verdicts.append(_verdict(device, quantity, own))
    return verdicts


def _verdict(device: str, quantity: str, scored: Sequence[Scored]) -> CoverageVerdict:
    names = sorted({score.series for score in scored})
    inside = [[score.inside for score in scored if score.series == name] for name in names]
    coverage = float(np.mean([score.inside for score in scored]))
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
        median_error=float(
            np.median([abs(np.log(score.observed / score.value)) for score in scored])
        ),
        median_ratio=float(np.median([score.high / score.low for score in scored])),
    )


def effective_rows(inside: Sequence[Sequence[bool]]) -> float:
    """Independent rows that rows in series are worth: n over Kish's design effect.

    The correlation within a series is the analysis-of-variance estimate (Donner, International
    Statistical Review 54, 1986); one series alone is one row.
    """
    sizes = np.array([len(cluster) for cluster in inside], dtype=float)
    total, groups = float(sizes.sum()), len(sizes)
    if groups < 2 or total <= groups:
        return float(groups) if groups < 2 else total
    means = np.array([np.mean(cluster) for cluster in inside])
    overall = float(np.sum(sizes * means) / total)
    between = float(np.sum(sizes * (means - overall) ** 2)) / (groups - 1)
    within = float(np.sum(sizes * means * (1.0 - means))) / (total - groups)
    typical = (total - float(np.sum(sizes**2)) / total) / (groups - 1)
    spread = between + (typical - 1.0) * within
    alike = float(np.clip((between - within) / spread, 0.0, 1.0)) if spread > 0 else 0.0
    heavy = float(np.sum(sizes**2)) / total
    return float(total / (1.0 + (heavy - 1.0) * alike))


def judge_power(folder: Path) -> list[PowerVerdict]:
    """Powers that were measured of drives, from a prior that knows nothing measured of them.

    Raises:
        InputError: A file of public measurements is missing.
    """
    measurements = measured_drives(folder)
    return [_power_verdict(device, known, measurements) for device, known in MEASURED_WATTS.items()]


def _power_verdict(
    device: str, known: MeasuredWatts, measurements: dict[str, list[Measurement]]
) -> PowerVerdict:
    prior = prior_without([device, *known.entries], measurements)
    drive = known_drive(known.entries[0])
    for other in known.entries[1:]:  # of which each says the same only once
        watched = {
            (observation.kind, tuple(observation.weights), observation.fact.value)
            for observation in drive.observations
        }
        drive = drive.having(
            [
                observation
                for observation in known_drive(other).observations
                if (observation.kind, tuple(observation.weights), observation.fact.value)
                not in watched
            ]
        )
    (least_low, least_high), (most_low, most_high) = power_range(condition(prior, drive), drive)
    return PowerVerdict(
        device=device,
        source=known.source,
        has_sheet=bool(drive.observations) or drive.datacentre is not None,
        measured_least=known.least,
        least_low=least_low,
        least_high=least_high,
        least_ratio=least_high / least_low,
        measured_most=known.most,
        most_low=most_low,
        most_high=most_high,
        most_ratio=most_high / most_low,
        contains=(known.least is None or least_low <= known.least <= least_high)
        and (known.most is None or most_low <= known.most <= most_high),
    )
