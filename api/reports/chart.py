"""Draws points with intervals, and lines with bands, as SVG whose colours are the page's own.

The markers' shapes say the evidence, as on the service's page; what a point is can be read by
pointing at it, without a script. The classes are those of page.css.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from iojoule.api.reports.document import Picture, template
from iojoule.datasets.vocabulary import Evidence

WIDTH, HEIGHT = 720, 440
LEFT, RIGHT, TOP, BOTTOM = 92, 24, 44, 52
"""The frame in CSS pixels; the drawing grows and shrinks with the page."""

LETTER = 7.0
"""About the width of a letter."""

LONG_DECADES = 2.5
"""A longer logarithmic axis names powers of ten alone."""

SHAPES = {
    Evidence.MEASURED: "M5,0A5,5 0 1 1 -5,0A5,5 0 1 1 5,0Z",
    Evidence.INTERPOLATED: "M0,-6.5L4.5,0L0,6.5L-4.5,0Z",
    Evidence.EXTRAPOLATED: "M0,-6L5.5,4L-5.5,4Z",
    Evidence.SIMULATED: "M-4.6,-4.6H4.6V4.6H-4.6Z",
    Evidence.PUBLISHED: "M0,-6.6L1.5,-2H6.3L2.4,.8L3.9,5.3L0,2.5L-3.9,5.3L-2.4,.8L-6.3,-2H-1.5Z",
    Evidence.DATASHEET: "M-1.9,-5.6H1.9V-1.9H5.6V1.9H1.9V5.6H-1.9V1.9H-5.6V-1.9H-1.9Z",
    Evidence.ASSUMED: "M1.7,1V6H-1.7V1L-6,-1.5L-4.3,-4.5L0,-2L4.3,-4.5L6,-1.5Z",
}
"""Outline of each marker."""


DOT = "M2.5,0A2.5,2.5 0 1 1 -2.5,0A2.5,2.5 0 1 1 2.5,0Z"


@dataclass(frozen=True)
class Span:
    """A finite value on an axis and the interval around it, whose ends may be infinite."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Axis:
    """What an axis shows; `tick` writes a value of it."""

    title: str
    tick: Callable[[float], str]
    log: bool = False


@dataclass(frozen=True)
class Point:
    """A marker.

    Attributes:
        x: Where it stands; `y` likewise.
        evidence: Says its shape; None: nothing is said, it is a dot.
        kind: Its class in page.css: recommended, today, front or miss.
        says: What it is, shown to whoever points at it.
        label: Written beside it.
    """

    x: Span
    y: Span
    evidence: Evidence | None
    kind: str
    says: str
    label: str = ""


@dataclass(frozen=True)
class Limit:
    """A value of an axis that must not be passed; `upright` where it is one of the x axis."""

    value: float
    says: str
    upright: bool = False


@dataclass(frozen=True)
class Chart:
    """A drawing.

    Attributes:
        name: Of its ids.
        title: In a few words.
        caption: What it shows, in a sentence or two.
        lines: Each a run of points that are joined, with their intervals on the y axis as a band.
        kinds: Class -> its name in the legend.
    """

    name: str
    title: str
    caption: str
    x: Axis
    y: Axis
    points: Sequence[Point] = ()
    limits: Sequence[Limit] = ()
    lines: Sequence[Sequence[Point]] = ()
    kinds: dict[str, str] = field(default_factory=dict)


def draw(chart: Chart) -> Picture:
    """The drawing; the same for the same chart."""
    every = [*chart.points, *(point for line in chart.lines for point in line)]
    x = _Scale(chart.x, _ends([one.x for one in every], chart.limits, True), (LEFT, WIDTH - RIGHT))
    y = _Scale(
        chart.y, _ends([one.y for one in every], chart.limits, False), (HEIGHT - BOTTOM, TOP)
    )
    svg = template("chart.svg").render(
        chart=chart,
        x=x,
        y=y,
        width=WIDTH,
        height=HEIGHT,
        left=LEFT,
        right=WIDTH - RIGHT,
        top=TOP,
        floor=HEIGHT - BOTTOM,
        shapes={**SHAPES, None: DOT},
        labels=_labels(chart.points, x, y),
        legend=_legend(chart, every),
        bands=[_band(line, x, y) for line in chart.lines],
        paths=[_path(line, x, y) for line in chart.lines],
    )
    return Picture(chart.name, Markup(svg), chart.caption)


