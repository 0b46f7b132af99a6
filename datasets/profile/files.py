"""Reading and writing profiles, and those that ship."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from iojoule import __version__
from iojoule.datasets.atomic import write_text_atomically
from iojoule.datasets.errors import InputError, NoProfileError, SchemaVersionError
from iojoule.datasets.profile.document import DeviceProfile
from iojoule.datasets.schema import Section, validation_error

PROFILE_SCHEMA_VERSION = 1
"""Version of the profile's JSON layout; a reader refuses anything newer."""


FIT_AGAIN = "fit it again: `iojoule fit DATASET... -o PROFILE.json`"


def fitted_by_another(profile: DeviceProfile) -> str | None:
    """What to say of a profile that another version of iojoule fitted; None where this one did."""
    ours = f"iojoule {__version__}"
    if profile.generator == ours:
        return None
    return (
        f"the profile of {profile.model_name} was fitted by {profile.generator}, this is {ours}: "
        f"its figures may differ from what a fit finds today; {FIT_AGAIN}"
    )


def write_profile(profile: DeviceProfile, path: Path) -> None:
    """Write a profile atomically as indented JSON; raises as `write_document`."""
    write_document(profile, path)


def write_document(document: Section, path: Path) -> None:
    """Write a document atomically as indented JSON.

    Raises:
        InputError: The folder does not exist or cannot be written.
    """
    text = json.dumps(document.model_dump(mode="json"), indent=1, sort_keys=True) + "\n"
    try:
        write_text_atomically(path, text)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def parse_profile(text: bytes, where: str) -> DeviceProfile:
    """Read a profile from JSON bytes; raises as `parse_document`."""
    return parse_document(
        DeviceProfile, text, where, ("a device profile", PROFILE_SCHEMA_VERSION, "fit it again")
    )


D = TypeVar("D", bound=Section)


def parse_document(kind: type[D], text: bytes, where: str, about: tuple[str, int, str]) -> D:
    """Read a document from JSON bytes.

    Args:
        kind: What it must be.
        text: Its bytes.
        where: Names the file in messages.
        about: What people call it, the newest version that is read, and how one is made anew.

    Raises:
        SchemaVersionError: Written by a newer version of iojoule.
        InputError: Not JSON, truncated, or not such a document; the message names file and field.
    """
    name, newest, remedy = about
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits
        raise InputError(
            f"{where}: not a complete JSON file ({error}); {remedy} or restore a copy"
        ) from None
    version = data.get("schema_version") if isinstance(data, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise InputError(f"{where}: not {name}: no schema_version")
    if version > newest:
        raise SchemaVersionError(
            f"{where}: profile schema {version} is newer than {newest}, the newest "
            f"this iojoule reads; upgrade iojoule or {remedy}"
        )
    if version < 1:
        raise SchemaVersionError(f"{where}: profile schema {version} never existed")
    if version < PROFILE_SCHEMA_VERSION:
        raise SchemaVersionError(
            f"{where}: profile schema {version} is older than {PROFILE_SCHEMA_VERSION}, what this "
            f"iojoule reads; {FIT_AGAIN}"
        )
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        raise validation_error(error, where) from None


def read_profile(path: Path) -> DeviceProfile:
    """Read a profile file; raises as `parse_profile`, and InputError where it is unreadable."""
    return parse_profile(document_bytes(path), str(path))


def document_bytes(path: Path) -> bytes:
    """The bytes of a file.

    Raises:
        InputError: It cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def shipped_profiles() -> tuple[str, ...]:
    """Return the ids of the SSD models whose profile ships with iojoule, sorted."""
    folder = resources.files("iojoule.datasets").joinpath("profiles")
    if not folder.is_dir():
        return ()
    return tuple(
        sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".json"))
    )


@cache
def load_shipped_profile(device: str) -> DeviceProfile:
    """Load the shipped profile of a catalogue id.

    Raises:
        NoProfileError: No profile ships for it.
    """
    if device not in shipped_profiles():
        raise NoProfileError(
            f"{device}: no profile ships for this model; profiles ship for "
            f"{', '.join(shipped_profiles())}. Measure it (random and sequential, read and write, "
            "4 KiB to 1 MiB, depth 1 to 256, with device power), import the results and run "
            "`iojoule fit DATASET -o PROFILE.json`, then use --profile PROFILE.json"
        )
    entry = resources.files("iojoule.datasets").joinpath("profiles", f"{device}.json")
    return parse_profile(entry.read_bytes(), entry.name)
