"""Drawings of a model card as SVG, the same bytes for the same profile.

Text stays text, so that it can be read out and searched; each drawing has a title and a
description. Ids begin with the drawing's name, because several of them share one page.
"""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from iojoule.api.power_law_answer import Direction, LawLine
from iojoule.api.power_laws import COMMAND_BYTES, fastest, law_line, measured, of_direction
from iojoule.api.reports.document import INK, PAPER, Picture
from iojoule.api.reports.quantities import quantity, size
from iojoule.datasets.profile import (
    Assessment,
    DevicePower,
    DeviceProfile,
    PerformancePoints,
    PowerPoints,
    Surface,
)
from iojoule.model.evaluate.device_power import FOLDING_SHARE
from iojoule.model.evaluate.prediction import Prediction
from iojoule.model.evaluate.predictor import Predictor

if TYPE_CHECKING:
    from matplotlib.figure import Figure


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")
"""Okabe and Ito's palette, which people with any common colour vision deficiency can tell apart."""
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
"""One a colour, for those who see none."""

STYLE: dict[str, object] = {
    "svg.hashsalt": "iojoule",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    # looking for the best place takes seconds on a slow machine, and then warns
    "legend.loc": "upper left",
}


_ONE_AT_A_TIME = threading.Lock()
"""Matplotlib's settings are the whole process's."""


