"""Whole sessions left out: a figure, a day, a host, predicted from everything else.

Harder than depths and sizes left out within a session: what differs between days, hosts and setups
counts, rates that watts rest on are predicted too, and power states may be seen nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import Measurement
from iojoule.model.band import Band
from iojoule.model.fitting.rows import SETTINGS
from iojoule.model.prediction import Prediction
from iojoule.model.predictor import Predictor

Floats = NDArray[np.float64]

OBSERVED = (
    "device_power_watts",
    "cpu_power_watts",
    "throughput_bytes_per_second",
    "latency_p99_ns",
    "operations_per_joule",
)
"""What is compared, by its name in the schema."""


@dataclass(frozen=True)
class LeftOut:
    """One quantity of the runs of a session that the fit did not see; arrays of shape (n,).

    Attributes:
        session: Its `session_id`.
        quantity: One of OBSERVED.
        runs: The runs that state it.
        observed: In the unit of the quantity.
        predicted: The answer and its 90 % interval.
    """

    session: str
    quantity: str
    runs: tuple[Measurement, ...]
    observed: Floats
    predicted: Band

    @property
    def errors(self) -> Floats:
        """Relative errors, without sign."""
        return np.abs(self.predicted.value / self.observed - 1.0)

    @property
    def covered(self) -> int:
        """Of how many the interval holds the truth."""
        low, high = self.predicted.low, self.predicted.high
        return int(((low <= self.observed) & (self.observed <= high)).sum())

    @property
    def width(self) -> float:
        """Median of high over low."""
        return float(np.median(self.predicted.high / self.predicted.low))


def leave_sessions_out(
    measurements: Sequence[Measurement],
    sessions: Sequence[str],
    fit: Callable[[list[Measurement]], DeviceProfile],
) -> Iterator[LeftOut]:
    """Leave each session out, fit the rest, and predict it.

    Args:
        measurements: Of one drive.
        sessions: Identifiers of those to leave out.
        fit: Fits a profile.
    """
    for session in sessions:
        test = [one for one in measurements if one.conditions.session_id == session]
        rest = [one for one in measurements if one.conditions.session_id != session]
        if test and rest:
            yield from compared(session, test, predicted(fit(rest), test))


def compared(session: str, runs: Sequence[Measurement], answer: Prediction) -> Iterator[LeftOut]:
    """What runs observed beside what was answered for them."""
    for quantity in OBSERVED:
        observed = np.array(
            [getattr(one.observations, quantity) or np.nan for one in runs], dtype=float
        )
        band = efficiency(answer) if quantity == OBSERVED[-1] else answer[quantity]
        seen = np.isfinite(observed) & np.isfinite(band.value)
        if seen.any():
            some = Band(band.value[seen], band.low[seen], band.high[seen], band.evidence[seen])
            own = tuple(one for one, known in zip(runs, seen, strict=True) if known)
            yield LeftOut(session, quantity, own, observed[seen], some)


def efficiency(answer: Prediction) -> Band:
    """Operations per joule of drive and CPU; rate and watts are taken to err independently."""
    rate, parts = answer["iops"], [answer["device_power_watts"], answer["cpu_power_watts"]]
    watts = sum(one.value for one in parts)
    half = np.sqrt(sum(((one.high - one.low) / 2.0) ** 2 for one in parts)) / watts
    spread = np.exp(np.hypot(half, np.log(rate.high / rate.low) / 2.0))
    value = rate.value / watts
    return Band(value, value / spread, value * spread, rate.evidence)


def predicted(
    profile: DeviceProfile, runs: Sequence[Measurement], cores: int | None = None
) -> Prediction:
    """What a profile answers for the configurations of runs, as fast as possible.

    Args:
        profile: Of any drive.
        runs: What is asked.
        cores: Of the runs' host; None: of the profile's.
    """
    columns: dict[str, list[object]] = {
        name: [getattr(one.configuration, name) for one in runs] for name in SETTINGS
    }
    columns["submission_polling"] = [bool(one.configuration.submission_polling) for one in runs]
    columns["power_state"] = [one.configuration.power_state or 0 for one in runs]
    columns["operation"] = [one.workload.operation.value for one in runs]
    columns["pattern"] = [one.workload.pattern.value for one in runs]
    columns["read_fraction"] = [one.workload.share_of_reads for one in runs]
    if cores is not None:
        columns["cpu_cores_available"] = [cores] * len(runs)
    return Predictor(profile).predict_columns(columns, len(runs))[0]
