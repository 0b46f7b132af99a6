"""Which version of a profile answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Current:
    """Which version of a device's profile answers.

    Attributes:
        etag: Names this choice: a change that was decided on it fails once there is another.
    """

    device: str
    version: int
    etag: str
