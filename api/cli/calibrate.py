"""`iojoule calibrate`: the simulator fitted to a drive's measurements, and put into its profile."""

from __future__ import annotations

from contextlib import AbstractContextManager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iojoule.api.application.simulate import setting_values
from iojoule.api.cli import console
from iojoule.api.cli.fit import profile_file
from iojoule.api.cli.options import (
    DaskOption,
    ServerOption,
    local_backend,
    named,
    refuse,
    refuse_files,
    remote_backend,
    resources,
)
from iojoule.api.cli.progress import progress
from iojoule.api.jobs.calibration_request import CalibrationRequest
from iojoule.datasets.profile import write_profile

if TYPE_CHECKING:
    from iojoule.api.application.backend import Backend, Calibration
    from iojoule.datasets.profile import DeviceProfile, SimulatedError


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
    rounds: Annotated[
        int,
        typer.Option(
            "--rounds", "--waves", min=1, max=20, help="Of steps; each measures the slopes anew."
        ),
    ] = 2,
    designs: Annotated[
        int, typer.Option(min=8, metavar="N", help="Spread over the ranges at first.")
    ] = 12,
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
    path = profile_file(output)
    request = CalibrationRequest.model_construct(
        drive=ssd,
        set=setting_values(settings or []),
        hold_out=hold_out or [],
        parameters=_listed(parameters),
        rounds=rounds,
        designs=designs,
        tables=not no_tables,
    )
    if server:
        others = engine is not EngineChoice.EMBEDDED
        refuse(server, engine=others, state=state, jobs=jobs, dask=dask)
        refuse_files(server, [ssd])
        backend: AbstractContextManager[Backend] = remote_backend(server, named(device))
    else:
        place = resources(jobs, dask, state)
        backend = local_backend(resources=place, engine=engine.value, device_id=device)
    with backend as computes, progress() as watch:
        result = computes.calibrate(datasets, request, watch)
    write_profile(result.profile, path)
    _note_left_out(result)
    _emit(result.profile, form)
    console.note(f"{path}: written")


def _listed(parameters: str | None) -> list[str]:
    return [one.strip() for one in (parameters or "").split(",") if one.strip()]


def _note_left_out(found: Calibration) -> None:
    for said in found.notes:
        console.note(said)
    console.say_left_out("measurement", [(each.what, each.reason) for each in found.excluded])


def _emit(profile: DeviceProfile, form: console.Format) -> None:
    section = profile.simulated
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
