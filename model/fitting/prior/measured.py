"""Public fio runs as observations for the prior: the curve's parameters with their own errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.importers.column_map import public_map
from iojoule.datasets.importers.csv import import_csv
from iojoule.datasets.profile.evidence import FactUsed
from iojoule.datasets.schema import Measurement
from iojoule.model.fitting.prior.curve_update import HostPrior, update
from iojoule.model.fitting.recipe import Recipe, generic_recipe
from iojoule.model.fitting.rows import Rows, average_repeats, rows_of, stands_apart
from iojoule.model.fitting.surfaces import path_priors, scheduler_priors
from iojoule.model.predictor import Prediction, Predictor
from iojoule.model.prior.build import profile_of
from iojoule.model.prior.document import FLOWS, LearnedPrior
from iojoule.model.prior.facts import DriveFacts, Observation, observation
from iojoule.model.prior.posterior import Posterior, condition

Floats = NDArray[np.float64]

SETS = (
    "980pro_fio_randread",
    "other_nvme_fio",
    "sata_ssd_fio_grids",
    "low_latency_ssd_engines",
)
"""Public fio sets of one drive at rest each; the 980 PRO's schedulers and mixes are of its host."""

KNOWN_SD = 0.6
"""A parameter that the rows leave more uncertain than this (log) is not taken over."""

VAGUE_SD = 2.0
TAIL_FACTORS = np.exp2(np.arange(-3.0, 4.01, 0.25))
LEAST_TAILS = 3
"""Rows with a p99 that tell of a drive's tails, and the factors that are tried."""

UNSEEN_SD = 0.3
"""Log sd before the rows: of what they may show, and of what runs of their sizes cannot."""


def measured_drives(folder: Path) -> dict[str, list[Measurement]]:
    """The public fio rows by drive.

    Raises:
        InputError: A file is missing or is not what its map expects.
    """
    found: dict[str, list[Measurement]] = {}
    for name in SETS:
        for one in import_csv(folder / f"{name}.csv", public_map(name)).measurements():
            found.setdefault(str(one.conditions.device_model), []).append(one)
    return found


def flow_rows(measurements: Sequence[Measurement], host_cores: int) -> dict[str, Rows]:
    """Rows by flow: pure reads and writes at PS0 of sessions that do not stand apart."""
    rows: dict[str, Rows] = {}
    for flow in FLOWS:
        operation, pattern = flow.split("_")
        own = [
            one
            for one in measurements
            if one.workload.operation.value == operation
            and one.workload.pattern.value == pattern
            and one.at_full_speed
            and not one.configuration.power_state
            and one.state.device_state not in ("collecting",)
            and not stands_apart(str(one.conditions.session_id or one.conditions.series_id or ""))
        ]
        if own:
            found = rows_of(own, host_cores=host_cores)
            if len(found):
                rows[flow] = average_repeats(found)
    return rows


def host_prior(recipe: Recipe, max_transfer_bytes: float | None = None) -> HostPrior:
    """What a recipe expects of the host."""
    return HostPrior(
        path_priors(recipe),
        scheduler_priors(recipe),
        float(max_transfer_bytes or recipe.max_transfer_bytes),
    )


