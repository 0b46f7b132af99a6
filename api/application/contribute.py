"""Makes a contribution of a campaign or a dataset: packed, checked, fitted, compared."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from iojoule.api.application.fields import FIELDS
from iojoule.api.application.fit import data_folder, fit_recipe
from iojoule.api.application.predict import Answers, ask
from iojoule.api.application.predictors import Predictors
from iojoule.datasets.anonymous import FIRMWARE, MODEL, identities, without_identities
from iojoule.datasets.catalogue import catalogued, slug
from iojoule.datasets.characteristics import Characteristics, characteristics
from iojoule.datasets.contribution import (
    ABOUT_FILE,
    AGREEMENT_FILE,
    AGREEMENT_PAGE,
    CHECKS_FILE,
    LARGEST_BYTES,
    MEASUREMENTS_FILE,
    NEEDED,
    OPTIONAL,
    PROFILE_FILE,
    RUNS_FILE,
    About,
    Check,
    Checks,
    Contribution,
    Instrument,
    RunSamples,
    about_text,
    conditions_of,
    measurements_text,
    origin_of,
    read_contribution,
    refuse_existing,
    runs_text,
    text_sha256,
    write_folder,
)
from iojoule.datasets.errors import DataQualityError, InputError
from iojoule.datasets.measured_drive import MeasuredDrive, measured_drive, read_identify
from iojoule.datasets.profile import (
    DeviceProfile,
    load_shipped_profile,
    read_profile,
    shipped_profiles,
)
from iojoule.datasets.schema import Measurement, Section, to_row, validation_error
from iojoule.datasets.store import dataset_paths, read_dataset
from iojoule.datasets.verdict import Usable, usable
from iojoule.measure.campaign.folder import CampaignFolder, Status
from iojoule.measure.campaign.run_samples import instruments, measured_records, run_samples
from iojoule.model.fit.build import Contributed, contributed_rows
from iojoule.model.fit.contributions import (
    Agreement,
    agreement,
    contribution_checks,
    refuse_failed,
    unsteady_runs,
)
from iojoule.model.fit.measured import fit_measured
from iojoule.model.prior.build import build_profile
from iojoule.model.prior.facts import known_facts
from iojoule.model.prior.host import with_expected_host
from iojoule.model.recipe import generic_recipe, shipped_recipes


@dataclass(frozen=True)
class Source:
    """What is to be contributed, as it was measured.

    Attributes:
        measurements: In the order of their runs.
        runs: What raw samples say of each; empty = not kept.
        told: What the drive says of itself.
        found: What `iojoule measure characterise` found.
        instruments: Those of power.
        failed_runs: Runs that failed.
        campaign: Whether it is a campaign's folder.
        secrets: Serial numbers that must not get out.
        notes: What was left out.
    """

    measurements: list[Measurement]
    runs: list[RunSamples]
    told: MeasuredDrive | None
    found: Characteristics | None
    instruments: list[Instrument]
    failed_runs: int
    campaign: bool
    secrets: tuple[str, ...]
    notes: list[str]


@dataclass(frozen=True)
class Contributing:
    """What was written, and what its contributor should know.

    Attributes:
        about: What it is.
        checks: All passed, or the measurements do not say.
        profile: What the measurements lead to.
        agreement: With what was known before.
        notes: What was left out and why.
    """

    about: About
    checks: list[Check]
    profile: DeviceProfile
    agreement: Agreement
    notes: list[str]


def contribute(
    path: Path,
    folder: Path,
    *,
    device: str | None = None,
    identify: Path | None = None,
    contributor: str | None = None,
    data: Path | None = None,
) -> Contributing:
    """Make the folder of a contribution.

    Args:
        path: A campaign's folder, a dataset, or a folder of datasets.
        folder: New folder to write: all of it, or nothing.
        device: The drive, where neither measurements nor identify data name it.
        identify: Identify data, where the campaign kept none.
        contributor: As whom to cite, if the contributor wishes.
        data: Folder of the public measurements, for a profile that ships.

    Raises:
        InputError: It cannot be read, or the folder cannot be written.
        DataQualityError: A check fails; its field is the name of the check.
    """
    refuse_existing(folder)
    source = _source(path, identify)
    name = _device_of(source, device)
    contribution = _anonymous(source, name, contributor)
    about, rows = contribution.about, contribution.measurements
    checks = contribution_checks(
        rows, contribution.runs, about.drive, catalogued(name), about.instruments
    )
    refuse_failed(checks)
    profile, notes = _fitted(contribution, folder.name, source.found, data)
    compared = _agreement(contribution, name)
    files = {
        ABOUT_FILE: about_text(about),
        MEASUREMENTS_FILE: measurements_text(rows),
        **({RUNS_FILE: runs_text(contribution.runs)} if contribution.runs else {}),
        CHECKS_FILE: _json(Checks(checks=tuple(checks))),
        PROFILE_FILE: _json(profile),
        AGREEMENT_FILE: _json(compared),
        AGREEMENT_PAGE: agreement_page(about, checks, compared, profile),
    }
    _refuse_identities(files, contributor, source.secrets)
    write_folder(folder, files)
    notes += source.notes
    if about.left_out:
        notes.append(f"left out, because they may name somebody: {', '.join(about.left_out)}")
    return Contributing(about, checks, profile, compared, notes)


def check_contribution(folder: Path) -> list[Check]:
    """Check a folder as it lies in a pull request: what `contribute` checked, and that it is whole.

    The profile is not fitted again: it shows what the measurements led to when they came, and a
    later iojoule fits them better.

    Raises:
        InputError: A file is missing, foreign, damaged or too large.
        DataQualityError: A check fails, or a file holds what may name somebody.
    """
    present = {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()
    wrong = sorted((set(NEEDED) - present) | (present - {*NEEDED, *OPTIONAL}))
    if wrong:
        said = "is missing" if wrong[0] in NEEDED else "does not belong here"
        raise InputError(
            f"{folder}: {wrong[0]} {said}; contribute again",
            field=wrong[0],
        )
    if sum((folder / name).stat().st_size for name in present) > LARGEST_BYTES:
        raise InputError(f"{folder}: larger than {LARGEST_BYTES:,} bytes; contribute a part of it")
    contribution = read_contribution(folder)
    about, rows = contribution.about, contribution.measurements
    texts = {name: (folder / name).read_text(encoding="utf-8") for name in sorted(present)}
    _refuse_identities(texts, about.contributor, ())
    if without_identities(rows, about.device, origin_of(rows)).measurements != rows:
        raise DataQualityError(
            f"{folder / MEASUREMENTS_FILE}: holds text that contribute would leave out or replace; "
            "contribute again",
            field="identity",
        )
    checks = contribution_checks(
        rows, contribution.runs, about.drive, catalogued(about.device), about.instruments
    )
    refuse_failed(checks)
    _parsed(Checks, folder / CHECKS_FILE)
    _parsed(Agreement, folder / AGREEMENT_FILE)
    profile = read_profile(folder / PROFILE_FILE)
    if about.measurements_sha256 not in {one.sha256 for one in profile.sources}:
        raise InputError(
            f"{folder / PROFILE_FILE}: was not fitted on {MEASUREMENTS_FILE}; contribute again",
            field="profile",
        )
    return checks


def _parsed(kind: type[Section], path: Path) -> Section:
    try:
        return kind.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise validation_error(error, str(path)) from None


def _source(path: Path, identify: Path | None) -> Source:
    """Read what is to be contributed."""
    told = read_identify(identify) if identify is not None else measured_drive([path])
    campaign = CampaignFolder(path)
    if not campaign.exists:
        found = [one for file in dataset_paths([path]) for one in read_dataset(file).measurements()]
        if not found:
            raise InputError(f"{path}: holds no measurement")
        good = usable(found)
        _require_any(path, good)
        return Source(
            good.measurements, [], told, characteristics([path]), [], 0, False, (), good.notes
        )
    records = campaign.records()
    done = measured_records(records)
    if not done:
        raise InputError(f"{path}: no run is done yet; go on with `iojoule measure resume {path}`")
    good = usable([one.measurement for one in done if one.measurement is not None])
    _require_any(path, good)
    kept = {id(one) for one in good.measurements}
    done = [one for one in done if id(one.measurement) in kept]
    return Source(
        measurements=good.measurements,
        runs=run_samples(campaign, done),
        told=told,
        found=characteristics([path]),
        instruments=instruments(campaign, done),
        failed_runs=sum(one.status is Status.FAILED for one in records),
        campaign=True,
        secrets=(campaign.options().serial,),
        notes=good.notes,
    )


def _require_any(path: Path, good: Usable) -> None:
    if not good.measurements:
        raise DataQualityError(f"{path}: no run is good: {'; '.join(good.notes)}", field="verdicts")


def _key(name: str) -> str:
    drive = catalogued(name)
    return drive.id if drive is not None else slug(name)


def _device_of(source: Source, device: str | None) -> str:
    """The id of the one drive that runs, identify data and caller name.

    Raises:
        InputError: Nobody names it.
        DataQualityError: They name several.
    """
    stated = [one.conditions.device_model for one in source.measurements]
    measured = {_key(name) for name in stated if name is not None}
    if len(measured) > 1:
        raise DataQualityError(
            f"the contribution is refused: its runs are of {', '.join(sorted(measured))}; "
            "contribute each drive for itself",
            field="one_drive_one_host",
        )
    told = {_key(source.told.model)} if source.told is not None else set()
    if measured and told and measured != told:
        raise DataQualityError(
            f"the contribution is refused: the identify data are of another drive "
            f"({told.pop()}) than the runs ({measured.pop()})",
            field="identify",
        )
    named = measured | told
    if not named and device is None:
        raise InputError(
            "neither the measurements nor identify data name the drive; say --device ID, or "
            "--identify FILE",
            field="device_model",
        )
    if device is not None and named - {_key(device)}:
        raise DataQualityError(
            f"the contribution is refused: it is said to be of {device}, and is of {named.pop()}",
            field="one_drive_one_host",
        )
    return named.pop() if named else _key(str(device))


def _anonymous(source: Source, name: str, contributor: str | None) -> Contribution:
    """The contribution without identities, its unsteady runs in sessions that stand apart."""
    unsteady = unsteady_runs(source.runs)
    marked = [
        _apart(one) if place in unsteady else one for place, one in enumerate(source.measurements)
    ]
    host = platform.node()
    secrets = [*source.secrets, host, host.partition(".")[0], Path.home().name]
    kept = without_identities(marked, name, origin_of(marked), secrets)
    rows = kept.measurements
    try:
        about = About(
            device=name,
            contributor=contributor,
            measured_with="campaign" if source.campaign else "dataset",
            rows=len(rows),
            failed_runs=source.failed_runs,
            left_out=kept.left_out,
            measurements_sha256=text_sha256(measurements_text(rows)),
            drive=_told(source.told),
            conditions=conditions_of(rows),
            instruments=tuple(source.instruments),
        )
    except ValidationError as error:
        raise validation_error(error, "contribution") from None
    return Contribution(about, rows, source.runs)


def _apart(one: Measurement) -> Measurement:
    session = f"{one.conditions.session_id or one.conditions.series_id or ''} unsteady"
    return one.model_copy(
        update={"conditions": one.conditions.model_copy(update={"session_id": session})}
    )


def _told(drive: MeasuredDrive | None) -> MeasuredDrive | None:
    if drive is None:
        return None
    if not MODEL.fullmatch(drive.model):
        raise DataQualityError(
            "the contribution is refused: the model number of the identify data is none",
            field="identify",
        )
    firmware = drive.firmware if drive.firmware and FIRMWARE.fullmatch(drive.firmware) else None
    return drive.model_copy(update={"firmware": firmware})


def _refuse_identities(
    files: dict[str, str], contributor: str | None, secrets: Sequence[str]
) -> None:
    """Refuse to publish what may name somebody; the contributor's own name is a choice."""
    for name, text in files.items():
        shown = text.replace(contributor, "") if contributor else text
        found = identities(shown, secrets)
        if found:
            raise DataQualityError(
                f"the contribution is refused: {name} holds {found[0]}", field="identity"
            )


