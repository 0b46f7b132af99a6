"""`iojoule fit`: device profiles from measurements, and how good they are."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iojoule.api.cli import console
from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import write_profile
from iojoule.datasets.provenance import keep_other_documents

if TYPE_CHECKING:
    from iojoule.datasets.profile import DeviceProfile
    from iojoule.model.fit.report import Table


def fit(
    datasets: Annotated[
        list[Path] | None,
        typer.Argument(metavar="DATASET...", help="Datasets, or folders of datasets."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="PROFILE.json", help="File to write; a folder for --shipped."
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The drive, where the measurements do not name it."),
    ] = None,
    shipped: Annotated[
        bool, typer.Option("--shipped", help="Fit every shipped profile again.")
    ] = False,
    recipe: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE.toml", help="Fit what a recipe says, from --data."),
    ] = None,
    report: Annotated[
        bool,
        typer.Option(
            "--report", help="Say how far predictions err on public measurements left out of fits."
        ),
    ] = False,
    in_part: Annotated[
        bool,
        typer.Option("--in-part", help="Fit half of every public grid and predict the other half."),
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Public measurements; default $IOJOULE_DATA."),
    ] = None,
    with_doubtful: Annotated[
        bool,
        typer.Option("--with-doubtful", help="Take runs too that their campaign calls doubtful."),
    ] = False,
) -> None:
    """Fit a device profile from datasets, from a recipe, or all that ship."""
    ways = [bool(datasets), shipped, recipe is not None, report, in_part]
    if sum(ways) != 1:
        raise typer.BadParameter(
            "say one of DATASET..., --shipped, --recipe, --report (public measurements) or "
            "--in-part; errors of a profile of yours: iojoule profile report PROFILE.json"
        )
    if device is not None and not datasets:
        raise typer.BadParameter("--device goes with DATASET...")
    if with_doubtful and not datasets:
        raise typer.BadParameter("--with-doubtful goes with DATASET...")
    if data is not None and datasets:
        raise typer.BadParameter("--data goes with --shipped, --recipe, --report or --in-part")
    if report:
        from iojoule.api.application.fit import data_folder
        from iojoule.model.fit.report import report as reported

        _show(reported(data_folder(data)).tables)
    elif in_part:
        from iojoule.api.application.fit import data_folder
        from iojoule.model.fit.in_part import tables

        _show(tables(data_folder(data)))
    elif shipped:
        _shipped(data, output)
    elif recipe is not None:
        _one_recipe(recipe, data, profile_file(output))
    else:
        _datasets(datasets or [], device, profile_file(output), with_doubtful=with_doubtful)


def profile_file(output: Path | None) -> Path:
    """Refuse early what cannot be written: a fit takes a while."""
    if output is None:
        raise typer.BadParameter("say -o PROFILE.json")
    if output.is_dir():
        raise InputError(f"{output}: is a folder; name the file to write in it")
    if not output.absolute().parent.is_dir():
        raise InputError(f"{output}: the folder {output.parent} does not exist; make it first")
    keep_other_documents(output, of_dataset=False)
    return output


def _shipped(data: Path | None, output: Path | None) -> None:
    from iojoule.api.application.fit import data_folder, fit_shipped, prior_file, profiles_folder

    folder, source = profiles_folder(output), data_folder(data)
    learned = prior_file(folder)
    if learned is not None:
        from iojoule.model.fit.learn_prior import learned_prior, write_prior

        prior = learned_prior(source)
        write_prior(prior, learned)
        figures = sum(one.figures for one in prior.sources)
        console.emit(f"{learned}: the prior of unmeasured drives, from {figures} figures\n")
    for profile in fit_shipped(source):
        write(profile, folder / f"{profile.device}.json")


def _one_recipe(name: str, data: Path | None, output: Path) -> None:
    from iojoule.api.application.fit import data_folder, fit_recipe

    write(fit_recipe(name, data_folder(data)), output)


def _datasets(paths: list[Path], device: str | None, output: Path, *, with_doubtful: bool) -> None:
    from iojoule.api.application.fit import fit_datasets

    fitted = fit_datasets(paths, device, with_doubtful=with_doubtful)
    for said in fitted.notes:
        console.note(said)
    write(fitted.profile, output)
    profile = shlex.quote(str(output))
    console.note(f"next: iojoule recommend --profile {profile} --workload ycsb-c")


def write(profile: DeviceProfile, path: Path) -> None:
    """Write a profile and say in one line what is in it."""
    write_profile(profile, path)
    fitted = ", ".join(f"{one.operation} {one.pattern}" for one in profile.surfaces)
    powers = {
        "drive": profile.device_power,
        "CPU": profile.host_power,
        "system": profile.system_power,
    }
    known = ", ".join(name for name, law in powers.items() if law is not None) or "none"
    rows = sum(source.rows_used for source in profile.sources)
    console.emit(
        f"{path}: {profile.model_name}, from {rows} measurements; performance: {fitted}; "
        f"power: {known}\n"
    )


def _show(tables: list[Table]) -> None:
    for table in tables:
        shown = console.new_table(table.columns, title=table.title)
        for row in table.rows:
            shown.add_row(*("" if cell is None else str(cell) for cell in row))
        console.emit_table(shown, *([table.note] if table.note else []), "")
