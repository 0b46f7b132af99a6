"""Answers as pages: whoever accepts text/html rather than JSON gets the answer's report."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from fastapi import Request, Response
from pydantic import BaseModel

from iojoule.api.documents.content import Document
from iojoule.api.documents.html import POLICY, to_html
from iojoule.api.http.computing import Computing
from iojoule.api.http.predictors import ServedProfiles
from iojoule.api.reports import Asked

Question = TypeVar("Question", bound=BaseModel)
Answer = TypeVar("Answer", bound=BaseModel)

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


async def either(
    http: Request,
    computed: Computing,
    answering: Callable[[ServedProfiles, Question], Answer],
    reporting: Callable[[Answer, Asked], Document],
    question: Question,
    *devices: str,
    name: str,
) -> Response:
    """The answer as JSON or, where that is preferred, its report.

    Args:
        http: The request.
        computed: What computes.
        answering: A function of a module that answers, with the profiles that it is given.
        reporting: Likewise one that writes the report.
        question: The body of the request.
        devices: Those that it names.
        name: Of the page, to save it under.
    """
    if wanted(http):
        path = http.url.path
        return page(await computed(_page, answering, reporting, path, question, devices), name)
    content = await computed(_json, answering, question)
    return Response(content, media_type="application/json", headers=VARY)


def _json(
    profiles: ServedProfiles,
    answering: Callable[[ServedProfiles, Question], Answer],
    question: Question,
) -> bytes:
    return answering(profiles, question).model_dump_json().encode()


def _page(
    profiles: ServedProfiles,
    answering: Callable[[ServedProfiles, Question], Answer],
    reporting: Callable[[Answer, Asked], Document],
    operation: str,
    question: Question,
    devices: tuple[str, ...],
) -> bytes:
    answer = answering(profiles, question)
    body = question.model_dump(mode="json", exclude_none=True)
    asked = asked_at(datetime.now(UTC), profiles, operation, body, *devices)
    return to_html(reporting(answer, asked)).encode()


def asked_at(
    moment: datetime, profiles: ServedProfiles, operation: str, body: dict[str, Any], *devices: str
) -> Asked:
    """The question of a request.

    Args:
        moment: When it came.
        profiles: Those that answer.
        operation: Its path.
        body: Of the request.
        devices: Those that it names.
    """
    sources = {
        source.name: source for device in devices for source in profiles.profile_of(device).sources
    }
    return Asked(at=moment, operation=operation, request=body, sources=tuple(sources.values()))


def page(html: str | bytes, name: str) -> Response:
    """A document to save under this name, which may style itself and do nothing else."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "iojoule"
    headers = {
        "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'; sandbox",
        "Content-Disposition": f'attachment; filename="{stem}.html"',
        **VARY,
    }
    return Response(html, media_type=HTML, headers=headers)