class _Scale:
    """Values of an axis to places in the drawing."""

    def __init__(self, axis: Axis, ends: tuple[float, float], range_: tuple[float, float]) -> None:
        self.axis, self._range = axis, range_
        low, high = ends
        if axis.log:
            self._low, self._high = math.log10(low) - 0.05, math.log10(high) + 0.05
        else:
            room = 0.06 * ((high - low) or abs(high) or 1.0)
            self._low, self._high = (max(low - room, 0.0) if low >= 0 else low - room), high + room

    def __call__(self, value: float) -> float:
        at = math.log10(max(value, 1e-300)) if self.axis.log else value
        share = (at - self._low) / (self._high - self._low)
        start, end = self._range
        return round(start + min(max(share, 0.0), 1.0) * (end - start), 2)

    def ticks(self) -> list[tuple[float, str]]:
        """Places and what is written there."""
        values = self._decades() if self.axis.log else self._steps()
        return [(self(value), self.axis.tick(value)) for value in values]

    def _steps(self) -> list[float]:
        rough = (self._high - self._low) / 6.0
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * times for times in (1, 2, 5, 10) if unit * times >= rough)
        first, last = math.ceil(self._low / step), math.floor(self._high / step)
        return [count * step for count in range(first, last + 1)]

    def _decades(self) -> list[float]:
        long = self._high - self._low > LONG_DECADES
        powers = range(math.floor(self._low), math.ceil(self._high) + 1)
        values = [
            times * 10.0**power for power in powers for times in ((1,) if long else (1, 2, 5))
        ]
        return [one for one in values if self._low <= math.log10(one) <= self._high]


def _ends(spans: Sequence[Span], limits: Sequence[Limit], upright: bool) -> tuple[float, float]:
    values = [end for span in spans for end in (span.low, span.high)]
    values = [one for one in values if math.isfinite(one)]
    values += [one.value for one in limits if one.upright is upright]
    return min(values), max(values)


def _labels(points: Sequence[Point], x: _Scale, y: _Scale) -> list[tuple[float, float, Point]]:
    """Where labels stand: named ones first, and none over another or over a marker."""
    taken = [(x(one.x.value) - 6, y(one.y.value) - 6, 12.0, 12.0) for one in points]
    found = []
    for point in sorted(points, key=lambda one: -len(one.label)):
        wide = LETTER * len(point.label)
        for across, up in ((9.0, -6.0), (-9.0 - wide, -6.0), (9.0, 18.0), (-9.0 - wide, 18.0)):
            box = (x(point.x.value) + across, y(point.y.value) + up - 11, wide, 14.0)
            inside = box[0] >= LEFT and box[0] + wide <= WIDTH - 2
            if point.label and inside and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                found.append((round(box[0], 2), round(box[1] + 11, 2), point))
                break
    return found


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return (
        one[0] < other[0] + other[2]
        and other[0] < one[0] + one[2]
        and one[1] < other[1] + other[3]
        and other[1] < one[1] + one[3]
    )


def _legend(chart: Chart, points: Sequence[Point]) -> list[tuple[float, str, str, str]]:
    """Place, class, shape and name of what is there: who it is by colour, evidence by shape."""
    rows = [
        (kind, SHAPES[Evidence.MEASURED], name)
        for kind, name in chart.kinds.items()
        if any(one.kind == kind for one in points)
    ]
    there = {one.evidence for one in points}
    rows += [("shape", outline, one.value) for one, outline in SHAPES.items() if one in there]
    found, at = [], float(LEFT)
    for kind, outline, name in rows:
        found.append((round(at, 2), kind, outline, name))
        at += 34 + LETTER * len(name)
    return found


def _path(line: Sequence[Point], x: _Scale, y: _Scale) -> str:
    return "M" + "L".join(f"{x(one.x.value)},{y(one.y.value)}" for one in line)


def _band(line: Sequence[Point], x: _Scale, y: _Scale) -> str:
    upper = [f"{x(one.x.value)},{y(one.y.high)}" for one in line]
    lower = [f"{x(one.x.value)},{y(one.y.low)}" for one in reversed(line)]
    return f"M{'L'.join(upper + lower)}Z"
