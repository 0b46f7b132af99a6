"""Request ids, the request log, latencies, and traces by OpenTelemetry."""

from __future__ import annotations

import logging
import os
import re
import secrets
import time
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from iojoule import __version__
from iojoule.api.http import metrics
from iojoule.api.http.operations import route_of
from iojoule.api.logs import request_id
from iojoule.datasets.errors import InputError

HEADER = "X-Request-Id"

_REQUEST_ID = re.compile(r"[0-9A-Za-z._:-]{1,128}")

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_log = logging.getLogger(__name__)


class RequestLog:
    """Sets X-Request-Id (that of the request, else a new one), measures and logs each request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        id_ = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(16)
        scope.setdefault("state", {})["request_id"] = id_
        token = request_id.set(id_)
        status = 500  # of a request without a response
        begun = time.perf_counter()

        async def with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).setdefault(HEADER, id_)
            await send(message)

        try:
            await self._app(scope, receive, with_id)
        finally:
            _record(scope, status, time.perf_counter() - begun)
            request_id.reset(token)


def _record(scope: Scope, status: int, seconds: float) -> None:
    # by the route: clients invent paths and methods, and each would be a time series
    route = route_of(scope["method"], scope["path"]) or "none"
    method = scope["method"] if scope["method"] in _METHODS else "other"
    metrics.LATENCY.labels(method, route, str(status)).observe(seconds)
    client = scope.get("client")
    record = {
        "method": scope["method"],
        "path": scope["path"],
        "route": route,
        "status": status,
        "seconds": round(seconds, 6),
        "client": client[0] if client else None,
        "key_id": scope["state"].get("key_id"),
    }
    _log.info("request", extra=record)


ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""OTLP exporter specification; where one is set, requests are traced."""


def traces_configured() -> bool:
    """Whether traces are configured."""
    off = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    return not off and any(os.environ.get(name) for name in ENDPOINTS)


def trace_provider() -> Any:
    """An OpenTelemetry tracer provider, set up by its environment variables.

    Raises:
        InputError: Its libraries are not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError:
        raise InputError(
            f"{' or '.join(ENDPOINTS)} is set, but the libraries for traces are not installed: "
            "pip install 'iojoule[otel]', or unset it"
        ) from None
    resource = {SERVICE_NAME: os.environ.get("OTEL_SERVICE_NAME", "iojoule")}
    provider = TracerProvider(resource=Resource.create({**resource, SERVICE_VERSION: __version__}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


class RequestTraces:
    """One span a request, below the one that its `traceparent` names (W3C Trace Context).

    Names and attributes are those of OpenTelemetry's semantic conventions for HTTP servers.
    """

    def __init__(self, app: ASGIApp, provider: Any) -> None:
        self._app, self._tracer = app, provider.get_tracer("iojoule", __version__)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        from opentelemetry.trace import SpanKind, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        carrier: Mapping[str, str] = dict(Headers(scope=scope).items())
        parent = TraceContextTextMapPropagator().extract(carrier)
        route = route_of(scope["method"], scope["path"])
        attributes = {"http.request.method": scope["method"], "url.path": scope["path"]}
        attributes |= {"http.route": route} if route else {}
        name = f"{scope['method']} {route}" if route else scope["method"]
        with self._tracer.start_as_current_span(
            name, context=parent, kind=SpanKind.SERVER, attributes=attributes
        ) as span:

            async def with_status(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                    if message["status"] >= 500:
                        span.set_status(StatusCode.ERROR)
                    span.set_attribute("iojoule.request_id", scope["state"]["request_id"])
                await send(message)

            await self._app(scope, receive, with_status)
