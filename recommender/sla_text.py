"""SLAs as people write them: `read p99 < 2 ms, throughput >= 500 MB/s, soft device power <= 5 W`.

Clauses stand between commas, semicolons or "and". Each is

    [soft] [read | write] QUANTITY OPERATOR NUMBER [UNIT] [at PERCENT %]

with the quantities of `QUANTITIES` and the units of `UNITS`. "at 95 %" is how surely that bound
must hold; "soft" (or "prefer") marks a bound that is kept where anything keeps it. The clause
"allow weaker durability" bounds nothing: it permits what is never done without it.
"""

from __future__ import annotations

import difflib
import re
from typing import Any

from pydantic import ValidationError

from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import validation_error
from iojoule.recommender.sla import Sla

QUANTITIES = {
    "throughput": "throughput_bytes_per_second_min",
    "bandwidth": "throughput_bytes_per_second_min",
    "iops": "iops_min",
    "latency": "latency_mean_ns_max",
    "mean latency": "latency_mean_ns_max",
    "median latency": "latency_p50_ns_max",
    "p50": "latency_p50_ns_max",
    "p99": "latency_p99_ns_max",
    "p99.9": "latency_p999_ns_max",
    "p999": "latency_p999_ns_max",
    "device power": "device_power_watts_max",
    "drive power": "device_power_watts_max",
    "cpu power": "cpu_power_watts_max",
    "device + cpu power": "device_cpu_power_watts_max",
    "drive + cpu power": "device_cpu_power_watts_max",
    "system power": "system_power_watts_max",
    "wall power": "system_power_watts_max",
    "endurance": "endurance_years_min",
}
"""What may be bounded, as people say it; "latency" may follow any percentile."""

UNITS = {
    "throughput_bytes_per_second_min": {
        "b/s": 1.0, "kb/s": 1e3, "mb/s": 1e6, "gb/s": 1e9,
        "kib/s": 2.0**10, "mib/s": 2.0**20, "gib/s": 2.0**30,
    },
    "iops_min": {"": 1.0, "k": 1e3, "m": 1e6, "iops": 1.0, "kiops": 1e3, "miops": 1e6},
    "latency": {"ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9},
    "power": {"w": 1.0, "mw": 1e-3, "kw": 1e3, "watts": 1.0},
    "endurance_years_min": {"years": 1.0, "year": 1.0, "y": 1.0, "a": 1.0},
}  # fmt: skip
"""Units by bound or kind of bound, lower case, and what they are in the field's own."""

_CLAUSE = re.compile(
    r"""\s*(?P<soft>(?:soft|prefer)\b)?\s*(?P<direction>(?:read|write)s?\b)?\s*
    (?P<quantity>[^<>=≤≥]*?)\s*(?P<operator><=|>=|=<|=>|[<>≤≥=])\s*
    (?P<number>[+-]?[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*
    (?P<unit>[^\s0-9@]*)\s*(?:(?:at|@)\s*(?P<confidence>[0-9]+(?:\.[0-9]+)?)\s*%)?\s*""",
    re.VERBOSE | re.IGNORECASE,
)

_PERMISSION = re.compile(r"\s*allow\s+weaker\s+durability\s*", re.IGNORECASE)

_BETWEEN = re.compile(r"[,;]|\band\b", re.IGNORECASE)


def parse_sla(text: str, confidence: float | None = None) -> Sla:
    """Read an SLA.

    Args:
        text: As above.
        confidence: Of the bounds that do not state their own; None takes the usual one.

    Raises:
        InputError: A word is not understood or a bound contradicts another; the message shows
            where in the text.
    """
    data: dict[str, Any] = {"confidences": {}, "soft": [], "directions": {}}
    if confidence is not None:
        data["confidence"] = confidence
    start, found = 0, 0
    for gap in [*_BETWEEN.finditer(text), None]:
        end = len(text) if gap is None else gap.start()
        if text[start:end].strip():
            _read(text, start, end, data)
            found += 1
        start = end if gap is None else gap.end()
    if not found:
        raise InputError("sla: says nothing; write it as in 'p99 < 2 ms, device power <= 5 W'")
    try:
        return Sla.model_validate(data)
    except ValidationError as error:
        raise validation_error(error, f"sla {text!r}") from None


def _read(text: str, start: int, end: int, data: dict[str, Any]) -> None:
    if _PERMISSION.fullmatch(text, start, end):
        data["allow_weaker_durability"] = True
        return
    match = _CLAUSE.fullmatch(text, start, end)
    if match is None:
        raise _at(text, start, end, "is not understood: write a bound as in 'p99 < 2 ms'")
    bound = _bound(match)
    low = bound.endswith("_min")
    if match["operator"] == "=" or (match["operator"] in ("<", "<=", "=<", "≤")) == low:
        word = "at least (>=)" if low else "at most (<=)"
        raise _at(text, *match.span("operator"), f"{match['quantity']} is bounded by {word}")
    if bound in data:
        raise _at(text, *match.span("quantity"), "is bounded twice; state it once")
    data[bound] = float(match["number"].replace("_", "")) * _unit(match, bound)
    if match["soft"]:
        data["soft"].append(bound)
    if match["direction"]:
        data["directions"][bound] = match["direction"].lower().removesuffix("s")
    if match["confidence"]:
        data["confidences"][bound] = float(match["confidence"]) / 100.0


def _bound(match: re.Match[str]) -> str:
    said = re.sub(r"\s*\+\s*", " + ", " ".join(match["quantity"].lower().split()))
    short = said.removesuffix(" latency") if said.startswith("p") else said
    found = QUANTITIES.get(short)
    if found is None:
        close = difflib.get_close_matches(short, QUANTITIES, n=2)
        meant = f"did you mean {' or '.join(close)}?" if close else f"know {', '.join(QUANTITIES)}"
        span = match.span("quantity") if match["quantity"] else match.span("operator")
        raise _at(match.string, *span, f"is nothing that can be bounded; {meant}")
    return found


def _unit(match: re.Match[str], bound: str) -> float:
    kind = "latency" if "latency" in bound else "power" if "power" in bound else bound
    known = UNITS[kind]
    if re.fullmatch("[kKMG]b/s", match["unit"]):
        span = match.span("unit")
        raise _at(
            match.string, *span, "means bits or bytes? write MB/s for bytes, as throughput is"
        )
    factor = known.get(match["unit"].lower())
    if factor is None:
        span = match.span("unit") if match["unit"] else match.span("number")
        units = ", ".join(unit for unit in known if unit)
        raise _at(match.string, *span, f"needs a unit of it: {units}")
    return factor


def _at(text: str, start: int, end: int, said: str) -> InputError:
    """An error that points at a part of the text."""
    part = text[start:end]
    start += len(part) - len(part.lstrip())
    part = part.strip()
    return InputError(
        f"sla: {part!r} (from character {start + 1}) {said}\n    {text}\n    "
        f"{' ' * start}{'^' * max(len(part), 1)}",
        field="sla",
    )
