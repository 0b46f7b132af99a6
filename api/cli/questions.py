"""Options that several commands share: which profile answers, and fields set one by one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from iojoule.api.cli import console

if TYPE_CHECKING:
    from iojoule.datasets.profile import DeviceProfile
    from iojoule.datasets.schema import AskedConditions

DeviceOption = Annotated[
    str | None,
    typer.Option("--device", metavar="ID", help="SSD model of the catalogue."),
]
ProfileOption = Annotated[
    Path | None,
    typer.Option("--profile", metavar="FILE", help="Device profile that `iojoule fit` wrote."),
]

HostOption = Annotated[
    Path | None,
    typer.Option("--host", metavar="FILE", help="Your host: what `iojoule measure host` wrote."),
]

HorizonOption = Annotated[
    str | None,
    typer.Option(
        "--horizon",
        metavar="TIME",
        help="How long the demand lasts, as 90s, 15 min, 24 h, 365 d: decides the drive's state; "
        "else as the file says, or a year.",
    ),
]

FirmwareOption = Annotated[
    str | None, typer.Option("--firmware", help="Firmware of the drive that is asked about.")
]
GenerationOption = Annotated[
    int | None, typer.Option("--pcie-generation", min=1, help="Generation of its link.")
]
TemperatureOption = Annotated[
    float | None, typer.Option("--temperature", metavar="CELSIUS", help="Its temperature.")
]
ForOption = Annotated[
    Literal["same-host", "another-host", "another-drive"] | None,
    typer.Option(
        "--for",
        help="What the intervals are about: the measured drive and host, another host, day or "
        "drive of the model, or another model; else what the profile and the conditions say.",
    ),
]
ConditionsOption = Annotated[
    Path | None,
    typer.Option(
        "--conditions",
        metavar="FILE.toml",
        help="Conditions of the schema (firmware, pcie_lanes, host_id, percentage_used ...).",
    ),
]


def stated_conditions(
    firmware: str | None,
    generation: int | None,
    temperature: float | None,
    file: Path | None,
    interval_for: str | None = None,
) -> AskedConditions:
    """The conditions of the drive that is asked about; an option wins over the file.

    Raises:
        InputError: The file is not what it must be.
    """
    from iojoule.api.conditions import read_conditions

    options = {
        "firmware": firmware,
        "pcie_generation": generation,
        "temperature_celsius_mean": temperature,
        "interval_for": interval_for,
    }
    return read_conditions(file, {name: one for name, one in options.items() if one is not None})


def chosen_profile(
    device: str | None, profile: Path | None, host: Path | None = None
) -> DeviceProfile:
    """The profile that `--device` or `--profile` names, on the host that `--host` names.

    Raises:
        BadParameter: Both or none of them is given.
        InputError: The drive or the file cannot answer.
    """
    from iojoule.api.profiles import on_host, profile_in, profile_of
    from iojoule.datasets.profile import FACTS_RECIPE, fitted_by_another

    if (device is None) == (profile is None):
        raise typer.BadParameter("say either --device ID or --profile FILE")
    chosen = profile_in(profile) if profile is not None else profile_of(str(device))
    if profile is not None and (said := fitted_by_another(chosen)) is not None:
        console.warn(said)
    if chosen.recipe == FACTS_RECIPE:
        from iojoule.api.profile_building import advice

        console.note(advice(chosen))
    return chosen if host is None else on_host(chosen, host)


def assignments(given: Sequence[str], option: str = "--set") -> dict[str, str]:
    """Split `FIELD=VALUE` options; a later one replaces an earlier one.

    Raises:
        BadParameter: One is not of that form.
    """
    found = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(f"{option} {one}: write it as FIELD=VALUE")
        found[name.strip()] = value.strip()
    return found
