"""Profiles of drives that nobody measured: from the catalogue, or from what a drive says itself."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from iojoule.datasets.catalogue import check_consistent, load_catalogue, load_drive_file
from iojoule.datasets.errors import InputError, NoProfileError
from iojoule.datasets.measured_drive import read_identify
from iojoule.datasets.profile import DeviceProfile
from iojoule.model.prior.build import build_profile
from iojoule.model.prior.facts import (
    facts_of,
    identified,
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


def advice(profile: DeviceProfile) -> str:
    """What to say beside an answer that rests on a drive's facts alone."""
    return (
        f"nobody measured {profile.model_name}: the answer is what drives with its facts do "
        "(evidence datasheet, wide intervals), on an assumed host of four cores. To narrow it "
        "measure it (random and sequential, read and write, 4 KiB to 1 MiB, depth 1 to 256, with "
        "device power), run `iojoule fit DATASET -o PROFILE.json`, then use --profile "
        f"PROFILE.json; `iojoule profile explain --device {profile.device}` shows what it rests on"
    )
