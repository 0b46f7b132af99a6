"""`iojoule calibrate`: the simulator fitted to a drive's measurements, and put into its profile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iojoule.api.cli import console
from iojoule.api.cli.fit import profile_file
from iojoule.api.cli.options import (
    DaskOption,
    ServerOption,
    named,
    refuse,
    refuse_files,
    results_folder,
    service,
    waited_for,
    workers,
)
from iojoule.api.jobs.calibration_request import CalibrationRequest
from iojoule.api.state.ids import is_id
from iojoule.datasets.errors import InputError

if TYPE_CHECKING:
    from iojoule.api.calibrating import Calibrated, Watch
    from iojoule.api.jobs.calibration_request import CalibrationRequest
    from iojoule.datasets.profile import DeviceProfile, SimulatedError


_NAMED = 12
"""Excluded measurements that are named one by one for each reason."""


class EngineChoice(StrEnum):
    """Which simulator is calibrated."""

    EMBEDDED = "embedded"
    MQSIM = "mqsim"


def calibrate(
    datasets: Annotated[
        list[Path], typer.Argument(metavar="DATASET...", help="Datasets, or folders of datasets.")
    ],
    ssd: Annotated[
        str, typer.Option("--ssd", metavar="FILE|PRESET", help="The drive: its geometry is kept.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="PROFILE.json", help="File to write.")
    ],
    device: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The drive, where the measurements do not name it."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="Change the drive. May be repeated."),
    ] = None,
    hold_out: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=VALUE,...",
            help="Leave these measurements out and judge by them; FIELD=LOW..HIGH is a range.",
        ),
    ] = None,
    parameters: Annotated[
        str | None,
        typer.Option("--parameters", metavar="NAME,...", help="Timing parameters to fit."),
    ] = None,
    engine: Annotated[
        EngineChoice, typer.Option(help="mqsim is your own (IOJOULE_MQSIM); it knows of time only.")
    ] = EngineChoice.EMBEDDED,
    waves: Annotated[int, typer.Option(min=1, max=20, help="Of history matching.")] = 3,
    designs: Annotated[
        int | None, typer.Option(min=8, metavar="N", help="A wave; default: 8 for each parameter.")
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keeps what was simulated: a killed run goes on."),
    ] = None,
    no_tables: Annotated[
        bool, typer.Option("--no-tables", help="Only calibrate: the profile answers as before.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, metavar="N", help="Default: one a core.")
    ] = None,
    dask: DaskOption = None,
    server: ServerOption = None,
    form: Annotated[
        console.Format, typer.Option("--format", help="Form of the table of errors.")
    ] = console.Format.TABLE,
) -> None:
    """Fit a profile, calibrate the simulator on the same measurements, join both.

    With --server, datasets are uploaded or named by their ids there, --device is needed, and what
    comes of it answers there from then on.
    """
    if server:
        refuse(
            server, engine=engine is not EngineChoice.EMBEDDED, state=state, jobs=jobs, dask=dask
        )
        refuse_files(server, [ssd])
        asked = _request(ssd, settings, hold_out, parameters, waves, designs, no_tables)
        _finish(_served(server, named(device), datasets, asked, output), output, form)
        return
    from iojoule.api.application.simulate import drive_with
    from iojoule.api.calibrating import Wishes, calibrate_datasets
    from iojoule.sim.calibration.calibrate import Settings
    from iojoule.sim.calibration.hold_out import parse_hold_out
    from iojoule.sim.errors import WorkersLostError
    from iojoule.sim.result import EngineName
    from iojoule.sim.workers import cores

    path = profile_file(output)
    drive = drive_with(ssd, settings or [])
    places = [str(each.resolve()) for each in datasets]
    folder = results_folder(
        state, dask, places, ssd, settings, hold_out, parameters, engine, waves, designs
    )
    wishes = Wishes(
        engine=EngineName(engine.value),
        hold_out=[parse_hold_out(one) for one in hold_out or []],
        parameters=_listed(parameters),
        settings=Settings(waves=waves, designs=designs, folder=folder),
        tables=not no_tables,
    )
    with workers(jobs, dask, cores()) as pool, stage_bars() as watch:
        try:
            found = calibrate_datasets(datasets, drive, ssd, device, wishes, pool=pool, watch=watch)
        except WorkersLostError as error:
            raise WorkersLostError(
                f"{error.message}; designs that were simulated are kept in {folder}, from where "
                "the same command goes on"
                if folder
                else error.message
            ) from None
    _finish(found, path, form)
    if folder is not None and state is None:
        rmtree(folder)


def _request(
    ssd: str, settings: list[str] | None, hold_out: list[str] | None, parameters: str | None,
    waves: int, designs: int | None, no_tables: bool,
) -> CalibrationRequest:  # fmt: skip
    """What a service is asked for, all but the datasets."""
    from iojoule.api.jobs.calibration_request import CalibrationRequest
    from iojoule.sim.sweep import parse_axis

    changed = [parse_axis(setting) for setting in settings or []]
    return CalibrationRequest.model_construct(
        drive=ssd, set={axis.field: axis.values[0] for axis in changed},
        hold_out=hold_out or [], parameters=_listed(parameters), waves=waves, designs=designs,
        tables=not no_tables,
    )  # fmt: skip


def _listed(parameters: str | None) -> list[str]:
    return [one.strip() for one in (parameters or "").split(",") if one.strip()]


def _served(
    server: str, device: str, datasets: list[Path], asked: CalibrationRequest, output: Path
) -> Served:
    profile_file(output)
    return calibrate_remotely(server, device, datasets, asked)


def _finish(found: Calibrated | Served, path: Path, form: console.Format) -> None:
    from iojoule.datasets.profile import write_profile

    write_profile(found.profile, path)
    _say(found)
    _emit(found, form)
    console.note(f"{path}: written")


def _say(found: Calibrated | Served) -> None:
    for said in found.notes:
        console.note(said)
    reasons = Counter(each.reason for each in found.excluded)
    for reason, count in reasons.items():
        console.warn(f"{count} measurements are left out: {reason}")
        named = [each.what for each in found.excluded if each.reason == reason]
        for what in named[:_NAMED]:
            console.note(f"left out: {what}")
        if count > _NAMED:
            console.note(f"left out: {count - _NAMED} more of these")


def _emit(found: Calibrated | Served, form: console.Format) -> None:
    section = found.profile.simulated
    if section is None:
        return
    errors = [_record(each) for each in section.errors]
    if form is console.Format.JSON:
        told = section.model_dump(mode="json", exclude={"tables"})
        console.emit_json({**told, "errors": errors})
        return
    if form is console.Format.TABLE:
        fitted = console.new_table(
            ["parameter", "value", "sd", "unit", "sought between"], title="Calibrated"
        )
        for one in (*section.parameters, *section.energy):
            ends = f"{one.prior_low:.4g} and {one.prior_high:.4g}"
            fitted.add_row(one.name, f"{one.value:.4g}", f"{one.sd:.2g}", one.unit or "-", ends)
        said = [f"cannot be told apart: {sentence}" for sentence in section.indistinct]
        console.emit_table(fitted, *said, "")
    console.emit_records(errors, form, ERROR_COLUMNS)


ERROR_COLUMNS = {
    "quantity": "quantity",
    "where": "where",
    "left_out": "left out",
    "rows": "rows",
    "before_percent": "before (%)",
    "calibrated_percent": "calibrated (%)",
    "residual_percent": "with residual (%)",
    "linear_law_percent": "linear law (%)",
    "covered_percent": "in 90 % interval (%)",
}


def _record(error: SimulatedError) -> dict[str, Any]:
    return {
        "quantity": error.quantity,
        "where": error.where,
        "left_out": error.held_out,
        "rows": error.rows,
        "before_percent": _percent(error.before),
        "calibrated_percent": _percent(error.calibrated),
        "residual_percent": _percent(error.residual),
        "linear_law_percent": _percent(error.linear_law),
        "covered_percent": _percent(error.covered),
    }


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 1)


@contextmanager
def stage_bars() -> Iterator[Watch | None]:
    """A bar on standard error for each stage; nothing where nobody would see it."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    screen = Console(stderr=True)
    if not screen.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=screen, transient=True) as bar:
        tasks: dict[str, Any] = {}

        def watch(stage: str, done: int, of: int) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=of)
            bar.update(tasks[stage], completed=done, total=of)

        yield watch


