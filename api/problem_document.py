"""An error as RFC 9457 has it: what the service answers, and what a failed job keeps."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from iojoule.datasets.errors import IojouleError


def problem_of(error: IojouleError) -> dict[str, Any]:
    """Type, title, status and detail, and the JSON pointer of the field where there is one."""
    kind = type(error)
    slug = re.sub(r"[^a-z0-9]+", "-", kind.title.lower()).strip("-")
    problem: dict[str, Any] = {
        "type": f"urn:iojoule:problem:{slug}",
        "title": kind.title,
        "status": kind.http_status,
        "detail": error.message,
    }
    if error.field:
        problem["field"] = pointer(error.field.split("."))
    return problem


def pointer(parts: Iterable[Any]) -> str:
    """A JSON pointer (RFC 6901) from the keys and indices of a path."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)
