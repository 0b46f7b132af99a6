"""Times as the service tells them."""

from __future__ import annotations

from datetime import UTC, datetime


def moment(seconds: float) -> datetime:
    """A time of the store for people and programs."""
    return datetime.fromtimestamp(round(seconds, 3), UTC)
