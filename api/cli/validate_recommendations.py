"""`iojoule validate recommendations`: are they kept, and how good are they?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iojoule.api.cli import console
from iojoule.api.cli.progress import progress
from iojoule.api.exit_codes import DIFFERENT

if TYPE_CHECKING:
    from iojoule.api.validating.report import Part, Share, Summary

CASES = 200
SEED = 6

COLUMNS = {
    "picker": "picked on",
    "picked": "picks",
    "kept": "of them today's",
    "violated": "break the SLA",
    "stated": "may break it",
    "mean": "mean regret",
    "median": "median",
    "worst": "worst",
    "declined": "declined, though possible",
    "saves": "changes that save",
    "covered": "savings covered",
}
PART_COLUMNS = {
    "picker": "picked on",
    "part": "questions",
    **{
        name: COLUMNS[name]
        for name in (
            "picked",
            "violated",
            "stated",
            "mean",
            "median",
            "worst",
            "declined",
        )
    },
}
BOUND_COLUMNS = {
    "picker": "picked on",
    "bound": "bound",
    "violated": "broken",
    "stated": "may be",
}


def recommendations(
    cases: Annotated[int, typer.Option(min=1, help="How many questions.")] = CASES,
    seed: Annotated[int, typer.Option(min=0, help="Of drives, noise and questions.")] = SEED,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", metavar="DIR", help="Keep simulated truth here for the next time."),
    ] = None,
    every_point: Annotated[
        bool,
        typer.Option("--every-point", help="Measure every size and depth, not every other one."),
    ] = False,
    output: console.FormatOption = console.Format.TABLE,
) -> None:
    """Ask random questions about simulated drives with hidden physics, and judge the answers.

    Beside the recommender, the same told of today's latency, and on point predictions. Ends with 1
    where more SLAs are broken than stated, the mean regret is above 3 %, or more than 10 % of what
    can be kept is declined (docs/validation.md).
    """
    if output is console.Format.CSV:
        raise typer.BadParameter("two tables make no CSV file: say -o json")
    from iojoule.api.validating.recommendations import validate
    from iojoule.api.validating.report import summaries

    with progress() as watch:
        outcomes = validate(cases, seed, every=every_point, kept=keep, tick=watch)
    found = summaries(outcomes)
    if output is console.Format.JSON:
        console.emit_json(
            {
                "cases": cases,
                "seed": seed,
                "every_point": every_point,
                "summary": [one.model_dump() for one in found],
                "outcomes": [asdict(one) for one in outcomes],
            }
        )
    else:
        console.emit_records([_row(one) for one in found], output, COLUMNS)
        parts = [{"picker": one.picker, **_part(part)} for one in found for part in one.parts]
        console.emit_records(parts, output, PART_COLUMNS)
        rows = [
            {
                "picker": one.picker,
                "bound": bound.bound,
                "violated": _share(bound.share),
                "stated": f"{bound.stated:.1%}",
            }
            for one in found
            for bound in one.bounds
        ]
        console.emit_records(rows, output, BOUND_COLUMNS)
    ours = found[0]
    if not (ours.keeps_the_sla and ours.regret_is_small and ours.declines_little):
        raise typer.Exit(DIFFERENT)


def _row(one: Summary) -> dict[str, Any]:
    return {
        "picker": one.picker,
        "kept": one.kept_today,
        "saves": _share(one.changes_that_save),
        "covered": _share(one.savings_covered),
        **_part(one),
    }


def _part(one: Summary | Part) -> dict[str, Any]:
    regret = one.regret
    return {
        "part": getattr(one, "part", ""),
        "picked": f"{one.picked} of {one.asked}",
        "violated": _share(one.violated),
        "stated": f"{one.stated:.1%}",
        "mean": None if regret is None else f"{regret.mean:.1%}",
        "median": None if regret is None else f"{regret.median:.1%}",
        "worst": None if regret is None else f"{regret.worst:.0%}",
        "declined": _share(one.declined_possible),
    }


def _share(one: Share) -> str:
    if one.share is None:
        return "-"
    return f"{one.share:.1%} ({one.low:.0%} to {one.high:.0%})"
