"""`iojoule profile build`: the profile of a drive that nobody measured, from its facts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iojoule.api.cli import console
from iojoule.api.cli.fit import profile_file, write


def build(
    device: Annotated[
        str | None, typer.Option("--device", metavar="ID", help="SSD model of the catalogue.")
    ] = None,
    identify: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE|DIR",
            help="Output of `nvme id-ctrl -o json` (and id-ns), or a campaign's drive.json.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="PROFILE.json", help="File to write.")
    ] = None,
) -> None:
    """Build a complete profile from identify data and data sheets alone, with wide intervals."""
    if (device is None) == (identify is None):
        raise typer.BadParameter("say either --device ID or --identify FILE")
    target = profile_file(output)
    from iojoule.api.profile_building import advice, expected_profile, profile_from_identify

    profile = (
        profile_from_identify(identify) if identify is not None else expected_profile(str(device))
    )
    write(profile, target)
    console.note(advice(profile))
