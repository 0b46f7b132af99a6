"""Plots of a Pareto front, sweeps and a fleet frontier as pictures, or their points as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from iojoule.api.reports.configurations import (
    KNOBS,
    SCOPE_POWER,
    first_word,
    same_setting,
    setting_in_short,
)
from iojoule.api.reports.quantities import digits, quantity, scale_of
from iojoule.datasets.atomic import output_file, write_atomically, write_text_atomically
from iojoule.datasets.errors import InputError
from iojoule.datasets.vocabulary import Evidence
from iojoule.recommender.fleet.plan import FrontierPoint
from iojoule.recommender.response import Estimate, Recommendation, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from iojoule.api.application.fleet import FrontierAnswer
    from iojoule.api.application.what_if import SweepAnswer
    from iojoule.sim.result import ScenarioResult


Points = tuple[list[str], list[list[Any]]]
"""Names of the columns, and rows."""


def is_table(path: Path) -> bool:
    """Whether the points are asked for and not a picture."""
    return path.suffix.lower() == ".csv"


def write_points(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Write points whole or not at all; None becomes an empty cell.

    Raises:
        InputError: The file cannot be written.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_cell(one) for one in row] for row in rows)
    with output_file(path):
        write_text_atomically(path, text.getvalue())


def _cell(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def front_points(found: Recommendation, measures: Sequence[Measure]) -> Points:
    """The front, the nearest misses, today's and the recommended configuration.

    Args:
        found: The answer.
        measures: What the axes show.
    """
    fields = dict.fromkeys([*(one.field for one in measures), "capacity_bytes_per_second"])
    rows = [("front", row) for row in found.pareto]
    rows += [("nearest miss", miss.row) for miss in found.nearest_misses]
    if found.current is not None:
        rows.append(("today", found.current))
    if found.recommended is not None:
        rows.append(("recommended", found.recommended))
    header = ["role", *KNOBS, *(f"{name}{end}" for name in fields for end in _ENDS)]
    return header, [[role, *_knobs(row), *_ends(row, fields)] for role, row in rows]


_ENDS = ("", "_low", "_high", "_evidence")


def _knobs(row: Row) -> list[Any]:
    return [getattr(row.configuration, name) for name in KNOBS]


def _ends(row: Row, fields: Sequence[str] | dict[str, None]) -> list[Any]:
    cells: list[Any] = []
    for name in fields:
        one: Estimate | None = getattr(row, name)
        cells += [None] * 4 if one is None else [one.value, one.low, one.high, one.evidence.value]
    return cells


def sweep_points(found: SweepAnswer, shown: str) -> Points:
    """One quantity at each point of a sweep."""
    names = [f"change.{name}" for name in found.axes]
    names += [f"{shown}{end}" for end in _ENDS] + ["feasible"]
    return names, [[each.get(name) for name in names] for each in found.records]


def frontier_points(found: FrontierAnswer) -> Points:
    """What each budget of a fleet buys."""
    names = list(FrontierPoint.model_fields)
    return names, [[getattr(point, name) for name in names] for point in found.points]


ENDINGS = (".svg", ".png", ".pdf", ".csv")
"""What a plot can be written as; .csv is the points that it shows."""

STYLE: Any = {
    "svg.hashsalt": "iojoule",
    "svg.fonttype": "path",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
"""Settings of matplotlib for every picture."""

# Okabe and Ito's palette, which people with any common colour vision deficiency can tell apart.
VERMILION, BLUE, GREY = "#D55E00", "#0072B2", "#7F7F7F"

_MARKERS = {
    Evidence.MEASURED: "o",
    Evidence.INTERPOLATED: "s",
    Evidence.SIMULATED: "P",
    Evidence.PUBLISHED: "D",
    Evidence.EXTRAPOLATED: "^",
    Evidence.DATASHEET: "X",
    Evidence.ASSUMED: "v",
}

_LONG_DECADES = 2.5

_BOUNDED = {"capacity_bytes_per_second": "throughput_bytes_per_second"}
"""The capacity of a row is what the SLA bounds as throughput."""


def check_target(path: Path) -> None:
    """Refuse early what cannot be drawn.

    Raises:
        InputError: Not one of the known endings, a folder, or in a folder that does not exist.
    """
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"{path}: a plot ends in {', '.join(ENDINGS)}")
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name the file to write in it")
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path}: the folder {path.parent} does not exist; make it first")


def draw_front(found: Recommendation, path: Path) -> None:
    """Draw the front with the recommended and today's configuration, or write its points.

    Raises:
        InputError: The file cannot be written; nothing half written stays.
    """
    if is_table(path):
        write_points(path, *front_points(found, measures(found)))
        return
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.0, 5.0), layout="constrained")
        _draw(figure.add_subplot(), found)
        save(figure, path)


def save(figure: Any, path: Path) -> None:
    """Write a picture whole or not at all, the same bytes for the same picture.

    Raises:
        InputError: The file cannot be written.
    """
    kind = path.suffix.lower().lstrip(".")
    # dates and versions would make two pictures of the same front differ
    metadata: dict[str, dict[str, str | None]] = {
        "svg": {"Date": None, "Creator": "iojoule"},
        "pdf": {"CreationDate": None, "Creator": "iojoule", "Producer": None},
        "png": {"Software": "iojoule"},
    }
    with output_file(path):
        write_atomically(
            path,
            lambda stream: figure.savefig(stream, format=kind, dpi=160, metadata=metadata[kind]),
        )


@dataclass(frozen=True)
class Measure:
    """What an axis shows of a row; `scale` turns the field's unit into the label's."""

    field: str
    label: str
    scale: float = 1.0
    log: bool = True

    def value(self, row: Row) -> float:
        """The value in the label's unit; NaN where it is not known or has no bound."""
        estimate: Estimate | None = getattr(row, self.field)
        if estimate is None or math.isinf(estimate.value):
            return float("nan")
        return estimate.value * self.scale

    def reach(self, row: Row) -> list[list[float]]:
        """How far the interval reaches below and above the value, as matplotlib wants it.

        An end without a bound counts as 0 (`is_unbounded`).
        """
        estimate: Estimate | None = getattr(row, self.field)
        if estimate is None or math.isinf(estimate.value):
            return [[0.0], [0.0]]
        below, above = estimate.value - estimate.low, estimate.high - estimate.value
        above = 0.0 if math.isinf(above) else above
        return [[max(below, 0.0) * self.scale], [max(above, 0.0) * self.scale]]

    def is_unbounded(self, row: Row) -> bool:
        """Whether the interval has no upper end."""
        estimate: Estimate | None = getattr(row, self.field)
        return estimate is not None and math.isinf(estimate.high)

    def tick(self, value: float, _: int | None = None) -> str:
        """A number of the axis; latencies carry their unit, which changes along it."""
        if not self.field.endswith("_ns"):
            return f"{value:,g}"
        number, unit = quantity(self.field, value).split(" ")
        return f"{float(number):g} {unit}"


