"""`iojoule start`: a guided first run, from the drives of this host to an answer."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iojoule.api.cli import console
from iojoule.datasets.errors import InfeasibleError, InputError

if TYPE_CHECKING:
    from iojoule.datasets.profile import DeviceProfile
    from iojoule.meter.drives import Inventory, MeteredDrive
    from iojoule.meter.readings import Basis
    from iojoule.recommender.request import WorkloadProfile

EXAMPLE_DEVICE = "samsung-980-pro-1tb"
PRESET = "ycsb-b"
"""What is answered for where nothing can be observed."""

WORKLOAD_FILE = "iojoule-workload.toml"
DRIVE_FILE = "iojoule-drive.json"


def start(
    drive: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which drive; else the first, or asked.")
    ] = None,
    workload: Annotated[
        Path | None,
        typer.Option(metavar="FILE|PRESET", help="Instead of observing: a workload profile."),
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long to observe the drive.")] = 30.0,
    sla: Annotated[str | None, typer.Option(metavar="TEXT", help="As 'p99 < 2 ms'.")] = None,
    folder: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where files for the next step go.")
    ] = Path(),
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")] = False,
    sysfs: Annotated[Path, typer.Option(hidden=True)] = Path("/sys"),
) -> None:
    """Look at this host, observe its load, and recommend settings for it.

    Reads counters only: no drive is opened or sent a command, and nothing is set. Without a
    terminal or with --yes it asks nothing.
    """
    from iojoule.api.application.meter_basis import BASIS_NAMES, basis_of
    from iojoule.meter.drives import find_drives

    asks = not yes and sys.stdin.isatty()
    inventory = find_drives(sysfs, also=[drive] if drive else [])
    if not inventory.drives:
        _without_a_drive(inventory, workload, sla, asks=asks)
        return
    bases = {one.name: basis_of(one, {}, sysfs) for one in inventory.drives}
    table = console.new_table(["drive", "model", "capacity", "what is known"])
    for one in inventory.drives:
        size = "-" if one.capacity_bytes is None else f"{one.capacity_bytes / 1e9:.0f} GB"
        table.add_row(one.name, one.model or "-", size, BASIS_NAMES[bases[one.name].source])
    console.emit_table(table, "")
    chosen = _chosen(inventory, drive, asks=asks)
    if workload is None and asks:
        typer.confirm(f"Observe {chosen.name} for {seconds:g} s (it is only read)?", abort=True)
    if sla is None and asks:
        sla = typer.prompt("Bounds, such as p99 < 2 ms (empty: none)", default="") or None
    request = _workload(chosen, workload, seconds)
    _answer(chosen, bases[chosen.name], request, sla, folder)


def _chosen(inventory: Inventory, name: str | None, *, asks: bool) -> MeteredDrive:
    """The drive that is asked about: NVMe before others."""
    by_name = {one.name: one for one in inventory.drives}
    if name is not None:
        if name.removeprefix("/dev/") not in by_name:
            raise InputError(f"--drive {name}: there are {', '.join(by_name)}", field="drive")
        return by_name[name.removeprefix("/dev/")]
    nvme = [one for one in inventory.drives if one.transport == "nvme"]
    first = (nvme or list(inventory.drives))[0]
    if not asks or len(by_name) == 1:
        return first
    answer = typer.prompt("Which drive", default=first.name)
    return _chosen(inventory, answer, asks=False)


def _without_a_drive(
    inventory: Inventory, workload: Path | None, sla: str | None, *, asks: bool
) -> None:
    """Says so, and offers an example on a drive that was measured."""
    from iojoule.api.application.doctor import why_no_drive

    device, preset = EXAMPLE_DEVICE, str(workload or PRESET)
    text = f"{why_no_drive(inventory).capitalize()}. An example: {preset} on {device}."
    console.emit_table(*textwrap.wrap(text, console.columns()), "")
    if asks:
        typer.confirm("Show it?", default=True, abort=True)
    from iojoule.api.application.profiles import profile_of
    from iojoule.api.application.recommend import workload_with

    _show(
        profile_of(device), workload_with(Path(preset), _bounds(sla)), f"--device {device}", preset
    )


def _workload(
    drive: MeteredDrive, workload: Path | None, seconds: float
) -> tuple[WorkloadProfile, str | None]:
    """The workload, and the file or preset that it stands in; None where it was observed."""
    from iojoule.api.application.recommend import workload_with
    from iojoule.api.application.workloads import Kept
    from iojoule.measure.observe import ObserveRequest, observe
    from iojoule.recommender.workloads.from_summary import from_summary

    if workload is not None:
        return workload_with(workload, {}), str(workload)
    console.note(f"observing {drive.name} for {seconds:g} s")
    kept = Kept(None)
    observe(ObserveRequest(Path("/dev") / drive.name, seconds), keep=kept.keep)
    try:
        assert kept.summary is not None  # a window at least
        return from_summary(kept.summary, same_drive=True), None
    except InputError as error:
        command = f"iojoule workload observe /dev/{drive.name} --seconds 600 --out {WORKLOAD_FILE}"
        console.note(f"{error.message}; the answer is for the preset {PRESET}. `{command}`")
        return workload_with(Path(PRESET), {}), PRESET


def _bounds(sla: str | None) -> dict[str, object]:
    from iojoule.recommender.sla import parse_sla

    return {} if sla is None else {"sla": parse_sla(sla, None).model_dump(exclude_unset=True)}


def _answer(
    drive: MeteredDrive,
    basis: Basis,
    request: tuple[WorkloadProfile, str | None],
    sla: str | None,
    folder: Path,
) -> None:
    """Answers, with files for the next step where the workload or the drive has no name."""
    from iojoule.api.application.meter_basis import CLASS
    from iojoule.api.application.workloads import write_profile as write_workload
    from iojoule.datasets.profile import write_profile
    from iojoule.recommender.request import with_fields

    workload, source = request
    workload = with_fields(workload, _bounds(sla), "--sla")
    if source is None:
        source = str(folder / WORKLOAD_FILE)
        write_workload(workload, Path(source))
        console.note(f"wrote {source}")
        sla = None  # it stands in the file
    who = f"--device {basis.profile.device}"
    if basis.source == CLASS:
        who = f"--profile {folder / DRIVE_FILE}"
        write_profile(basis.profile, folder / DRIVE_FILE)
        console.note(f"wrote {folder / DRIVE_FILE}")
    _show(basis.profile, workload, who, source, sla=sla, node=f"/dev/{drive.name}")


def _show(
    profile: DeviceProfile,
    workload: WorkloadProfile,
    who: str,
    source: str,
    *,
    sla: str | None = None,
    node: str | None = None,
) -> None:
    """The verdict, with the command that goes on from it."""
    import shlex

    from iojoule.api.application.recommend import answer
    from iojoule.api.cli import recommendation_text as text
    from iojoule.api.reports.summary import with_command
    from iojoule.recommender.recommend import Recommender
    from iojoule.recommender.request import Scope

    bounds = [] if sla is None else ["--sla", sla]
    if profile.host_power is None and workload.scope is not Scope.DEVICE:
        workload = workload.model_copy(update={"scope": Scope.DEVICE})
        bounds += ["--scope", "device"]
    found = answer(Recommender.under(profile), workload)
    command = (
        f"iojoule recommend {who} --workload {shlex.quote(source)} {shlex.join(bounds)}".strip()
    )
    summary = with_command(found.summary, found.device, command)
    lines = [*text.verdict(summary, console.columns()), *text.brief(found, None, console.columns())]
    if node is not None:
        lines = [
            line.replace("/dev/nvme0n1", node).replace("/dev/nvmeXn1", node)
            if isinstance(line, str)
            else line
            for line in lines
        ]
    console.emit_table(*lines)
    if found.recommended is None:
        raise InfeasibleError(f"nothing is recommended: {found.reason_code}")
