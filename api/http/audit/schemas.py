"""What the service says of changes."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel


class AuditEntry(BaseModel):
    """A change that was made.

    Attributes:
        origin: key: with an API key; open: of a service that asks for none; local: at the command
            line; service: the service by itself.
        owner: Whose key it was.
        action: What was done, such as `dataset.upload`.
        object: What was changed, such as `dataset/ID`.
        outcome: done; of a job that is called off: cancelled, or requested where it runs.
    """

    id: str
    at: datetime
    origin: Literal["key", "open", "local", "service"]
    key_id: str | None
    owner: str | None
    os_user: str | None
    action: str
    object: str
    outcome: str
    details: dict[str, Any]
    request_id: str | None
    remote_address: str | None


class AuditList(BaseModel):
    """Changes, the newest first.

    Attributes:
        next_cursor: What to ask for next; null: this is the end.
    """

    entries: list[AuditEntry]
    next_cursor: str | None
