"""The embedded engine and the user's MQSim side by side, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table

from iojoule.api.cli import console
from iojoule.sim.compare import Comparison, Quantity

TITLES = ("quantity", "embedded", "MQSim", "difference", "relative", "equal")


def emit_comparisons(comparisons: Sequence[Comparison]) -> None:
    """Write a table for each flow and one for the drive, scenario by scenario."""
    for number, comparison in enumerate(comparisons, start=1):
        scenario = f"Scenario {number}: " if len(comparisons) > 1 else ""
        for flow in comparison.flows:
            title = scenario + flow.name.removeprefix("Host.IO_Flow.")
            console.emit_table(_table(title, flow.quantities), "")
        console.emit_table(
            _table(scenario + "Drive", comparison.device), "", *_summary(comparison), ""
        )
    console.emit_table(
        "equal: no further apart than the resolution in which MQSim prints the value."
    )


def _table(title: str, quantities: Iterable[Quantity]) -> Table:
    table = console.new_table(TITLES, title=title)
    for quantity in quantities:
        relative = quantity.relative_difference
        table.add_row(
            quantity.name,
            _number(quantity.embedded),
            _number(quantity.mqsim),
            _number(quantity.difference),
            "-" if relative is None else f"{100 * relative:+.4f} %",
            "yes" if quantity.equal else "NO",
        )
    return table


def _number(value: float) -> str:
    if float(value).is_integer():
        return f"{value:.0f}"
    return f"{value:.3f}" if abs(value) >= 1 else f"{value:.6f}"


def _summary(comparison: Comparison) -> Iterable[str]:
    differing = sum(not quantity.equal for quantity in comparison.quantities())
    total = sum(1 for _ in comparison.quantities())
    yield f"{total - differing} of {total} quantities are equal."
    speed, memory = comparison.speed_ratio, comparison.memory_ratio
    yield (
        f"User time: embedded {comparison.embedded_user_seconds:.3f} s, MQSim "
        f"{comparison.mqsim_user_seconds:.3f} s"
        + (f": {speed:.1f} times faster." if speed is not None else ".")
    )
    yield (
        f"Memory: embedded {comparison.embedded_peak_bytes / 1e6:.1f} MB, MQSim "
        f"{comparison.mqsim_peak_bytes / 1e6:.1f} MB"
        + (f": {memory:.1f} times less." if memory is not None else ".")
    )
