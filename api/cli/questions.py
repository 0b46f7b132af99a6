"""Options that several commands share: which profile answers, and fields set one by one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from iojoule.datasets.profile import DeviceProfile

DeviceOption = Annotated[
    str | None,
    typer.Option("--device", metavar="ID", help="SSD model with a shipped profile."),
]
ProfileOption = Annotated[
    Path | None,
    typer.Option("--profile", metavar="FILE", help="Device profile that `iojoule fit` wrote."),
]


def chosen_profile(device: str | None, profile: Path | None) -> DeviceProfile:
    """The profile that `--device` or `--profile` names.

    Raises:
        BadParameter: Both or none of them is given.
        InputError: The drive or the file cannot answer.
    """
    from iojoule.api.profiles import profile_in, profile_of

    if (device is None) == (profile is None):
        raise typer.BadParameter("say either --device ID or --profile FILE")
    return profile_in(profile) if profile is not None else profile_of(str(device))


def assignments(given: Sequence[str]) -> dict[str, str]:
    """Split `--set FIELD=VALUE` options; a later one replaces an earlier one.

    Raises:
        BadParameter: One is not of that form.
    """
    found = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(f"--set {one}: write it as FIELD=VALUE")
        found[name.strip()] = value.strip()
    return found
