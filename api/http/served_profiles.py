"""Profiles in the service's memory: loaded once, shared by all requests."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

from fastapi import Depends, Request

from iojoule.api.application.predictors import Predictors
from iojoule.api.application.profiles import profile_of
from iojoule.api.http import metrics
from iojoule.api.state import profiles as stored_profiles
from iojoule.api.state.place import State
from iojoule.api.state.profiles import ProfileVersion
from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.errors import IojouleError
from iojoule.datasets.profile import DeviceProfile, shipped_profiles
from iojoule.datasets.schema import Conditions
from iojoule.recommender.recommend import Recommender

RECOMMENDERS = 64
"""Recommenders cached: clients choose the conditions, and each holds a drive's surfaces."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class ServedProfile:
    """A profile in use; caches are keyed by the identity of this object.

    Attributes:
        version: None: the profile that iojoule ships.
    """

    version: ProfileVersion | None
    profile: DeviceProfile


class ServedProfiles:
    """The profile in use for each drive: the version made current, else the shipped one."""

    def __init__(self) -> None:
        self._shipped: dict[str, ServedProfile] = {}
        self._published: dict[str, ServedProfile] = {}
        self._recommender = lru_cache(maxsize=RECOMMENDERS)(_recommender)
        self._predictors = lru_cache(maxsize=RECOMMENDERS)(_predictors)

    def device_id(self, device: str) -> str:
        """The id of a drive named by id, model or alias.

        Raises:
            UnknownDeviceError: No such drive.
            NoProfileError: Nothing is fitted for it.
        """
        if device in self._published or device in self._shipped:
            return device
        return self.of(load_catalogue().get(device).id).profile.device

    def published(self) -> dict[str, DeviceProfile]:
        """The profiles that were made current in place of shipped ones, by device."""
        return {device: served.profile for device, served in self._published.items()}

    def of(self, device: str) -> ServedProfile:
        """The profile in use for a drive by its id; raises as `device_id`."""
        profile = self._published.get(device) or self._shipped.get(device)
        return profile or self._shipped.setdefault(device, ServedProfile(None, profile_of(device)))

    def profile_of(self, device: str) -> DeviceProfile:
        """The profile of a drive named by id, model or alias; raises as `device_id`."""
        return self.of(self.device_id(device)).profile

    def recommender_under(self, device: str, conditions: Conditions) -> Recommender:
        """The recommender, and with it the predictor, of a drive by its id.

        Raises:
            InputError: The drive cannot be under these conditions; names the condition.
        """
        metrics.RECOMMENDER_LOOKUPS.inc()
        return self._recommender(self.of(device), conditions)

    def predictors_for(self, device: str) -> Predictors:
        """The predictors of a drive, for the conditions that each request states.

        Raises:
            UnknownDeviceError, NoProfileError: As `device_id`.
        """
        return self._predictors(self.of(self.device_id(device)))

    def load_all(self) -> dict[str, str]:
        """Load every profile; the version of each by its drive's id."""
        versions = {}
        for device in sorted({*shipped_profiles(), *self._published}):
            profile = self.recommender_under(device, Conditions()).profile
            self.predictors_for(device).under({})
            versions[device] = profile.profile_version
        return versions

    def refresh(self, state: State) -> None:
        """Read which versions are current; an unreadable one leaves the drive as it was.

        Raises:
            UnavailableError: The store cannot be reached.
        """
        with state.database.read() as connection:
            shown = stored_profiles.all_shown(connection)
        self.publish(state, shown.values())

    def published_versions(self) -> tuple[ProfileVersion, ...]:
        """The versions that were made current in place of shipped profiles."""
        return tuple(s.version for s in self._published.values() if s.version is not None)

    def publish(self, state: State, versions: Iterable[ProfileVersion]) -> None:
        """Use these versions; an unreadable one leaves the drive as it was."""
        published = {}
        for version in versions:
            known = self._published.get(version.device)
            if known is None or known.version != version:
                known = _read(state, version) or known
            if known is not None:
                published[version.device] = known
        if published != self._published:  # caches of replaced profiles
            self._recommender.cache_clear()
            self._predictors.cache_clear()
        self._published = published


def _read(state: State, version: ProfileVersion) -> ServedProfile | None:
    try:
        return ServedProfile(version, stored_profiles.read(state, version))
    except IojouleError as error:
        _log.error("profile of %s, version %d: %s", version.device, version.number, error.message)
        return None


def _recommender(served: ServedProfile, conditions: Conditions) -> Recommender:
    metrics.RECOMMENDER_MISSES.inc()
    return Recommender.under(served.profile, conditions)


def _predictors(served: ServedProfile) -> Predictors:
    return Predictors(served.profile)


async def _profiles_of(request: Request) -> ServedProfiles:
    profiles: ServedProfiles = request.app.state.profiles
    return profiles


Profiles = Annotated[ServedProfiles, Depends(_profiles_of)]
