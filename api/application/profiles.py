"""Which device profile answers: a shipped one, what is expected of a known drive, or a file."""

from __future__ import annotations

from pathlib import Path

from iojoule.datasets.errors import NoProfileError
from iojoule.datasets.profile import (
    DeviceProfile,
    load_shipped_profile,
    read_host_profile,
    read_profile,
    shipped_profiles,
)


def profile_of(device: str) -> DeviceProfile:
    """The profile of a drive named by id, model or alias: shipped, else expected of its facts.

    Raises:
        UnknownDeviceError: No such drive; names the closest.
        NoProfileError: Nothing can be expected of it either; says what to measure.
    """
    if device in shipped_profiles():
        return load_shipped_profile(device)
    from iojoule.api.application.build_profile import expected_profile
    from iojoule.datasets.catalogue import load_catalogue

    named = load_catalogue().get(device).id
    return load_shipped_profile(named) if named in shipped_profiles() else expected_profile(named)


def profile_in(path: Path) -> DeviceProfile:
    """The profile in a file that `iojoule fit` wrote.

    Raises:
        SchemaVersionError: Written by a newer iojoule.
        InputError: Missing, truncated or not a profile.
    """
    return read_profile(path)


def on_host(profile: DeviceProfile, path: Path) -> DeviceProfile:
    """The profile as it answers on the host of a file that `iojoule measure host` wrote.

    Raises:
        SchemaVersionError: Written by a newer iojoule.
        InputError: Missing, truncated or not a host profile.
    """
    from iojoule.model.prior.host import with_host

    return with_host(profile, read_host_profile(path))


def what_to_measure(device: str) -> str:
    """What answers for a drive of the catalogue that nobody measured, and what would narrow it."""
    from iojoule.api.application.build_profile import advice, expected_profile

    try:
        return advice(expected_profile(device))
    except NoProfileError as error:
        return error.message
