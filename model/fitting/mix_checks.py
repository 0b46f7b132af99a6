"""Mixes of reads and writes predicted with a whole share of reads left out, beside taking turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from iojoule.datasets.importers.column_map import public_map
from iojoule.datasets.importers.csv import import_csv
from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Operation
from iojoule.model.fitting.build import fit_profile
from iojoule.model.fitting.recipe import generic_recipe
from iojoule.model.fitting.state_residual import with_state_residuals
from iojoule.model.predictor import Predictor

Floats = NDArray[np.float64]

MIXES = "mixratio"
"""The public set of mixes (`datasets/public/mixratio.toml`)."""

_CORNER = 4.0
"""Sharpness of the corner between the unloaded writes and their ceiling in the baseline."""


@dataclass(frozen=True)
class MixOutcome:
    """One share of reads of one drive left out; arrays of shape (n,), one value a depth.

    Attributes:
        drive: Its name in the set.
        read_fraction: The share.
        depth: Requests in flight.
        error: Log of the predicted over the measured rate.
        inside: Whether the measured rate lies in the 90 % interval.
        width: High over low of it.
        untaught: As `error`, where no mix was measured.
        turns: As `error`, of taking turns: reads alone as measured, writes alone, which this set
            does not have, with an unloaded latency and a ceiling fitted to the other shares.
        untaught_turns: Likewise with the reads and writes that the profile predicts.
    """

    drive: str
    read_fraction: float
    depth: Floats
    error: Floats
    inside: NDArray[np.bool_]
    width: Floats
    untaught: Floats
    turns: Floats
    untaught_turns: Floats


def mix_outcomes(folder: Path) -> list[MixOutcome]:
    """Leave out every share of reads of every drive of the set in turn.

    Depths at which reads alone were not measured are left out: turns cannot answer them.

    Raises:
        InputError: The file is missing or not what it was.
    """
    measured = import_csv(folder / f"{MIXES}.csv", public_map(MIXES)).measurements()
    found = []
    for drive in sorted({str(one.conditions.device_model) for one in measured}):
        own = [one for one in measured if one.conditions.device_model == drive]
        pure = [one for one in own if one.workload.operation is Operation.READ]
        alone = {one.configuration.queue_depth: one.observations.iops or np.nan for one in pure}
        mixes = [
            one
            for one in own
            if one.workload.operation is Operation.MIXED and one.configuration.queue_depth in alone
        ]
        base = fit_profile(generic_recipe(drive, drive), pure, [])
        for share in sorted({one.workload.read_fraction or 0.0 for one in mixes}):
            kept = [one for one in mixes if one.workload.read_fraction != share]
            left = [one for one in mixes if one.workload.read_fraction == share]
            found.append(_outcome(drive, share, base, kept, left, alone))
    return found


def _outcome(
    drive: str,
    share: float,
    base: DeviceProfile,
    kept: Sequence[Measurement],
    left: Sequence[Measurement],
    alone: dict[int, float],
) -> MixOutcome:
    log_rate = np.log([one.observations.iops or np.nan for one in left])
    told = _rates(with_state_residuals(base, kept), left)
    before = _rates(base, left)[0]
    reads, writes = (_rates(base, left, pure)[0] for pure in (1.0, 0.0))
    by_turns = np.log(share * np.exp(-reads) + (1.0 - share) * np.exp(-writes))
    return MixOutcome(
        drive=drive,
        read_fraction=share,
        depth=np.array([one.configuration.queue_depth for one in left], dtype=float),
        error=told[0] - log_rate,
        inside=(told[1] <= log_rate) & (log_rate <= told[2]),
        width=np.exp(told[2] - told[1]),
        untaught=before - log_rate,
        turns=_turns(kept, left, alone) - log_rate,
        untaught_turns=-by_turns - log_rate,
    )


def _rates(
    profile: DeviceProfile, runs: Sequence[Measurement], read_fraction: float | None = None
) -> tuple[Floats, Floats, Floats]:
    """Log rates at the places of runs, at their or another share, and the ends of intervals."""
    shares = [
        one.workload.read_fraction if read_fraction is None else read_fraction for one in runs
    ]
    word = {1.0: "read", 0.0: "write"}
    columns: dict[str, object] = {
        "operation": [word.get(one or 0.0, "mixed") for one in shares],
        "read_fraction": shares,
        "pattern": [one.workload.pattern.value for one in runs],
    }
    for name in ("request_bytes", "queue_depth", "jobs", "engine", "completion"):
        columns[name] = [getattr(one.configuration, name) for one in runs]
    columns["submission_polling"] = [bool(one.configuration.submission_polling) for one in runs]
    band = Predictor(profile).predict_columns(columns, len(runs))[0]["iops"]
    return np.log(band.value), np.log(band.low), np.log(band.high)


def _turns(
    kept: Sequence[Measurement], left: Sequence[Measurement], alone: dict[int, float]
) -> Floats:
    """Log rates by turns at `left`, the writes' unloaded latency and ceiling fitted to `kept`."""

    def log_rate(parameters: Floats, runs: Sequence[Measurement]) -> Floats:
        share = np.array([one.workload.read_fraction for one in runs], dtype=float)
        depth = np.array([one.configuration.queue_depth for one in runs], dtype=float)
        unloaded, ceiling = np.exp(parameters)
        write = (unloaded**_CORNER + (depth / ceiling) ** _CORNER) ** (1.0 / _CORNER)
        read = depth / np.array([alone[int(one)] for one in depth])
        return np.asarray(np.log(depth / (share * read + (1.0 - share) * write)))

    seen = np.log([one.observations.iops or np.nan for one in kept])

    def misses(parameters: Floats) -> Floats:
        return log_rate(parameters, kept) - seen

    start = np.log([1.5e-5, 1.5e5])  # s and 1/s: a write into a buffer, and what flash may take
    fitted = least_squares(misses, start, loss="soft_l1", f_scale=0.1)
    return log_rate(fitted.x, left)
