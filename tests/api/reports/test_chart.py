"""Drawings: true to their values, readable, and the same each time."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.api.reports.chart import (
    BOTTOM,
    HEIGHT,
    LEFT,
    LETTER,
    RIGHT,
    TOP,
    WIDTH,
    Axis,
    Chart,
    Limit,
    Point,
    Span,
    draw,
)
from iojoule.datasets.vocabulary import Evidence

SVG = "{http://www.w3.org/2000/svg}"
PLAIN = Axis("x", lambda value: f"{value:g}")
POWERS = Axis("y", lambda value: f"{value:g}", log=True)


def point(x: float, y: float, label: str = "", reach: float = 1.0) -> Point:
    return Point(
        Span(x, x / reach, x * reach),
        Span(y, y / reach, y * reach),
        Evidence.MEASURED,
        "front",
        f"{x:g} at {y:g}",
        label,
    )


def root_of(chart: Chart) -> ElementTree.Element:
    return ElementTree.fromstring(draw(chart).svg)


def places(root: ElementTree.Element) -> list[tuple[float, float]]:
    marks = [one for one in root.iter(f"{SVG}path") if one.findtext(f"{SVG}title")]
    found = [re.findall(r"[-\d.]+", one.attrib["transform"]) for one in marks]
    return [(float(x), float(y)) for x, y in found]


def test_places_are_those_of_the_values() -> None:
    chart = Chart("a", "t", "c", PLAIN, POWERS, [point(1, 10), point(2, 100), point(3, 1000)])
    (x1, y1), (x2, y2), (x3, y3) = places(root_of(chart))
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.02)
    assert y1 - y2 == pytest.approx(y2 - y3, abs=0.02)
    assert y1 > y2


values = st.floats(1e-3, 1e12)


@given(st.lists(st.tuples(values, values), min_size=1, max_size=8), st.floats(1.0, 100.0))
def test_everything_stays_in_the_frame(pairs: list[tuple[float, float]], reach: float) -> None:
    points = [point(x, y, str(place), reach) for place, (x, y) in enumerate(pairs)]
    root = root_of(Chart("a", "t", "c", PLAIN, POWERS, points, [Limit(5.0, "SLA 5")]))
    assert len(places(root)) == len(points)
    for x, y in places(root):
        assert LEFT <= x <= WIDTH - RIGHT
        assert TOP <= y <= HEIGHT - BOTTOM
    for line in root.iter(f"{SVG}line"):
        assert LEFT <= float(line.attrib["x1"]) <= float(line.attrib["x2"]) <= WIDTH - RIGHT


def test_labels_do_not_cover_each_other() -> None:
    near = [point(1 + place * 1e-3, 10, f"label {place}") for place in range(6)]
    root = root_of(Chart("a", "t", "c", PLAIN, POWERS, [*near, point(1000, 1000)]))
    shown = [one for one in root.iter(f"{SVG}text") if one.get("class") == "label"]
    boxes = [(float(one.attrib["x"]), float(one.attrib["y"])) for one in shown]
    assert 1 <= len(boxes) < len(near)
    wide = LETTER * len("label 0")
    for place, (x, y) in enumerate(boxes):
        for other_x, other_y in boxes[:place]:
            assert abs(x - other_x) >= wide or abs(y - other_y) >= 14


def test_what_is_written_is_escaped() -> None:
    hostile = "<script>&\"'"
    root = root_of(
        Chart("a", hostile, hostile, PLAIN, POWERS, [point(1, 2, hostile)], [Limit(1, hostile)])
    )
    assert root.findtext(f"{SVG}title") == hostile
    assert not list(root.iter(f"{SVG}script"))
    assert hostile in [one.text for one in root.iter(f"{SVG}text")]
