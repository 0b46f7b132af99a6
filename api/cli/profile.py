"""`iojoule profile`: device profiles, what they rest on, and their versions at a service."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iojoule.api.application.build_profile import (
    advice,
    expected_profile,
    profile_from_facts,
    profile_from_identify,
)
from iojoule.api.application.explain import explain_profile
from iojoule.api.application.profiles import profile_in, profile_of
from iojoule.api.cli import console
from iojoule.api.cli.console import Format, FormatOption
from iojoule.api.cli.fit import profile_file, write
from iojoule.api.cli.options import DeviceOption, ServerOption, assignments, chosen_profile, service
from iojoule.datasets.profile import write_profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iojoule.api.application.explain import ProfileExplanation
    from iojoule.api.http.schemas import KeptProfile
    from iojoule.datasets.contribution import Check

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Build, look into, contribute to and choose device profiles.",
)


@app.command()
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


@app.command()
def contribute(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="CAMPAIGN|DATASET",
            help="Folder of a campaign, or a dataset; with --check the folder to check.",
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FOLDER", help="New folder to write.")
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The drive, where the measurements do not name it."),
    ] = None,
    identify: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE|DIR",
            help="Output of `nvme id-ctrl -o json`, where the campaign kept no drive.json.",
        ),
    ] = None,
    contributor: Annotated[
        str | None, typer.Option(metavar="NAME", help="As whom to cite you, if you wish.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Public measurements; default $IOJOULE_DATA."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Check a contribution and write nothing.")
    ] = False,
) -> None:
    """Pack a campaign for a pull request: without identities, checked, fitted and compared.

    The licence of what is written is Apache-2.0. Exit code 8: a check failed, and nothing was
    written; the message names the check.
    """
    if check == (output is not None):
        raise typer.BadParameter("say either -o FOLDER or --check")
    if output is None:
        from iojoule.api.application.contribute import check_contribution

        _show_checks(check_contribution(source))
        console.emit(f"{source}: passed\n")
        return
    from iojoule.api.application.contribute import contribute as make

    made = make(
        source,
        output,
        device=device,
        identify=identify,
        contributor=contributor,
        data=data,
    )
    for said in made.notes:
        console.note(said)
    _show_checks(made.checks)
    table = console.new_table(
        ["quantity", "runs", "median error", "in the 90 % interval"],
        title=f"beside the {made.agreement.compared_with} of {made.agreement.profile}",
    )
    for one in made.agreement.quantities:
        table.add_row(one.quantity, str(one.rows), f"{one.median_error:.1%}", f"{one.covered:.0%}")
    console.emit_table(table)
    console.emit(f"{output}: {made.about.rows} measurements of {made.about.device}\n")


def _show_checks(checks: Sequence[Check]) -> None:
    table = console.new_table(["check", "verdict", "value", "limit", "found"])
    for one in checks:
        figures = ("-" if value is None else f"{value:.3g}" for value in (one.value, one.limit))
        table.add_row(one.name, one.verdict, *figures, one.said)
    console.emit_table(table)


@app.command()
def explain(
    profile: Annotated[
        Path | None,
        typer.Argument(metavar="PROFILE.json", help="Device profile; else say --device."),
    ] = None,
    device: DeviceOption = None,
    configuration: Annotated[
        list[str] | None,
        typer.Option(
            "--configuration",
            metavar="FIELD=VALUE",
            help="A field of the one configuration to explain, again for each.",
        ),
    ] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Say what each quantity rests on, or where one configuration's intervals come from."""
    chosen = chosen_profile(device, profile)

    fields = assignments(configuration or [], "--configuration")
    found = explain_profile(chosen, fields)
    if output is Format.JSON:
        console.emit_json(found.model_dump(mode="json"))
    elif output is Format.CSV:
        _emit_csv(found)
    else:
        console.emit_table(*_parts(found))


def _emit_csv(found: ProfileExplanation) -> None:
    console.emit_csv(
        ("quantity", "rung", "evidence", "value", "low", "high", "unit", "source", "share", "fact"),
        (
            (
                one.quantity,
                one.rung,
                one.evidence,
                one.value,
                one.low,
                one.high,
                one.unit,
                source,
                share,
                fact,
            )
            for one in found.quantities
            for source, share, fact in one.sources()
        ),
    )


def _parts(found: ProfileExplanation) -> list[Any]:
    table = console.new_table(
        ("quantity", "value", "90 % interval", "rung", "evidence", "rests on", "next"),
        title=f"{found.model_name}: {found.asked}",
    )
    for one in found.quantities:
        table.add_row(
            one.quantity,
            _number(one.value, one.unit),
            "-" if one.low is None else f"[{one.low:.3g}, {one.high:.3g}]",
            one.rung,
            one.evidence,
            one.carried,
            one.next,
        )
    parts: list[Any] = [table]
    for one in found.quantities:
        if one.variance:
            shown = console.new_table(
                ("variance comes from", "share"), title=f"{one.quantity}: where its width is from"
            )
            for part in one.variance:
                shown.add_row(part.source, f"{100.0 * part.share:.0f} %")
            parts += ["", shown]
    return parts


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" + ("" if unit == "1" else f" {unit}")


