"""`iojoule validate`: what the papers say beside what iojoule says."""

from __future__ import annotations

import typer

from iojoule.api.cli import console
from iojoule.api.cli.findings import findings

app = typer.Typer(no_args_is_help=True, help="Compare iojoule with what was published.")

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
    from iojoule.recommender import thesis_table as table

    rules = table.thesis_table(load_shipped_profile(table.DEVICE))
    verdicts = {True: "yes", False: "no", None: "not modelled"}
    records = [{**rule.model_dump(), "verdict": verdicts[rule.agrees]} for rule in rules]
    console.emit_records(records, output, COLUMNS)
    asked = [rule for rule in rules if rule.agrees is not None]
    agreed = sum(bool(rule.agrees) for rule in asked)
    console.note(f"{agreed} of {len(asked)} rules that the profile can answer agree")


app.command("findings")(findings)
