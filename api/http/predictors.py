"""Profiles in the service's memory: loaded once, shared by all requests."""

from __future__ import annotations

from functools import cache, lru_cache

from iojoule.api.predictors import Predictors
from iojoule.api.profiles import profile_of
from iojoule.datasets.profile import shipped_profiles
from iojoule.datasets.schema import Conditions
from iojoule.model.validity import under
from iojoule.recommender.recommend import Recommender

RECOMMENDERS = 64
"""Recommenders kept in memory: conditions are anybody's, and each holds a drive's surfaces."""


def device_id(device: str) -> str:
    """The id of a drive named by id, model or alias.

    Raises:
        UnknownDeviceError: No such drive.
        NoProfileError: Nothing is fitted for it.
    """
    return device if device in shipped_profiles() else profile_of(device).device


@lru_cache(maxsize=RECOMMENDERS)
def recommender_under(device: str, conditions: Conditions) -> Recommender:
    """The recommender, and with it the predictor, of a drive by its id.

    Raises:
        StaleProfileError: The profile does not hold under these conditions; names the condition.
    """
    return Recommender(under(profile_of(device), conditions))


@cache
def predictors_for(device: str) -> Predictors:
    """The predictors of a drive under whatever conditions its questions state; raises as above."""
    return Predictors(profile_of(device))


def load_all() -> dict[str, str]:
    """Load every shipped profile; the version of each by its id."""
    versions = {}
    for device in shipped_profiles():
        profile = recommender_under(device, Conditions()).profile
        predictors_for(device).under({})
        versions[device] = profile.profile_version
    return versions
