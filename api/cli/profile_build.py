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
    facts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml",
            help="A drive's data sheet as a catalogue entry (examples/drive-facts.toml).",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="PROFILE.json", help="File to write.")
    ] = None,
) -> None:
    """Build a complete profile from identify data and data sheets alone, with wide intervals."""
    if sum(one is not None for one in (device, identify, facts)) != 1:
        raise typer.BadParameter("say one of --device ID, --identify FILE and --facts FILE.toml")
    target = profile_file(output)
    from iojoule.api.profile_building import (
        advice,
        expected_profile,
        profile_from_facts,
        profile_from_identify,
    )

    if facts is not None:
        profile, unused = profile_from_facts(facts)
        for said in unused:
            console.note(said)
    elif identify is not None:
        profile = profile_from_identify(identify)
    else:
        profile = expected_profile(str(device))
    write(profile, target)
    console.note(advice(profile))