@dataclass(frozen=True)
class Served:
    """What a service's calibration found; attributes as those of `calibrating.Calibrated`."""

    profile: DeviceProfile
    notes: list[str]
    excluded: list[Excluded]


@dataclass(frozen=True)
class Excluded:
    """A measurement that was left out."""

    what: str
    reason: str


def calibrate_remotely(
    server: str, device: str, datasets: Sequence[Path], request: CalibrationRequest
) -> Served:
    """Upload, calibrate, and fetch the version that came of it.

    Args:
        server: The service.
        device: Id, model or alias of the drive.
        datasets: Files and folders of datasets, or ids of what the service keeps.
        request: All but the datasets.

    Raises:
        IojouleError: A file is no dataset, or the calibration failed.
    """
    with service(server) as client:
        ids = []
        for path in datasets:
            if is_id(str(path)) and not path.exists():
                ids.append(str(path))
                continue
            for file in _files(path):
                kept = client.upload(file, device=device)
                console.note(f"{file}: uploaded as dataset {kept.id}")
                ids.append(kept.id)
        job = client.calibrate(device, request.model_copy(update={"datasets": ids}))
        console.note(f"job {job.id}")
        waited_for(client, [job], "calibrating")
        told = client.result(job)
        version = next(one for one in client.profiles(device) if one.job_id == job.id)
        console.note(
            f"{client.server} answers for {told['device']} with version {version.version} from "
            "now on; `iojoule profile use` takes that back"
        )
        return Served(
            profile=client.profile(device, version.version),
            notes=told["notes"],
            excluded=[Excluded(one["what"], one["reason"]) for one in told["excluded"]],
        )


def _files(path: Path) -> Iterator[Path]:
    """The files of measurements at a path: itself, or the datasets of a folder."""
    if not path.is_dir():
        yield path if path.suffix else path.with_suffix(".parquet")
        return
    found = sorted(path.glob("*.parquet"))
    if not found:
        raise InputError(f"{path}: holds no dataset (.parquet); name a folder that does")
    yield from found