def with_measurements(
    drive: DriveFacts, measurements: Sequence[Measurement], stated: LearnedPrior
) -> DriveFacts:
    """A drive of the catalogue with the curve parameters that its fio rows tell.

    Args:
        drive: Its facts; what the same runs gave the catalogue is replaced.
        measurements: Its rows.
        stated: A prior whose centre helps the search; it adds nothing to what is found.
    """
    start = condition(stated, drive.without_measurements())
    rows = flow_rows(measurements, generic_recipe("any", "any").host.cpu_cores)
    unseen = {name for flow, own in rows.items() for name in _unseen(flow, own)}
    vague = np.diag([UNSEEN_SD if name in unseen else VAGUE_SD for name in stated.quantities]) ** 2
    found = update(
        Posterior(stated, start.mean, vague, (), start.group),
        rows,
        host_prior(generic_recipe("any", "any"), drive.max_transfer_bytes),
    )
    fitted: list[Observation] = []
    for quantity, value in zip(stated.quantities, found.mean, strict=True):
        known = quantity.startswith(tuple(rows)) and quantity not in unseen
        if not known or found.sd(quantity) >= KNOWN_SD:
            continue
        fact = FactUsed(
            name=f"fitted_{quantity}",
            value=float(np.exp(value)),
            unit="as the quantity",
            source="public fio runs",
        )
        fitted.append(
            observation({quantity: 1.0}, "fitted", fact, own_sd=found.sd(quantity), measured=True)
        )
    fitted += _tails(drive, found, rows)
    own = [one for one in drive.observations if not (one.measured and _of_curve(one))]
    return replace(drive, observations=[*own, *fitted])


def _tails(drive: DriveFacts, found: Posterior, rows: dict[str, Rows]) -> list[Observation]:
    """The factor on the excess of p99 over the mean that fits each direction's rows best."""
    out = []
    for operation in ("read", "write"):
        own = {flow: part for flow, part in rows.items() if flow.startswith(operation)}
        own = {flow: part.take(np.isfinite(part.p99)) for flow, part in own.items()}
        own = {flow: part for flow, part in own.items() if len(part) >= LEAST_TAILS}
        if not own:
            continue
        place = found.index(f"{operation}_tail")
        misses = []
        for factor in TAIL_FACTORS:
            mean = found.mean.copy()
            mean[place] = np.log(factor)
            predictor = Predictor(profile_of(drive, found.moved(mean, found.covariance)))
            ratios = [_tail_misses(predictor, flow, part) for flow, part in own.items()]
            misses.append(float(np.median(np.abs(np.concatenate(ratios)))))
        fact = FactUsed(
            name=f"fitted_{operation}_tail",
            value=float(TAIL_FACTORS[int(np.argmin(misses))]),
            unit="1",
            source="public fio runs",
        )
        out.append(
            observation({f"{operation}_tail": 1.0}, "fitted", fact, own_sd=0.15, measured=True)
        )
    return out


def _tail_misses(predictor: Predictor, flow: str, rows: Rows) -> Floats:
    answer = predict_rows(predictor, flow, rows)
    said = np.log(answer["latency_p99_ns"].value / answer["latency_mean_ns"].value)
    return np.asarray(np.log(rows.p99 / rows.latency_ns) - said)


def predict_rows(predictor: Predictor, flow: str, rows: Rows) -> Prediction:
    """What a profile says of rows of one operation and pattern."""
    operation, pattern = flow.split("_")
    numbers = ("request_bytes", "queue_depth", "jobs")
    words = ("engine", "completion", "submission_polling", "scheduler")
    columns: dict[str, list[object]] = {
        "operation": [operation] * len(rows),
        "pattern": [pattern] * len(rows),
        "cpu_cores_available": rows.cores.astype(int).tolist(),
    }
    columns |= {name: getattr(rows, name).astype(int).tolist() for name in numbers}
    columns |= {name: getattr(rows, name).tolist() for name in words}
    return predictor.predict_columns(columns, len(rows))[0]


def _unseen(flow: str, rows: Rows) -> list[str]:
    """Parameters that these rows cannot show: small ones no bytes, shallow ones no end."""
    names = []
    if rows.request_bytes.max() < 16384:
        names += ["transfer_bytes_per_second", "bytes_per_second"]
    if rows.request_bytes.min() > 16384:
        names += ["operations_per_second"]
    if (rows.queue_depth * rows.jobs).max() < 4:
        names += ["operations_per_second", "bytes_per_second", "sharpness"]
    return [f"{flow}_{name}" for name in names]


def _of_curve(one: Observation) -> bool:
    return any(name.startswith(FLOWS) for name in one.weights)
