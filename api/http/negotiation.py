"""Content negotiation: a response as JSON or, where text/html is preferred, as its report."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from fastapi import Request, Response
from pydantic import BaseModel

from iojoule.api.http.served_profiles import ServedProfiles
from iojoule.api.http.workers import WorkerPool
from iojoule.api.reports.document import POLICY, Document, to_html
from iojoule.api.reports.report_file import Asked

RequestModel = TypeVar("RequestModel", bound=BaseModel)
ResponseModel = TypeVar("ResponseModel", bound=BaseModel)

HTML = "text/html"

VARY = {"Vary": "Accept"}
"""For caches: the response depends on Accept."""

JSON_OR_HTML: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The response; as text/html, its report: one self-contained page",
        "content": {HTML: {"schema": {"type": "string"}}},
    }
}
"""Such an operation in the OpenAPI document."""


def prefers_html(request: Request) -> bool:
    """Whether a page is preferred to JSON (RFC 9110, 12.5.1)."""
    accepted = request.headers.get("accept", "*/*")
    return _quality(accepted, HTML) > _quality(accepted, "application/json")


def _quality(accepted: str, media: str) -> float:
    """The quality value of a media type, by the most specific range that matches."""
    specificity = {media: 3, f"{media.partition('/')[0]}/*": 2, "*/*": 1}
    best = (0, 0.0)
    for media_range in accepted.split(","):
        name, *parameters = (part.strip() for part in media_range.split(";"))
        if name.lower() in specificity:
            best = max(best, (specificity[name.lower()], _weight(parameters)))
    return best[1]


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        if parameter.lower().startswith("q="):
            try:
                return float(parameter[2:])
            except ValueError:
                return 0.0
    return 1.0


async def json_or_report(
    http: Request,
    workers: WorkerPool,
    compute: Callable[[ServedProfiles, RequestModel], ResponseModel],
    report: Callable[[ResponseModel, Asked], Document],
    request: RequestModel,
    *devices: str,
    name: str,
) -> Response:
    """The response as JSON or, where that is preferred, its report.

    Args:
        http: The request.
        workers: Worker processes.
        compute: A function of a module: profiles and body of the request -> response.
        report: A function of a module: response and description of the request -> report.
        request: The body of the request.
        devices: Drives that it names.
        name: File name of the report.
    """
    if prefers_html(http):
        path = http.url.path
        return html_file(await workers(_page, compute, report, path, request, devices), name)
    content = await workers(_json, compute, request)
    return Response(content, media_type="application/json", headers=VARY)


def _json(
    profiles: ServedProfiles,
    compute: Callable[[ServedProfiles, RequestModel], ResponseModel],
    request: RequestModel,
) -> bytes:
    return compute(profiles, request).model_dump_json().encode()


def _page(
    profiles: ServedProfiles,
    compute: Callable[[ServedProfiles, RequestModel], ResponseModel],
    report: Callable[[ResponseModel, Asked], Document],
    operation: str,
    request: RequestModel,
    devices: tuple[str, ...],
) -> bytes:
    response = compute(profiles, request)
    body = request.model_dump(mode="json", exclude_none=True)
    described = request_of_report(datetime.now(UTC), profiles, operation, body, *devices)
    return to_html(report(response, described)).encode()


def request_of_report(
    received: datetime,
    profiles: ServedProfiles,
    operation: str,
    body: dict[str, Any],
    *devices: str,
) -> Asked:
    """A request as its report describes it.

    Args:
        received: Time of the request.
        profiles: The profiles in use.
        operation: Path.
        body: Body of the request.
        devices: Drives that it names.
    """
    sources = {
        source.name: source for device in devices for source in profiles.profile_of(device).sources
    }
    return Asked(at=received, operation=operation, request=body, sources=tuple(sources.values()))


def html_file(html: str | bytes, name: str) -> Response:
    """A page to download; its policy allows inline styles and nothing else."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "iojoule"
    headers = {
        "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'; sandbox",
        "Content-Disposition": f'attachment; filename="{stem}.html"',
        **VARY,
    }
    return Response(html, media_type=HTML, headers=headers)
