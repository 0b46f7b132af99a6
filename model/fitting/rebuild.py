"""Profiles built again without single findings, each in the time that what they touch takes."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from iojoule.datasets.profile import DeviceProfile
from iojoule.model.fitting.build import fit_profile, load_measurements
from iojoule.model.fitting.memory import SurfaceMemory
from iojoule.model.fitting.recipe import Recipe
from iojoule.model.fitting.recipe.without import facts_of, without


class Rebuilder:
    """Builds one drive's profile again without the findings that are to judge it.

    Args:
        recipe: The drive's recipe.
        folder: Where its measurements lie.

    Raises:
        InputError: A file of measurements is missing.
    """

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        self.recipe = recipe
        self.facts = facts_of(recipe)
        self._measured = load_measurements(recipe, folder)
        self._memory = SurfaceMemory()
        self._profiles: dict[frozenset[str], DeviceProfile] = {}

    def used(self, facts: Collection[str]) -> frozenset[str]:
        """Those of the findings that the recipe rests on."""
        return self.facts & frozenset(facts)

    def profile(self, facts: Collection[str] = ()) -> DeviceProfile:
        """The profile as it would be without these findings."""
        gone = self.used(facts)
        if gone not in self._profiles:
            reduced = without(self.recipe, gone)
            self._profiles[gone] = fit_profile(reduced, *self._measured, memory=self._memory)
        return self._profiles[gone]
