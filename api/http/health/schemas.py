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