def measures(found: Recommendation) -> tuple[Measure, Measure]:
    """What the two axes of the front show."""
    tail = Measure("latency_p99_ns", "p99 latency")
    rows = [*found.pareto, *(miss.row for miss in found.nearest_misses)]
    if rows and rows[0].latency_p99_ns is None:
        tail = Measure("latency_mean_ns", "mean latency")
    power, scope = SCOPE_POWER[found.scope]
    if found.ranked_by == "performance":
        return Measure("capacity_bytes_per_second", "capacity (MB/s)", 1e-6), tail
    if found.ranked_by == "watts":
        return tail, Measure(power, f"mean power of {scope} (W)", log=False)
    if found.ranked_by == "edp":
        return tail, Measure("edp_joule_seconds", f"energy-delay product, {scope} (µJ s)", 1e6)
    return tail, Measure("joules_per_useful_gb", f"energy of {scope} (J per useful GB)")


def limits(found: Recommendation, measure: Measure) -> list[float]:
    """The SLA's bounds on what an axis shows, in the field's unit."""
    stated = found.sla.bounds()
    name = _BOUNDED.get(measure.field, measure.field)
    return [limit for end in ("_max", "_min") if (limit := stated.get(name + end)) is not None]


def _draw(axes: Axes, found: Recommendation) -> None:
    x, y = measures(found)
    rows = [*found.pareto, *(miss.row for miss in found.nearest_misses)]
    _scales(axes, x, y)
    for row in rows:
        _bars(axes, row, x, y, colour=GREY, alpha=0.2)
    _points(axes, rows, x, y)
    best, today = found.recommended, found.current
    same = best is not None and today is not None and same_setting(best, today)
    if today is not None and not same:
        _highlight(axes, today, x, y, VERMILION, "today")
    if found.recommended is not None:
        name = "recommended, and today" if same else "recommended"
        name = first_word(found) if found.action == "ranking" else name
        _highlight(axes, found.recommended, x, y, BLUE, name)
    _bounds(axes, found, x, y)
    _room_below(axes, y)
    for measure, axis in ((x, axes.xaxis), (y, axes.yaxis)):
        _ticks(measure, axis)
    _title(axes, found)
    _legend(axes, rows if today is None else [*rows, today])


