"""Profiles in the service's memory: loaded once, shared by all requests."""

from __future__ import annotations

from functools import cache

from iojoule.api.predictors import Predictors
from iojoule.api.profiles import profile_of
from iojoule.datasets.profile import shipped_profiles
from iojoule.datasets.schema import Conditions
from iojoule.model.validity import under
from iojoule.recommender.recommend import Recommender


def recommender_for(device: str) -> Recommender:
    """The recommender, and with it the predictor, of a drive named by id, model or alias.

    Raises:
        UnknownDeviceError: No such drive.
        NoProfileError: Nothing is fitted for it.
    """
    if device in shipped_profiles():
        return _recommender(device)
    return _recommender(profile_of(device).device)


@cache
def _recommender(device: str) -> Recommender:
    return Recommender(under(profile_of(device), Conditions()))


@cache
def predictors_for(device: str) -> Predictors:
    """The predictors of a drive under whatever conditions its questions state; raises as above."""
    return Predictors(profile_of(device))


def load_all() -> tuple[str, ...]:
    """Load every shipped profile and return their ids."""
    for device in shipped_profiles():
        recommender_for(device)
        predictors_for(device).under({})
    return shipped_profiles()
