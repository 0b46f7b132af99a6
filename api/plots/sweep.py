"""Draws a sweep: lines with intervals along one axis, a heat map over two."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from iojoule.api.application.what_if import SweepAnswer
from iojoule.api.plots.front import BLUE, GREY, STYLE, VERMILION, save
from iojoule.api.plots.points import is_table, sweep_points, write_points
from iojoule.api.words.quantities import digits, scale_of
from iojoule.datasets.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    axes.fill_between(x, low / scale, high / scale, color=BLUE, alpha=0.15, linewidth=0,
                      label="90 % interval")  # fmt: skip
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
            said = "no answer" if np.isnan(value) else (
                f"{digits(float(value) / scale)}\n± {digits(float(half[row, column]) / scale)}"
            )  # fmt: skip
            dark = not np.isnan(value) and value < middle
            axes.text(column, row, said, ha="center", va="center", fontsize=8,
                      color="white" if dark else "black")  # fmt: skip
    figure = axes.get_figure()
    if figure is not None:
        label = f"{_axis_label(shown, unit)}, ± half of the 90 % interval"
        figure.colorbar(painted, ax=axes, label=label, pad=0.02).outline.set_visible(False)


def _axis_label(shown: str, unit: str) -> str:
    words = shown
    for end in ("_bytes_per_second", "_ns", "_watts"):
        words = words.removesuffix(end)
    return words.replace("_", " ") + (f" ({unit})" if unit else "")
