"""Answers as pages: whoever accepts text/html rather than JSON gets the answer's report."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from fastapi import Request, Response
from pydantic import BaseModel

from iojoule.api.documents.html import POLICY
from iojoule.api.http.predictors import ServedProfiles
from iojoule.api.reports import Asked

HTML = "text/html"

VARY = {"Vary": "Accept"}
"""What a cache has to know of an answer that comes in two forms."""

EITHER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The answer; as text/html, its report: one page that needs nothing else",
        "content": {HTML: {"schema": {"type": "string"}}},
    }
}
"""What the description of the service says of such an operation."""


def wanted(request: Request) -> bool:
    """Whether a page is preferred to JSON (RFC 9110, 12.5.1)."""
    accepted = request.headers.get("accept", "*/*")
    return _quality(accepted, HTML) > _quality(accepted, "application/json")


def _quality(accepted: str, media: str) -> float:
    """How much a media type is liked: what names it most closely counts."""
    close = {media: 3, f"{media.partition('/')[0]}/*": 2, "*/*": 1}
    found = (0, 0.0)
    for one in accepted.split(","):
        name, *parameters = (part.strip() for part in one.split(";"))
        if name.lower() in close:
            found = max(found, (close[name.lower()], _weight(parameters)))
    return found[1]


def _weight(parameters: list[str]) -> float:
    for one in parameters:
        if one.lower().startswith("q="):
            try:
                return float(one[2:])
            except ValueError:
                return 0.0
    return 1.0


def asked(profiles: ServedProfiles, operation: str, question: BaseModel, *devices: str) -> Asked:
    """The question of a request.

    Args:
        profiles: Those that answer.
        operation: Its path.
        question: Its body.
        devices: Of the body.
    """
    sources = {
        source.name: source for device in devices for source in profiles.profile_of(device).sources
    }
    return Asked(
        at=datetime.now(UTC),
        operation=operation,
        request=question.model_dump(mode="json", exclude_none=True),
        sources=tuple(sources.values()),
    )


def page(html: str | bytes, name: str) -> Response:
    """A document to save under this name, which may style itself and do nothing else."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "iojoule"
    headers = {
        "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'; sandbox",
        "Content-Disposition": f'attachment; filename="{stem}.html"',
        **VARY,
    }
    return Response(html, media_type=HTML, headers=headers)