def _scales(axes: Axes, x: Measure, y: Measure) -> None:
    axes.set_xlabel(x.label)
    axes.set_ylabel(y.label)
    if x.log:
        axes.set_xscale("log")
    if y.log:
        axes.set_yscale("log")
    axes.grid(visible=True, which="major", color="#E8E8E8", linewidth=0.8)
    axes.set_axisbelow(True)


def _ticks(measure: Measure, axis: Any) -> None:
    """1, 2, 5 along a short logarithmic axis; the powers of ten alone along a long one."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if measure.log:
        low, high = axis.get_view_interval()
        long = high > low * 10**_LONG_DECADES
        axis.set_major_locator(LogLocator(subs=(1.0,) if long else (1.0, 2.0, 5.0), numticks=12))
        axis.set_major_formatter(FuncFormatter(measure.tick))
        axis.set_minor_formatter(NullFormatter())


def _room_below(axes: Axes, y: Measure) -> None:
    """Make room for the label of the recommended row, which lies near the bottom."""
    low, high = axes.get_ylim()
    axes.set_ylim(low / (high / low) ** 0.18 if y.log else low - 0.18 * (high - low), high)


def _bars(axes: Axes, row: Row, x: Measure, y: Measure, *, colour: str, alpha: float) -> None:
    axes.errorbar(
        [x.value(row)],
        [y.value(row)],
        xerr=x.reach(row),
        yerr=y.reach(row),
        fmt="none",
        ecolor=colour,
        alpha=alpha,
        elinewidth=1.0,
        zorder=2,
    )
    at = (x.value(row), y.value(row))
    if not all(map(math.isfinite, at)):
        return
    arrow: Any = {"arrowstyle": "->", "color": colour, "alpha": alpha, "linewidth": 1.0}
    if x.is_unbounded(row):  # an arrow to the edge
        axes.annotate("", (1.0, at[1]), at, ("axes fraction", "data"), "data", arrow)
    if y.is_unbounded(row):
        axes.annotate("", (at[0], 1.0), at, ("data", "axes fraction"), "data", arrow)


def _points(axes: Axes, rows: Sequence[Row], x: Measure, y: Measure) -> None:
    """The front: the shape says the evidence, the colour the capacity of the row."""
    from matplotlib.colors import LogNorm

    if not rows:
        return
    carried = [row.capacity_bytes_per_second.value * 1e-6 for row in rows]
    span = LogNorm(min(carried) * 0.99, max(carried) * 1.01)
    painted = None
    for evidence, marker in _MARKERS.items():
        chosen = [row for row in rows if row.capacity_bytes_per_second.evidence is evidence]
        if chosen:
            painted = axes.scatter(
                [x.value(row) for row in chosen],
                [y.value(row) for row in chosen],
                c=[row.capacity_bytes_per_second.value * 1e-6 for row in chosen],
                norm=span,
                cmap="cividis",
                marker=marker,
                s=44,
                edgecolors="white",
                linewidths=0.6,
                zorder=3,
            )
    if painted is not None and x.field != "capacity_bytes_per_second":
        _colour_bar(axes, painted)


def _colour_bar(axes: Axes, painted: Any) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    figure = axes.get_figure()
    if figure is None:
        return
    bar = figure.colorbar(painted, ax=axes, label="capacity (MB/s)", pad=0.02, aspect=30)
    bar.ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0, 7.0)))
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    bar.ax.yaxis.set_minor_formatter(NullFormatter())
    bar.outline.set_visible(False)


def _highlight(axes: Axes, row: Row, x: Measure, y: Measure, colour: str, name: str) -> None:
    at = (x.value(row), y.value(row))
    if not all(map(math.isfinite, at)):
        return
    _bars(axes, row, x, y, colour=colour, alpha=0.9)
    marker = _MARKERS[row.capacity_bytes_per_second.evidence]
    axes.scatter(
        [at[0]],
        [at[1]],
        marker=marker,
        s=110,
        facecolors=colour,
        edgecolors="white",
        linewidths=1.0,
        zorder=5,
    )
    above = not name.startswith("recommended")
    axes.annotate(
        f"{name}\n{setting_in_short(row.configuration)}",
        at,
        color=colour,
        fontsize=8.5,
        xytext=(16, 24 if above else -24),
        textcoords="offset points",
        va="bottom" if above else "top",
        ha="left",
        zorder=6,
        bbox={
            "boxstyle": "round,pad=0.25",
            "facecolor": "white",
            "edgecolor": colour,
            "linewidth": 0.8,
            "alpha": 0.92,
        },
        arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.8},
    )


def _bounds(axes: Axes, found: Recommendation, x: Measure, y: Measure) -> None:
    """The bounds of the SLA on what the two axes show."""
    dashed: Any = {"color": "black", "linestyle": (0, (4, 3)), "linewidth": 1.0, "zorder": 1}
    for measure, upright in ((x, True), (y, False)):
        for limit in limits(found, measure):
            at = limit * measure.scale
            (axes.axvline if upright else axes.axhline)(at, **dashed)
            axes.annotate(
                f"SLA: {quantity(measure.field, limit)}",
                (at, 1.0) if upright else (1.0, at),
                xycoords=axes.get_xaxis_transform() if upright else axes.get_yaxis_transform(),
                xytext=(-4, -4),
                textcoords="offset points",
                rotation=90 if upright else 0,
                ha="right",
                va="top",
                fontsize=8.5,
            )


def _title(axes: Axes, found: Recommendation) -> None:
    demand = "as fast as possible"
    if found.demand_bytes_per_second is not None:
        demand = f"{quantity('bytes_per_second', found.demand_bytes_per_second)} of useful work"
    lines = [f"{found.workload} on {found.model_name}: {demand}"]
    if found.recommended is None:
        lines.append("nothing is shown to meet the SLA; the nearest misses are shown")
    elif found.saving is not None:
        first = "watts" if found.ranked_by == "watts" else "joules_per_useful_gb"
        told = (
            quantity(name, one.value, one.low, one.high)
            for name in (first, "percent")
            for one in [getattr(found.saving, name)]
        )
        saved = "no change" if found.action == "no change" else f"saves {' or '.join(told)}"
        lines.append(f"{saved}; {found.saving.verdict}" if found.action == "change" else saved)
    axes.set_title("\n".join(lines), loc="left", fontsize=10.5, linespacing=1.4)


def _legend(axes: Axes, rows: Sequence[Row]) -> None:
    from matplotlib.lines import Line2D

    present = {row.capacity_bytes_per_second.evidence for row in rows}
    handles = [
        Line2D([], [], linestyle="", marker=marker, color=GREY, markersize=7, label=evidence.value)
        for evidence, marker in _MARKERS.items()
        if evidence in present
    ]
    handles.append(Line2D([], [], color=GREY, alpha=0.5, label="90 % interval"))
    axes.legend(
        handles=handles,
        title="performance is",
        fontsize=8.5,
        title_fontsize=8.5,
        loc="best",
        frameon=True,
        framealpha=0.92,
        edgecolor="#CCCCCC",
    )


MOST_WRITTEN = 80
"""A heat map of more cells has no numbers in them."""


def check_drawable(axes: Sequence[str]) -> None:
    """Refuse early what cannot be drawn.

    Raises:
        InputError: Not one or two axes.
    """
    if len(axes) not in (1, 2):
        raise InputError(f"a picture shows one axis or two, not {len(axes)}; sweep fewer")


def draw_sweep(found: SweepAnswer, shown: str, path: Path) -> None:
    """Draw one quantity of a sweep, or write its points.

    Args:
        found: The sweep.
        shown: Name of the quantity, a field of `Totals`.
        path: Where to.

    Raises:
        InputError: Nothing is known of the quantity, or the file cannot be written.
    """
    if not any(each[shown] is not None for each in found.records):
        raise InputError(f"{shown}: no point of the sweep knows it, so there is nothing to draw")
    if is_table(path):
        write_points(path, *sweep_points(found, shown))
        return
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.5, 4.8), layout="constrained")
        axes = figure.add_subplot()
        (_line if len(found.axes) == 1 else _map)(axes, found, shown)
        save(figure, path)


def _values(found: SweepAnswer, field: str) -> list[Any]:
    """The values of an axis in the order of the sweep, numbers by size."""
    values = list(dict.fromkeys(each.get(f"change.{field}") for each in found.records))
    if all(isinstance(value, int | float) for value in values):
        return sorted(values)
    return values


def _places(values: Sequence[Any]) -> list[float]:
    """Where values stand: numbers at themselves, words side by side."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return [float(value) for value in values]
    return [float(place) for place in range(len(values))]


