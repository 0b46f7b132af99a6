"""Profiles to judge by: of a drive, without the findings that helped to build it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from pathlib import Path

from iojoule.datasets.catalogue import Drive, load_catalogue
from iojoule.datasets.errors import UnknownDeviceError
from iojoule.datasets.profile import DeviceProfile
from iojoule.model.fit.build import Rebuilder
from iojoule.model.recipe import load_recipe, shipped_recipes

FromCatalogue = Callable[[str, Drive | None, frozenset[str]], DeviceProfile | None]
"""Builds a profile of a drive that nobody measured, from its name, what the catalogue says of it,
and the findings that must not help."""


def nothing_known(
    device: str, drive: Drive | None, without: frozenset[str]
) -> DeviceProfile | None:
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
            self._others[key] = self._from_catalogue(device, drive, gone)
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
    kept = tuple(one for one in drive.facts if not _rests_on(one.source, facts))
    return drive.model_copy(update={"facts": kept})


def _rests_on(source: str, facts: Collection[str]) -> bool:
    """Whether a fact is one of the findings, or may be: the same paper, and no finding named."""
    if re.search(r"\d{3}-\d{3}", source):
        return any(fact in source for fact in facts)
    return by_author(source, facts)


def by_author(source: str, facts: Collection[str]) -> bool:
    """Whether a source of the catalogue is the paper of one of the findings."""
    papers = {fact[:3] for fact in facts}
    return any(word in source for paper in papers for word in AUTHORS.get(paper, ()))


AUTHORS = {
    "000": ("Kanichai", "thesis"), "001": ("Pavan",), "002": ("Bohner",),
    "003": ("Harris",), "004": ("Xie",),
}  # fmt: skip
"""How sources of the catalogue name the papers."""
