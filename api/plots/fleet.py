"""Draws a fleet's power-throughput frontier."""

from __future__ import annotations

from pathlib import Path

from iojoule.api.application.fleet import FrontierAnswer
from iojoule.api.plots.front import BLUE, STYLE, VERMILION, save
from iojoule.api.plots.points import frontier_points, is_table, write_points


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
