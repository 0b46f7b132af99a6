"""Which measurements are left out of a calibration, to see how far it errs on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import COLUMNS, Measurement
from iojoule.datasets.validation import close_names

FIELDS = ("workload", "configuration", "state", "conditions")


@dataclass(frozen=True)
class HoldOut:
    """Measurements with one of these values in a field, or with a value in a range."""

    field: str
    values: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None

    def takes(self, measurement: Measurement) -> bool:
        """Whether it leaves this measurement out."""
        value = getattr(getattr(measurement, COLUMNS[self.field]), self.field)
        if value is None:
            return False
        if self.low is not None or self.high is not None:
            low = float("-inf") if self.low is None else self.low
            high = float("inf") if self.high is None else self.high
            return low <= float(value) <= high
        return any(_same(value, said) for said in self.values)


def _same(value: object, said: str) -> bool:
    try:
        return float(str(value)) == float(said)
    except ValueError:
        return str(value) == said


def parse_hold_out(text: str) -> HoldOut:
    """What `FIELD=VALUE,VALUE` or `FIELD=LOW..HIGH` says; either end of a range may lack.

    Raises:
        InputError: It says nothing of the kind.
    """
    field, equals, said = text.partition("=")
    field, said = field.strip(), said.strip()
    if not equals or not said:
        raise InputError(
            f"--hold-out {text}: must be FIELD=VALUE,... or FIELD=LOW..HIGH, such as "
            "request_bytes=8192,32768"
        )
    if COLUMNS.get(field) not in FIELDS:
        known = [name for name, section in COLUMNS.items() if section in FIELDS]
        raise InputError(f"--hold-out {field}: no such field{close_names(field, known)}")
    low, dots, high = said.partition("..")
    if not dots:
        return HoldOut(field, tuple(part.strip() for part in said.split(",")))
    try:
        return HoldOut(
            field, (), float(low) if low.strip() else None, float(high) if high.strip() else None
        )
    except ValueError:
        raise InputError(f"--hold-out {text}: a range is LOW..HIGH, two numbers") from None


def held_out(measurements: Sequence[Measurement], which: Sequence[HoldOut]) -> list[bool]:
    """Whether each measurement is left out.

    Raises:
        InputError: One of them leaves nothing out, or nothing is left.
    """
    for each in which:
        if not any(each.takes(measurement) for measurement in measurements):
            raise InputError(f"--hold-out {each.field}: no measurement that is used has that value")
    out = [any(each.takes(measurement) for each in which) for measurement in measurements]
    if out and all(out):
        raise InputError("--hold-out leaves out every measurement; leave some in")
    return out