def _json(document: Section) -> str:
    return json.dumps(document.model_dump(mode="json"), indent=1, sort_keys=True) + "\n"


def _fitted(
    contribution: Contribution, folder: str, found: Characteristics | None, data: Path | None
) -> tuple[DeviceProfile, list[str]]:
    """The profile with these measurements: the shipped one's recipe, or these alone."""
    about, one = contribution.about, Contributed("this contribution", contribution)
    if about.device in shipped_recipes():
        try:
            return fit_recipe(about.device, data_folder(data), [one]), []
        except InputError as error:
            if data is not None or isinstance(error, DataQualityError):
                raise
        alone = "the public measurements are not here, so the profile rests on this contribution"
    else:
        alone = ""
    _, source = contributed_rows(generic_recipe(about.device, about.device), one)
    name = about.device
    if about.drive is not None and catalogued(name) is None:
        name = about.drive.model
    fitted = fit_measured(name, contribution.measurements, [source], about.drive, found)
    return fitted.profile, [*([alone] if alone else []), *fitted.notes]


def _agreement(contribution: Contribution, device: str) -> Agreement:
    """Every run predicted by what iojoule knew of the drive before."""
    ships = device in shipped_profiles()
    profile = (
        load_shipped_profile(device)
        if ships
        else with_expected_host(build_profile(known_facts(device, contribution.about.drive)))
    )
    rows = [to_row(one) for one in contribution.measurements]
    names = [name for name in FIELDS if any(row.get(name) is not None for row in rows)]
    cells = [[row[name] for name in names] for row in rows]
    predictors = Predictors(profile)

    def answers(places: Sequence[int]) -> Answers:
        return ask(
            predictors,
            names,
            [cells[place] for place in places],
            where=lambda row: f"run {places[row] + 1}",
            place="contribution",
        )

    places, refused = list(range(len(rows))), []
    found: Answers | None
    try:
        found = answers(places)
    except InputError:
        for place in range(len(rows)):
            try:
                answers([place])
            except InputError as error:
                places.remove(place)
                refused.append(error.message)
        found = answers(places) if places else None
    compared, largest = agreement(
        [contribution.measurements[place] for place in places],
        [place + 1 for place in places],
        found.prediction if found is not None else None,
    )
    return Agreement(
        compared_with="measured profile" if ships else "facts of the drive",
        profile=profile.device,
        quantities=compared,
        largest=largest,
        not_predicted=tuple(refused),
    )


