"""`iojoule validate findings`: what five papers published beside what the models say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iojoule.api.cli import console
from iojoule.api.exit_codes import DIFFERENT

if TYPE_CHECKING:
    from iojoule.recommender.validation.findings import Row, Share

DIRECTION_PERCENT = 93.0
MAGNITUDE_PERCENT = 88.0
"""What the table must reach over all rows that count."""

COLUMNS = {
    "fact_id": "finding",
    "section": "section",
    "quantity": "quantity",
    "published_text": "published",
    "predicted_text": "predicted",
    "direction_text": "direction",
    "magnitude_text": "magnitude",
    "evidence": "evidence",
    "left_out": "built without",
    "remark": "remark",
}

SUMMARY = {
    "group": "group",
    "rows": "rows",
    "answered": "answered",
    "direction": "direction right",
    "magnitude": "within interval",
    "baseline": "no effect: direction, magnitude",
}

DataOption = Annotated[
    Path | None,
    typer.Option("--data", help="Folder of the public measurements that profiles are built from."),
]
PaperOption = Annotated[
    str | None, typer.Option("--paper", help="Rows of this paper only: 000 to 004.")
]
MissesOption = Annotated[
    bool, typer.Option("--misses", help="Show only rows that are answered wrongly or not at all.")
]


def findings(
    data: DataOption = None,
    paper: PaperOption = None,
    misses: MissesOption = False,
    output: console.FormatOption = console.Format.TABLE,
) -> None:
    """Judge the models by every finding of the frozen list, each without itself.

    Ends with 1 where fewer directions or magnitudes are right than required (docs/validation.md).
    """
    from iojoule.api.application.fit import data_folder
    from iojoule.datasets.errors import InputError
    from iojoule.datasets.findings import frozen_papers
    from iojoule.recommender.validation.findings import (
        Profiles,
        expected_of,
        findings_table,
        shares,
    )

    papers = [one for one in frozen_papers() if paper in (None, one.paper)]
    if not papers:
        known = ", ".join(one.paper for one in frozen_papers())
        raise InputError(f"--paper {paper}: no such paper; the list has {known}")
    rows = findings_table(papers, Profiles(data_folder(data), expected_of))
    groups = shares(rows)
    shown = [row for row in rows if not misses or _missed(row)]
    records = [_record(row) for row in shown]
    if output is console.Format.JSON:
        console.emit_json({"summary": [one.model_dump() for one in groups], "findings": records})
    else:
        console.emit_records(records, output, COLUMNS)
        if output is console.Format.TABLE:
            console.emit_records([_group(one) for one in groups], output, SUMMARY)
    whole, disputed = groups[0], groups[-1]
    console.note(
        f"of {whole.rows} findings that count, {whole.answered} are answered; direction right "
        f"{whole.direction_percent:.1f} % (required {DIRECTION_PERCENT:.0f} %), magnitude within "
        f"the interval {whole.magnitude_percent:.1f} % (required {MAGNITUDE_PERCENT:.0f} %)"
    )
    console.note(
        f"{disputed.rows} more are disputed and not counted: {disputed.direction_right} directions "
        f"and {disputed.magnitude_right} magnitudes right (docs/validation.md)"
    )
    enough = whole.direction_percent >= DIRECTION_PERCENT
    if not (enough and whole.magnitude_percent >= MAGNITUDE_PERCENT):
        raise typer.Exit(DIFFERENT)


def _missed(row: Row) -> bool:
    return row.asked and not (row.direction_right and row.magnitude_right)


def _record(row: Row) -> dict[str, Any]:
    known = row.model_dump(by_alias=True)
    yes = {True: "right", False: "wrong"}
    verdict = row.answered
    return known | {
        "published_text": _figure(row.published, row.published_high, row),
        "predicted_text": _predicted(row),
        "direction_text": yes[row.direction_right] if verdict else "",
        "magnitude_text": yes[row.magnitude_right] if verdict else "",
        "remark": row.reason
        or (f"disputed: {row.disputed}" if row.disputed else "")
        or (f"not answered: {row.missing}" if row.missing else ""),
    }


def _figure(value: float | None, high: float | None, row: Row) -> str:
    if value is None:
        return ""
    bound = {"up to": "up to ", "at least": "at least ", "at most": "at most "}.get(row.judged, "")
    unit = "" if row.unit == "1" else f" {row.unit}"
    upper = "" if high is None else f" to {high:.4g}"
    return f"{bound}{value:.4g}{upper}{unit}"


def _predicted(row: Row) -> str:
    if row.predicted is None:
        return ""
    return f"{row.predicted:.4g} [{row.low:.3g}, {row.high:.3g}]"


def _group(one: Share) -> dict[str, Any]:
    return {
        "group": one.group,
        "rows": one.rows,
        "answered": one.answered,
        "direction": f"{one.direction_right} ({one.direction_percent:.0f} %)",
        "magnitude": f"{one.magnitude_right} ({one.magnitude_percent:.0f} %)",
        "baseline": f"{one.baseline_direction_right}, {one.baseline_magnitude_right}",
    }
