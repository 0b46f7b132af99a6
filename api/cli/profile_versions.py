"""`iojoule profile versions|use|fetch`: versions of a drive's profile that a service keeps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iojoule.api.cli import console
from iojoule.api.cli.console import Format, FormatOption
from iojoule.api.cli.fit import profile_file
from iojoule.api.cli.server import ServerOption, service

if TYPE_CHECKING:
    from iojoule.api.http.profiles.schemas import KeptProfile

DeviceOption = Annotated[
    str, typer.Option("--device", metavar="ID", help="SSD model of the catalogue.")
]
Version = Annotated[
    int,
    typer.Argument(
        metavar="VERSION", min=0, help="As `profile versions` shows it; 0 comes with iojoule."
    ),
]

_TITLES = {
    "version": "version", "current": "answers", "profile_version": "named", "origin": "from",
    "created_at": "made at", "job_id": "by job",
}  # fmt: skip


def versions(
    device: DeviceOption, server: ServerOption = None, output: FormatOption = Format.TABLE
) -> None:
    """List the versions of a drive's profile at a service, the newest first."""
    with service(server) as client:
        found = list(client.profiles(device))
    if output is Format.JSON:
        console.emit_json([one.model_dump(mode="json") for one in found])
    else:
        console.emit_records([_record(one) for one in found], output, _TITLES)


def use(
    version: Version,
    device: DeviceOption,
    server: ServerOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Let a version of a drive's profile answer everybody from now on; the others are kept."""
    with service(server) as client:
        found = client.use_profile(device, version)
    record = {"device": found.device, "version": found.version}
    console.emit_records([record], output, {"device": "device", "version": "answers"})


def fetch(
    version: Version,
    device: DeviceOption,
    out: Annotated[Path, typer.Option("--output", "-o", metavar="FILE.json", help="To write.")],
    server: ServerOption = None,
) -> None:
    """Write a version of a drive's profile to a file, as `--profile` takes it."""
    from iojoule.datasets.profile import write_profile

    path = profile_file(out)
    with service(server) as client:
        write_profile(client.profile(device, version), path)
    console.note(f"wrote {path}")


def _record(kept: KeptProfile) -> dict[str, Any]:
    made = kept.created_at
    return {
        "version": kept.version, "current": kept.current, "profile_version": kept.profile_version,
        "origin": kept.origin, "job_id": kept.job_id,
        "created_at": None if made is None else made.isoformat(timespec="seconds"),
    }  # fmt: skip
