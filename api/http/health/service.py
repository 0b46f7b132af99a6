"""Whether the service can answer."""

from __future__ import annotations

from iojoule import __version__
from iojoule.api.http.health.schemas import Health
from iojoule.api.http.predictors import ServedProfiles


def health(profiles: ServedProfiles) -> Health:
    """The state of the service; raises what loading a profile raises."""
    return Health(
        status="ok",
        iojoule_version=__version__,
        profiles=profiles.load_all(),
    )