@app.command()
def report(
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER|FILE",
            help="A folder for both forms, or a file that ends in .md or .html.",
        ),
    ],
    profile: Annotated[
        Path | None, typer.Argument(metavar="PROFILE.json", help="What `iojoule fit` wrote.")
    ] = None,
    device: Annotated[
        str | None, typer.Option(metavar="ID", help="A drive whose profile ships, instead.")
    ] = None,
    findings: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json", help="Also: what `iojoule validate findings -o json` printed."
        ),
    ] = None,
) -> None:
    """Write a profile's model card: what it rests on, how far it errs, and where it ends."""
    from iojoule.api.reports.model_card import build_card, check_target, read_findings, write_card

    if (profile is None) == (device is None):
        raise typer.BadParameter("say one of PROFILE.json and --device ID")
    check_target(output)
    known = profile_in(profile) if profile is not None else profile_of(device or "")
    if known.assessment is None:
        console.warn(
            f"{known.device}: the profile holds no errors: it rests on a datasheet or too few "
            "measurements, or an older version fitted it; fit it to measurements to see them"
        )
    judged = None if findings is None else read_findings(findings, known.device)
    for path in write_card(build_card(known, judged), output):
        console.emit(f"{path}\n")


class CoefficientsForm(StrEnum):
    """Who reads them."""

    JSON = "json"
    PROMETHEUS = "prometheus"


@app.command()
def coefficients(
    profile: Annotated[
        Path | None, typer.Argument(metavar="PROFILE.json", help="What `iojoule fit` wrote.")
    ] = None,
    device: Annotated[
        str | None, typer.Option(metavar="ID", help="A drive of the catalogue, instead.")
    ] = None,
    form: Annotated[
        CoefficientsForm,
        typer.Option("--as", help="JSON, or recording rules over node_exporter's disk series."),
    ] = CoefficientsForm.JSON,
    drive: Annotated[
        str,
        typer.Option(metavar="REGEX", help="With --as prometheus: the label `device`, nvme0n1."),
    ] = ".+",
) -> None:
    """Print a drive's joules by command and byte and its idle watts, for other programs.

    Kepler and Scaphandre read no such file: they join the recorded series, or those of
    `iojoule exporter`, by `instance`. Alumet's energy-attribution takes the formula.
    """
    from iojoule.api.application.coefficients import coefficients_document, recording_rules

    if (profile is None) == (device is None):
        raise typer.BadParameter("say one of PROFILE.json and --device ID")
    known = profile_in(profile) if profile is not None else profile_of(device or "")
    if form is CoefficientsForm.JSON:
        console.emit_json(coefficients_document(known))
    else:
        console.emit(recording_rules(known, drive))


DeviceName = Annotated[
    str, typer.Option("--device", metavar="ID", help="SSD model of the catalogue.")
]
Version = Annotated[
    int,
    typer.Argument(
        metavar="VERSION", min=0, help="As `profile versions` shows it; 0 comes with iojoule."
    ),
]

_TITLES = {
    "version": "version",
    "current": "answers",
    "profile_version": "named",
    "origin": "from",
    "created_at": "made at",
    "job_id": "by job",
}


@app.command()
def versions(
    device: DeviceName, server: ServerOption = None, output: FormatOption = Format.TABLE
) -> None:
    """List the versions of a drive's profile at a service, the newest first."""
    with service(server) as client:
        found = list(client.profiles(device))
    if output is Format.JSON:
        console.emit_json([one.model_dump(mode="json") for one in found])
    else:
        console.emit_records([_record(one) for one in found], output, _TITLES)


@app.command()
def use(
    version: Version,
    device: DeviceName,
    server: ServerOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Let a version of a drive's profile answer everybody from now on; the others are kept."""
    with service(server) as client:
        found = client.use_profile(device, version)
    record = {"device": found.device, "version": found.version}
    console.emit_records([record], output, {"device": "device", "version": "answers"})


@app.command()
def fetch(
    version: Version,
    device: DeviceName,
    out: Annotated[Path, typer.Option("--output", "-o", metavar="FILE.json", help="To write.")],
    server: ServerOption = None,
) -> None:
    """Write a version of a drive's profile to a file, as `--profile` takes it."""
    path = profile_file(out)
    with service(server) as client:
        write_profile(client.profile(device, version), path)
    console.note(f"wrote {path}")


def _record(kept: KeptProfile) -> dict[str, Any]:
    made = kept.created_at
    return {
        "version": kept.version,
        "current": kept.current,
        "profile_version": kept.profile_version,
        "origin": kept.origin,
        "job_id": kept.job_id,
        "created_at": None if made is None else made.isoformat(timespec="seconds"),
    }
