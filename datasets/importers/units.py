"""Units that tables state, and their conversion to the unit of a field.

A unit is a dimension (powers of byte, second, joule and kelvin) and an exact factor, so that a
conversion is exact where it can be and a wrong one is an error instead of a wrong number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import DIGITS_MAX

FIO_SIZE = "fio-size"
"""Unit of cells like 4k, 128k or 1M, as fio writes request sizes (k = 1024)."""

Dimension = tuple[int, int, int, int]

_RATIO: Dimension = (0, 0, 0, 0)
_BYTE: Dimension = (1, 0, 0, 0)
_SECOND: Dimension = (0, 1, 0, 0)
_PER_SECOND: Dimension = (0, -1, 0, 0)
_BYTE_PER_SECOND: Dimension = (1, -1, 0, 0)
_JOULE: Dimension = (0, 0, 1, 0)
_WATT: Dimension = (0, -1, 1, 0)
_PER_JOULE: Dimension = (0, 0, -1, 0)
_BYTE_PER_JOULE: Dimension = (1, 0, -1, 0)
_CELSIUS: Dimension = (0, 0, 0, 1)


@dataclass(frozen=True)
class Unit:
    """A quantity of `dimension`, `factor` times the base unit."""

    dimension: Dimension
    factor: Fraction

    def times(self, other: Unit) -> Unit:
        """The unit of a product."""
        a, b = self.dimension, other.dimension
        return Unit(
            (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]), self.factor * other.factor
        )

    def per(self, other: Unit) -> Unit:
        """The unit of a quotient."""
        a, b = self.dimension, other.dimension
        return Unit(
            (a[0] - b[0], a[1] - b[1], a[2] - b[2], a[3] - b[3]), self.factor / other.factor
        )


def _table() -> dict[str, Unit]:
    sizes = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
    sizes |= {"kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
    plain: dict[str, tuple[Dimension, Fraction | int]] = {
        "1": (_RATIO, 1),
        "%": (_RATIO, Fraction(1, 100)),
        "cores": (_RATIO, 1),
        "ns": (_SECOND, Fraction(1, 10**9)),
        "us": (_SECOND, Fraction(1, 10**6)),
        "ms": (_SECOND, Fraction(1, 10**3)),
        "s": (_SECOND, 1),
        "min": (_SECOND, 60),
        "h": (_SECOND, 3600),
        "1/s": (_PER_SECOND, 1),
        "IOPS": (_PER_SECOND, 1),
        "kIOPS": (_PER_SECOND, 1000),
        "Hz": (_PER_SECOND, 1),
        "MHz": (_PER_SECOND, 10**6),
        "GHz": (_PER_SECOND, 10**9),
        "mW": (_WATT, Fraction(1, 1000)),
        "W": (_WATT, 1),
        "kW": (_WATT, 1000),
        "mJ": (_JOULE, Fraction(1, 1000)),
        "J": (_JOULE, 1),
        "kJ": (_JOULE, 1000),
        "Wh": (_JOULE, 3600),
        "kWh": (_JOULE, 3_600_000),
        "1/J": (_PER_JOULE, 1),
        "degC": (_CELSIUS, 1),
    }
    for name, size in sizes.items():
        plain[name] = (_BYTE, size)
        plain[f"{name}/s"] = (_BYTE_PER_SECOND, size)
        plain[f"{name}/J"] = (_BYTE_PER_JOULE, size)
    plain[FIO_SIZE] = (_BYTE, 1)
    return {name: Unit(dimension, Fraction(factor)) for name, (dimension, factor) in plain.items()}


UNITS: dict[str, Unit] = _table()
"""Every unit a table may state, by its spelling."""

COUNT = UNITS["1"]
"""The unit of plain numbers."""


def unit(name: str, where: str, alternatives: list[str] | None = None) -> Unit:
    """Look up a unit.

    Args:
        name: Its spelling.
        where: What states it, for the message.
        alternatives: Units that would fit there (default: all).

    Raises:
        InputError: There is no such unit; names those that would be right.
    """
    known = UNITS.get(name.replace("µ", "u"))
    if known is None:
        hint = " (KB is read both as 1000 and as 1024 B: say kB or KiB)" if "KB" in name else ""
        fitting = ", ".join(alternatives or UNITS)
        raise InputError(f"{where}: unknown unit {name!r}{hint}; units that fit: {fitting}")
    return known


def units_of(dimension: Dimension) -> list[str]:
    """The spellings of every unit of one dimension."""
    return [name for name, known in UNITS.items() if known.dimension == dimension]


def conversion(source: Unit, target: Unit) -> float:
    """The factor that turns a number in `source` into one in `target` (same dimension)."""
    return float(source.factor / target.factor)


def parse_fio_size(text: str) -> int | None:
    """Bytes of a size as fio writes it: 4096, 4k, 128K, 4ki, 1m, 4kb; None if it is none.

    With kb_base 1024, its default, fio 3.33 takes k, kb and ki as 1024 but kib as 1000, contrary
    to IEC 80000-13 (observed; fio's HOWTO, "Parameter types", announces the reversal).
    """
    match = re.fullmatch(r"\s*(\d+)\s*(?:([kmgt])(ib|i|b|)|b|)\s*", text, flags=re.IGNORECASE)
    if match is None:
        return None
    number, prefix, ending = match[1], match[2], match[3]
    if len(number) > DIGITS_MAX:
        return None
    if prefix is None:
        return int(number)
    power = "kmgt".index(prefix.lower()) + 1
    base = 1000 if ending.lower() == "ib" else 1024
    return int(int(number) * base**power)


def parse_bytes(text: str) -> int | None:
    """Bytes of a size in a unit of `UNITS`: 4096, 16GiB, 1.5 TB; None if it is none."""
    match = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,6})?)\s*([kKMGT]i?B|B|)\s*", text)
    known = UNITS.get(match[2] or "B") if match else None
    return round(Fraction(match[1]) * known.factor) if match and known else None