def _line(axes: Axes, found: SweepAnswer, shown: str) -> None:
    field = found.axes[0]
    values = _values(found, field)
    by_value = {str(each.get(f"change.{field}")): each for each in found.records}
    rows = [by_value[str(value)] for value in values]
    x = np.array(_places(values))
    middle, low, high = (
        np.array([np.nan if row[f"{shown}{end}"] is None else row[f"{shown}{end}"] for row in rows])
        for end in ("", "_low", "_high")
    )
    scale, unit = scale_of(shown, float(np.nanmax(middle)))
    axes.fill_between(
        x, low / scale, high / scale, color=BLUE, alpha=0.15, linewidth=0, label="90 % interval"
    )
    axes.plot(x, middle / scale, "o-", color=BLUE, markersize=4)
    lost = [place for place, row in zip(x, rows, strict=True) if not row["feasible"]]
    if lost:
        bottom = axes.get_ylim()[0]
        axes.plot(lost, [bottom] * len(lost), "x", color=VERMILION, label="nothing meets the SLA")
    for each in found.thresholds:
        axes.axvline(each.above, color=GREY, linestyle=(0, (4, 3)), linewidth=1.0, zorder=1)
    if found.thresholds:
        axes.plot([], [], color=GREY, linestyle=(0, (4, 3)), label="the answer changes")
    axes.set_xlabel(field)
    axes.set_ylabel(_axis_label(shown, unit))
    if list(x) != _places(values) or not isinstance(values[0], int | float):
        axes.set_xticks(x, [str(value) for value in values])
    axes.legend(frameon=False)


