"""`iojoule validate laws`: do the answers obey what must hold whatever the model says?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iojoule.api.cli import console
from iojoule.api.exit_codes import DIFFERENT

if TYPE_CHECKING:
    from iojoule.recommender.validation.laws import Judgement

DRAWS = 12
"""As `recommender.validation.laws.DRAWS`, which is not imported for a help text."""

COLUMNS = {
    "device": "device",
    "law": "law",
    "title": "title",
    "verdict": "verdict",
    "probes": "probes",
    "failed": "failed",
    "note": "worst probe, or why nothing was asked",
}


def laws(
    device: Annotated[
        list[str] | None,
        typer.Option("--device", metavar="ID", help="Drive of the catalogue; may be repeated."),
    ] = None,
    profile: Annotated[
        list[Path] | None,
        typer.Option("--profile", metavar="FILE", help="Device profile; may be repeated."),
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="Random probes of each law.")] = DRAWS,
    seed: Annotated[int, typer.Option(min=0, help="Of the probes.")] = 0,
    law: Annotated[
        list[int] | None,
        typer.Option("--law", metavar="NUMBER", help="Only this law; may be repeated."),
    ] = None,
    output: console.FormatOption = console.Format.TABLE,
) -> None:
    """Probe the laws that every answer must obey (docs/validation.md), on random questions.

    Without --device and --profile: the profiles that ship. Ends with 1 where a law fails.
    """
    from iojoule.api.validating.laws import laws_of, subjects
    from iojoule.recommender.validation.laws import judge

    chosen = laws_of(law or ())
    found: list[Judgement] = []
    for subject in subjects(device or (), profile or ()):
        judged = [judge(subject, one, draws, seed) for one in chosen]
        found += judged
        console.note(_summary(subject.device, judged))
    if output is console.Format.JSON:
        console.emit_json({"draws": draws, "seed": seed, "laws": [one.record() for one in found]})
    else:
        console.emit_records([_row(one) for one in found], output, COLUMNS)
    if not all(one.obeyed for one in found):
        raise typer.Exit(DIFFERENT)


def _summary(device: str, judged: list[Judgement]) -> str:
    asked = [one for one in judged if one.verdict != "does not apply"]
    apart = [str(one.law.number) for one in judged if one.verdict == "does not apply"]
    excused = [str(one.law.number) for one in judged if one.verdict == "expected failure"]
    parts = [f"{device}: {sum(one.obeyed for one in asked)} of {len(asked)} laws hold"]
    if excused:
        parts.append(f"with expected failures: law {', '.join(excused)}")
    if apart:
        parts.append(f"without anything to ask about: law {', '.join(apart)}")
    return "; ".join(parts)


def _row(one: Judgement) -> dict[str, Any]:
    known = one.record()
    worst, note = known.pop("worst"), known.pop("reason")
    if worst is not None:
        note = f"{worst['probe']}: expected {worst['expected']}, seen {worst['seen']}"
    return {**known, "note": note}
