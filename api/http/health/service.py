"""Whether the service is up, and whether it can do everything that it is there for."""

from __future__ import annotations

from iojoule import __version__
from iojoule.api.http.health.schemas import Health, Readiness
from iojoule.api.http.predictors import ServedProfiles
from iojoule.api.state import jobs
from iojoule.api.state.place import State


def health(profiles: ServedProfiles) -> Health:
    """The state of the service; raises what loading a profile raises."""
    return Health(
        status="ok",
        iojoule_version=__version__,
        profiles=profiles.load_all(),
    )


def readiness(store: State) -> Readiness:
    """Whether what is kept can be read and written.

    Raises:
        UnavailableError, StorageFullError: It cannot.
    """
    store.files.probe()
    with store.database.write() as connection:
        counted = jobs.counted(connection)
    return Readiness(
        status="ready",
        database=store.database.url.get_backend_name(),
        jobs_queued=counted.get("queued", 0),
        jobs_running=counted.get("running", 0),
    )
