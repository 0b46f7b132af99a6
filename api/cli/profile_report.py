"""`iojoule profile report`: the model card of a profile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iojoule.api.cli import console


def report(
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FOLDER|FILE",
            help="A folder for both forms, or a file that ends in .md or .html.",
        ),
    ],
    profile: Annotated[
        Path | None, typer.Argument(metavar="PROFILE.json", help="What `iojoule fit` wrote.")
    ] = None,
    device: Annotated[
        str | None, typer.Option(metavar="ID", help="A drive whose profile ships, instead.")
    ] = None,
    findings: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json", help="Also: what `iojoule validate findings -o json` printed."
        ),
    ] = None,
) -> None:  # fmt: skip
    """Write a profile's model card: what it rests on, how far it errs, and where it ends."""
    from iojoule.api.model_card import build_card, check_target, read_findings, write_card
    from iojoule.api.profiles import profile_in, profile_of

    if (profile is None) == (device is None):
        raise typer.BadParameter("say one of PROFILE.json and --device ID")
    check_target(output)
    known = profile_in(profile) if profile is not None else profile_of(device or "")
    if known.assessment is None:
        console.warn(
            f"{known.device}: the profile holds no errors: it rests on a datasheet or too few "
            "measurements, or an older version fitted it; fit it to measurements to see them"
        )
    judged = None if findings is None else read_findings(findings, known.device)
    for path in write_card(build_card(known, judged), output):
        console.emit(f"{path}\n")