@contextmanager
def panels(count: int) -> Iterator[tuple[Figure, list[Any]]]:
    """A figure with so many panels side by side, in the cards' one style."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style: Any = STYLE
    with _ONE_AT_A_TIME, mpl.rc_context(style):
        figure = Figure(figsize=(9.0, 3.9))
        # Fixed margins: the search of a layout engine for them takes a third of the time of a card.
        figure.subplots_adjust(left=0.085, right=0.99, bottom=0.13, top=0.97, wspace=0.24)
        axes = figure.subplots(1, count, squeeze=False)[0].tolist()
        for one in axes:
            one.grid(visible=True, which="major", color=INK, alpha=0.12, linewidth=0.7)
            one.set_axisbelow(True)
        yield figure, axes


def picture(figure: Figure, name: str, title: str, caption: str) -> Picture:
    """Turn a figure into a picture; the caption is also its description."""
    target = io.StringIO()
    # a date or a version would make two drawings of the same profile differ
    figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None})
    svg = re.sub(r"^.*?<svg ", "<svg ", target.getvalue(), count=1, flags=re.DOTALL)
    svg = re.sub(r"\s*<(metadata|style)\b.*?</\1>", "", svg, flags=re.DOTALL)
    svg = _own_ids(svg, name)
    svg = re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", svg)
    said = (
        f'<title id="{name}-title">{escape(title)}</title>\n'
        f'<desc id="{name}-desc">{escape(caption)}</desc>\n'
    )
    opening, body = svg.split(">", 1)
    svg = (
        f'<svg role="img" aria-labelledby="{name}-title {name}-desc" '
        'style="stroke-linejoin: round; stroke-linecap: butt" '
        f"{opening.removeprefix('<svg ')}>\n{said}{body.lstrip()}"
    )
    return Picture(name, "\n".join(line.strip() for line in svg.splitlines()) + "\n", caption)


def _own_ids(svg: str, name: str) -> str:
    """Keep only the ids that the drawing itself refers to, and let them begin with its name."""
    used = set(re.findall(r'(?:url\(|xlink:href=")#([^")]+)', svg))

    def kept(found: re.Match[str]) -> str:
        return f' id="{name}-{found[1]}"' if found[1] in used else ""

    svg = re.sub(r' id="([^"]+)"', kept, svg)
    return re.sub(r'(url\(|xlink:href=")#', rf"\1#{name}-", svg)


Floats = NDArray[np.float64]

SIZES_MAX = len(COLOURS)
"""More curves in one panel are not told apart."""
DEPTHS = np.unique(np.round(2 ** np.arange(0, 8.01, 0.25)))
DIRECTIONS: tuple[Direction, ...] = ("read", "write")


def saturation_picture(profile: DeviceProfile, surface: Surface) -> Picture:
    """Throughput and mean latency over requests in flight, by request size."""
    points = _points_of(profile.assessment, surface)
    seen = _Seen.of(profile, points) if points is not None and points.latency else None
    sizes = _sizes(surface, seen)
    predictor = Predictor(profile)
    kind = f"{surface.pattern} {surface.operation}"
    with panels(2) as (figure, (left, right)):
        for place, request_bytes in enumerate(sizes):
            colour, style = COLOURS[place], STYLES[place]
            answer = _answer(predictor, surface, seen, request_bytes)
            for axes, name, scale in (
                (left, "throughput_bytes_per_second", 1e-6),
                (right, "latency_mean_ns", 1e-3),
            ):
                band = answer[name]
                axes.fill_between(
                    DEPTHS,
                    band.low * scale,
                    band.high * scale,
                    color=colour,
                    alpha=0.13,
                    linewidth=0,
                )
                axes.plot(
                    DEPTHS,
                    band.value * scale,
                    color=colour,
                    linestyle=style,
                    linewidth=1.5,
                    label=size(request_bytes),
                )
            if seen is not None:
                seen.draw(left, right, request_bytes, colour)
        for axes, label in ((left, "throughput (MB/s)"), (right, "mean latency (µs)")):
            axes.set(xscale="log", yscale="log", xlabel="requests in flight", ylabel=label)
            _plain_ticks(axes)
        left.legend(title="request", title_fontsize=8.5)
        drawn = (
            f"Lines: the profile's answer for one job at PS0 ({_path(seen)}); shaded: its 90 % "
            "interval. "
        )
        drawn += (
            "Dots: measured with one job; rings: with several jobs, for which the lines are not "
            "drawn; crosses: sessions that stand apart."
            if seen is not None
            else "No measured points are stored."
        )
        return picture(
            figure,
            f"{profile.device}-saturation-{surface.pattern}-{surface.operation}",
            f"Saturation of {kind}s, {profile.model_name}",
            drawn,
        )


def _path(seen: _Seen | None) -> str:
    return f"host path {seen.path}" if seen is not None else "the default host path"


class _Seen:
    """Stored points on the host path that has most of them, at their observed values."""

    def __init__(self, points: PerformancePoints, path: str, answer: Prediction) -> None:
        keep = np.array([one == path for one in points.path])
        self.path = path
        self.bytes = np.array(points.request_bytes)[keep]
        self.jobs = np.array(points.jobs)[keep]
        self.requests = np.array(points.queue_depth)[keep] * self.jobs
        self.apart = np.array(points.apart)[keep]
        factor = np.exp(np.array(points.latency)[keep])
        self.latency = answer["latency_mean_ns"].value[keep] * factor
        self.throughput = answer["throughput_bytes_per_second"].value[keep] / factor

    @classmethod
    def of(cls, profile: DeviceProfile, points: PerformancePoints) -> _Seen:
        paths = sorted(set(points.path), key=lambda one: (-points.path.count(one), one))
        columns = {
            name: getattr(points, name) for name in ("request_bytes", "queue_depth", "jobs")
        } | _columns(points.path, points.operation, points.pattern)
        answer, _ = Predictor(profile).predict_columns(columns, len(points.path))
        return cls(points, paths[0], answer)

    def draw(self, left: Any, right: Any, request_bytes: int, colour: str) -> None:
        own = self.bytes == request_bytes
        single = own & ~self.apart & (self.jobs == 1)
        several = own & ~self.apart & (self.jobs > 1)
        for axes, values, scale in ((left, self.throughput, 1e-6), (right, self.latency, 1e-3)):
            for chosen, marker, face in (
                (single, "o", colour),
                (several, "o", "none"),
                (own & self.apart, "x", colour),
            ):
                axes.scatter(
                    self.requests[chosen],
                    values[chosen] * scale,
                    marker=marker,
                    s=20,
                    facecolors=face,
                    edgecolors=None if marker == "x" else colour,
                    linewidths=1.0,
                    zorder=4,
                )


def _columns(paths: list[str], operation: str, pattern: str) -> dict[str, list[Any]]:
    """The fields that the names of host paths stand for (see `path_key`)."""
    parts = [one.split("/") for one in paths]
    return {
        "operation": [str(operation)] * len(paths),
        "pattern": [str(pattern)] * len(paths),
        "engine": [one[0] for one in parts],
        "completion": [one[1] for one in parts],
        "submission_polling": ["sqpoll" in one for one in parts],
        "scheduler": [one[-1] for one in parts],
    }


def _points_of(assessment: Assessment | None, surface: Surface) -> PerformancePoints | None:
    for one in assessment.performance if assessment else []:
        if (one.operation, one.pattern) == (surface.operation, surface.pattern):
            return one
    return None


def _sizes(surface: Surface, seen: _Seen | None) -> list[int]:
    """Request sizes to draw: measured at most depths, else some of the surface's knots."""
    if seen is not None:
        requests = {
            int(one): len(np.unique(seen.requests[(seen.bytes == one) & steady]))
            for steady in [~seen.apart if not seen.apart.all() else seen.apart]
            for one in np.unique(seen.bytes[steady])
        }
        order = sorted(requests, key=lambda one: (-requests[one], one))
        return sorted(order[:SIZES_MAX])
    knots = [round(2**octave / 512) * 512 for octave in surface.log2_request_bytes]
    places = np.linspace(0, len(knots) - 1, min(SIZES_MAX, len(knots))).astype(int)
    return [knots[place] for place in places]


