"""Fits device profiles: the shipped ones from public measurements, others from users' datasets."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path

from iojoule.datasets.catalogue import catalogued
from iojoule.datasets.characteristics import FILE_NAME, characteristics
from iojoule.datasets.errors import InputError
from iojoule.datasets.measured_drive import measured_drive
from iojoule.datasets.profile import DeviceProfile, SourceRecord
from iojoule.datasets.store import Dataset, dataset_paths, read_dataset
from iojoule.datasets.verdict import usable
from iojoule.model.fit.build import (
    Contributed,
    contributed_rows,
    fit_profile,
    load_measurements,
)
from iojoule.model.fit.measured import Fitted, fit_measured
from iojoule.model.prior.build import completed_with_facts
from iojoule.model.prior.facts import known_facts
from iojoule.model.recipe import (
    load_recipe,
    shipped_recipes,
)

DATA_VARIABLE = "IOJOULE_DATA"
"""Environment variable that names the folder of the public measurements."""


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
    with_runs = [path for path in paths if not _tells_no_run(path)]
    named = [(path, read_dataset(path)) for path in dataset_paths(with_runs or paths)]
    measurements = [one for _, dataset in named for one in dataset.measurements()]
    return fit_measured(
        _device(named, device),
        measurements,
        [_source(path, dataset, with_doubtful=with_doubtful) for path, dataset in named],
        measured_drive(paths),
        characteristics(paths),
        with_doubtful=with_doubtful,
    )


def _tells_no_run(path: Path) -> bool:
    """Whether it is a characterisation of questions whose runs are no measurements."""
    return (path / FILE_NAME).is_file() and not any(path.glob("*.parquet"))


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


def _few(names: list[str]) -> str:
    """Three of them, and how many more: a folder of results has a file for each run."""
    more = f"; and {len(names) - 3} more" if len(names) > 3 else ""
    return "; ".join(names[:3]) + more


def _source(path: Path, dataset: Dataset, *, with_doubtful: bool) -> SourceRecord:
    files = dataset.provenance.sources
    judged = usable(dataset.measurements(), with_doubtful=with_doubtful)
    reasons = {row.reason for row in dataset.provenance.excluded}
    said = {
        "citation": sorted({file.citation or file.name for file in files}),
        "licence": sorted({file.licence or "unknown" for file in files}),
    }
    return SourceRecord(
        name=path.name.removesuffix(".parquet"),
        citation=_few(said["citation"]) or "unknown",
        licence=", ".join(said["licence"]) or "unknown",
        rows_used=len(judged.measurements),
        rows_excluded=len(dataset.provenance.excluded) + len(dataset) - len(judged.measurements),
        sha256=files[0].sha256 if len(files) == 1 else None,
        notes=sorted({*reasons, *judged.notes}),
    )
