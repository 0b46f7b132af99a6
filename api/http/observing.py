"""Watches every request: gives it an id, measures it, and logs it."""

from __future__ import annotations

import logging
import re
import secrets
import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from iojoule.api.http import figures
from iojoule.api.http.operations import route_of
from iojoule.api.logs import request_id

HEADER = "X-Request-Id"

_SENSIBLE = re.compile(r"[0-9A-Za-z._:-]{1,128}")

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_log = logging.getLogger(__name__)


class Observed:
    """Gives every answer its X-Request-Id: the one that came with the request, else a new one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        own = given if _SENSIBLE.fullmatch(given) else secrets.token_hex(16)
        scope.setdefault("state", {})["request_id"] = own
        token = request_id.set(own)
        status = 500  # of what ends without an answer
        begun = time.perf_counter()

        async def with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).setdefault(HEADER, own)
            await send(message)

        try:
            await self._app(scope, receive, with_id)
        finally:
            _tell(scope, status, time.perf_counter() - begun)
            request_id.reset(token)


def _tell(scope: Scope, status: int, seconds: float) -> None:
    # by the route: paths and methods are whatever clients make up, and each would be a series
    route = route_of(scope["method"], scope["path"]) or "none"
    method = scope["method"] if scope["method"] in _METHODS else "other"
    figures.LATENCY.labels(method, route, str(status)).observe(seconds)
    client = scope.get("client")
    told = {
        "method": scope["method"], "path": scope["path"], "route": route, "status": status,
        "seconds": round(seconds, 6), "client": client[0] if client else None,
        "key_id": scope["state"].get("key_id"),
    }  # fmt: skip
    _log.info("request", extra=told)