def agreement_page(
    about: About, checks: Sequence[Check], found: Agreement, profile: DeviceProfile
) -> str:
    """`agreement.md`: what a reviewer reads first."""
    compared = (
        (
            one.quantity,
            str(one.rows),
            f"{one.median_error:.1%}",
            f"{one.p90_error:.1%}",
            f"{one.bias:+.1%}",
            f"{one.covered:.0%}",
            _figure(one.width),
        )
        for one in found.quantities
    )
    largest = [
        (
            str(one.run),
            one.what,
            one.quantity,
            _figure(one.measured),
            _figure(one.predicted),
            f"{_figure(one.low)} to {_figure(one.high)}",
        )
        for one in found.largest
    ]
    largest += [("-", said, "not predicted", "-", "-", "-") for said in found.not_predicted]
    judged = (
        (one.name, one.verdict, _figure(one.value), _figure(one.limit), one.said) for one in checks
    )
    lines = [
        f"# {about.device}: {about.rows} measurements beside what was known",
        "",
        f"Predicted by the {found.compared_with} of {found.profile}, which has not seen them.",
        "",
        *_table(
            (
                "quantity",
                "runs",
                "median error",
                "90 % of errors below",
                "bias",
                "in the 90 % interval",
                "median width (high / low)",
            ),
            compared,
        ),
        "",
        "## Largest disagreements",
        "",
        *_table(("run", "what", "quantity", "measured", "predicted", "90 % interval"), largest),
        "",
        "## Checks",
        "",
        *_table(("check", "verdict", "value", "limit", "found"), judged),
        "",
        "## The profile",
        "",
    ]
    sources = ", ".join(f"{one.name} ({one.rows_used})" for one in profile.sources)
    return "\n".join([*lines, f"`{PROFILE_FILE}` rests on: {sources}.", ""])


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    cells = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in cells]


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
