"""Profiles to judge by: of a drive, without the findings that helped to build it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from iojoule.datasets.catalogue import Drive, load_catalogue
from iojoule.datasets.errors import UnknownDeviceError
from iojoule.datasets.profile import DeviceProfile
from iojoule.model.fitting.rebuild import Rebuilder
from iojoule.model.fitting.recipe import load_recipe, shipped_recipes

FromCatalogue = Callable[[Drive], DeviceProfile | None]
"""Builds a profile of a drive that nobody measured, from what the catalogue says of it."""


def nothing_known(drive: Drive) -> DeviceProfile | None:
    """No profile: what to say of a drive with neither measurements nor a learned prior."""
    return None


class Profiles:
    """Answers which profile judges a finding.

    Args:
        folder: The public measurements that recipes name.
        from_catalogue: What to ask for a drive without a recipe.
    """

    def __init__(self, folder: Path, from_catalogue: FromCatalogue = nothing_known) -> None:
        self._folder = folder
        self._from_catalogue = from_catalogue
        self._recipes = set(shipped_recipes())
        self._rebuilders: dict[str, Rebuilder] = {}
        self._others: dict[tuple[str, frozenset[str]], DeviceProfile | None] = {}

    def profile_for(self, device: str, without: Collection[str] = ()) -> DeviceProfile | None:
        """The profile of a drive without these findings; None where nothing is known of it.

        Raises:
            InputError: The measurements of its recipe are not there.
        """
        gone = frozenset(without)
        if device in self._recipes:
            if device not in self._rebuilders:
                self._rebuilders[device] = Rebuilder(load_recipe(device), self._folder)
            return self._rebuilders[device].profile(gone)
        key = (device, gone)
        if key not in self._others:
            drive = drive_without(device, gone)
            self._others[key] = self._from_catalogue(drive) if drive is not None else None
        return self._others[key]

    def left_out(self, device: str, without: Collection[str]) -> frozenset[str]:
        """Those of the findings that the drive's recipe rests on."""
        rebuilder = self._rebuilders.get(device)
        return rebuilder.used(without) if rebuilder is not None else frozenset()


def drive_without(device: str, facts: Collection[str]) -> Drive | None:
    """The catalogue's entry less the facts whose source names one of the findings."""
    try:
        drive = load_catalogue().get(device)
    except UnknownDeviceError:
        return None
    kept = tuple(one for one in drive.facts if not any(fact in one.source for fact in facts))
    return drive.model_copy(update={"facts": kept})