def _map(axes: Axes, found: SweepAnswer, shown: str) -> None:
    across, down = found.axes
    columns, rows = _values(found, across), _values(found, down)
    grid = np.full((len(rows), len(columns)), np.nan)
    half = grid.copy()
    for each in found.records:
        place = rows.index(each.get(f"change.{down}")), columns.index(each.get(f"change.{across}"))
        if each[shown] is not None:
            grid[place] = each[shown]
            half[place] = 0.5 * (each[f"{shown}_high"] - each[f"{shown}_low"])
    scale, unit = scale_of(shown, float(np.nanmax(grid)))
    painted = axes.imshow(grid / scale, cmap="cividis", aspect="auto", origin="lower")
    axes.set_xticks(range(len(columns)), [str(value) for value in columns])
    axes.set_yticks(range(len(rows)), [str(value) for value in rows])
    axes.set_xlabel(across)
    axes.set_ylabel(down)
    middle = float(np.nanmean([np.nanmin(grid), np.nanmax(grid)]))
    if grid.size <= MOST_WRITTEN:
        for (row, column), value in np.ndenumerate(grid):
            said = (
                "no answer"
                if np.isnan(value)
                else (
                    f"{digits(float(value) / scale)}\n± {digits(float(half[row, column]) / scale)}"
                )
            )
            dark = not np.isnan(value) and value < middle
            axes.text(
                column,
                row,
                said,
                ha="center",
                va="center",
                fontsize=8,
                color="white" if dark else "black",
            )
    figure = axes.get_figure()
    if figure is not None:
        label = f"{_axis_label(shown, unit)}, ± half of the 90 % interval"
        figure.colorbar(painted, ax=axes, label=label, pad=0.02).outline.set_visible(False)


