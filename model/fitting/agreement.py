"""How far measurements agree with what a profile answered before it knew them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from iojoule.datasets.schema import Measurement, Section
from iojoule.model.fitting.gates import named
from iojoule.model.prediction import Prediction

QUANTITIES = (
    "throughput_bytes_per_second", "latency_mean_ns", "latency_p99_ns", "device_power_watts",
    "cpu_power_watts", "system_power_watts",
)  # fmt: skip

LARGEST_SHOWN = 10
"""Of the disagreements, over all quantities."""


class QuantityAgreement(Section):
    """Predictions of one quantity beside what was measured.

    Attributes:
        quantity: Which.
        rows: Measurements that state it, of a profile that answers it.
        median_error: Median of |predicted / measured - 1|.
        p90_error: Its 90th percentile.
        bias: Median of predicted / measured - 1.
        covered: Share of measurements inside their 90 % interval.
        width: Median of the interval's upper over its lower end; None where an end is 0.
    """

    quantity: str
    rows: int
    median_error: float
    p90_error: float
    bias: float
    covered: float
    width: float | None


class Disagreement(Section):
    """One measurement far from its prediction."""

    run: int
    what: str
    quantity: str
    measured: float
    predicted: float
    low: float
    high: float
    error: float


class Agreement(Section):
    """`agreement.json`: a profile against measurements that it has not seen.

    Attributes:
        compared_with: Whether that profile rests on measurements of the drive, or on its facts.
        profile: Its device.
        quantities: One each that can be compared.
        largest: The largest disagreements, the worst first.
        not_predicted: Runs that the profile refuses to answer, and why.
    """

    schema_version: Literal[1] = 1
    compared_with: Literal["measured profile", "facts of the drive"]
    profile: str
    quantities: tuple[QuantityAgreement, ...]
    largest: tuple[Disagreement, ...]
    not_predicted: tuple[str, ...] = ()


def agreement(
    measurements: Sequence[Measurement], numbers: Sequence[int], predicted: Prediction | None
) -> tuple[tuple[QuantityAgreement, ...], tuple[Disagreement, ...]]:
    """Compare measurements with their predictions.

    Args:
        measurements: One a row of `predicted`.
        numbers: Their lines, the first run being 1.
        predicted: Bands of the quantities; None where no row is predicted.
    """
    compared, largest = [], []
    for quantity in QUANTITIES:
        if predicted is None or quantity not in predicted.bands:
            continue
        band = predicted[quantity]
        seen = np.array(
            [getattr(one.observations, quantity) or np.nan for one in measurements], dtype=float
        )
        places = np.flatnonzero(np.isfinite(seen) & np.isfinite(band.value)).tolist()
        if not places:
            continue
        error = band.value[places] / seen[places] - 1.0
        low, high = band.low[places], band.high[places]
        inside = (low <= seen[places]) & (seen[places] <= high)
        wide = np.median(high / low) if (low > 0).all() else np.nan
        compared.append(
            QuantityAgreement(
                quantity=quantity,
                rows=len(places),
                median_error=_short(np.median(np.abs(error))),
                p90_error=_short(np.quantile(np.abs(error), 0.9)),
                bias=_short(np.median(error)),
                covered=_short(inside.mean()),
                width=_short(wide) if np.isfinite(wide) else None,
            )
        )
        largest += [
            Disagreement(
                run=numbers[place],
                what=named(measurements[place]),
                quantity=quantity,
                measured=_short(seen[place]),
                predicted=_short(band.value[place]),
                low=_short(band.low[place]),
                high=_short(band.high[place]),
                error=_short(band.value[place] / seen[place] - 1.0),
            )
            for place in places
        ]
    # by factor, so that half as much counts like twice as much
    largest.sort(key=lambda one: (-abs(np.log(one.predicted / one.measured)), one.run))
    return tuple(compared), tuple(largest[:LARGEST_SHOWN])


def _short(value: float | np.floating) -> float:
    """Four significant digits: errors are not known better."""
    return float(f"{float(value):.4g}")
