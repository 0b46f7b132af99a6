"""Options that commands share, and what is made of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from iojoule.api.cli import console

if TYPE_CHECKING:
    from iojoule.api.application.backend import Backend
    from iojoule.api.application.local import Resources
    from iojoule.api.client import Client
    from iojoule.api.reports.report_file import Asked
    from iojoule.datasets.profile import DeviceProfile, SourceRecord
    from iojoule.datasets.schema import AskedConditions
    from iojoule.measure.campaign.rig import DriveFacts
    from iojoule.recommender.request import WorkloadProfile


ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        envvar="IOJOULE_SERVER",
        help="Have this service answer, with the key in $IOJOULE_KEY; '' answers here all the "
        "same.",
    ),
]


@contextmanager
def service(server: str | None) -> Iterator[Client]:
    """A client of the service that `--server` names.

    Raises:
        BadParameter: It names none.
    """
    from iojoule.api.client import Client

    if not server:
        raise typer.BadParameter(
            "this command needs a service: pass --server URL, or set IOJOULE_SERVER"
        )
    with Client(server) as client:
        yield client


def refuse(server: str, **given: object) -> None:
    """Refuse options that cannot be sent.

    Args:
        server: The service.
        given: Option, as in `max_memory`, -> what was said; None and False were not.

    Raises:
        BadParameter: One was said; names it.
    """
    for name, value in given.items():
        if value is not None and value is not False:
            raise typer.BadParameter(
                f"--{name.replace('_', '-')} cannot be sent to the service at {server}; leave it "
                "out, or answer here with --server ''"
            )


def refuse_files(server: str, drives: Sequence[str]) -> None:
    """Refuse drives to simulate that are files; raises BadParameter, which names them."""
    from iojoule.sim.presets import preset_names

    for drive in drives:
        if drive not in preset_names():
            raise typer.BadParameter(
                f"--ssd {drive}: only drives that come with iojoule are known to the service at "
                f"{server} ({', '.join(preset_names())}); name one, or answer here with --server ''"
            )


def named(device: str | None) -> str:
    """The drive that a service is asked about; raises BadParameter where none is named."""
    if device is None:
        raise typer.BadParameter("say --device ID: a service answers for drives by name")
    return device


def chosen_backend(
    server: str | None,
    device: str | None,
    profile: Path | None,
    host: Path | None = None,
    *,
    local: Mapping[str, Any] | None = None,
    **only_local: object,
) -> AbstractContextManager[Backend]:
    """What computes requests about one drive.

    Args:
        server: `--server`; None or "" computes here.
        device, profile, host: Which drive, by `chosen_profile`.
        local: Further attributes of `LocalBackend`.
        only_local: Options that no service takes, as for `refuse`.

    Raises:
        BadParameter: An option cannot be sent, or no drive is named.
        InputError: The drive or the file cannot be used.
    """
    if server:
        refuse(server, profile=profile, host=host, **only_local)
        return remote_backend(server, named(device))
    return local_backend(chosen=chosen_profile(device, profile, host), **(local or {}))


def backend_of(server: str | None, **attributes: Any) -> AbstractContextManager[Backend]:
    """What computes requests about no drive, or several; attributes of `LocalBackend`."""
    return remote_backend(server) if server else local_backend(**attributes)


def local_backend(**attributes: Any) -> AbstractContextManager[Backend]:
    """What computes here; attributes as those of `LocalBackend`."""
    from iojoule.api.application.local import LocalBackend

    return nullcontext(LocalBackend(**attributes))


@contextmanager
def remote_backend(server: str, drive: str = "") -> Iterator[Backend]:
    """The service that `--server` names, for requests about a drive."""
    from iojoule.api.application.remote import RemoteBackend

    with service(server) as client:
        yield RemoteBackend(client, drive, console.note)


def resources(jobs: int | None, dask: str | None, state: Path | None) -> Resources:
    """Where long computations run; raises BadParameter where two options exclude each other."""
    from iojoule.api.application.local import Resources

    if jobs is not None and dask is not None:
        raise typer.BadParameter("--jobs counts processes here; with --dask its workers count")
    return Resources(jobs, dask, state)


ReportOption = Annotated[
    Path | None,
    typer.Option(
        "--report", metavar="FILE.html", help="Write question and answer as one page to keep."
    ),
]


def check_report(path: Path | None) -> None:
    """Refuse early what cannot be written; raises InputError."""
    if path is not None:
        from iojoule.api.reports.report_file import check_target

        check_target(path)


def asked_of(device: str, workload: WorkloadProfile, **more: Any) -> dict[str, Any]:
    """The question as the body of a request; what is not stated is left out.

    Args:
        device: The drive.
        workload: The question.
        more: Further fields, models or values.
    """
    stated = {
        name: value.model_dump(mode="json", exclude_none=True)
        if hasattr(value, "model_dump")
        else value
        for name, value in {"workload_profile": workload, **more}.items()
    }
    return {"device": device, **stated}


def asked_now(
    ctx: typer.Context,
    operation: str | None,
    request: dict[str, Any],
    sources: Sequence[SourceRecord],
) -> Asked:
    """The command as it was typed, and its question.

    Args:
        ctx: Of the command.
        operation: Of the service that answers the same; None: none does.
        request: Its body.
        sources: What the profiles that answered were fitted on.
    """
    from datetime import UTC, datetime

    from iojoule.api.reports.report_file import Asked

    return Asked(
        at=datetime.now(UTC),
        operation=operation,
        request=request,
        command=list(ctx.obj),
        sources=tuple(sources),
    )


DriveOption = Annotated[
    Path,
    # whether it may be read is said where the remedy is known
    typer.Option(metavar="/dev/X", help="The block device of a whole drive.", readable=False),
]
ControllerOption = Annotated[
    Path | None,
    typer.Option(
        metavar="/dev/Y",
        help="Its NVMe controller; default: found for an NVMe drive, else none.",
        readable=False,
    ),
]
PowerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--power",
        metavar="SENSOR",
        help="An instrument, for instance powersensor3:/dev/ttyACM0,pairs=0+1. May be repeated.",
    ),
]
RaplOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Root of the powercap tree; read where it is there."),
]
SerialOption = Annotated[
    str | None,
    typer.Option(metavar="SERIAL", help="Agrees to overwrite the drive with this serial number."),
]
OverwriteOption = Annotated[
    list[str] | None,
    typer.Option(metavar="SIGNATURE", help="A signature on the drive that is worthless."),
]


def sensors_of(power: list[str] | None, rapl_root: Path | None) -> list[str]:
    """The instruments that were named, in the syntax of `open_sensor`."""
    return [*(power or []), *([f"rapl:{rapl_root}"] if rapl_root is not None else [])]


def ask_serial(drive: DriveFacts, what: str) -> str | None:
    """Read the serial number from standard input: typed, or piped by a script that means it."""
    device = drive.device
    console.warn(
        f"{what} overwrites {device.path} ({drive.model}, {device.size_bytes / 1e9:.1f} GB); "
        "everything on it will be lost"
    )
    sys.stderr.write("Type its serial number to go on: ")
    sys.stderr.flush()
    return sys.stdin.readline().strip() or None


PriceOption = Annotated[
    str | None, typer.Option("--price", metavar="AMOUNT", help="Of electricity: 0.30EUR/kWh.")
]
CarbonOption = Annotated[
    str | None, typer.Option("--carbon", metavar="AMOUNT", help="CO2 of the grid: 380g/kWh.")
]
PueOption = Annotated[
    float | None,
    typer.Option(
        "--pue", min=1.0, max=10.0, help="Energy of the building over its servers', as 1.4."
    ),
]
DrivePriceOption = Annotated[
    str | None,
    typer.Option(
        "--drive-price", metavar="AMOUNT", help="Of one drive: 120EUR; its wear then costs."
    ),
]
DriveCarbonOption = Annotated[
    str | None,
    typer.Option("--drive-carbon", metavar="AMOUNT", help="CO2 of making one drive: 50kg."),
]


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
    from iojoule.api.application.fields import read_conditions

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
    from iojoule.api.application.profiles import on_host, profile_in, profile_of
    from iojoule.datasets.profile import FACTS_RECIPE, fitted_by_another

    if (device is None) == (profile is None):
        raise typer.BadParameter("say either --device ID or --profile FILE")
    chosen = profile_in(profile) if profile is not None else profile_of(str(device))
    if profile is not None and (said := fitted_by_another(chosen)) is not None:
        console.warn(said)
    if chosen.recipe == FACTS_RECIPE:
        from iojoule.api.application.build_profile import advice

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


DaskOption = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS",
        help="Run on the workers of this Dask scheduler, such as tcp://host:8786, and not here.",
    ),
]
StateOption = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="DIR",
        help="Keeps each result as it comes: the same command goes on where it was cut short. "
        "With --dask there is a folder by default, until all is done.",
    ),
]
