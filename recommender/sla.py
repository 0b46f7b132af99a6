"""What the service must keep: bounds on throughput, latency, power and wear."""

from __future__ import annotations

import difflib
import re
from itertools import pairwise
from statistics import NormalDist
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, ValidationError, model_validator

from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import LARGEST, Section, Truth, number, validation_error
from iojoule.model.evaluate.quantities import NORMAL_90

Confidence = Annotated[float, Field(ge=0.5, le=0.99), number]

MINIMA = {
    "throughput_bytes_per_second_min": "throughput_bytes_per_second",
    "iops_min": "iops",
}
"""Bounds from below and the quantity that each one bounds."""

LATENCY_MAXIMA = {
    "latency_mean_ns_max": "latency_mean_ns",
    "latency_p50_ns_max": "latency_p50_ns",
    "latency_p99_ns_max": "latency_p99_ns",
    "latency_p999_ns_max": "latency_p999_ns",
}
"""Bounds on latency from above."""

POWER_MAXIMA = {
    "device_power_watts_max": "device_power_watts",
    "cpu_power_watts_max": "cpu_power_watts",
    "device_cpu_power_watts_max": "device_cpu_power_watts",
    "system_power_watts_max": "system_power_watts",
}
"""Bounds on mean power at the demanded rate from above."""


ENDURANCE = "endurance_years_min"
"""Bound on how long the rated endurance lasts."""

BoundName = Literal[
    "throughput_bytes_per_second_min",
    "iops_min",
    "latency_mean_ns_max",
    "latency_p50_ns_max",
    "latency_p99_ns_max",
    "latency_p999_ns_max",
    "device_power_watts_max",
    "cpu_power_watts_max",
    "device_cpu_power_watts_max",
    "system_power_watts_max",
    "endurance_years_min",
]

BOUNDS: tuple[BoundName, ...] = get_args(BoundName)
"""Every bound, in the order in which they are judged and shown."""


Bound = Annotated[float, Field(ge=1e-9, le=LARGEST), number]
"""A bound in its unit, between what no drive falls below and what none exceeds."""


class Sla(Section):
    """Bounds that a recommended configuration keeps with the stated confidence.

    Throughput and operations count useful work and bound what the configuration is able to
    carry, whatever the demand. Power is the mean at the demanded rate.

    Attributes:
        throughput_bytes_per_second_min: Useful bytes a second that it must be able to carry.
        iops_min: Useful operations a second that it must be able to carry.
        latency_mean_ns_max: Mean latency of a request; likewise the percentiles.
        device_power_watts_max: Mean power of the drive; likewise CPU, both together, and the whole
            system.
        endurance_years_min: How long the rated endurance must last at this rate of writing.
        confidence: One-sided probability with which each bound is kept, 0.5 to 0.99.
        confidences: By bound, where one is to be surer or less sure than the others.
        soft: Bounds that are preferred: kept where anything keeps them beside the others, else
            missed by as little as possible.
        directions: By bound, where it is meant for reads or writes only.
        allow_weaker_durability: Whether a recommendation may let a power cut take more than it
            takes today; never otherwise.
    """

    throughput_bytes_per_second_min: Bound | None = None
    iops_min: Bound | None = None
    latency_mean_ns_max: Bound | None = None
    latency_p50_ns_max: Bound | None = None
    latency_p99_ns_max: Bound | None = None
    latency_p999_ns_max: Bound | None = None
    device_power_watts_max: Bound | None = None
    cpu_power_watts_max: Bound | None = None
    device_cpu_power_watts_max: Bound | None = None
    system_power_watts_max: Bound | None = None
    endurance_years_min: Bound | None = None
    confidence: Confidence = 0.9
    confidences: dict[BoundName, Confidence] = Field(default_factory=dict)
    soft: tuple[BoundName, ...] = ()
    directions: dict[BoundName, Literal["read", "write"]] = Field(default_factory=dict)
    allow_weaker_durability: Truth = False

    @model_validator(mode="after")
    def _not_contradictory(self) -> Self:
        percentiles = [
            (name, getattr(self, name))
            for name in ("latency_p50_ns_max", "latency_p99_ns_max", "latency_p999_ns_max")
            if getattr(self, name) is not None
        ]
        for (low_name, low), (high_name, high) in pairwise(percentiles):
            if high < low:
                raise ValueError(
                    f"{high_name}: {high:g} ns is below {low_name} = {low:g} ns, although the "
                    "higher percentile of a latency is never the smaller one; the two are swapped "
                    "or one of them is in another unit"
                )
        for whole, parts in _INCLUDES.items():
            most = getattr(self, whole)
            for name in parts:
                part = getattr(self, name)
                if most is not None and part is not None and part > most:
                    raise ValueError(
                        f"{name}: {part:g} W is more than the {most:g} W of {whole}, "
                        "which includes it; lower it, leave it out or raise the other bound"
                    )
        for field in ("confidences", "soft", "directions"):
            for name in getattr(self, field):
                if getattr(self, name) is None:
                    raise ValueError(f"{field}: {name} is not bound; state it, or leave it out")
        return self

    def bounds(self) -> dict[str, float]:
        """The bounds that are set, by field name, in the order of the fields."""
        return {name: value for name in BOUNDS if (value := getattr(self, name)) is not None}

    def confidence_of(self, bound: str) -> float:
        """One-sided probability with which a bound (or the demand) is kept."""
        own = (value for name, value in self.confidences.items() if name == bound)
        return next(own, self.confidence)


_INCLUDES = {
    "system_power_watts_max": (
        "device_power_watts_max",
        "cpu_power_watts_max",
        "device_cpu_power_watts_max",
    ),
    "device_cpu_power_watts_max": ("device_power_watts_max", "cpu_power_watts_max"),
}


def confidence_scale(confidence: float) -> float:
    """Factor from the half width of a 90 % interval to the margin of a one-sided bound.

    A normal quantile: at 0.95 one-sided it is 1, at 0.5 it is 0 (the value itself).
    """
    return NormalDist().inv_cdf(confidence) / NORMAL_90


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
        "b/s": 1.0,
        "kb/s": 1e3,
        "mb/s": 1e6,
        "gb/s": 1e9,
        "kib/s": 2.0**10,
        "mib/s": 2.0**20,
        "gib/s": 2.0**30,
    },
    "iops_min": {"": 1.0, "k": 1e3, "m": 1e6, "iops": 1.0, "kiops": 1e3, "miops": 1e6},
    "latency": {"ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9},
    "power": {"w": 1.0, "mw": 1e-3, "kw": 1e3, "watts": 1.0},
    "endurance_years_min": {"years": 1.0, "year": 1.0, "y": 1.0, "a": 1.0},
}
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
