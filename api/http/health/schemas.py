"""What the service says of itself."""

from __future__ import annotations

from pydantic import BaseModel


class Health(BaseModel):
    """The service answers, with these profiles.

    Attributes:
        profiles: Device -> version of its profile.
    """

    status: str
    iojoule_version: str
    profiles: dict[str, str]


class Readiness(BaseModel):
    """What is kept can be read and written.

    Attributes:
        database: sqlite or postgresql.
    """

    status: str
    database: str
    jobs_queued: int
    jobs_running: int
