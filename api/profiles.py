"""Which device profile answers a question: a shipped one by the drive's name, or a file."""

from __future__ import annotations

from pathlib import Path

from iojoule.datasets.errors import NoProfileError
from iojoule.datasets.profile import (
    DeviceProfile,
    load_shipped_profile,
    read_profile,
    shipped_profiles,
)


def profile_of(device: str) -> DeviceProfile:
    """The shipped profile of a drive named by id, model or alias.

    Raises:
        UnknownDeviceError: No such drive; names the closest.
        NoProfileError: The drive is known and nothing is fitted for it; says what to measure.
    """
    if device in shipped_profiles():
        return load_shipped_profile(device)
    from iojoule.datasets.catalogue import load_catalogue

    return load_shipped_profile(load_catalogue().get(device).id)


def profile_in(path: Path) -> DeviceProfile:
    """The profile in a file that `iojoule fit` wrote.

    Raises:
        SchemaVersionError: Written by a newer iojoule.
        InputError: Missing, truncated or not a profile.
    """
    return read_profile(path)


def what_to_measure(device: str) -> str | None:
    """What the drive of that id needs before anything can be predicted; None where it is there."""
    try:
        load_shipped_profile(device)
    except NoProfileError as error:
        return error.message
    return None