def _axis_label(shown: str, unit: str) -> str:
    words = shown
    for end in ("_bytes_per_second", "_ns", "_watts"):
        words = words.removesuffix(end)
    return words.replace("_", " ") + (f" ({unit})" if unit else "")


def draw_frontier(found: FrontierAnswer, path: Path) -> None:
    """Draw what each budget buys and what is expected to be drawn meanwhile, or write the points.

    Raises:
        InputError: The file cannot be written; nothing half written stays.
    """
    if is_table(path):
        write_points(path, *frontier_points(found))
        return
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.0, 4.5), layout="constrained")
        axes = figure.add_subplot()
        served = [point.served_bytes_per_second * 1e-9 for point in found.points]
        budgets = [point.budget_watts for point in found.points]
        expected = [point.expected_watts for point in found.points]
        axes.plot(budgets, served, "o-", color=BLUE, label="budget")
        axes.plot(expected, served, "s--", color=VERMILION, label="expected mean power")
        axes.set_xlabel("power of the fleet (W)")
        axes.set_ylabel("served (GB/s)")
        axes.set_title(f"{found.fleet}: what a budget buys", loc="left")
        axes.legend(frameon=False)
        save(figure, path)


def run_points(field: str, values: Sequence[Any], results: Sequence[ScenarioResult]) -> Points:
    """IOPS and p99 latency of every flow at each value of a varied field."""
    header = [field, "flow", "iops", "latency_p99_ns"]
    rows = [
        [value, flow.name.removeprefix("Host.IO_Flow."), flow.iops, flow.p99_ns]
        for value, result in zip(values, results, strict=True)
        for flow in result.flows
    ]
    return header, rows


def draw_runs(
    field: str, values: Sequence[Any], results: Sequence[ScenarioResult], path: Path
) -> None:
    """Draw IOPS and p99 latency over a varied field of the simulator, or write the points.

    Args:
        field: What was varied.
        values: Its value in each run.
        results: The runs.
        path: Where to.

    Raises:
        InputError: The file cannot be written; nothing half written stays.
    """
    header, rows = run_points(field, values, results)
    if is_table(path):
        write_points(path, header, rows)
        return
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.0, 5.0), layout="constrained")
        upper, lower = figure.subplots(2, 1, sharex=True)
        flows = list(dict.fromkeys(row[1] for row in rows))
        for name in flows:
            own = [row for row in rows if row[1] == name]
            places = [str(row[0]) for row in own]
            upper.plot(places, [row[2] for row in own], "o-", label=name)
            lower.plot(places, [row[3] * 1e-6 for row in own], "o-")
        upper.set_ylabel("IOPS")
        upper.set_ylim(bottom=0)
        lower.set_ylabel("p99 latency (ms)")
        lower.set_ylim(bottom=0)
        lower.set_xlabel(field)
        if len(flows) > 1:
            upper.legend(frameon=False)
        save(figure, path)
