"""Prints quantities for people: scaled, three significant digits, with the unit.

The unit follows from the field's name, as everywhere: `latency_p99_ns`, `power_watts`. Rates are
scaled by 1000, request sizes by 1024.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from iojoule.datasets.vocabulary import UNBOUNDED

Scale = tuple[float, str]

_NANOSECONDS: tuple[Scale, ...] = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_RATE: tuple[Scale, ...] = ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s"))
_COUNT: tuple[Scale, ...] = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_VOLUME: tuple[Scale, ...] = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1.0, "B"))
_BINARY: tuple[Scale, ...] = (
    (2.0**40, "TiB"),
    (2.0**30, "GiB"),
    (2.0**20, "MiB"),
    (2.0**10, "KiB"),
    (1.0, "B"),
)
_WATTS: tuple[Scale, ...] = ((1.0, "W"), (1e-3, "mW"))

_SCALES: tuple[tuple[str, tuple[Scale, ...]], ...] = (
    ("joules_per_useful_gb", ((1.0, "J/GB"),)),
    ("joule_seconds", ((1.0, "J s"), (1e-3, "mJ s"), (1e-6, "µJ s"), (1e-9, "nJ s"))),
    ("kwh_per_year", ((1.0, "kWh"),)),
    ("co2_kilograms_per_year", ((1.0, "kg CO2"),)),
    ("cost_per_year", ((1.0, ""),)),  # the currency stands beside it
    ("years", ((1.0, "years"),)),
    ("percent", ((1.0, "%"),)),
    ("bytes_per_second", _RATE),
    ("iops", tuple((factor, f"{prefix}IOPS") for factor, prefix in _COUNT)),
    ("operations_per_second", tuple((factor, f"{prefix}IOPS") for factor, prefix in _COUNT)),
    ("_ns", _NANOSECONDS),
    ("watts", _WATTS),
    ("joules", ((1.0, "J"),)),
    ("seconds", ((1.0, "s"),)),
    ("bytes_per_year", _VOLUME),
    ("bytes", _BINARY),
)
"""Ending of a field's name -> its scales, largest first; the first match counts."""


def quantity(
    field: str, value: float | None, low: float | None = None, high: float | None = None
) -> str:
    """Print a value, and its interval where known, as in `3.10 W [2.80, 3.50]`.

    Args:
        field: Name of the field, whose ending says the unit.
        value: In that unit; None and NaN are printed as a dash.
        low: Lower end of the interval.
        high: Upper end of the interval.
    """
    if value is None or math.isnan(value):
        return "-"
    if math.isinf(value):
        return UNBOUNDED
    scales = _scales(field)
    if scales is None:
        return f"{value:g}"
    factor, unit = _scale(scales, max(abs(value), 0.0))
    said = f"{digits(value / factor)} {unit}".rstrip()
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return said
    above = UNBOUNDED if math.isinf(high) else digits(high / factor)
    return f"{said} [{digits(low / factor)}, {above}]"


def scale_of(field: str, value: float) -> tuple[float, str]:
    """What a value of that size is divided by, and the unit that it then has; 1 where unknown."""
    scales = _scales(field)
    return (1.0, "") if scales is None else _scale(scales, abs(value))


def size(request_bytes: float) -> str:
    """Print a request size exactly, as in `4 KiB`."""
    factor, unit = _scale(_BINARY, request_bytes)
    return f"{request_bytes / factor:g} {unit}"


def digits(value: float) -> str:
    """Three significant digits without an exponent; more before the point are kept."""
    if math.isinf(value):
        return UNBOUNDED
    if value == 0:
        return "0"
    near = float(f"{value:.2e}")  # 9.996 is 10.0, not 10.00
    decimals = max(0, 2 - math.floor(math.log10(abs(near))))
    rounded = f"{value:.{min(decimals, 9)}f}"
    return "0" if float(rounded) == 0 else rounded


def _scales(field: str) -> Sequence[Scale] | None:
    return next((scales for ending, scales in _SCALES if field.endswith(ending)), None)


def _scale(scales: Sequence[Scale], magnitude: float) -> Scale:
    return next((scale for scale in scales if magnitude >= scale[0] * 0.9995), scales[-1])
