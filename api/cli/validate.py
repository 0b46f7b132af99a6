"""`iojoule validate`: what the papers say beside what iojoule says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iojoule.api.cli import console
from iojoule.api.cli.findings import findings
from iojoule.api.cli.validate_laws import laws
from iojoule.api.cli.validate_recommendations import recommendations

if TYPE_CHECKING:
    from iojoule.recommender.validation.thesis_table import Rule

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Compare iojoule with what was published and with what must hold.",
)

COLUMNS = {
    "variable": "variable",
    "workload": "workload",
    "thesis": "the thesis recommends",
    "answer": "iojoule finds",
    "verdict": "same?",
    "evidence": "evidence",
    "why": "why",
}


@app.command("thesis-table")
def thesis_table(output: console.FormatOption = console.Format.TABLE) -> None:
    """Table 5.1 of the thesis, row by row, on the Samsung 980 PRO."""
    from iojoule.datasets.profile import load_shipped_profile
    from iojoule.recommender.validation import thesis_table as table

    rules = table.thesis_table(load_shipped_profile(table.DEVICE))
    _emit(rules, output, COLUMNS)


@app.command("thesis-applications")
def thesis_applications(output: console.FormatOption = console.Format.TABLE) -> None:
    """Chapter 6 of the thesis: what it found of four applications, beside what is recommended."""
    from iojoule.datasets.profile import load_shipped_profile
    from iojoule.recommender.validation.thesis_applications import thesis_applications as answered
    from iojoule.recommender.validation.thesis_table import DEVICE

    names = {"workload": "application", "variable": "about", "thesis": "the thesis finds"}
    columns = {name: names.get(name, COLUMNS[name]) for name in [*names, *COLUMNS]}
    _emit(answered(load_shipped_profile(DEVICE)), output, columns)


def _emit(rules: Sequence[Rule], output: console.Format, columns: dict[str, str]) -> None:
    verdicts = {True: "yes", False: "no", None: "not modelled"}
    records = [
        {
            **rule.model_dump(),
            "verdict": verdicts[rule.agrees] + (", disputed" * bool(rule.disputed)),
        }
        for rule in rules
    ]
    console.emit_records(records, output, columns)
    asked = [rule for rule in rules if rule.agrees is not None]
    counted = [rule for rule in asked if not rule.disputed]
    agreed = sum(bool(rule.agrees) for rule in counted)
    console.note(f"{agreed} of {len(counted)} rules that the profile can answer agree")
    if len(asked) > len(counted):
        console.note(f"{len(asked) - len(counted)} more rest on disputed findings: not counted")


app.command("findings")(findings)
app.command("laws")(laws)
app.command("recommendations")(recommendations)


@app.command("left-out")
def left_out(
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Public measurements; default $IOJOULE_DATA."),
    ] = None,
    output: console.FormatOption = console.Format.TABLE,
) -> None:
    """Drives left out of the prior and known by their facts alone, against what was measured."""
    if output is console.Format.CSV:
        raise typer.BadParameter("two tables make no CSV file: say -o json")
    from iojoule.api.application.fit import data_folder
    from iojoule.model.fit.prior_left_out import judge_performance, judge_power

    folder = data_folder(data)
    performance = [one.model_dump() for one in judge_performance(folder)]
    power = [one.model_dump() for one in judge_power(folder)]
    if output is console.Format.JSON:
        console.emit_json({"performance": performance, "power": power})
        return
    console.emit_records([_shown(one) for one in performance], output, COVERAGE)
    console.emit_records([_shown(one) for one in power], output, RANGES)


COVERAGE = {
    "device": "left-out drive",
    "quantity": "quantity",
    "rows": "rows",
    "series": "series",
    "coverage": "inside the 90 % interval",
    "effective_rows": "worth rows",
    "p_value": "p (against 85 %)",
    "median_error": "median log error",
    "median_ratio": "interval high / low",
}
RANGES = {
    "device": "left-out drive",
    "has_sheet": "data sheet",
    "measured_least": "measured idle, W",
    "least_low": "interval from, W",
    "least_high": "to, W",
    "least_ratio": "high / low",
    "measured_most": "measured most, W",
    "most_low": "interval from, W",
    "most_high": "to, W",
    "most_ratio": "high / low",
    "contains": "contains it",
}


def _shown(record: dict[str, Any]) -> dict[str, Any]:
    return {
        name: float(f"{value:.3g}") if isinstance(value, float) else value
        for name, value in record.items()
    }
