"""`iojoule profile explain`: which facts carry which prediction, and how to narrow it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iojoule.api.cli import console
from iojoule.api.cli.console import Format, FormatOption
from iojoule.api.cli.questions import DeviceOption, assignments, chosen_profile

if TYPE_CHECKING:
    from iojoule.api.explanations import ProfileExplanation


def explain(
    profile: Annotated[
        Path | None,
        typer.Argument(metavar="PROFILE.json", help="Device profile; else say --device."),
    ] = None,
    device: DeviceOption = None,
    configuration: Annotated[
        list[str] | None,
        typer.Option(
            "--configuration",
            metavar="FIELD=VALUE",
            help="A field of the one configuration to explain, again for each.",
        ),
    ] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Say what each quantity rests on, or where one configuration's intervals come from."""
    chosen = chosen_profile(device, profile)
    from iojoule.api.explanations import explain_profile

    fields = assignments(configuration or [], "--configuration")
    found = explain_profile(chosen, fields)
    if output is Format.JSON:
        console.emit_json(found.model_dump(mode="json"))
    elif output is Format.CSV:
        _emit_csv(found)
    else:
        console.emit_table(*_parts(found))


def _emit_csv(found: ProfileExplanation) -> None:
    console.emit_csv(
        ("quantity", "rung", "evidence", "value", "low", "high", "unit", "source", "share", "fact"),
        (
            (
                one.quantity, one.rung, one.evidence, one.value, one.low, one.high, one.unit,
                source, share, fact,
            )
            for one in found.quantities
            for source, share, fact in one.sources()
        ),
    )  # fmt: skip


def _parts(found: ProfileExplanation) -> list[Any]:
    table = console.new_table(
        ("quantity", "value", "90 % interval", "rung", "evidence", "rests on", "next"),
        title=f"{found.model_name}: {found.asked}",
    )
    for one in found.quantities:
        table.add_row(
            one.quantity,
            _number(one.value, one.unit),
            "-" if one.low is None else f"[{one.low:.3g}, {one.high:.3g}]",
            one.rung,
            one.evidence,
            one.carried,
            one.next,
        )
    parts: list[Any] = [table]
    for one in found.quantities:
        if one.variance:
            shown = console.new_table(
                ("variance comes from", "share"), title=f"{one.quantity}: where its width is from"
            )
            for part in one.variance:
                shown.add_row(part.source, f"{100.0 * part.share:.0f} %")
            parts += ["", shown]
    return parts


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" + ("" if unit == "1" else f" {unit}")
