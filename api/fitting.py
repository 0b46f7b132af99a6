"""Fits device profiles: the shipped ones from public measurements, others from users' datasets."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from iojoule.api.profile_building import catalogued, known_facts, slug
from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.characteristics import Characteristics, read_characteristics
from iojoule.datasets.errors import InputError
from iojoule.datasets.measured_drive import MeasuredDrive, read_measured_drive
from iojoule.datasets.profile import DATASETS_RECIPE, DeviceProfile, SourceRecord
from iojoule.datasets.schema import Measurement
from iojoule.datasets.store import Dataset, read_dataset
from iojoule.model.evaluate.terms import TERMS
from iojoule.model.fit.build import (
    Contributed,
    contributed_rows,
    fit_profile,
    load_measurements,
    valid_for,
)
from iojoule.model.fit.expectation import Expectation
from iojoule.model.fit.generic_recipe import (
    characterised_gaps,
    characterised_idle_watts,
    characterised_writes,
    measured_host,
)
from iojoule.model.fit.selection import select
from iojoule.model.fit.state_residual import notes_on_mixes
from iojoule.model.prior.build import completed_with_facts
from iojoule.model.recipe import (
    Recipe,
    generic_recipe,
    load_recipe,
    shipped_recipes,
)

DATA_VARIABLE = "IOJOULE_DATA"
"""Environment variable that names the folder of the public measurements."""


@dataclass(frozen=True)
class Fitted:
    """A fitted profile and what its reader should know.

    Attributes:
        profile: The profile.
        notes: What was assumed or left out.
    """

    profile: DeviceProfile
    notes: list[str]


def checkout() -> Path | None:
    """The root of the source checkout this runs from; None where iojoule is installed."""
    root = Path(str(resources.files("iojoule.datasets"))).resolve().parent
    return root if (root / "pyproject.toml").is_file() else None


def data_folder(named: Path | None) -> Path:
    """The folder of the public measurements.

    Raises:
        InputError: It does not exist; says how to name it.
    """
    stated = named or os.environ.get(DATA_VARIABLE)
    root = checkout()
    if stated is None and root is None:
        raise InputError(f"say where the public measurements are: --data DIR or {DATA_VARIABLE}")
    folder = Path(stated) if stated is not None else Path(str(root)).parent / "shared" / "data"
    if not folder.is_dir():
        raise InputError(
            f"{folder}: no such folder; name the one that holds the public measurements with "
            f"--data DIR or {DATA_VARIABLE}"
        )
    return folder


def profiles_folder(named: Path | None) -> Path:
    """Where shipped profiles are written.

    Raises:
        InputError: It does not exist, or nothing is named and this is no source checkout.
    """
    root = checkout()
    if named is None and root is None:
        raise InputError("iojoule runs from an installation, not from a checkout: say -o FOLDER")
    folder = named or Path(str(root)) / "datasets" / "profiles"
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; make it first")
    return folder


def prior_file(profiles: Path) -> Path | None:
    """Where the learned prior lies beside profiles that go to the checkout; None elsewhere."""
    root = checkout()
    if root is None or profiles != root / "datasets" / "profiles":
        return None
    return root / "model" / "prior" / "learned.json"


def fit_shipped(data: Path) -> Iterator[DeviceProfile]:
    """Fit every profile that ships, one after the other.

    Raises:
        InputError: A file of measurements is missing or not what it was.
    """
    for name in shipped_recipes():
        yield fit_recipe(name, data)


def fit_recipe(name: str, data: Path, contributed: Sequence[Contributed] = ()) -> DeviceProfile:
    """Fit the profile of one recipe, shipped or a TOML file.

    Args:
        name: The recipe.
        data: The folder of the public measurements.
        contributed: Measurements that the recipe does not name yet.

    Raises:
        UnknownDeviceError: No such recipe.
        InputError: The recipe or its measurements are not what they must be.
    """
    recipe = load_recipe(name)
    measurements, sources = load_measurements(recipe, data)
    for each in contributed:
        own, source = contributed_rows(recipe, each)
        measurements, sources = measurements + own, [*sources, source]
    profile = fit_profile(recipe, measurements, sources)
    return completed_with_facts(profile, known_facts(recipe.device, None))


def fit_datasets(
    paths: Sequence[Path], device: str | None, *, with_doubtful: bool = False
) -> Fitted:
    """Fit a profile from users' datasets.

    Args:
        paths: Datasets, or folders whose datasets are put together.
        device: The drive that was measured; None takes the one that the measurements name.
        with_doubtful: Whether to take runs that their campaign calls doubtful.

    Raises:
        InputError: A dataset cannot be read, several drives are named, or too little was
            measured; says what to do.
        DataQualityError: The measurements contradict themselves (`model.fit.selection`).
    """
    named = [(path, read_dataset(path)) for path in dataset_paths(paths)]
    measurements = [one for _, dataset in named for one in dataset.measurements()]
    return fit_measured(
        _device(named, device),
        measurements,
        [_source(*one) for one in named],
        measured_drive(paths),
        characteristics(paths),
        with_doubtful=with_doubtful,
    )


def fit_measured(
    name: str,
    measurements: Sequence[Measurement],
    sources: list[SourceRecord],
    measured: MeasuredDrive | None,
    found: Characteristics | None,
    *,
    with_doubtful: bool = False,
) -> Fitted:
    """Fit a profile from measurements of one drive alone.

    Args:
        name: The drive's id or model.
        measurements: All of it.
        sources: Where they come from.
        measured: What the drive says of itself.
        found: What `iojoule measure characterise` found of it.
        with_doubtful: Whether to take runs that their campaign calls doubtful.

    Raises:
        InputError: Too little was measured; says what to do.
        DataQualityError: The measurements contradict themselves (`model.fit.selection`).
    """
    recipe, notes = _recipe(name, measured)
    selected = select(measurements, with_doubtful=with_doubtful)
    rows, notes = selected.measurements, notes + selected.notes
    recipe = recipe.model_copy(update={"host": measured_host(recipe.host, rows)})
    if found is not None:
        recipe = recipe.model_copy(
            update={
                "idle_watts": characterised_idle_watts(found),
                "write_state": characterised_writes(found),
                "idle": characterised_gaps(found),
            }
        )
    recipe = recipe.model_copy(update={"valid_for": valid_for(recipe.valid_for, rows)})
    facts = known_facts(name, measured)
    expected = Expectation(facts, recipe, rows)
    recipe = expected.power_recipe(rows)
    profile = fit_profile(recipe, rows, sources, priors_of=expected.priors)
    notes += notes_on_mixes(profile, rows)
    whole = expected.completed(profile)
    for term in TERMS:
        whole = term.fitted(whole, rows)
    found_too = {"flush": selected.flush, "rating": facts.rating, "recipe": DATASETS_RECIPE}
    return Fitted(whole.model_copy(update=found_too), notes)


def dataset_paths(paths: Sequence[Path]) -> list[Path]:
    """The dataset files that paths name: files as they are, of folders all that they hold.

    Raises:
        InputError: A folder holds none.
    """
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        inside = sorted(path.glob("*.parquet"))
        if not inside:
            raise InputError(
                f"{path}: holds no dataset (*.parquet); import measurements into it with "
                "`iojoule import`"
            )
        found += inside
    return found


def _device(named: Sequence[tuple[Path, Dataset]], device: str | None) -> str:
    """The drive that was measured: what is said, and it must not contradict what was recorded."""
    recorded: dict[str, Path] = {}
    for path, dataset in named:
        for name in dataset.column("device_model"):
            if name is not None:
                recorded.setdefault(str(name), path)
    if device is None and not recorded:
        raise InputError(
            "the measurements do not name the drive (device_model); say --device ID",
            field="device_model",
        )
    drives = {_key(name): name for name in recorded}
    wanted = {_key(device)} if device is not None else set(list(drives)[:1])
    others = [drives[key] for key in drives if key not in wanted]
    if others:
        said = f"--device says {device}" if device is not None else f"one is {next(iter(recorded))}"
        raise InputError(
            f"{recorded[others[0]]}: measurements of {', '.join(others)}, but {said}; a profile is "
            "of one drive: fit their datasets apart",
            field="device_model",
        )
    return device if device is not None else next(iter(recorded))


def _key(name: str) -> str:
    drive = catalogued(name)
    return drive.id if drive else name


def measured_drive(paths: Sequence[Path]) -> MeasuredDrive | None:
    """What the drive said of itself when it was measured, if that was kept."""
    folders = [path if path.is_dir() else path.parent for path in paths]
    return next((told for one in folders if (told := read_measured_drive(one)) is not None), None)


def characteristics(paths: Sequence[Path]) -> Characteristics | None:
    """What `iojoule measure characterise` found of the drive, if that was kept."""
    folders = [path if path.is_dir() else path.parent for path in paths]
    return next((found for one in folders if (found := read_characteristics(one))), None)


def _told(drive: MeasuredDrive | None) -> dict[str, Any]:
    """The fields of a recipe that the drive itself answers."""
    if drive is None:
        return {}
    known: dict[str, Any] = {"capacity_bytes": drive.capacity_bytes}
    if drive.max_transfer_bytes is not None:
        known["max_transfer_bytes"] = drive.max_transfer_bytes
    if drive.caps_watts:
        known["cap_watts"] = drive.caps_watts
    return known


def _recipe(name: str, measured: MeasuredDrive | None) -> tuple[Recipe, list[str]]:
    """The common assumptions with what the catalogue, or else the drive itself, says of it."""
    known = _told(measured)
    drive = catalogued(name)
    if drive is None:
        own = slug(name)
        close = ", ".join(load_catalogue().closest(name))
        return generic_recipe(own, name).model_copy(update=known), [
            f"{name} is not in the catalogue (closest: {close}); the profile is named {own}"
        ]
    for field, metric in (
        ("capacity_bytes", "capacity"),
        ("max_transfer_bytes", "max_transfer_size"),
    ):
        fact = drive.fact(metric)
        if fact is not None and fact.unit == "bytes" and not isinstance(fact.value, str):
            known[field] = int(fact.value)
    states = drive.operational_states
    caps = [state.max_power_watts for state in states]
    # a cap belongs to the state of its place in the list; some drives declare caps of 0 W
    if [state.index for state in states] == list(range(len(states))) and all(caps):
        known["cap_watts"] = caps
    known["drive_class"] = drive.drive_class
    return generic_recipe(drive.id, drive.model).model_copy(update=known), []


def _source(path: Path, dataset: Dataset) -> SourceRecord:
    files = dataset.provenance.sources
    said = {
        "citation": sorted({file.citation or file.name for file in files}),
        "licence": sorted({file.licence or "unknown" for file in files}),
    }
    return SourceRecord(
        name=path.name.removesuffix(".parquet"),
        citation="; ".join(said["citation"]) or "unknown",
        licence=", ".join(said["licence"]) or "unknown",
        rows_used=len(dataset),
        rows_excluded=len(dataset.provenance.excluded),
        sha256=files[0].sha256 if len(files) == 1 else None,
        notes=sorted({row.reason for row in dataset.provenance.excluded}),
    )