def _answer(
    predictor: Predictor, surface: Surface, seen: _Seen | None, request_bytes: int
) -> Prediction:
    count = len(DEPTHS)
    columns: dict[str, Any] = {
        "operation": [surface.operation.value] * count,
        "pattern": [surface.pattern.value] * count,
    }
    if seen is not None:
        columns = _columns([seen.path] * count, surface.operation.value, surface.pattern.value)
    columns |= {
        "request_bytes": [request_bytes] * count,
        "queue_depth": DEPTHS,
        "jobs": [1] * count,
    }
    return predictor.predict_columns(columns, count)[0]


def _plain_ticks(axes: Any) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.set_minor_formatter(NullFormatter())


def residual_picture(profile: DeviceProfile, assessment: Assessment) -> Picture:
    """Observed over answered, over requests in flight."""
    with panels(2) as (figure, axes):
        for one, name, title in zip(
            axes, ("latency", "p99"), ("mean latency", "p99 latency"), strict=True
        ):
            one.axhline(0.0, color=INK, linewidth=0.8)
            for apart, colour, marker, label in (
                (False, COLOURS[0], "o", "steady"),
                (True, COLOURS[1], "x", "apart"),
            ):
                x, y = _residuals(assessment, name, apart)
                if len(x):
                    one.scatter(
                        x,
                        100 * np.expm1(y),
                        s=16,
                        color=colour,
                        marker=marker,
                        alpha=0.75,
                        linewidths=1.0,
                        label=label,
                    )
            one.set(
                xscale="log",
                xlabel="requests in flight",
                ylabel=f"{title}: observed over answered (%)",
            )
            _plain_ticks(one)
        if axes[0].get_legend_handles_labels()[1]:
            axes[0].legend()
        return picture(
            figure,
            f"{profile.device}-residuals",
            f"Residuals, {profile.model_name}",
            "How far the observed latency of each fitted point lies above (positive) or below what "
            "the profile answers there. Steady sessions are what it answers for.",
        )


def _residuals(assessment: Assessment, name: str, apart: bool) -> tuple[Floats, Floats]:
    x, y = [], []
    for one in assessment.performance:
        column: list[float | None] = getattr(one, name)
        for place, value in enumerate(column):
            if value is not None and one.apart[place] is apart:
                x.append(one.queue_depth[place] * one.jobs[place])
                y.append(value)
    return np.array(x, dtype=float), np.array(y, dtype=float)


def power_picture(name: str, law: DevicePower, points: PowerPoints | None) -> Picture:
    """Watts over throughput, reads and writes apart, with the measured points."""
    x, seen = measured(law, points)
    with panels(2) as (figure, axes):
        for panel, operation in zip(axes, DIRECTIONS, strict=True):
            own = of_direction(x, operation)
            most = fastest(x, operation)
            kinds = [(command, False) for command in COMMAND_BYTES]
            if operation == "write" and (x[own, 5] > FOLDING_SHARE).any():
                kinds.append((COMMAND_BYTES[0], True))
            for place, (command, collecting) in enumerate(kinds):
                drawn = law_line(law, operation, most, command, collecting=collecting)
                _law_line(panel, drawn, place)
            rates = x[own, 1] + x[own, 3]
            state = np.array(points.power_state if points else [], dtype=np.intp)[own]
            for low, face, label in ((False, INK, "measured"), (True, "none", "at PS1 and below")):
                some = (state > 0) == low
                if some.any():
                    panel.scatter(
                        rates[some] * 1e-6,
                        seen[own][some],
                        s=16,
                        zorder=4,
                        label=label,
                        facecolors=face,
                        edgecolors=INK,
                        linewidths=0.8,
                    )
            panel.set(xlabel=f"{operation}s (MB/s)", ylabel="drive (W)", xlim=(0, most * 1e-6))
            panel.set_ylim(bottom=0)
            panel.legend()
        return picture(
            figure,
            f"{name}-power",
            f"Power law of the drive, {name}",
            "Lines: the law at PS0 for commands of one size; shaded: its 90 % interval. Dots: "
            f"measured points, of any size: {_ranges(x)}.",
        )


def _ranges(x: Floats) -> str:
    parts = []
    for operation in DIRECTIONS:
        own = of_direction(x, operation)
        if own.any():
            most = quantity("bytes_per_second", float((x[own, 1] + x[own, 3]).max()))
            parts.append(f"{int(own.sum())} of {operation}s up to {most}")
    return ", ".join(parts) or "none are stored"


def _law_line(axes: Any, line: LawLine, place: int) -> None:
    rate = [one.bytes_per_second * 1e-6 for one in line.points]
    label = f"{size(line.request_bytes)} commands" + (", collecting" if line.collecting else "")
    axes.fill_between(
        rate,
        [one.device_power_watts_low for one in line.points],
        [one.device_power_watts_high for one in line.points],
        color=COLOURS[place],
        alpha=0.13,
        linewidth=0,
    )
    axes.plot(
        rate,
        [one.device_power_watts for one in line.points],
        color=COLOURS[place],
        linestyle=STYLES[place],
        linewidth=1.5,
        label=label,
    )
