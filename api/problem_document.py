"""An error as RFC 9457 has it: what the service answers, and what a failed job keeps."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import BaseModel, Field

from iojoule.api.state.errors import Exceeded, LimitReached
from iojoule.datasets.errors import IojouleError

MEDIA_TYPE = "application/problem+json"


class FieldProblem(BaseModel):
    """What is wrong at one place of the request."""

    field: str = Field(description="JSON pointer (RFC 6901) into the body, or the parameter.")
    detail: str


class ExceededLimit(BaseModel):
    """The limit of a key that is reached."""

    name: str = Field(description="As `iojoule key` calls it.", examples=["jobs-waiting"])
    limit: float
    used: float
    frees_at: datetime | None = Field(
        description="When it is free again; null: when something ends or is deleted."
    )


class Problem(BaseModel):
    """An error: RFC 9457 with the offending field, where there is one."""

    type: str = Field(examples=["urn:iojoule:problem:unknown-device"])
    title: str
    status: int
    detail: str
    instance: str = Field(description="Path of the request.")
    request_id: str | None = Field(
        default=None, description="X-Request-Id, by which the logs name it.", examples=["b3c1f6"]
    )
    field: str | None = Field(default=None, description="JSON pointer of the first fault.")
    errors: list[FieldProblem] | None = None
    limit: ExceededLimit | None = None


def problem_of(error: IojouleError) -> dict[str, Any]:
    """Type, title, status and detail, and the JSON pointer of the field where there is one."""
    kind = type(error)
    problem: dict[str, Any] = {
        "type": f"urn:iojoule:problem:{slug_of(kind)}",
        "title": kind.title,
        "status": kind.http_status,
        "detail": error.message,
    }
    if error.field:
        problem["field"] = pointer(error.field.split("."))
    if isinstance(error, LimitReached) and error.exceeded is not None:
        problem["limit"] = _exceeded(error.exceeded)
    return problem


def _exceeded(met: Exceeded) -> dict[str, Any]:
    left = met.frees_in_seconds
    frees_at = None if left is None else datetime.now(UTC) + timedelta(seconds=left)
    return {"name": met.name, "limit": met.limit, "used": met.used, "frees_at": frees_at}


def slug_of(kind: type[IojouleError]) -> str:
    """The last part of the type of its problems."""
    return re.sub(r"[^a-z0-9]+", "-", kind.title.lower()).strip("-")


def pointer(parts: Iterable[Any]) -> str:
    """A JSON pointer (RFC 6901) from the keys and indices of a path."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)
