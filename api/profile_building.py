"""Profiles of drives that nobody measured: from the catalogue, or from what a drive says itself."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from iojoule.datasets.catalogue import Drive, check_consistent, load_catalogue, load_drive_file
from iojoule.datasets.errors import InputError, NoProfileError, UnknownDeviceError
from iojoule.datasets.measured_drive import MeasuredDrive, read_identify
from iojoule.datasets.profile import DeviceProfile
from iojoule.model.prior.build import build_profile
from iojoule.model.prior.facts import (
    DriveFacts,
    facts_of,
    facts_of_measured,
    merged,
    unused_metrics,
)
from iojoule.model.prior.host import with_expected_host


@cache
def expected_profile(device: str) -> DeviceProfile:
    """The profile of a drive of the catalogue from its facts alone.

    Args:
        device: Id, model or alias.

    Raises:
        UnknownDeviceError: No such drive; names the closest.
        NoProfileError: No such hardware: nothing can be expected of an emulated drive.
    """
    drive = load_catalogue().get(device)
    if drive.drive_class == "emulated":
        raise NoProfileError(
            f"{drive.id}: is emulated: what it does follows from the machine under it, not from "
            "its facts; measure it (iojoule measure) and fit, then use --profile PROFILE.json"
        )
    return with_expected_host(build_profile(facts_of(drive)))


def profile_from_identify(path: Path) -> DeviceProfile:
    """The profile of a drive that said what it is; the catalogue adds what it knows of the model.

    Raises:
        InputError: The file is not what nvme-cli or a campaign writes.
    """
    return with_expected_host(build_profile(identified(read_identify(path))))


def profile_from_facts(path: Path) -> tuple[DeviceProfile, list[str]]:
    """The profile of a drive by its data sheet, written down as an entry of the catalogue.

    Args:
        path: A TOML file in the form of `datasets/catalogue/drives/*.toml`.

    Returns:
        The profile, and a sentence for each fact that no prediction uses.

    Raises:
        InputError: The file is not in that form, its facts contradict each other, or it describes
            an emulated drive; names the place and the remedy.
    """
    drive = load_drive_file(path)
    check_consistent(drive, str(path))
    if drive.drive_class == "emulated":
        raise InputError(
            f"{path}: drive_class: nothing follows from the facts of an emulated drive; measure "
            "it (iojoule measure) and fit",
            field="drive_class",
        )
    unused = [f"{path}: facts[{index}]: {said}" for index, said in unused_metrics(drive)]
    return with_expected_host(build_profile(facts_of(drive))), unused


def identified(drive: MeasuredDrive) -> DriveFacts:
    """Facts of a drive by its identify data, and by the catalogue where it knows the model."""
    known = catalogued(drive.model)
    if known is None:
        return facts_of_measured(drive, slug(drive.model))
    return merged(facts_of_measured(drive, known.id), facts_of(known))


def known_facts(name: str, told: MeasuredDrive | None) -> DriveFacts:
    """Identify data and data sheet of a drive; one that nobody knows says nothing."""
    if told is not None:
        facts = identified(told)
        known = catalogued(name)
        return facts if known is None or facts.device == known.id else facts_of(known)
    known = catalogued(name)
    if known is not None and known.drive_class != "emulated":
        return facts_of(known)
    return DriveFacts(device=slug(name), model=name, sata=None, datacentre=None, xpoint=None)


def catalogued(name: str) -> Drive | None:
    """The catalogue's drive of that id, model or alias; None where there is none."""
    try:
        return load_catalogue().get(name)
    except UnknownDeviceError:
        return None


def slug(name: str) -> str:
    """An id made of a model's name."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "drive"


def advice(profile: DeviceProfile) -> str:
    """What to say beside an answer that rests on a drive's facts alone."""
    return (
        f"nobody measured {profile.model_name}: the answer is what drives with its facts do "
        "(evidence datasheet, wide intervals), on an assumed host of four cores. To narrow it "
        "measure it (random and sequential, read and write, 4 KiB to 1 MiB, depth 1 to 256, with "
        "device power), run `iojoule fit DATASET -o PROFILE.json`, then use --profile "
        f"PROFILE.json; `iojoule profile explain --device {profile.device}` shows what it rests on"
    )
