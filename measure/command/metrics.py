"""Figures in what a program prints: a name, a regular expression, and how numbers are written."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from iojoule.datasets.errors import InputError

LAST_BYTES = 64 * 1024 * 1024
"""So much of the end of an output is searched."""

_PREFIXES = {
    "": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40,
}  # fmt: skip
_TIMES = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "secs": 1.0,
    "seconds": 1.0, "min": 60.0, "h": 3600.0,
}  # fmt: skip
_COUNTED = (
    "B", "bytes", "byte", "op", "ops", "io", "ios", "IOPS", "iops", "tps", "tpm", "qps", "req",
    "reqs", "requests", "rows", "samples", "transactions", "records", "keys", "",
)  # fmt: skip

_NUMBER = re.compile(
    r"(?P<sign>[+-]?)"
    r"(?P<whole>\d{1,3}(?:(?P<mark>[,'_\s])\d{3})(?:(?P=mark)\d{3})*|\d+|(?=\.\d))"
    r"(?P<rest>\.\d+|\.)?(?P<exponent>[eE][+-]?\d+)?"
    r"\s*(?P<suffix>[^\d\s.,].*)?"
)
_COUNT = re.compile(r"(?P<prefix>[kKMGT]i?)?\s*(?P<word>[A-Za-z]*)(?:/s|/sec|/second)?")


@dataclass(frozen=True)
class Metric:
    """One figure.

    Attributes:
        name: What it is called in the result.
        pattern: Its first group is the number.
    """

    name: str
    pattern: re.Pattern[str]

    def find(self, outputs: Sequence[str]) -> float | None:
        """The last match in the first output that has one; None where none has.

        Raises:
            InputError: What matched is not a number.
        """
        for output in outputs:
            matches = deque(self.pattern.finditer(output), maxlen=1)
            if matches and matches[0][1] is not None:
                return read_number(matches[0][1], f"--metric {self.name}")
        return None


def parse_metric(text: str) -> Metric:
    """Read `NAME=REGEX`.

    Raises:
        InputError: It is not of that form, or the expression has no group.
    """
    name, equals, expression = text.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_][\w.-]*", name):
        raise InputError(
            f"--metric {text!r} is not NAME=REGEX; for instance --metric 'tps=tps = ([0-9.]+)'"
        )
    try:
        pattern = re.compile(expression, flags=re.MULTILINE)
    except re.error as error:
        raise InputError(
            f"--metric {name}: {expression!r} is no regular expression ({error})"
        ) from None
    if not pattern.groups:
        raise InputError(
            f"--metric {name}: {expression!r} has no group; put the number into parentheses, as in "
            "'tps = ([0-9.]+)'"
        )
    return Metric(name, pattern)


def read_number(text: str, where: str) -> float:
    """A number as programs print it: `12`, `1,234.5`, `1e6`, `3.2M`, `12.5 kop/s`, `3 ms`.

    k, M, G, T are powers of 1000, Ki, Mi, Gi, Ti of 1024; times become seconds; what is counted
    and `/s` change nothing.

    Raises:
        InputError: It is none; names `where`.
    """
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise InputError(
            f"{where}: {text!r} is not a number; let the group hold the number alone, and let the "
            "program print in English (LC_ALL=C)"
        )
    digits = re.sub(r"\D", "", match["whole"] or "") or "0"
    value = float(f"{match['sign']}{digits}{match['rest'] or ''}{match['exponent'] or ''}")
    suffix = (match["suffix"] or "").strip()
    factor = _factor(suffix)
    if factor is None:
        raise InputError(
            f"{where}: {suffix!r} behind the number is no unit that is known; let the group hold "
            "the number alone"
        )
    return value * factor


def _factor(suffix: str) -> float | None:
    if suffix in _TIMES:
        return _TIMES[suffix]
    if suffix in _COUNTED:
        return 1.0
    match = _COUNT.fullmatch(suffix)
    if match is None:
        return None
    return _PREFIXES[match["prefix"] or ""] if match["word"] in _COUNTED else None


def read_output(path: Path) -> str:
    """The end of what a program printed, as text."""
    with path.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(0, size - LAST_BYTES))
        return stream.read().decode("utf-8", "replace")
